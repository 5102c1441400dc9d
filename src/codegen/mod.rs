//! Plan to text: CUDA, C header, manifest.
