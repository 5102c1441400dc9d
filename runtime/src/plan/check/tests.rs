//! A sound plan passes; each breach is found and named.

use super::check;
use crate::plan::samples::{decay, embedding, lstm, matrix_state, norms, products, softmax, swap, taps, totals};
use crate::plan::{BufferId, Frame, Guard, Index, Kernel, Plan, Reg, Scope, Slot, Step, StoreFrame};

#[test]
fn sound_plans_pass() {
    let small = [lstm(3, 5), decay(7), taps(5), matrix_state(3, 4), embedding(4, 2)];
    let large = [
        products(3, 5),
        norms(2, 3, 4),
        swap(3, 5),
        softmax(3, 2, 5),
        totals(3, 5),
    ];
    for plan in small.iter().chain(&large) {
        assert_eq!(check(plan), Ok(()), "{}", plan.cell);
    }
}

/// The messages for the LSTM's plan after a change.
fn after(change: impl FnOnce(&mut Plan)) -> String {
    let mut plan = lstm(3, 5);
    change(&mut plan);
    check(&plan).map_or_else(|errors| errors.join("\n"), |()| "sound".to_owned())
}

fn product(plan: &mut Plan) -> &mut crate::plan::Product {
    match &mut plan.launches[0].kernel {
        Kernel::Product(product) => product,
        _ => panic!("the first launch is the product"),
    }
}

fn recurrence(plan: &mut Plan) -> &mut crate::plan::Loop {
    match &mut plan.launches[1].kernel {
        Kernel::Loop(kernel) => kernel,
        _ => panic!("the second launch is the loop"),
    }
}

#[track_caller]
fn assert_names(message: &str, part: &str) {
    assert!(message.contains(part), "{part:?} is not in {message:?}");
}

#[test]
fn names_and_order_are_checked() {
    assert_names(
        &after(|p| p.launches[1].name = "project".into()),
        "another launch has its name",
    );
    assert_names(&after(|p| p.launches[1].name = "re-cur".into()), "no C identifier");
    assert_names(
        &after(|p| p.launches[1].after = vec![]),
        "does not lead to `project`, which also uses `gates`",
    );
    assert_names(&after(|p| p.launches[0].after = vec![0]), "do not come before");
    assert_names(&after(|p| p.launches.reverse()), "do not come before");
    assert_names(&after(|p| drop(p.launches.remove(0))), "do not come before");
    assert_names(
        &after(|p| {
            p.launches.remove(0);
            p.launches[0].after.clear();
        }),
        "`gates` is read before",
    );
}

#[test]
fn indices_are_kept_within_buffers() {
    assert_names(&after(|p| product(p).operands[0].extent = 4), "`W`: element 60 of 60");
    assert_names(
        &after(|p| product(p).segments[0].weights[0].offset = 1),
        "element 60 of 60",
    );
    assert_names(&after(|p| product(p).segments[0].rows = 21), "element 60 of 60");
    assert_names(
        &after(|p| product(p).segments[0].rows = 19),
        "`gates`: element Some(19) is never written",
    );
    assert_names(
        &after(|p| recurrence(p).phases[0].parts[0].units = 6),
        "element 100 of 100",
    );
    let shift = |p: &mut Plan| match &mut product(p).operands[0].body.steps[0] {
        Step::Load(load) => load.index = Index::var(0).plus(-1),
        _ => panic!("a load"),
    };
    assert_names(&after(shift), "step 0: element -1 of 3");
    let wide = |p: &mut Plan| match &mut product(p).operands[0].body.steps[0] {
        Step::Load(load) => load.index = Index::var(1),
        _ => panic!("a load"),
    };
    assert_names(&after(wide), "Var(1) in a space of 1 variables");
}

