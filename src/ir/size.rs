//! Sizes: polynomials with whole coefficients over the cell's dimensions, kept in one normal form.
//!
//! Two axes are the same axis exactly if their sizes are equal as polynomials; values of dimensions play no part in it.

use super::Name;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// A product of dimensions, each name as often as its power, ascending.
type Monomial = Vec<Name>;

/// Larger polynomials count as overflow: no cell needs them, and a hostile file could make them grow without end.
const MAX_TERMS: usize = 32;
const MAX_DEGREE: usize = 16;

/// A polynomial over dimensions. Terms are sorted by degree (highest first), then by name; none has coefficient 0.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size {
    terms: Vec<(Monomial, i64)>,
}

impl Size {
    /// The whole number n.
    pub fn int(n: i64) -> Size {
        Size::from_terms([(Vec::new(), n)]).unwrap_or(Size { terms: Vec::new() })
    }

    /// The dimension of this name.
    pub fn dim(name: &Name) -> Size {
        Size {
            terms: vec![(vec![name.clone()], 1)],
        }
    }

    fn from_terms(terms: impl IntoIterator<Item = (Monomial, i64)>) -> Option<Size> {
        let mut sums: BTreeMap<Monomial, i64> = BTreeMap::new();
        for (monomial, k) in terms {
            let sum = sums.entry(monomial).or_insert(0);
            *sum = sum.checked_add(k)?;
        }
        let mut terms: Vec<_> = sums.into_iter().filter(|(_, k)| *k != 0).collect();
        terms.sort_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        (terms.len() <= MAX_TERMS).then_some(Size { terms })
    }

    /// How much there is of it: its terms and the factors in them.
    pub fn weight(&self) -> usize {
        self.terms.iter().map(|(monomial, _)| 1 + monomial.len()).sum()
    }

    /// The sum; `None` where a coefficient overflows.
    #[must_use]
    pub fn add(&self, other: &Size) -> Option<Size> {
        Size::from_terms(self.terms.iter().chain(&other.terms).cloned())
    }

    /// The difference; `None` where a coefficient overflows.
    #[must_use]
    pub fn sub(&self, other: &Size) -> Option<Size> {
        self.add(&other.mul(&Size::int(-1))?)
    }

    /// The product; `None` where a coefficient overflows.
    #[must_use]
    pub fn mul(&self, other: &Size) -> Option<Size> {
        if self.terms.len() * other.terms.len() > MAX_TERMS * 8 {
            return None;
        }
        let mut terms = Vec::with_capacity(self.terms.len() * other.terms.len());
        for (a, j) in &self.terms {
            for (b, k) in &other.terms {
                if a.len() + b.len() > MAX_DEGREE {
                    return None;
                }
                let mut monomial: Monomial = a.iter().chain(b).cloned().collect();
                monomial.sort();
                terms.push((monomial, j.checked_mul(*k)?));
            }
        }
        Size::from_terms(terms)
    }

    /// The quotient by a whole number that divides every coefficient.
    #[must_use]
    pub fn div_exact(&self, n: i64) -> Option<Size> {
        if n == 0 || self.terms.iter().any(|(_, k)| k % n != 0) {
            return None;
        }
        Some(Size {
            terms: self.terms.iter().map(|(m, k)| (m.clone(), k / n)).collect(),
        })
    }

    /// The quotient by another size, if that divides it without a rest (long division, highest terms first).
    #[must_use]
    pub fn div(&self, divisor: &Size) -> Option<Size> {
        let (lead, k) = divisor.terms.first()?;
        let (mut rest, mut quotient) = (self.clone(), Size::int(0));
        while let Some((monomial, j)) = rest.terms.first() {
            if j % k != 0 {
                return None;
            }
            let step = Size {
                terms: vec![(remove_all(monomial, lead)?, j / k)],
            };
            rest = rest.sub(&step.mul(divisor)?)?;
            quotient = quotient.add(&step)?;
        }
        Some(quotient)
    }

    /// Whether it is at most `other` whatever positive values the dimensions have. `false` where that depends on them.
    pub fn is_at_most(&self, other: &Size) -> bool {
        // With every dimension written as 1 + d, d >= 0, it is enough that no coefficient of the difference is negative.
        let from_one = |name: &Name| Size::dim(name).add(&Size::int(1));
        let difference = other.sub(self).and_then(|d| d.substitute(&from_one));
        difference.is_some_and(|d| d.terms.iter().all(|(_, k)| *k >= 0))
    }

    /// The whole number it is, if no dimension occurs.
    pub fn as_int(&self) -> Option<i64> {
        match self.terms.as_slice() {
            [] => Some(0),
            [(monomial, k)] if monomial.is_empty() => Some(*k),
            _ => None,
        }
    }

