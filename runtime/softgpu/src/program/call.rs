//! Calls. Parameters are words of registers: the caller's are copied to the callee's, and the results back.

use super::bind::parts_of;
use super::decode::{Decoder, Outcome};
use super::layout;
use super::names::Symbol;
use super::{Action, CallSite};
use crate::ops::{Args, File, moves};
use crate::ptx::ast::{Instruction, Operand, Variable};

impl Decoder<'_> {
    /// Decodes a call; false where it is none.
    pub fn call(&mut self, instruction: &Instruction) -> Outcome<bool> {
        if &*instruction.opcode[0] != "call" {
            return Ok(false);
        }
        let mut operands = instruction.operands.as_slice();
        let mut results: &[Operand] = &[];
        if let [Operand::List(list), rest @ ..] = operands {
            results = list;
            operands = rest;
        }
        let name = self.name_of(self.operand(operands, 0)?)?;
        let arguments = operands.get(1).map_or(&[][..], parts_of);
        let Some(function) = self.function_named(&name) else {
            return self.fail(format!("{name} is no function; calls through pointers are not known"));
        };
        let (params, returns) = (function.params.clone(), function.results.clone());
        match self.ids.get(&name).copied() {
            Some(id) => {
                let arguments = self.argument_words(arguments, &params)?;
                let results = self.argument_words(results, &returns)?;
                let site = CallSite {
                    function: Some(id),
                    arguments,
                    results,
                };
                self.emit(Action::Call(Box::new(site)), Args::default());
            }
            None => self.runtime_call(&name, results)?,
        }
        Ok(true)
    }

    /// The words of the arguments, laid out as the function's parameters are.
    fn argument_words(&mut self, arguments: &[Operand], params: &[Variable]) -> Outcome<Vec<u32>> {
        if arguments.len() != params.len() {
            return self.fail(format!("{} arguments for {} parameters", arguments.len(), params.len()));
        }
        let (places, bytes) = layout::params(params);
        let unused = self.scratch(File::Word);
        let mut words = vec![unused; bytes.div_ceil(4) as usize];
        for (argument, place) in arguments.iter().zip(places) {
            if !place.offset.is_multiple_of(4) && place.bytes >= 4 {
                return self.fail("a parameter that is not aligned to its words".into());
            }
            let first = self.argument_word(argument, place.bytes)?;
            for word in 0..place.bytes.div_ceil(4) {
                words[(place.offset / 4 + word) as usize] = first + word;
            }
        }
        Ok(words)
    }

    /// The first word of an argument: a `.param` variable, or a register.
    fn argument_word(&mut self, argument: &Operand, bytes: u32) -> Outcome<u32> {
        let Operand::Name(name) = argument else {
            return self.fail("an argument that is no name".into());
        };
        match self.body.names.find(name) {
            Some(Symbol::Param { word, bytes: given, .. }) if given >= bytes => Ok(word),
            Some(Symbol::Register(register)) if register.file == File::Word => Ok(register.number),
            _ => self.fail(format!("the argument {name} does not fit its parameter")),
        }
    }

    /// Functions without a body are those of the runtime: `assert` stops the kernel, `printf` prints nothing.
    fn runtime_call(&mut self, name: &str, results: &[Operand]) -> Outcome<()> {
        match name {
            "__assertfail" | "__assert_fail" => {
                self.emit(
                    Action::Trap("an assertion of the kernel does not hold"),
                    Args::default(),
                );
            }
            "vprintf" => {
                if let Some(result) = results.first() {
                    let d = self.argument_word(result, 4)?;
                    let a = self.constant(File::Word, 0);
                    self.emit_pure(
                        &moves::copy::<u32>(false),
                        Args {
                            d,
                            a,
                            ..Args::default()
                        },
                    );
                }
            }
            _ => return self.fail(format!("{name} has no body")),
        }
        Ok(())
    }
}
