//! What the printers of all kernel families share: what they are given, what they give back, and the shape of text.

use super::expr::Prec;
use super::index::Variable;
use super::names::Names;
use super::pointers::{Pointers, element_type};
use crate::codegen::Target;
use rnnc_runtime::manifest::{Argument, KernelLaunch, Workspace};
use rnnc_runtime::plan::{BufferId, Launch, Plan, Scope};
use std::collections::BTreeSet;

/// What a kernel's printer is given.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// What its buffers are called.
    pub pointers: &'a Pointers,
    /// What the text is for.
    pub target: &'a Target,
}

/// A printed kernel.
pub struct Emission {
    /// Its text, without the prelude.
    pub text: String,
    /// How it is launched. Workspaces in its arguments count from 0 in `workspaces`.
    pub launch: KernelLaunch,
    /// What it needs beside buffers.
    pub workspaces: Vec<Workspace>,
}

impl Context<'_> {
    /// Names for a kernel's own variables: not those of the buffers that it uses.
    pub fn names(&self, launch: &Launch) -> Names {
        let mut names = Names::kernel();
        names.reserve(self.buffers(launch).map(|(id, _)| self.pointers.get(id)));
        names
    }

    /// The buffers of a launch and whether it writes them: what is read, then what is written.
    pub fn buffers(&self, launch: &Launch) -> impl Iterator<Item = (BufferId, bool)> + use<> {
        let reads = launch.reads().into_iter().map(|id| (id, false));
        reads.chain(launch.writes().into_iter().map(|id| (id, true)))
    }

    /// The parameters that are buffers, as C declarations. No buffer is both read and written, so all are `__restrict__`.
    pub fn parameters(&self, launch: &Launch) -> Vec<String> {
        self.buffers(launch)
            .map(|(id, written)| {
                let ty = element_type(self.plan.buffer(id).elem);
                let constant = if written { "" } else { "const " };
                format!("{constant}{ty}* __restrict__ {}", self.pointers.get(id))
            })
            .collect()
    }

    /// The same parameters for the manifest.
    pub fn arguments(&self, launch: &Launch) -> Vec<Argument> {
        self.buffers(launch)
            .map(|(buffer, written)| Argument::Buffer { buffer, written })
            .collect()
    }
}

/// The comment that opens a kernel: what it computes.
pub fn opening_comment(launch: &Launch, how: &str) -> String {
    let equations = launch.equations.iter().flat_map(|e| e.lines());
    let mut comment: String = equations.map(|line| format!("// {line}\n")).collect();
    if !comment.is_empty() {
        comment.push_str("//\n");
    }
    comment.extend(how.lines().map(|line| format!("// {line}\n")));
    comment
}

/// T and B, as far as a scope has them: as C parameters and for the manifest.
pub fn extents(scope: Scope) -> (Vec<String>, Vec<Argument>) {
    let int = |name: &str| format!("int {name}");
    match scope {
        Scope::Const => (Vec::new(), Vec::new()),
        Scope::Batch | Scope::Window(_) => (vec![int("B")], vec![Argument::Batch]),
        Scope::Frame => (vec![int("T"), int("B")], vec![Argument::Frames, Argument::Batch]),
    }
}

/// Parameters, one a line.
pub fn parameter_list(parameters: &[String]) -> String {
    let lines: Vec<String> = parameters.iter().map(|p| format!("    {p}")).collect();
    lines.join(",\n")
}

/// Lines of code, indented by their braces, starting at `level` steps of four columns; each ends in a newline.
pub fn indented(lines: &[String], level: usize) -> String {
    let mut depth = level;
    let mut text = String::new();
    for line in lines.iter().flat_map(|l| l.lines()) {
        if line.starts_with('}') {
            depth = depth.saturating_sub(1);
        }
        if line.is_empty() {
            text.push('\n');
            continue;
        }
        text.extend(std::iter::repeat_n("    ", depth));
        text.push_str(line);
        text.push('\n');
        if line.ends_with('{') {
            depth += 1;
        }
    }
    text
}

/// The declarations whose variable the code, or a later declaration that is needed, mentions.
pub fn needed(declarations: Vec<String>, code: &str) -> Vec<String> {
    let mut words: BTreeSet<String> = words(code).map(String::from).collect();
    let mut kept = Vec::new();
    for line in declarations.into_iter().rev() {
        let head = line.split(" = ").next().unwrap_or(&line);
        let variable = head.rsplit(' ').next().unwrap_or(head);
        if words.contains(variable) {
            words.extend(self::words(&line).map(String::from));
            kept.push(line);
        }
    }
    kept.reverse();
    kept
}

/// The identifiers, and numbers, in code.
pub fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|w| !w.is_empty())
}

/// Chooses names for the variables of an iteration space: letters that none of the user's names needs.
pub fn variables(extents: &[usize], letters: &str, users: &[&str], names: &mut Names) -> Vec<Variable> {
    let name = |extent: &usize| Variable::new(letter(letters, users, names), *extent);
    extents.iter().map(name).collect()
}

/// The first of some letters that neither is taken nor will be wanted for one of the user's names.
pub fn letter(letters: &str, users: &[&str], names: &mut Names) -> String {
    let free = letters
        .split_whitespace()
        .find(|l| !users.contains(l) && names.is_free(l));
    match free {
        Some(letter) => names.unique(letter),
        None => names.numbered("i"),
    }
}

/// How row-major coordinates follow from `flat`, which counts all of them: `const int j = flat / 5 % 3;`.
pub fn coordinates(flat: &super::expr::Expr, vars: &[Variable]) -> Vec<String> {
    let mut below: u64 = vars.iter().map(|v| v.extent as u64).product();
    let mut lines = Vec::new();
    for (i, var) in vars.iter().enumerate() {
        below /= (var.extent as u64).max(1);
        let mut value = flat.clone();
        if below > 1 {
            let text = format!("{} / {below}", flat.within(Prec::Product));
            value = super::expr::Expr::new(text, Prec::Product, flat.ty);
        }
        if i > 0 {
            value.text = format!("{} % {}", value.within(Prec::Product), var.extent);
        }
        lines.push(format!("const int {} = {};", var.name, value.text));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::cuda::expr::Expr;

    #[test]
    fn braces_set_the_indentation() {
        let lines: Vec<String> = ["if (a) {", "b;", "} else {", "c;", "}", "d;"].map(String::from).into();
        assert_eq!(
            indented(&lines, 1),
            "    if (a) {\n        b;\n    } else {\n        c;\n    }\n    d;\n"
        );
    }

    #[test]
    fn coordinates_are_row_major() {
        let vars = [Variable::new("i", 2), Variable::new("j", 3), Variable::new("k", 5)];
        assert_eq!(
            coordinates(&Expr::int("flat"), &vars),
            [
                "const int i = flat / 15;",
                "const int j = flat / 5 % 3;",
                "const int k = flat % 5;"
            ]
        );
    }

    #[test]
    fn variables_keep_clear_of_the_users_names() {
        let vars = variables(&[2, 3], "i j k", &["i", "f"], &mut Names::kernel());
        assert_eq!([&vars[0].name, &vars[1].name], ["j", "k"]);
    }
}
