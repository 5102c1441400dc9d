//! Checks what a caller hands to a device before anything runs: every device refuses the same data with the same words.
//!
//! In: a plan and the data. Out: nothing, or the first thing wrong by the user's name for it. After it every buffer that
//! the caller must give is there, has the plan's size and kind of elements, and holds only indices in range.

use crate::engine::{Data, RunError};
use crate::plan::{Buffer, BufferId, Elem, Frame, Kernel, Launch, Load, Plan, Role, Step};
use std::collections::BTreeMap;

/// How callers call a buffer: `x.NAME`, `p.NAME`, `s0.NAME`, `y.NAME`, `sT.NAME`; for the rest its name.
pub fn key(buffer: &Buffer) -> String {
    let name = &buffer.name;
    match buffer.role {
        Role::Input => format!("x.{name}"),
        Role::Param => format!("p.{name}"),
        Role::Initial(_) => format!("s0.{name}"),
        Role::Output => format!("y.{name}"),
        Role::Final => format!("sT.{name}"),
        Role::Prologue | Role::Temp => name.clone(),
    }
}

/// Every parameter is there and has the plan's size; nothing else is.
///
/// # Errors
/// The first that is missing, not wanted, or of another size.
pub fn check_params(plan: &Plan, params: &BTreeMap<BufferId, Data>) -> Result<(), RunError> {
    let wanted = |buffer: &Buffer| buffer.role == Role::Param;
    check_all(plan, 1, 1, params, wanted, wanted)
}

/// Every input is there, inputs and initial windows have their sizes at `frames` and `batch`, and indices are in range.
///
/// # Errors
/// The first that is missing, not wanted, of another size, or out of range.
pub fn check_run(plan: &Plan, frames: usize, batch: usize, given: &BTreeMap<BufferId, Data>) -> Result<(), RunError> {
    if frames == 0 || batch == 0 {
        return Err(RunError::Mismatch {
            name: if frames == 0 { "T" } else { "B" }.to_owned(),
            expected: "at least 1".to_owned(),
            got: "0".to_owned(),
        });
    }
    let needed = |buffer: &Buffer| buffer.role == Role::Input;
    let allowed = |buffer: &Buffer| matches!(buffer.role, Role::Input | Role::Initial(_));
    check_all(plan, frames, batch, given, needed, allowed)?;
    for (id, rows) in index_rows(plan) {
        if let Some(Data::I32(values)) = given.get(&id) {
            let outside = values.iter().find(|v| !(0..rows as i64).contains(&i64::from(**v)));
            if let Some(value) = outside {
                return Err(RunError::IndexRange {
                    name: key(plan.buffer(id)),
                    value: i64::from(*value),
                    rows,
                });
            }
        }
    }
    Ok(())
}

fn check_all(
    plan: &Plan,
    frames: usize,
    batch: usize,
    given: &BTreeMap<BufferId, Data>,
    needed: impl Fn(&Buffer) -> bool,
    allowed: impl Fn(&Buffer) -> bool,
) -> Result<(), RunError> {
    for id in given.keys() {
        let buffer = plan.buffers.get(id.0 as usize);
        if !buffer.is_some_and(&allowed) {
            return Err(RunError::Mismatch {
                name: buffer.map_or_else(|| format!("buffer {}", id.0), key),
                expected: "nothing".to_owned(),
                got: "data".to_owned(),
            });
        }
    }
    for (id, buffer) in plan.ids() {
        match given.get(&id) {
            None if needed(buffer) => return Err(RunError::Missing { name: key(buffer) }),
            None => {}
            Some(data) => check_one(buffer, frames, batch, data)?,
        }
    }
    Ok(())
}

