//! Printed kernels go in; texts that compile alone come out: one of all kernels, or several to compile side by side.

use super::prelude;
use super::templates::{View, render};
use serde::Serialize;

/// `file.cu`
#[derive(Serialize)]
struct File<'a> {
    comment: &'a str,
    prelude: String,
    kernels: String,
}

impl View for File<'_> {
    const TEMPLATE: &'static str = "file.cu";
}

/// What a text is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    comment: String,
    kernels: Vec<String>,
    sm: u32,
}

impl Parts {
    /// A comment, and kernels without the prelude, for an architecture: 90 for `sm_90`.
    pub fn new(comment: String, kernels: Vec<String>, sm: u32) -> Parts {
        Parts { comment, kernels, sm }
    }

    /// The text of all kernels.
    pub fn whole(&self) -> String {
        let all: Vec<&str> = self.kernels.iter().map(String::as_str).collect();
        self.text(&all)
    }

    /// Texts of some of the kernels each, of about the same length: each kernel, the longest first, joins the text that
    /// is the shortest so far.
    pub fn split(&self, most: usize) -> Vec<String> {
        let mut order: Vec<usize> = (0..self.kernels.len()).collect();
        order.sort_by_key(|k| std::cmp::Reverse(self.kernels[*k].len()));
        let mut groups: Vec<Vec<usize>> = vec![Vec::new(); most.clamp(1, self.kernels.len().max(1))];
        for kernel in order {
            let length = |group: &&mut Vec<usize>| -> usize { group.iter().map(|k| self.kernels[*k].len()).sum() };
            if let Some(shortest) = groups.iter_mut().min_by_key(length) {
                shortest.push(kernel);
            }
        }
        let kernels = |group: &Vec<usize>| {
            let mut group = group.clone();
            group.sort_unstable();
            self.text(&group.iter().map(|k| self.kernels[*k].as_str()).collect::<Vec<_>>())
        };
        groups.iter().map(kernels).collect()
    }

    fn text(&self, kernels: &[&str]) -> String {
        let kernels = kernels.join("\n");
        let prelude = prelude::needed(&kernels, self.sm);
        render(&File {
            comment: &self.comment,
            prelude: if prelude.is_empty() {
                prelude
            } else {
                format!("{prelude}\n\n")
            },
            kernels,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(lengths: &[usize]) -> Parts {
        let kernel = |(i, n): (usize, &usize)| format!("kernel{i}{}\n", "-".repeat(*n));
        Parts::new(
            "// cell\n".to_string(),
            lengths.iter().enumerate().map(kernel).collect(),
            90,
        )
    }

    fn kernels(text: &str) -> Vec<char> {
        text.match_indices("kernel")
            .filter_map(|(at, _)| text[at + 6..].chars().next())
            .collect()
    }

    #[test]
    fn texts_are_of_about_the_same_length() {
        let split = parts(&[10, 90, 30, 40]).split(2);
        let split: Vec<Vec<char>> = split.iter().map(|t| kernels(t)).collect();
        assert_eq!(split, [vec!['1'], vec!['0', '2', '3']]);
    }

    #[test]
    fn there_are_no_more_texts_than_kernels_and_one_of_none() {
        let two = parts(&[5, 7]);
        assert_eq!(two.split(8).len(), 2);
        assert_eq!((two.split(1), two.split(0)), (vec![two.whole()], vec![two.whole()]));
        assert_eq!(parts(&[]).split(4), [parts(&[]).whole()]);
    }

    #[test]
    fn each_text_has_the_prelude_that_it_needs() {
        let kernels = ["y = sigmoid(x);\n".to_string(), "z = 1;\n".to_string()];
        let split = Parts::new(String::new(), kernels.to_vec(), 80).split(2);
        assert!(
            split[0].contains("float sigmoid(") && !split[1].contains("sigmoid"),
            "{split:?}"
        );
    }
}
