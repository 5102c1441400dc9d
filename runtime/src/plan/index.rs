//! Index expressions: sums of strides times variables, with whole division and remainder where a view needs them.

use serde::{Deserialize, Serialize};

/// `base + sum of stride * atom`, in normal form: atoms differ and are sorted, no stride is 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Index {
    /// The constant part.
    pub base: i64,
    /// The rest.
    pub terms: Vec<Term>,
}

/// A stride times an atom.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Term {
    /// What varies.
    pub atom: Atom,
    /// How far one step of it goes.
    pub stride: i64,
}

/// What an index is made of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Atom {
    /// A variable of the kernel's iteration space, >= 0.
    Var(u8),
    /// `(of / div) % modulo`; `of` is never negative where it is used, `div` >= 1.
    DivMod {
        /// What is divided.
        of: Box<Index>,
        /// The divisor.
        div: i64,
        /// The modulus of the quotient, if any.
        modulo: Option<i64>,
    },
}

impl Index {
    /// A constant.
    pub fn int(base: i64) -> Index {
        Index {
            base,
            terms: Vec::new(),
        }
    }

    /// A variable.
    pub fn var(v: u8) -> Index {
        Index {
            base: 0,
            terms: vec![Term {
                atom: Atom::Var(v),
                stride: 1,
            }],
        }
    }

    /// The sum.
    #[must_use]
    pub fn add(&self, other: &Index) -> Index {
        let mut terms: Vec<Term> = self.terms.clone();
        for term in &other.terms {
            match terms.iter_mut().find(|t| t.atom == term.atom) {
                Some(same) => same.stride += term.stride,
                None => terms.push(term.clone()),
            }
        }
        terms.retain(|t| t.stride != 0);
        let mut sum = Index {
            base: self.base + other.base,
            terms,
        };
        while let Some(joined) = sum.join_quotient_and_remainder() {
            sum = joined;
        }
        sum.terms.sort();
        sum
    }

    /// `(x / d) % m + m * ((x / (d m)) % n)` is `(x / d) % (m n)`: so a view and its inverse cancel.
    fn join_quotient_and_remainder(&self) -> Option<Index> {
        for (i, low) in self.terms.iter().enumerate() {
            let Atom::DivMod {
                of,
                div,
                modulo: Some(m),
            } = &low.atom
            else {
                continue;
            };
            for (j, high) in self.terms.iter().enumerate() {
                let Atom::DivMod {
                    of: same,
                    div: high_div,
                    modulo: rest,
                } = &high.atom
                else {
                    continue;
                };
                if i == j || same != of || *high_div != div * m || high.stride != low.stride * m {
                    continue;
                }
                let terms = self.terms.iter().enumerate().filter(|(k, _)| *k != i && *k != j);
                let kept = Index {
                    base: self.base,
                    terms: terms.map(|(_, t)| t.clone()).collect(),
                };
                let joined = match (*div, rest) {
                    (1, None) => of.times(low.stride),
                    (div, rest) => {
                        let atom = Atom::DivMod {
                            of: of.clone(),
                            div,
                            modulo: rest.map(|n| n * m),
                        };
                        Index {
                            base: 0,
                            terms: vec![Term {
                                atom,
                                stride: low.stride,
                            }],
                        }
                    }
                };
                return Some(kept.add(&joined));
            }
        }
        None
    }

    /// The sum with a number.
    #[must_use]
    pub fn plus(&self, n: i64) -> Index {
        Index {
            base: self.base + n,
            terms: self.terms.clone(),
        }
    }

    /// The product with a number.
    #[must_use]
    pub fn times(&self, n: i64) -> Index {
        if n == 0 {
            return Index::int(0);
        }
        let terms = self
            .terms
            .iter()
            .map(|t| Term {
                atom: t.atom.clone(),
                stride: t.stride * n,
            })
            .collect();
        Index {
            base: self.base * n,
            terms,
        }
    }

    /// `(self / div) % modulo`, simplified where the extents of the variables (`Var(i)` is below `extents[i]`) allow it.
    #[must_use]
    pub fn div_mod(&self, div: i64, modulo: Option<i64>, extents: &[usize]) -> Index {
        let quotient = self.divided(div, extents);
        match modulo {
            None => quotient,
            Some(m) => quotient.remainder(m, extents),
        }
    }

    fn divided(&self, div: i64, extents: &[usize]) -> Index {
        if div == 1 {
            return self.clone();
        }
        // Terms that div divides leave the quotient, provided that what stays behind is within 0..div.
        let (whole, rest): (Vec<Term>, Vec<Term>) = self.terms.iter().cloned().partition(|t| t.stride % div == 0);
        let rest = Index {
            base: self.base.rem_euclid(div),
            terms: rest,
        };
        let whole = Index {
            base: self.base.div_euclid(div),
            terms: whole
                .into_iter()
                .map(|t| Term {
                    stride: t.stride / div,
                    ..t
                })
                .collect(),
        };
        match rest.range(extents) {
            (lo, hi) if lo >= 0 && hi < div => whole,
            (lo, _) if lo >= 0 && whole.is_nonnegative(extents) => {
                let atom = Atom::DivMod {
                    of: Box::new(rest),
                    div,
                    modulo: None,
                };
                whole.add(&Index {
                    base: 0,
                    terms: vec![Term { atom, stride: 1 }],
                })
            }
            _ => {
                let atom = Atom::DivMod {
                    of: Box::new(self.clone()),
                    div,
                    modulo: None,
                };
                Index {
                    base: 0,
                    terms: vec![Term { atom, stride: 1 }],
                }
            }
        }
    }