#[test]
fn guards_narrow_what_an_index_reaches() {
    let mut plan = lstm(3, 5);
    let Step::Load(load) = &mut product(&mut plan).operands[0].body.steps[0] else {
        panic!("a load")
    };
    load.index = Index::var(0).plus(-1);
    load.guards = vec![Guard {
        index: Index::var(0),
        lo: 1,
        hi: 3,
    }];
    assert_eq!(check(&plan), Ok(()));
}

#[test]
fn registers_and_steps_are_checked() {
    let later = |p: &mut Plan| product(p).segments[0].body.steps[0] = Step::Unary(crate::scalar::Unary::Exp, Reg(1));
    assert_names(&after(later), "segment 0: step 0 reads [Reg(1)]");
    assert_names(
        &after(|p| product(p).operands[0].result = Reg(1)),
        "operand 0: its result",
    );
    let slot = |p: &mut Plan| product(p).segments[0].body.steps[0] = Step::Slot(1);
    assert_names(&after(slot), "slot 1 does not exist");
    let carried = |p: &mut Plan| product(p).segments[0].body.steps[0] = Step::Carried { state: 0, delay: 1 };
    assert_names(&after(carried), "state 0 is not kept 1 frames back");
    let reduce = |p: &mut Plan| product(p).segments[0].body.steps[2] = Step::Reduce(crate::scalar::Reduce::Sum, Reg(1));
    assert_names(&after(reduce), "a reduction outside a channel kernel");
}

#[test]
fn scopes_match_frames() {
    let frame = |frame: Frame| {
        move |p: &mut Plan| match &mut product(p).operands[0].body.steps[0] {
            Step::Load(load) => load.frame = frame,
            _ => panic!("a load"),
        }
    };
    assert_names(&after(frame(Frame::Batch)), "`x` of scope Frame is read by Batch");
    let late = Frame::At { delay: 1, window: None };
    assert_names(&after(frame(late)), "there is no initial window");
    let other = Frame::At {
        delay: 1,
        window: Some(BufferId(4)),
    };
    assert_names(&after(frame(other)), "`x` and its window have different shapes");
    assert_names(
        &after(|p| product(p).scope = Scope::Batch),
        "in a kernel of scope Batch",
    );
    let store = |p: &mut Plan| product(p).segments[0].body.stores[0].frame = StoreFrame::Const;
    assert_names(&after(store), "Const of `gates` of scope Frame is written");
}

#[test]
fn loops_set_values_before_they_read_them() {
    let now = |p: &mut Plan| match &mut recurrence(p).phases[0].parts[0].slots[0] {
        Slot::Dot { delay, .. } => *delay = 0,
        Slot::Fold { .. } => panic!("a dot product"),
    };
    assert_names(&after(now), "`h` of this frame is read before a phase that sets it");
    assert_names(
        &after(|p| recurrence(p).phases[0].parts[0].sets.truncate(1)),
        "0 parts set it",
    );
    assert_names(
        &after(|p| recurrence(p).values[0].shared = false),
        "which is not shared",
    );
    assert_names(
        &after(|p| recurrence(p).values[1].initial = None),
        "there is no initial window",
    );
    assert_names(
        &after(|p| recurrence(p).values[1].name = "h".into()),
        "another value has its name",
    );
    assert_names(
        &after(|p| recurrence(p).values[1].window = 2),
        "no initial window of so many",
    );
}

#[test]
fn buffers_and_windows_are_checked() {
    assert_names(
        &after(|p| p.buffers[2].name = "W".into()),
        "two param buffers are named `W`",
    );
    assert_names(
        &after(|p| p.buffers[5].scope = Scope::Window(2)),
        "no initial window like it",
    );
    assert_names(
        &after(|p| p.buffers[1].scope = Scope::Batch),
        "param `W` has scope Batch",
    );
    let twice = |p: &mut Plan| {
        let mut again = p.launches[0].clone();
        again.name = "again".into();
        p.launches.insert(1, again);
        p.launches[1].after = vec![0];
        p.launches[2].after = vec![1];
    };
    assert_names(&after(twice), "element Some(0) is written twice");
}
