//! Reads `.safetensors` and `.npz`, writes `.safetensors`.

use super::{Failure, input};
use rnnc::{Tensor, Tensors};
use rnnc_runtime::engine::Data;
use rnnc_runtime::plan::Elem;
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use std::collections::BTreeMap;
use std::path::Path;

/// A tensor from a file, whatever its type there.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Its extents.
    pub shape: Vec<usize>,
    /// Its elements.
    pub data: Vec<f64>,
}

/// Tensors of a file, by the names there.
pub type Arrays = BTreeMap<String, Array>;

impl Array {
    /// As a device takes it.
    pub fn to_tensor(&self, elem: Elem) -> Tensor {
        match elem {
            Elem::I32 => Tensor::indices(&self.shape, self.data.iter().map(|x| *x as i32).collect()),
            _ => Tensor::new(&self.shape, self.data.iter().map(|x| *x as f32).collect()),
        }
    }
}

/// Reads a file by its extension.
pub fn read(path: &Path) -> Result<Arrays, Failure> {
    let bytes = std::fs::read(path).map_err(input(path.display()))?;
    match path.extension().and_then(|e| e.to_str()) {
        Some("npz") => read_npz(bytes).map_err(input(path.display())),
        Some("safetensors") => read_safetensors(&bytes).map_err(input(path.display())),
        _ => Err(Failure::Usage(format!(
            "{}: expected a .safetensors or .npz file",
            path.display()
        ))),
    }
}

fn read_safetensors(bytes: &[u8]) -> Result<Arrays, String> {
    let file = SafeTensors::deserialize(bytes).map_err(|e| format!("not a safetensors file: {e}"))?;
    let convert = |(name, view): (String, TensorView<'_>)| {
        let data =
            decode(view.dtype(), view.data()).ok_or_else(|| format!("{name}: type {:?} is not read", view.dtype()))?;
        Ok((
            name,
            Array {
                shape: view.shape().to_vec(),
                data,
            },
        ))
    };
    file.tensors().into_iter().map(convert).collect()
}

fn decode(dtype: Dtype, bytes: &[u8]) -> Option<Vec<f64>> {
    fn each<const N: usize>(bytes: &[u8], f: impl Fn([u8; N]) -> f64) -> Vec<f64> {
        bytes.as_chunks::<N>().0.iter().map(|c| f(*c)).collect()
    }
    Some(match dtype {
        Dtype::F64 => each(bytes, f64::from_le_bytes),
        Dtype::F32 => each(bytes, |c| f64::from(f32::from_le_bytes(c))),
        Dtype::BF16 => each(bytes, |c: [u8; 2]| {
            f64::from(f32::from_bits(u32::from(u16::from_le_bytes(c)) << 16))
        }),
        Dtype::F16 => each(bytes, |c| half::f16::from_le_bytes(c).to_f64()),
        Dtype::I64 => each(bytes, |c| i64::from_le_bytes(c) as f64),
        Dtype::I32 => each(bytes, |c| f64::from(i32::from_le_bytes(c))),
        Dtype::I16 => each(bytes, |c| f64::from(i16::from_le_bytes(c))),
        Dtype::I8 => each(bytes, |c: [u8; 1]| f64::from(c[0] as i8)),
        Dtype::U8 | Dtype::BOOL => each(bytes, |c: [u8; 1]| f64::from(c[0])),
        _ => return None,
    })
}

fn read_npz(bytes: Vec<u8>) -> Result<Arrays, String> {
    let mut file =
        npyz::npz::NpzArchive::new(std::io::Cursor::new(bytes)).map_err(|e| format!("not an npz file: {e}"))?;
    let names: Vec<String> = file.array_names().map(str::to_owned).collect();
    let mut arrays = Arrays::new();
    for name in names {
        let Some(array) = file.by_name(&name).map_err(|e| format!("{name}: {e}"))? else {
            continue;
        };
        if array.order() == npyz::Order::Fortran {
            return Err(format!(
                "{name}: Fortran order is not read; save numpy.ascontiguousarray of it"
            ));
        }
        let shape = array.shape().iter().map(|n| *n as usize).collect();
        let data = decode_npy(array).map_err(|e| format!("{name}: {e}"))?;
        arrays.insert(name, Array { shape, data });
    }
    Ok(arrays)
}

fn decode_npy<R: std::io::Read>(array: npyz::NpyFile<R>) -> Result<Vec<f64>, String> {
    let dtype = array.dtype().descr();
    let text = |e: std::io::Error| e.to_string();
    let code = dtype.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    match code {
        "f8" => array.into_vec::<f64>().map_err(text),
        "f4" => Ok(array
            .into_vec::<f32>()
            .map_err(text)?
            .into_iter()
            .map(f64::from)
            .collect()),
        "i8" => Ok(array
            .into_vec::<i64>()
            .map_err(text)?
            .into_iter()
            .map(|x| x as f64)
            .collect()),
        "i4" => Ok(array
            .into_vec::<i32>()
            .map_err(text)?
            .into_iter()
            .map(f64::from)
            .collect()),
        "u1" => Ok(array
            .into_vec::<u8>()
            .map_err(text)?
            .into_iter()
            .map(f64::from)
            .collect()),
        _ => Err(format!(
            "type {dtype} is not read; save float32 or float64, or int32 or int64 for indices"
        )),
    }
}

/// Writes tensors as f32 (indices as i32).
pub fn write(path: &Path, tensors: &Tensors) -> Result<(), Failure> {
    let bytes: BTreeMap<&String, Vec<u8>> = tensors.iter().map(|(name, t)| (name, encode(&t.data))).collect();
    let mut views = Vec::new();
    for (name, tensor) in tensors {
        let dtype = if matches!(tensor.data, Data::F32(_)) {
            Dtype::F32
        } else {
            Dtype::I32
        };
        let view = TensorView::new(dtype, tensor.shape.clone(), &bytes[name]).map_err(input(name))?;
        views.push((name.as_str(), view));
    }
    let text = safetensors::serialize(views, None).map_err(input(path.display()))?;
    std::fs::write(path, text).map_err(input(path.display()))
}

fn encode(data: &Data) -> Vec<u8> {
    match data {
        Data::F32(values) => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
        Data::I32(values) => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
    }
}
