//! C identifiers: the user's names in, names out that collide neither with C++, nor with the prelude, nor with each other.

use std::collections::{BTreeMap, BTreeSet};

/// Words that a value may not be called: C++ keywords, CUDA's built-in names, and macros some compilers predefine.
const WORDS: &str = "alignas alignof and and_eq asm atomic_cancel atomic_commit atomic_noexcept auto bitand bitor bool \
    break case catch char char8_t char16_t char32_t class compl concept const consteval constexpr constinit const_cast \
    continue co_await co_return co_yield decltype default delete do double dynamic_cast else enum explicit export \
    extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator \
    or or_eq private protected public register reinterpret_cast requires restrict return short signed sizeof static \
    static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename union \
    unsigned using virtual void volatile wchar_t while xor xor_eq \
    threadIdx blockIdx blockDim gridDim warpSize dim3 uint3 uint4 int2 int4 float2 float4 min max \
    linux unix i386 NULL NAN INFINITY";

/// C's functions that emitted text may call; a value of that name would hide them.
const FUNCTIONS: &str = "expf logf sqrtf fabsf tanhf sinf cosf floorf erff erfcf log1pf powf fmodf fmaxf fminf fmaf";

/// Variables that the skeletons of kernels declare.
const SKELETON: &str = "T B t at seq item count stride channel lane group round slot first frame later unit row";

/// Gives out names, each once.
#[derive(Clone, Debug)]
pub struct Names {
    taken: BTreeSet<String>,
    /// The next number to try behind a name: bodies may hold many thousands of registers.
    next: BTreeMap<String, usize>,
}

impl Names {
    /// For one kernel: C++ words, the prelude's names and the skeletons' variables are taken.
    pub fn kernel() -> Names {
        let mut names = Names::file();
        names.reserve(SKELETON.split_whitespace());
        names
    }

    /// For names at file scope, such as kernels.
    pub fn file() -> Names {
        let mut taken = BTreeSet::new();
        taken.extend(WORDS.split_whitespace().map(String::from));
        taken.extend(FUNCTIONS.split_whitespace().map(String::from));
        taken.extend(super::prelude::names().map(String::from));
        Names {
            taken,
            next: BTreeMap::new(),
        }
    }

    /// Takes these names, whoever else had them.
    pub fn reserve<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        self.taken.extend(names.into_iter().map(String::from));
    }

    /// Whether a name is still to be had.
    pub fn is_free(&self, name: &str) -> bool {
        !self.taken.contains(name)
    }

    /// A name as close to `wanted` as can be: with a `_` behind where it is taken, then with a number.
    pub fn unique(&mut self, wanted: &str) -> String {
        let name = identifier(wanted);
        for candidate in [name.clone(), format!("{name}_")] {
            if self.taken.insert(candidate.clone()) {
                return candidate;
            }
        }
        self.counted(&format!("{name}_"), 2)
    }

    /// A name from a numbered series: `stem1`, `stem2`, ...
    pub fn numbered(&mut self, stem: &str) -> String {
        self.counted(stem, 1)
    }

    fn counted(&mut self, stem: &str, first: usize) -> String {
        let next = self.next.entry(stem.to_string()).or_insert(first);
        loop {
            let candidate = format!("{stem}{next}");
            *next += 1;
            if self.taken.insert(candidate.clone()) {
                return candidate;
            }
        }
    }
}

/// `wanted` with every character that C does not allow in an identifier turned into `_`.
pub fn identifier(wanted: &str) -> String {
    let mut name: String = wanted
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    // Leading digits are no identifier, leading double underscores belong to the compiler.
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || name.starts_with("__") {
        name.insert(0, 'v');
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taken_names_get_an_underscore_then_a_number() {
        let mut names = Names::kernel();
        let got: Vec<String> = ["h", "h", "h", "new", "T", "sigmoid", "l.0.W", "__shfl_sync", "0x"]
            .iter()
            .map(|n| names.unique(n))
            .collect();
        assert_eq!(
            got,
            [
                "h",
                "h_",
                "h_2",
                "new_",
                "T_",
                "sigmoid_",
                "l_0_W",
                "v__shfl_sync",
                "v0x"
            ]
        );
    }

    #[test]
    fn numbered_names_skip_what_is_taken() {
        let mut names = Names::kernel();
        assert_eq!(names.unique("v1"), "v1");
        assert_eq!(names.numbered("v"), "v2");
        assert_eq!(names.numbered("v"), "v3");
    }
}
