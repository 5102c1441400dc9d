//! Index expressions over an iteration space: visits the points that matter, all of them where they are few.

use crate::plan::{Atom, Guard, Index};

/// Spaces up to this many points are visited whole; larger ones at their corners and at scattered points.
pub(super) const WHOLE: usize = 1 << 20;
const SCATTERED: usize = 1 << 12;

/// The variables that occur.
pub(super) fn variables<'a>(indices: impl IntoIterator<Item = &'a Index>) -> Vec<u8> {
    let mut found = Vec::new();
    indices.into_iter().for_each(|index| collect(index, &mut found));
    found.sort_unstable();
    found.dedup();
    found
}

fn collect(index: &Index, found: &mut Vec<u8>) {
    for term in &index.terms {
        match &term.atom {
            Atom::Var(v) => found.push(*v),
            Atom::DivMod { of, .. } => collect(of, found),
        }
    }
}

/// How many points these variables span.
pub(super) fn points(extents: &[usize], used: &[u8]) -> usize {
    used.iter().map(|v| extents[*v as usize]).fold(1, usize::saturating_mul)
}

/// Calls `at` with points at which the variables not in `used` are 0, until it returns false.
pub(super) fn visit(extents: &[usize], used: &[u8], mut at: impl FnMut(&[i64]) -> bool) {
    let mut vars = vec![0i64; extents.len()];
    let total = points(extents, used);
    if total <= WHOLE {
        (0..total).all(|p| at(place(&mut vars, extents, used, p)));
        return;
    }
    for corner in 0..1usize << used.len().min(16) {
        for (bit, v) in used.iter().enumerate() {
            vars[*v as usize] = if corner >> bit & 1 == 1 {
                extents[*v as usize] as i64 - 1
            } else {
                0
            };
        }
        if !at(&vars) {
            return;
        }
    }
    // A multiplicative walk: the same points in every run.
    let mut p = 1usize;
    for _ in 0..SCATTERED {
        p = p
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        if !at(place(&mut vars, extents, used, (p >> 8) % total)) {
            return;
        }
    }
}

/// Point number `p` of the space, row-major.
fn place<'a>(vars: &'a mut [i64], extents: &[usize], used: &[u8], mut p: usize) -> &'a [i64] {
    for v in used.iter().rev() {
        let extent = extents[*v as usize];
        vars[*v as usize] = (p % extent) as i64;
        p /= extent;
    }
    vars
}

/// The first point at which the guards hold and the index is not in `0..limit`, or a division in it is of a negative
/// number.
pub(super) fn outside(index: &Index, guards: &[Guard], extents: &[usize], limit: usize) -> Option<String> {
    if guards.is_empty() && in_range_everywhere(index, extents, limit) {
        return None;
    }
    let used = variables(std::iter::once(index).chain(guards.iter().map(|g| &g.index)));
    let mut found = None;
    visit(extents, &used, |vars| {
        let inside = guards.iter().all(|g| (g.lo..g.hi).contains(&g.index.eval(vars)));
        if inside && !(0..limit as i64).contains(&index.eval(vars)) {
            found = Some(format!("element {} of {limit} at {vars:?}", index.eval(vars)));
        } else if inside && divides_negative(index, vars) {
            found = Some(format!("a division of a negative number at {vars:?}"));
        }
        found.is_none()
    });
    found
}

fn in_range_everywhere(index: &Index, extents: &[usize], limit: usize) -> bool {
    let affine = index.terms.iter().all(|t| matches!(t.atom, Atom::Var(_)));
    let (lo, hi) = index.range(extents);
    affine && lo >= 0 && hi < limit as i64
}

/// Whether some division or remainder in the index is of a negative number at this point.
pub(super) fn divides_negative(index: &Index, vars: &[i64]) -> bool {
    index.terms.iter().any(|term| match &term.atom {
        Atom::Var(_) => false,
        Atom::DivMod { of, .. } => of.eval(vars) < 0 || divides_negative(of, vars),
    })
}

/// What breaks the normal form of an index, or names a variable that the space lacks.
pub(super) fn malformed(index: &Index, variables: usize) -> Option<String> {
    let sorted = index.terms.windows(2).all(|w| w[0].atom < w[1].atom);
    if !sorted || index.terms.iter().any(|t| t.stride == 0) {
        return Some(format!("{index:?} is not in normal form"));
    }
    index.terms.iter().find_map(|term| match &term.atom {
        Atom::Var(v) if *v as usize >= variables => Some(format!("Var({v}) in a space of {variables} variables")),
        Atom::Var(_) => None,
        Atom::DivMod { div, modulo, .. } if *div < 1 || modulo.is_some_and(|m| m < 1) => {
            Some(format!("{index:?} divides by a number below 1"))
        }
        Atom::DivMod { of, .. } => malformed(of, variables),
    })
}