    fn remainder(&self, m: i64, extents: &[usize]) -> Index {
        let rest = Index {
            base: self.base.rem_euclid(m),
            terms: self.terms.iter().filter(|t| t.stride % m != 0).cloned().collect(),
        };
        match rest.range(extents) {
            (lo, hi) if lo >= 0 && hi < m => rest,
            (lo, _) => {
                // An index below zero cannot be reduced term by term: C's % would differ.
                let of = if lo >= 0 { rest } else { self.clone() };
                let atom = match of.terms.as_slice() {
                    [
                        Term {
                            atom:
                                Atom::DivMod {
                                    of: inner,
                                    div,
                                    modulo: None,
                                },
                            stride: 1,
                        },
                    ] if of.base == 0 => Atom::DivMod {
                        of: inner.clone(),
                        div: *div,
                        modulo: Some(m),
                    },
                    _ => Atom::DivMod {
                        of: Box::new(of),
                        div: 1,
                        modulo: Some(m),
                    },
                };
                Index {
                    base: 0,
                    terms: vec![Term { atom, stride: 1 }],
                }
            }
        }
    }

    fn is_nonnegative(&self, extents: &[usize]) -> bool {
        self.range(extents).0 >= 0
    }

    /// The least and greatest value under these extents (a variable without one counts as 0).
    pub fn range(&self, extents: &[usize]) -> (i64, i64) {
        self.terms.iter().fold((self.base, self.base), |(lo, hi), t| {
            let (a, b) = t.atom.range(extents);
            let (a, b) = (a * t.stride, b * t.stride);
            (lo + a.min(b), hi + a.max(b))
        })
    }

    /// Its value where `Var(i)` is `vars[i]`.
    pub fn eval(&self, vars: &[i64]) -> i64 {
        self.base + self.terms.iter().map(|t| t.stride * t.atom.eval(vars)).sum::<i64>()
    }

    /// Whether the variable occurs.
    pub fn uses(&self, v: u8) -> bool {
        self.terms.iter().any(|t| match &t.atom {
            Atom::Var(w) => *w == v,
            Atom::DivMod { of, .. } => of.uses(v),
        })
    }

    /// The stride of a variable in which it is linear (0 where it does not occur); `None` where it stands in a division.
    pub fn stride_of(&self, v: u8) -> Option<i64> {
        let mut stride = 0;
        for t in &self.terms {
            match &t.atom {
                Atom::Var(w) if *w == v => stride += t.stride,
                Atom::Var(_) => {}
                Atom::DivMod { of, .. } if of.uses(v) => return None,
                Atom::DivMod { .. } => {}
            }
        }
        Some(stride)
    }
}

impl Atom {
    fn range(&self, extents: &[usize]) -> (i64, i64) {
        match self {
            Atom::Var(v) => (0, extents.get(*v as usize).map_or(0, |n| *n as i64 - 1).max(0)),
            Atom::DivMod { of, div, modulo } => {
                let (lo, hi) = of.range(extents);
                let (lo, hi) = (lo.max(0) / div, hi.max(0) / div);
                match modulo {
                    Some(m) if hi >= *m => (0, m - 1),
                    _ => (lo, hi),
                }
            }
        }
    }

    fn eval(&self, vars: &[i64]) -> i64 {
        match self {
            Atom::Var(v) => vars.get(*v as usize).copied().unwrap_or(0),
            Atom::DivMod { of, div, modulo } => {
                let q = of.eval(vars).div_euclid(*div);
                modulo.map_or(q, |m| q.rem_euclid(m))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every simplification gives the value of the plain formula.
    #[test]
    fn division_and_remainder_keep_their_value() {
        let extents = [7usize, 5, 3];
        for (s0, s1, s2, base) in [(15, 3, 1, 0), (1, 7, 35, 0), (5, 1, 0, 4), (3, 9, 2, 11), (12, 4, 1, 1)] {
            let index = Index::var(0)
                .times(s0)
                .add(&Index::var(1).times(s1))
                .add(&Index::var(2).times(s2))
                .plus(base);
            for (div, modulo) in [
                (1, Some(5)),
                (3, None),
                (3, Some(5)),
                (5, Some(7)),
                (15, Some(7)),
                (2, Some(2)),
            ] {
                let got = index.div_mod(div, modulo, &extents);
                for v in (0..7).flat_map(|a| (0..5).flat_map(move |b| (0..3).map(move |c| [a, b, c]))) {
                    let q = index.eval(&v) / div;
                    assert_eq!(
                        got.eval(&v),
                        modulo.map_or(q, |m| q % m),
                        "{index:?} / {div} % {modulo:?} at {v:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_view_and_its_inverse_cancel() {
        let extents = [30usize];
        let u = Index::var(0);
        let (i, j, k) = (
            u.div_mod(6, None, &extents),
            u.div_mod(2, Some(3), &extents),
            u.div_mod(1, Some(2), &extents),
        );
        assert_eq!(i.times(6).add(&j.times(2)).add(&k), u);
        assert_eq!(k.add(&j.times(2)).add(&i.times(6)), u);
        assert_eq!(j.times(2).add(&k), u.div_mod(1, Some(6), &extents));
    }

    #[test]
    fn a_reshape_and_back_is_the_identity() {
        // [15] -> [5, 3] -> [15]
        let extents = [15usize];
        let u = Index::var(0);
        let (i, j) = (u.div_mod(3, Some(5), &extents), u.div_mod(1, Some(3), &extents));
        for v in 0..15 {
            assert_eq!(i.times(3).add(&j).eval(&[v]), v);
        }
        let flat = Index::var(0).times(3).add(&Index::var(1));
        assert_eq!(flat.div_mod(3, Some(5), &[5, 3]), Index::var(0));
        assert_eq!(flat.div_mod(1, Some(3), &[5, 3]), Index::var(1));
    }
}
