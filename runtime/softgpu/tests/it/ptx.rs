//! The parser on the PTX of NVRTC: everything in the text is in the tree, at its line.

use crate::nvrtc::compile;
use softgpu::ptx::ast::{Function, Initial, Instruction, Module, Operand, Statement};
use softgpu::ptx::parse;

const DECLARATIONS: &str = include_str!("../kernels/declarations.cu");
const ASSEMBLY: &str = include_str!("../kernels/assembly.cu");

/// Every instruction of a module.
fn instructions(module: &Module) -> Vec<&Instruction> {
    fn walk<'a>(statements: &'a [Statement], out: &mut Vec<&'a Instruction>) {
        for statement in statements {
            match statement {
                Statement::Instruction(instruction) => out.push(instruction),
                Statement::Block(inner) => walk(inner, out),
                _ => {}
            }
        }
    }
    let mut out = Vec::new();
    for body in module.functions.iter().filter_map(|f| f.body.as_ref()) {
        walk(body, &mut out);
    }
    out
}

/// The opcode that a line of NVRTC's own begins with, if it does.
fn opcode(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = match line.strip_prefix('@') {
        Some(guarded) => guarded.split_once(char::is_whitespace)?.1.trim_start(),
        None => line,
    };
    let word = line.split([' ', '\t', ';']).next()?;
    let proper = word.contains('.') && word.starts_with(|c: char| c.is_ascii_lowercase());
    proper.then_some(word)
}

/// Parses, and checks that no line was left out or misplaced.
fn checked(text: &str) -> Module {
    let module = parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let lines: Vec<&str> = text.lines().collect();
    let found = instructions(&module);
    for instruction in &found {
        let line = lines[instruction.line as usize - 1];
        assert!(line.contains(&instruction.opcode.join(".")), "{line}: {instruction:?}");
    }
    let expected = lines.iter().enumerate().filter_map(|(n, l)| Some((n, opcode(l)?)));
    for (number, opcode) in expected {
        let at = found
            .iter()
            .any(|i| i.line as usize == number + 1 && i.opcode.join(".") == opcode);
        assert!(at, "line {}: {opcode}", number + 1);
    }
    module
}

fn function<'a>(module: &'a Module, name: &str) -> &'a Function {
    let mut with_body = module.functions.iter().filter(|f| f.body.is_some());
    with_body.find(|f| &*f.name == name).unwrap()
}

fn has(module: &Module, test: impl Fn(&Instruction) -> bool) -> bool {
    instructions(module).into_iter().any(test)
}

#[test]
fn declarations_of_cuda_text() {
    for ptx in compile(DECLARATIONS, "sm_90", &["-lineinfo"]) {
        let module = checked(&ptx.text);
        assert_eq!(module.target, "sm_90");
        let variable = |name: &str| module.variables.iter().find(|v| &*v.name == name).unwrap();
        assert_eq!(
            variable("table").init[..4],
            [0, 0, 128, 63].map(Initial::Bits),
            "{}",
            ptx.version
        );
        let addresses = variable("functions")
            .init
            .iter()
            .filter(|i| matches!(i, Initial::Address { .. }));
        assert_eq!(addresses.count(), 2);
        let generic = |i: &Initial| {
            matches!(
                i,
                Initial::Address {
                    offset: 8,
                    generic: true,
                    ..
                }
            )
        };
        assert!(generic(&variable("pointer").init[0]));
        assert!(variable("dynamic").external);
        let kernel = function(&module, "k");
        assert_eq!(kernel.params.len(), 3);
        assert!(kernel.directives.contains(&("minnctapersm".to_owned(), vec![2])));
        let cluster = function(&module, "clustered");
        assert!(
            cluster
                .directives
                .contains(&("reqnctapercluster".to_owned(), vec![4, 1, 1]))
        );
        assert_eq!(function(&module, "_Z3add3Bigi").results[0].len, Some(24));
        assert!(
            module
                .functions
                .iter()
                .any(|f| &*f.name == "vprintf" && f.body.is_none())
        );
        assert!(
            has(&module, |i| &*i.opcode[0] == "call" && i.operands.len() == 4),
            "an indirect call"
        );
        assert_eq!(module.files.len(), 1);
    }
}

#[test]
fn debug_information_is_skipped() {
    for options in [&["-G"][..], &["-rdc=true"], &["-lineinfo", "--use_fast_math"]] {
        for ptx in compile(DECLARATIONS, "sm_90", options) {
            checked(&ptx.text);
        }
    }
}

#[test]
fn inline_assembly() {
    for ptx in compile(ASSEMBLY, "sm_90", &["-lineinfo"]) {
        let module = checked(&ptx.text);
        let Some(body) = &function(&module, "jump").body else {
            unreachable!()
        };
        let targets = body.iter().find_map(|s| match s {
            Statement::Block(inner) => inner.iter().find_map(|s| match s {
                Statement::Targets { targets, .. } => Some(targets.len()),
                _ => None,
            }),
            _ => None,
        });
        assert_eq!(targets, Some(3), "{}", ptx.version);
        let pair =
            |i: &Instruction| matches!(i.operands.first(), Some(Operand::Pair(_, second)) if **second == Operand::Sink);
        assert!(has(&module, pair));
        assert!(has(&module, |i| i.opcode.iter().any(|w| &**w == "shared::cluster")));
        let constant = |i: &Instruction| matches!(i.operands.get(1), Some(Operand::Vector(v)) if v.contains(&Operand::F32(0x3f80_0000)));
        assert!(has(&module, constant));
    }
}
