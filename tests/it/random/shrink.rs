//! Makes a failing cell small: drops outputs and equations and puts simpler expressions in place of others, for as long as it
//! still fails.

use super::cell::{Cell, Expr, shape};

/// The smallest cell found that `fails`.
pub fn shrink(mut cell: Cell, fails: &dyn Fn(&Cell) -> bool) -> Cell {
    loop {
        let smaller = candidates(&cell).into_iter().find(|c| fails(c));
        match smaller {
            Some(smaller) => cell = smaller,
            None => return cell,
        }
    }
}

/// Cells that are smaller by one thing, those that lose most first.
fn candidates(cell: &Cell) -> Vec<Cell> {
    let mut found = without_equations(cell);
    found.extend(without_outputs(cell));
    found.extend(without_initials(cell));
    found.extend(with_simpler_values(cell));
    found
}

fn changed(cell: &Cell, change: impl FnOnce(&mut Cell)) -> Cell {
    let mut smaller = cell.clone();
    change(&mut smaller);
    smaller
}

fn without_equations(cell: &Cell) -> Vec<Cell> {
    let remove = |i: usize| {
        changed(cell, |smaller| {
            let gone = smaller.equations.remove(i);
            smaller.outputs.retain(|o| !gone.names.contains(o));
            if smaller.outputs.is_empty() {
                smaller.outputs.clone_from(&smaller.equations[0].names);
            }
        })
    };
    let count = cell.equations.len();
    (0..count).filter(|_| count > 1).map(remove).collect()
}

fn without_outputs(cell: &Cell) -> Vec<Cell> {
    let remove = |i: usize| changed(cell, |smaller| drop(smaller.outputs.remove(i)));
    let count = cell.outputs.len();
    (0..count).filter(|_| count > 1).map(remove).collect()
}

fn without_initials(cell: &Cell) -> Vec<Cell> {
    let states = cell.equations.iter().enumerate();
    let given = states.filter(|(_, e)| e.state.as_ref().is_some_and(|s| s.form != "0"));
    let zero = |ty: &[String]| Some(Expr::leaf(ty, "0", false));
    given
        .map(|(i, e)| changed(cell, |smaller| smaller.equations[i].state = zero(&e.ty)))
        .collect()
}

fn with_simpler_values(cell: &Cell) -> Vec<Cell> {
    let all = cell.equations.iter().enumerate();
    let values = all.flat_map(|(i, e)| simpler(&e.value).into_iter().map(move |value| (i, value)));
    values
        .map(|(i, value)| changed(cell, |smaller| smaller.equations[i].value = value))
        .collect()
}

/// The expression with one of its parts made simpler; the outermost parts first.
fn simpler(e: &Expr) -> Vec<Expr> {
    let number = match e.ty.as_slice() {
        [] => "0.75".to_owned(),
        ty => format!("expand(0.75, {})", shape(ty)),
    };
    let mut found: Vec<Expr> = e.args.iter().filter(|a| a.ty == e.ty).cloned().collect();
    if e.form != number {
        found.push(Expr::leaf(&e.ty, &number, false));
    }
    if let Some((name, _)) = e.form.split_once("[t-").filter(|(_, delay)| *delay != "1]") {
        found.push(Expr::leaf(&e.ty, &format!("{name}[t-1]"), true));
    }
    for (i, arg) in e.args.iter().enumerate() {
        let smaller = simpler(arg).into_iter();
        found.extend(smaller.map(|arg| {
            let mut whole = e.clone();
            whole.args[i] = arg;
            whole
        }));
    }
    found
}
