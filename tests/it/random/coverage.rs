//! What random cells consist of, counted: a generator that never makes something tests nothing about it.

use rnnc::analysis::{Facts, Form, Semiring, Transition, Verdict};
use rnnc::ir::op::{Binary, Op, Reduce, Unary};
use rnnc::ir::{Graph, Kind};
use rnnc_runtime::plan::{Family, Plan};
use std::collections::BTreeMap;
use std::fmt;

/// How often each thing occurred, by its name; what should occur stands at 0 until it does.
#[derive(Clone, Debug)]
pub struct Coverage(BTreeMap<String, usize>);

/// Operations that are neither a function of one or two numbers, nor a reduction, nor a product.
const OPERATIONS: [&str; 17] = [
    "broadcast",
    "clamp",
    "concat",
    "gather",
    "index_to_real",
    "input",
    "iota",
    "literal",
    "one_hot",
    "param",
    "reshape",
    "shift",
    "size",
    "slice",
    "state",
    "static_input",
    "where",
];

/// Everything else that should occur.
const THINGS: [&str; 31] = [
    "operation contract, one operand",
    "operation contract, two operands",
    "operation contract, diagonal",
    "delay -1",
    "delay -2",
    "delay 1",
    "delay 2",
    "delay 3",
    "delay 4",
    "kind const",
    "kind static",
    "kind frame",
    "recurrence (+,x)",
    "recurrence (max,+)",
    "recurrence (min,+)",
    "recurrence (logaddexp,+)",
    "recurrence (max,min)",
    "recurrence linear, elementwise",
    "recurrence linear, blocks",
    "recurrence linear, low rank",
    "recurrence linear, dense",
    "recurrence nonlinear, elementwise",
    "recurrence nonlinear, dense",
    "recurrence nonlinear, matrix state",
    "family product",
    "family pointwise",
    "family rows",
    "family scan",
    "family matrix_state",
    "family channel_loop",
    "family loop",
];

impl Coverage {
    /// Everything that should occur, which has not.
    pub fn new() -> Coverage {
        let functions = Unary::ALL.iter().map(|f| f.name());
        let functions = functions.chain(Binary::ALL.iter().map(|f| f.name()));
        let functions = functions.chain(Reduce::ALL.iter().map(|f| f.name()));
        let operations = functions.chain(OPERATIONS).map(|name| format!("operation {name}"));
        let all = operations.chain(THINGS.map(str::to_owned));
        Coverage(all.map(|name| (name, 0)).collect())
    }

    fn count(&mut self, what: String) {
        *self.0.entry(what).or_default() += 1;
    }

    /// A cell that is not held to f32, because it cannot be.
    pub fn count_unjudged(&mut self) {
        self.count("not held to f32".to_owned());
    }

    /// How many of those there were.
    pub fn unjudged(&self) -> usize {
        self.0.get("not held to f32").copied().unwrap_or(0)
    }

    /// A cell as it was written.
    pub fn count_graph(&mut self, graph: &Graph) {
        for id in graph.ids() {
            let node = graph.node(id);
            self.count(format!("operation {}", operation(&node.op)));
            self.count(format!("kind {}", kind(node.kind)));
            for read in graph.operands(id).iter().filter(|r| r.delay != 0) {
                self.count(format!("delay {}", read.delay));
            }
        }
    }

    /// What the analysis made of it.
    pub fn count_facts(&mut self, facts: &Facts) {
        for recurrence in &facts.recurrences {
            let form = match &recurrence.verdict {
                Verdict::Linear(linear) => {
                    self.count(format!("recurrence {}", semiring(linear.semiring)));
                    transition(linear.transition)
                }
                Verdict::Nonlinear(nonlinear) => form(nonlinear.form),
            };
            self.count(format!("recurrence {form}"));
        }
    }

    /// What it was planned as.
    pub fn count_plan(&mut self, plan: &Plan) {
        for launch in &plan.launches {
            self.count(format!("family {}", launch.family.name()));
        }
    }

    /// Adds the counts of others.
    pub fn add(&mut self, other: Coverage) {
        for (what, n) in other.0 {
            *self.0.entry(what).or_default() += n;
        }
    }

    /// What never occurred.
    pub fn missing(&self) -> Vec<&str> {
        let missing = self.0.iter().filter(|(_, n)| **n == 0);
        missing.map(|(what, _)| what.as_str()).collect()
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(what, n)| writeln!(f, "{n:>9}  {what}"))
    }
}

/// The name under which an operation is counted. A new one does not compile until it has a place here.
fn operation(op: &Op) -> String {
    match op {
        Op::Contract { labels, .. } => {
            let has_diagonal = labels.iter().any(|l| (1..l.len()).any(|i| l[..i].contains(&l[i])));
            let count = if labels.len() == 1 {
                "one operand"
            } else {
                "two operands"
            };
            format!("contract, {}", if has_diagonal { "diagonal" } else { count })
        }
        Op::Input
        | Op::StaticInput
        | Op::Param
        | Op::Literal(_)
        | Op::SizeValue(_)
        | Op::Iota
        | Op::Unary(_)
        | Op::Binary(_)
        | Op::Where
        | Op::Clamp
        | Op::Broadcast { .. }
        | Op::Slice { .. }
        | Op::Reshape
        | Op::Shift { .. }
        | Op::Concat { .. }
        | Op::Reduce { .. }
        | Op::Gather
        | Op::OneHot
        | Op::IndexToReal
        | Op::State { .. }
        | Op::Total { .. } => op.name().to_owned(),
    }
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Const => "const",
        Kind::Static => "static",
        Kind::Frame => "frame",
    }
}

fn semiring(semiring: Semiring) -> &'static str {
    match semiring {
        Semiring::SumProduct => "(+,x)",
        Semiring::MaxPlus => "(max,+)",
        Semiring::MinPlus => "(min,+)",
        Semiring::LogSumExp => "(logaddexp,+)",
        Semiring::MaxMin => "(max,min)",
    }
}

fn transition(transition: Transition) -> &'static str {
    match transition {
        Transition::Elementwise => "linear, elementwise",
        Transition::Block(_) => "linear, blocks",
        Transition::LowRank(_) => "linear, low rank",
        Transition::Dense => "linear, dense",
    }
}

fn form(form: Form) -> &'static str {
    match form {
        Form::Elementwise => "nonlinear, elementwise",
        Form::Dense => "nonlinear, dense",
        Form::MatrixState => "nonlinear, matrix state",
    }
}

/// Families are counted by their own names; this points here when there is a new one. Totals are of gradients only.
#[expect(dead_code, reason = "compiled for its exhaustiveness only")]
fn every_family_is_listed(family: Family) {
    match family {
        Family::Product
        | Family::Pointwise
        | Family::Rows
        | Family::Scan
        | Family::MatrixState
        | Family::ChannelLoop
        | Family::Loop
        | Family::Total => {}
    }
}
