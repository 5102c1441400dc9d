//! `einsum("g n o i, n i -> g n o", R, h)`: labels and values go in, a contraction comes out (rule 11).

use super::align::Operand;
use super::build::Builder;
use super::call::Call;
use super::sizes::Result;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::ir::Read;
use crate::syntax::ast::{ArgValue, Ident};
use std::collections::BTreeMap;

/// More labels than this, commas and arrow included, are refused.
const MOST: usize = 256;

const SPACES: &str = "labels are separated by spaces: `i j, j k -> i k`";

/// A label string, taken apart; labels are numbered in order of appearance.
#[derive(Debug, PartialEq, Eq)]
struct Labels<'s> {
    operands: Vec<Vec<u32>>,
    out: Vec<u32>,
    names: Vec<&'s str>,
}

impl Builder<'_, '_> {
    /// The general product.
    pub(super) fn einsum(&mut self, call: &Call) -> Option<Read> {
        let ArgValue::Str(text) = &call.arg(0)?.value else {
            return None;
        };
        let values = self.many(call, 1);
        let labels = self.ok(parse(text))?;
        let values = values?;
        let found = self.check_labels(&labels, &values, text);
        self.ok(found)?;
        let operands = values.iter().map(|v| v.read).zip(labels.operands).collect();
        self.contract_all(operands, labels.out, call.span)
    }

    /// As many lists as values, as many labels as axes, and one size a label.
    fn check_labels(&self, labels: &Labels, values: &[Operand], text: &Ident) -> Result<()> {
        if labels.operands.len() != values.len() {
            let message = format!(
                "the string names {} operands, {} are given",
                labels.operands.len(),
                values.len()
            );
            return Err(Box::new(Diagnostic::new(Code::BadEinsum, message, text.span)));
        }
        let mut seen = BTreeMap::new();
        for (list, value) in labels.operands.iter().zip(values) {
            let axes = self.axes(value.read);
            if list.len() != axes.len() {
                return Err(self.wrong_count(labels, list, *value, text));
            }
            for (label, axis) in list.iter().zip(axes) {
                let (first, at) = *seen.entry(*label).or_insert((axis, value.span));
                if first != axis {
                    let (name, a, b) = (
                        labels.names[*label as usize],
                        self.show_size(first),
                        self.show_size(axis),
                    );
                    let message = format!("the label `{name}` stands for {a} and for {b}");
                    let d = Diagnostic::new(Code::ContractMismatch, message, value.span).label(self.show(axes));
                    return Err(Box::new(
                        d.also(at, format!("`{name}` is {a} here"))
                            .also(text.span, "the labels"),
                    ));
                }
            }
        }
        Ok(())
    }

    fn wrong_count(&self, labels: &Labels, list: &[u32], value: Operand, text: &Ident) -> Box<Diagnostic> {
        let shown = self.show(self.axes(value.read));
        let message = format!("{} labels for a value with axes {shown}", list.len());
        let d = Diagnostic::new(Code::BadEinsum, message, value.span)
            .label(shown)
            .also(text.span, "the labels");
        let joined = list.iter().any(|l| labels.names[*l as usize].len() > 1);
        Box::new(if joined { d.hint(SPACES) } else { d })
    }
}

/// Takes a label string apart.
fn parse(text: &Ident) -> Result<Labels<'_>> {
    let bad = |message: String| Box::new(Diagnostic::new(Code::BadEinsum, message, text.span));
    let Some((left, right)) = text.name.split_once("->") else {
        return Err(Box::new(
            bad("an einsum needs `->` and the labels of its result".to_owned()).hint("such as `n o i, n i -> n o`"),
        ));
    };
    let mut labels = Labels {
        operands: Vec::new(),
        out: Vec::new(),
        names: Vec::new(),
    };
    let words = text.name.split(|c: char| c == ',' || c.is_whitespace()).count();
    if words > MOST {
        return Err(bad(format!(
            "{words} labels are too many for an einsum; it takes at most {MOST}"
        )));
    }
    for list in left.split(',') {
        let numbers: Result<Vec<u32>> = list
            .split_whitespace()
            .map(|name| labels.number(name, text.span))
            .collect();
        labels.operands.push(numbers?);
    }
    for name in right.split_whitespace() {
        let Some(number) = labels.names.iter().position(|n| *n == name) else {
            let d = bad(format!("the label `{name}` of the result is in no operand"));
            let joined = labels.names.iter().any(|n| n.len() > 1 && n.contains(name));
            return Err(if joined { Box::new(d.hint(SPACES)) } else { d });
        };
        if labels.out.contains(&(number as u32)) {
            return Err(bad(format!("the label `{name}` is twice in the result")));
        }
        labels.out.push(number as u32);
    }
    Ok(labels)
}

impl<'s> Labels<'s> {
    fn number(&mut self, name: &'s str, span: Span) -> Result<u32> {
        if !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
            let message = format!("`{name}` is not a label; labels are names");
            return Err(Box::new(Diagnostic::new(Code::BadEinsum, message, span)));
        }
        let found = self.names.iter().position(|n| *n == name);
        Ok(found.unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        }) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> std::result::Result<(Vec<Vec<u32>>, Vec<u32>), String> {
        let ident = Ident {
            name: text.into(),
            span: Span::default(),
        };
        match parse(&ident) {
            Ok(l) => Ok((l.operands, l.out)),
            Err(d) => Err(d.message),
        }
    }

    #[test]
    fn labels_are_numbered_in_order() {
        let expected = (vec![vec![0, 1, 2, 3], vec![1, 3]], vec![0, 1, 2]);
        assert_eq!(labels("g n o i, n i -> g n o"), Ok(expected));
        assert_eq!(labels(" , i -> i"), Ok((vec![vec![], vec![0]], vec![0])));
        assert_eq!(labels("i i->"), Ok((vec![vec![0, 0]], vec![])));
    }

    #[test]
    fn faults_are_told() {
        assert!(labels("i j").unwrap_err().contains("->"));
        assert!(labels("i -> k").unwrap_err().contains("in no operand"));
        assert!(labels("i -> i i").unwrap_err().contains("twice"));
        assert!(labels("... i -> i").unwrap_err().contains("not a label"));
    }
}