    /// The dimension it is, if it is one by itself.
    pub fn as_dim(&self) -> Option<&Name> {
        match self.terms.as_slice() {
            [(monomial, 1)] if monomial.len() == 1 => monomial.first(),
            _ => None,
        }
    }

    /// If it is `k * d + c` in the one dimension d (c may hold others): d's coefficient and the rest.
    pub fn linear_in(&self, dim: &Name) -> Option<(i64, Size)> {
        let mut slope = 0;
        let mut rest = Vec::new();
        for (monomial, k) in &self.terms {
            match monomial.iter().filter(|n| *n == dim).count() {
                0 => rest.push((monomial.clone(), *k)),
                1 if monomial.len() == 1 => slope = *k,
                _ => return None,
            }
        }
        (slope != 0).then_some((slope, Size { terms: rest }))
    }

    /// Every dimension in it, each once, ascending.
    pub fn dims(&self) -> Vec<Name> {
        let mut names: Vec<Name> = self.terms.iter().flat_map(|(m, _)| m.iter().cloned()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// With every dimension replaced by what `value` gives for it.
    #[must_use]
    pub fn substitute(&self, value: &dyn Fn(&Name) -> Option<Size>) -> Option<Size> {
        let mut sum = Size::int(0);
        for (monomial, k) in &self.terms {
            let mut term = Size::int(*k);
            for name in monomial {
                term = term.mul(&value(name).unwrap_or_else(|| Size::dim(name)))?;
            }
            sum = sum.add(&term)?;
        }
        Some(sum)
    }

    /// Whether it is at least 0 for all values of dimensions from 1 on, as far as its form tells: written in `d - 1` for
    /// each dimension d, no coefficient is negative.
    pub fn is_never_negative(&self) -> bool {
        let above_one = |d: &Name| Size::dim(d).add(&Size::int(1));
        self.substitute(&above_one)
            .is_some_and(|s| s.terms.iter().all(|(_, k)| *k >= 0))
    }

    /// Its value under these values of dimensions; `None` if one lacks a value or the result overflows.
    pub fn eval(&self, dims: &BTreeMap<Name, i64>) -> Option<i64> {
        let mut sum: i64 = 0;
        for (monomial, k) in &self.terms {
            let mut term = *k;
            for name in monomial {
                term = term.checked_mul(*dims.get(name)?)?;
            }
            sum = sum.checked_add(term)?;
        }
        Some(sum)
    }
}

/// `from` without the names in `part`, if it holds them all (as often).
fn remove_all(from: &[Name], part: &[Name]) -> Option<Monomial> {
    let mut rest = from.to_vec();
    for name in part {
        rest.remove(rest.iter().position(|n| n == name)?);
    }
    Some(rest)
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.terms.is_empty() {
            return write!(f, "0");
        }
        for (i, (monomial, k)) in self.terms.iter().enumerate() {
            let sign = match (i, *k < 0) {
                (0, false) => "",
                (0, true) => "-",
                (_, false) => "+",
                (_, true) => "-",
            };
            write!(f, "{sign}")?;
            let magnitude = k.unsigned_abs();
            if magnitude != 1 || monomial.is_empty() {
                write!(f, "{magnitude}")?;
            }
            for (j, name) in monomial.iter().enumerate() {
                let star = if j > 0 || magnitude != 1 { "*" } else { "" };
                write!(f, "{star}{name}")?;
            }
        }
        Ok(())
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dim(name: &str) -> Size {
        Size::dim(&Name::from(name))
    }

    fn int(n: i64) -> Size {
        Size::int(n)
    }

    #[test]
    fn division_undoes_multiplication() {
        let (h, n) = (dim("H"), dim("N"));
        let sum = h.add(&n).unwrap();
        let factor = h.mul(&int(3)).unwrap().add(&int(5)).unwrap();
        let product = sum.mul(&factor).unwrap();
        assert_eq!(product.div(&sum), Some(factor.clone()));
        assert_eq!(product.div(&factor), Some(sum));
        assert_eq!(product.div(&h), None);
        assert_eq!(int(12).div(&int(4)), Some(int(3)));
        assert_eq!(int(12).div(&int(5)), None);
        assert_eq!(h.div(&int(0)), None);
        assert_eq!(int(0).div(&h), Some(int(0)));
    }

    #[test]
    fn order_is_said_only_where_dimensions_cannot_change_it() {
        let (h, n) = (dim("H"), dim("N"));
        let twice = h.mul(&int(2)).unwrap();
        assert!(h.is_at_most(&twice));
        assert!(!twice.is_at_most(&h));
        assert!(int(1).is_at_most(&h));
        assert!(!int(2).is_at_most(&h) && !h.is_at_most(&int(2)));
        assert!(!h.is_at_most(&n) && !n.is_at_most(&h));
        assert!(h.is_at_most(&h.mul(&n).unwrap()));
        assert!(h.is_at_most(&h));
    }
}
