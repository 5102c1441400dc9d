//! An opcode as words that are taken off one by one: what nobody takes is a modifier that nobody honours, and an error.

use crate::ptx::ast::Type;
use std::sync::Arc;

/// The words of an opcode; the first is its name.
#[derive(Debug)]
pub struct Opcode<'a> {
    words: &'a [Arc<str>],
    taken: u64,
    /// Bits of the register that the result goes to, where it is known: a narrow result is extended to it.
    pub destination_bits: u32,
}

impl<'a> Opcode<'a> {
    /// Nothing taken yet but the name.
    pub fn new(words: &'a [Arc<str>], destination_bits: u32) -> Opcode<'a> {
        Opcode {
            words,
            taken: 1,
            destination_bits,
        }
    }

    /// Gives every word but the name back.
    pub fn reset(&mut self) {
        self.taken = 1;
    }

    /// The name: `ld` of `ld.global.f32`.
    pub fn base(&self) -> &'a str {
        self.words.first().map_or("", |word| word)
    }

    /// Takes a word, wherever it stands.
    pub fn flag(&mut self, word: &str) -> bool {
        let found = self.left().find(|(_, w)| *w == word);
        if let Some((at, _)) = found {
            self.taken |= 1 << at;
        }
        found.is_some()
    }

    /// Takes the first of these words that stands there.
    pub fn one_of<T: Copy>(&mut self, words: &[(&str, T)]) -> Option<T> {
        words.iter().find(|(word, _)| self.flag(word)).map(|(_, value)| *value)
    }

    /// Takes the last word that is a type.
    pub fn ty(&mut self) -> Option<Type> {
        let (at, ty) = self
            .left()
            .filter_map(|(at, word)| Some((at, Type::named(word)?)))
            .last()?;
        self.taken |= 1 << at;
        Some(ty)
    }

    /// Takes the first word for which the function has a value.
    pub fn find<T>(&mut self, f: impl Fn(&str) -> Option<T>) -> Option<T> {
        let (at, value) = self.left().find_map(|(at, word)| Some((at, f(word)?)))?;
        self.taken |= 1 << at;
        Some(value)
    }

    /// The first word that nobody has taken.
    pub fn rest(&self) -> Option<&'a str> {
        self.left().next().map(|(_, word)| word)
    }

    /// The whole, as in the text.
    pub fn text(&self) -> String {
        self.words.join(".")
    }

    fn left(&self) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
        let taken = self.taken;
        let words: &'a [Arc<str>] = self.words;
        (0..words.len().min(64))
            .filter(move |at| taken >> at & 1 == 0)
            .map(move |at| (at, &*words[at]))
    }
}

/// Bits of a type.
pub fn bits_of(ty: Type) -> u32 {
    8 * ty.bytes()
}

/// Whether a type is a signed integer.
pub fn is_signed(ty: Type) -> bool {
    matches!(ty, Type::S8 | Type::S16 | Type::S32 | Type::S64)
}