fn check_one(buffer: &Buffer, frames: usize, batch: usize, data: &Data) -> Result<(), RunError> {
    let of = |integers: bool| if integers { "integers" } else { "reals" };
    let (wants, is) = (buffer.elem == Elem::I32, matches!(data, Data::I32(_)));
    let expected = buffer.len(frames, batch);
    if wants == is && data.len() == expected {
        return Ok(());
    }
    Err(RunError::Mismatch {
        name: key(buffer),
        expected: format!("{expected} {}", of(wants)),
        got: format!("{} {}", data.len(), of(is)),
    })
}

/// The buffers whose values are rows of tables, with the least number of rows among the tables that each indexes.
pub fn index_rows(plan: &Plan) -> BTreeMap<BufferId, usize> {
    let mut found = BTreeMap::new();
    for launch in plan.prologue.iter().chain(&plan.initial).chain(&plan.launches) {
        for (id, rows) in gathered(launch) {
            let least = found.entry(id).or_insert(rows);
            *least = rows.min(*least);
        }
    }
    found
}

/// The buffers that the launch takes rows from by a load that a gather reads directly, their windows included.
fn gathered(launch: &Launch) -> Vec<(BufferId, usize)> {
    let mut found = Vec::new();
    for site in Kernel::sites(&launch.kernel) {
        for step in &site.body.steps {
            let Step::Gather { row, rows, .. } = step else {
                continue;
            };
            if let Some(Step::Load(Load { buffer, frame, .. })) = site.body.steps.get(row.0 as usize) {
                found.push((*buffer, *rows));
                if let Frame::At { window: Some(id), .. } = frame {
                    found.push((*id, *rows));
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::samples::{embedding, lstm, taps};

    fn data(plan: &Plan, frames: usize, batch: usize) -> BTreeMap<BufferId, Data> {
        let inputs = plan.ids().filter(|(_, b)| b.role == Role::Input);
        inputs
            .map(|(id, b)| match b.elem {
                Elem::I32 => (id, Data::I32(vec![0; b.len(frames, batch)])),
                _ => (id, Data::F32(vec![0.0; b.len(frames, batch)])),
            })
            .collect()
    }

    #[track_caller]
    fn refused(result: Result<(), RunError>, words: &str) {
        assert_eq!(result.map_err(|e| e.to_string()), Err(words.to_owned()));
    }

    #[test]
    fn data_of_the_plans_size_passes() {
        let plan = taps(3);
        assert!(check_run(&plan, 4, 2, &data(&plan, 4, 2)).is_ok());
    }

    #[test]
    fn what_is_missing_or_of_another_size_is_named() {
        let plan = lstm(3, 5);
        let x = BufferId(0);
        let mut given = data(&plan, 4, 2);
        refused(check_run(&plan, 5, 2, &given), "x.x holds 24 reals, expected 30 reals");
        refused(check_run(&plan, 0, 2, &given), "T holds 0, expected at least 1");
        given.insert(BufferId(1), Data::F32(vec![]));
        refused(check_run(&plan, 4, 2, &given), "p.W holds data, expected nothing");
        given.remove(&BufferId(1));
        given.insert(x, Data::I32(vec![0; 24]));
        refused(
            check_run(&plan, 4, 2, &given),
            "x.x holds 24 integers, expected 24 reals",
        );
        given.remove(&x);
        refused(check_run(&plan, 4, 2, &given), "x.x is missing");
        refused(check_params(&plan, &BTreeMap::new()), "p.W is missing");
    }

    #[test]
    fn indices_stay_within_their_table() {
        let plan = embedding(7, 3);
        let (id, _) = plan.ids().find(|(_, b)| b.elem == Elem::I32).unwrap();
        let mut given = data(&plan, 2, 1);
        assert!(check_run(&plan, 2, 1, &given).is_ok());
        for (bad, words) in [
            (7, "x.token holds the index 7, outside 0..7"),
            (-1, "x.token holds the index -1, outside 0..7"),
        ] {
            given.insert(id, Data::I32(vec![6, bad]));
            refused(check_run(&plan, 2, 1, &given), words);
        }
    }
}
