//! Every rule of the verifier is broken once, and must say so.

use super::verify;
use crate::ir::op::{Binary, Reduce, Unary};
use crate::ir::testing::Build;
use crate::ir::{Graph, Kind, Name, Op, Read, Scalar, Size, Type};

fn breaches(graph: &Graph) -> String {
    verify(graph).err().unwrap_or_default().join("\n")
}

/// The one breach that a change of a sound graph causes.
fn after(change: impl FnOnce(&mut Build)) -> String {
    let mut b = Build { graph: Build::elman() };
    change(&mut b);
    breaches(&b.graph)
}

#[test]
fn a_sound_graph_passes() {
    assert_eq!(verify(&Build::elman()), Ok(()));
}

#[test]
fn elementwise_operands_have_the_axes_of_the_result() {
    let found = after(|b| {
        let (x, bias) = (b.graph.inputs[0], b.graph.params[2]);
        b.binary(Binary::Add, x, bias);
    });
    assert_eq!(found, "%10 (add): its type is [I], an operand's is [H]");
}

#[test]
fn only_states_are_read_with_a_delay_and_within_their_window() {
    let found = after(|b| {
        let (x, h) = (b.graph.inputs[0], b.graph.states()[0]);
        b.unary(Unary::Exp, Read { node: x, delay: 1 });
        b.unary(Unary::Exp, Read { node: h, delay: 2 });
    });
    assert_eq!(
        found,
        "%10 (exp): reads %0, no state, with a delay\n%11 (exp): reads %4 of 2 frames back, its window is 1"
    );
}

#[test]
fn a_cycle_without_delay_is_found_with_what_waits_for_it() {
    let found = after(|b| {
        let h = b.graph.states()[0];
        let rh = b.graph.uses(h)[0].reader;
        b.graph.set_operand(rh, 1, Read::now(h));
    });
    assert!(
        found.contains("%4 \"h\" (state): is on a cycle without delay"),
        "{found}"
    );
}

#[test]
fn kinds_and_lists_are_checked() {
    let found = after(|b| {
        let x = b.graph.inputs[0];
        let y = b.unary(Unary::Exp, x);
        b.graph.node_mut(y).kind = Kind::Static;
        b.graph.params.pop();
        b.output("h", x);
    });
    assert_eq!(
        found,
        "%3 \"b\" (param): is missing in the list of each parameter\ntwo outputs are named \"h\"\n%10 (exp): is Static, should be Frame"
    );
}

#[test]
fn operands_are_counted_and_numbered_without_gaps() {
    let found = after(|b| {
        let x = b.graph.inputs[0];
        let y = b.add(Op::Binary(Binary::Add), b.ty(x), &[Read::now(x)]);
        let z = b.add(Op::Binary(Binary::Add), b.ty(x), &[Read::now(x)]);
        b.graph.set_operand(z, 2, Read::now(y));
    });
    assert_eq!(
        found,
        "%10 (add): has 1 operands\n%11 (add): operands are numbered [0, 2]"
    );
}

#[test]
fn sizes_speak_of_the_cells_dimensions() {
    let found = after(|b| {
        let one = b.literal(1.0);
        b.spread(one, &["Q"]);
    });
    assert_eq!(
        found,
        "%11 (broadcast): a size speaks of \"Q\", no dimension of the cell"
    );
}

/// An operation on `a: [H, I]`, the type claimed, how often it takes `a`, and what is said.
type Faulty = (Op, Type, usize, &'static str);

fn faulty_leaves_and_views() -> Vec<Faulty> {
    let h = || Size::dim(&Name::from("H"));
    let i = || Size::dim(&Name::from("I"));
    vec![
        (
            Op::Literal(1.0),
            Type::real(vec![h()]),
            0,
            "its type is [H], should be []",
        ),
        (Op::Iota, Type::scalar(), 0, "should have one axis, has []"),
        (
            Op::Broadcast { map: vec![0] },
            Type::real(vec![h()]),
            1,
            "maps 1 axes of 2",
        ),
        (
            Op::Broadcast { map: vec![0, 0] },
            Type::real(vec![h(), i()]),
            1,
            "maps two axes to 0",
        ),
        (
            Op::Broadcast { map: vec![1, 0] },
            Type::real(vec![h(), i()]),
            1,
            "maps an axis H to an axis I",
        ),
        (
            Op::Slice {
                axis: 0,
                lo: Size::int(0),
                hi: Size::int(2),
            },
            Type::real(vec![h(), i()]),
            1,
            "its type is [H, I], should be [2, I]",
        ),
        (Op::Reshape, Type::real(vec![h()]), 1, "reshapes [H, I] to [H]"),
        (
            Op::Shift { axis: 2, by: 1 },
            Type::real(vec![h(), i()]),
            1,
            "no axis 2 among 2",
        ),
    ]
}

fn faulty_products_and_indices() -> Vec<Faulty> {
    let h = || Size::dim(&Name::from("H"));
    let i = || Size::dim(&Name::from("I"));
    vec![
        (
            Op::Concat { axis: 0 },
            Type::real(vec![h(), i()]),
            2,
            "its type is [H, I], should be [2*H, I]",
        ),
        (
            Op::Contract {
                labels: vec![vec![0, 0]],
                out: vec![0],
            },
            Type::real(vec![h()]),
            1,
            "label 0 is H and I",
        ),
        (
            Op::Contract {
                labels: vec![vec![0, 1]],
                out: vec![2],
            },
            Type::real(vec![h()]),
            1,
            "label 2 of the result is in no operand",
        ),
        (
            Op::Reduce {
                op: Reduce::Sum,
                axes: vec![1, 0],
            },
            Type::scalar(),
            1,
            "axes [1, 0] do not ascend",
        ),
        (
            Op::Gather,
            Type::real(vec![i()]),
            2,
            "its operand is [H, I], not an index",
        ),
        (
            Op::OneHot,
            Type::real(vec![h()]),
            1,
            "its operand is [H, I], not an index",
        ),
        (
            Op::IndexToReal,
            Type::scalar(),
            1,
            "its operand is [H, I], not an index",
        ),
    ]
}

#[test]
fn every_type_rule_can_fail() {
    let rows = [faulty_leaves_and_views(), faulty_products_and_indices()].concat();
    for (op, ty, operands, said) in rows {
        let mut b = Build::new("one", &["H", "I"]);
        let a = b.param("a", &["H", "I"]);
        b.add(op.clone(), ty, &vec![Read::now(a); operands]);
        let found = breaches(&b.graph);
        assert!(found.ends_with(said) && !found.contains('\n'), "{op:?}: {found}");
    }
}

#[test]
fn an_index_feeds_only_what_takes_one() {
    let mut b = Build::new("one", &["V", "E"]);
    let (token, table) = (b.index("token", "V"), b.param("table", &["V", "E"]));
    let row = b.add(
        Op::Gather,
        Type::real(Build::axes(&["E"])),
        &[table.into(), token.into()],
    );
    let hot = b.add(Op::OneHot, Type::real(Build::axes(&["V"])), &[token.into()]);
    let real = b.add(Op::IndexToReal, Type::scalar(), &[token.into()]);
    assert_eq!(verify(&b.graph), Ok(()));
    let bad = b.unary(Unary::Exp, token);
    assert!(breaches(&b.graph).contains(&format!("{bad} (exp): operand 0 is index(V), not real")));
    let index = Scalar::Index(Size::int(3));
    b.graph.node_mut(real).ty.scalar = index;
    assert!(breaches(&b.graph).contains("its result is index(3), not real"));
    let _ = (row, hot);
}
