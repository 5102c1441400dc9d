//! Where the elements of all parameters lie in the one matrix that an optimizer works on: one parameter after another in
//! the order of their names, then zeros. The matrix is about square, so that its sum is one of short rows and then one of
//! their sums: both run in parallel, and rounding errors grow with the side, not with the number of parameters.

use crate::api::{Error, Tensor, Tensors};
use rnnc_runtime::engine::Data;

/// Columns are a multiple of this, so that rows begin at whole vectors.
const COLUMNS: usize = 32;

/// Names and shapes of the parameters, and the matrix's extents.
pub(super) struct Layout {
    params: Vec<(String, Vec<usize>)>,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl Layout {
    pub(super) fn new(params: &Tensors) -> Result<Layout, Error> {
        let mut total = 0;
        for (name, tensor) in params {
            check("parameter", name, &tensor.shape, tensor)?;
            total += tensor.data.len();
        }
        let columns = total.isqrt().max(1).next_multiple_of(COLUMNS);
        Ok(Layout {
            params: params.iter().map(|(name, t)| (name.clone(), t.shape.clone())).collect(),
            rows: total.div_ceil(columns).max(1),
            columns,
        })
    }

    /// The shape of the matrix as an input: one frame of one sequence.
    pub(super) fn frame(&self) -> [usize; 4] {
        [1, 1, self.rows, self.columns]
    }

    pub(super) fn zeros(&self, shape: &[usize]) -> Tensor {
        Tensor::new(shape, vec![0.0; self.rows * self.columns])
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.params.iter().map(|(name, _)| &**name)
    }

    /// Copies the tensors of all parameters into the matrix; `kind` is what they are, for messages.
    pub(super) fn gather(&self, kind: &'static str, tensors: &Tensors, matrix: &mut Tensor) -> Result<(), Error> {
        let known = || self.names().collect::<Vec<_>>().join(", ");
        let is_known = |name: &String| self.params.binary_search_by(|(param, _)| param.cmp(name)).is_ok();
        if let Some(name) = tensors.keys().find(|name| !is_known(name)) {
            let name = name.clone();
            return Err(Error::Unknown {
                kind,
                name,
                known: known(),
            });
        }
        let Data::F32(all) = &mut matrix.data else {
            return Ok(());
        };
        let mut rest = all.as_mut_slice();
        for (name, shape) in &self.params {
            let Some(tensor) = tensors.get(name) else {
                let name = name.clone();
                return Err(Error::Missing {
                    kind,
                    name,
                    known: known(),
                });
            };
            check(kind, name, shape, tensor)?;
            let (own, others) = rest.split_at_mut(tensor.data.len());
            own.copy_from_slice(tensor.values());
            rest = others;
        }
        Ok(())
    }

    /// Copies the matrix back into the tensors that it was gathered from.
    pub(super) fn scatter(&self, matrix: &Tensor, tensors: &mut Tensors) {
        let mut rest = matrix.values();
        for (name, _) in &self.params {
            if let Some(Data::F32(values)) = tensors.get_mut(name).map(|tensor| &mut tensor.data) {
                let (own, others) = rest.split_at(values.len());
                values.copy_from_slice(own);
                rest = others;
            }
        }
    }

    /// The matrix as tensors of the parameters' shapes.
    pub(super) fn parts<'a>(&'a self, matrix: &'a Tensor) -> impl Iterator<Item = (&'a str, Tensor)> {
        let mut rest = matrix.values();
        self.params.iter().map(move |(name, shape)| {
            let (own, others) = rest.split_at(shape.iter().product());
            rest = others;
            (&**name, Tensor::new(shape, own.to_vec()))
        })
    }
}

/// Whether a tensor holds reals in this shape.
fn check(kind: &'static str, name: &str, shape: &[usize], tensor: &Tensor) -> Result<(), Error> {
    let holds = tensor.shape == shape && tensor.values().len() == shape.iter().product::<usize>();
    if holds {
        return Ok(());
    }
    Err(Error::Shape {
        kind,
        name: name.to_owned(),
        expected: format!("{shape:?}, of reals"),
        got: tensor.shape.clone(),
    })
}
