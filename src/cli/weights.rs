//! Finds a cell's parameters and inputs among the tensors of files, under other names where the user maps them.

use super::tensors::{Array, Arrays};
use super::{Failure, input};
use std::collections::BTreeMap;
use std::path::Path;

/// Which tensors of a file make a parameter: their sum.
#[derive(Clone, Debug, Default)]
pub struct NameMap(BTreeMap<String, Vec<String>>);

impl NameMap {
    /// Reads `W=lstm.weight_ih_l0,b=lstm.bias_ih_l0+lstm.bias_hh_l0`, or a file of such lines (`#` starts a comment).
    pub fn parse(text: &str) -> Result<NameMap, Failure> {
        let text = if Path::new(text).is_file() {
            std::fs::read_to_string(text).map_err(input(text))?
        } else {
            text.to_owned()
        };
        let mut map = BTreeMap::new();
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or(""));
        for entry in lines
            .flat_map(|line| line.split(','))
            .map(str::trim)
            .filter(|e| !e.is_empty())
        {
            let (name, sources) = entry.split_once('=').ok_or_else(|| {
                Failure::Usage(format!(
                    "--map: `{entry}` is not NAME=TENSOR or NAME=TENSOR+TENSOR, nor a file"
                ))
            })?;
            map.insert(
                name.trim().to_owned(),
                sources.split('+').map(|s| s.trim().to_owned()).collect(),
            );
        }
        Ok(NameMap(map))
    }

    /// The tensor called `name` (or `prefix` and `name`) in a file, or what the map makes it of.
    pub fn find(&self, arrays: &Arrays, prefix: &str, name: &str) -> Result<Option<Array>, Failure> {
        let Some(sources) = self.0.get(name) else {
            return Ok(arrays
                .get(&format!("{prefix}{name}"))
                .or_else(|| arrays.get(name))
                .cloned());
        };
        let mut sum: Option<Array> = None;
        for source in sources {
            let array = arrays.get(source).ok_or_else(|| {
                let known = arrays.keys().cloned().collect::<Vec<_>>().join(", ");
                Failure::Input(format!("--map: the file has no tensor {source}; it has {known}"))
            })?;
            sum = Some(match sum {
                None => array.clone(),
                Some(sum) => add(name, sum, array)?,
            });
        }
        Ok(sum)
    }

    /// The names on the left that the cell does not have.
    pub fn unknown<'a>(&'a self, known: &'a [String]) -> impl Iterator<Item = &'a String> {
        self.0.keys().filter(move |name| !known.contains(name))
    }
}

fn add(name: &str, mut sum: Array, other: &Array) -> Result<Array, Failure> {
    if sum.shape != other.shape {
        return Err(Failure::Input(format!(
            "--map: the parts of {name} have shapes {:?} and {:?}",
            sum.shape, other.shape
        )));
    }
    sum.data.iter_mut().zip(&other.data).for_each(|(a, b)| *a += b);
    Ok(sum)
}
