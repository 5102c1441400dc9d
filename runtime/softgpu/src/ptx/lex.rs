//! Text to tokens. An opcode with its modifiers is one word, and so is a special register such as `%tid.x`; a directive or a type
//! is a dot and one word. Comments and white space are gone; each token keeps its line.

use super::ParseError;

/// A token. Slices are of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// A name or an opcode: `%r1`, `ld.global.u32`, `$L__BB0_2`.
    Word(&'t str),
    /// `.reg`, `.u32`, without the dot.
    Dot(&'t str),
    /// Whatever begins with a digit.
    Number(&'t str),
    /// A string, without its quotes; escapes are as written.
    Text(&'t str),
    /// A single character.
    Mark(char),
    /// The end of the text.
    End,
}

/// The tokens of a text with their lines; the last is [`Token::End`].
///
/// # Errors
/// A character that PTX does not use, or a comment or string without an end.
pub(super) fn lex(text: &str) -> Result<Vec<(Token<'_>, u32)>, ParseError> {
    let mut lexer = Lexer { text, at: 0, line: 1 };
    let mut tokens = Vec::with_capacity(text.len() / 4);
    loop {
        lexer.skip()?;
        let line = lexer.line;
        let token = lexer.token()?;
        tokens.push((token, line));
        if token == Token::End {
            return Ok(tokens);
        }
    }
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
    line: u32,
}

impl<'t> Lexer<'t> {
    fn byte(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn error(&self, message: impl Into<String>) -> ParseError {
        ParseError {
            line: self.line,
            message: message.into(),
        }
    }

    /// Takes so many bytes, and counts their lines.
    fn take(&mut self, bytes: usize) -> &'t str {
        let taken = self.rest().get(..bytes).unwrap_or("");
        let lines = taken.bytes().filter(|b| *b == b'\n').count();
        self.line = self.line.saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
        self.at += bytes;
        taken
    }

    /// White space and comments.
    fn skip(&mut self) -> Result<(), ParseError> {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_ascii_start().len();
            if blank > 0 {
                self.take(blank);
            } else if rest.starts_with("//") {
                self.take(rest.find('\n').unwrap_or(rest.len()));
            } else if rest.starts_with("/*") {
                let end = rest.find("*/").ok_or_else(|| self.error("a comment without an end"))?;
                self.take(end + 2);
            } else {
                return Ok(());
            }
        }
    }

    fn token(&mut self) -> Result<Token<'t>, ParseError> {
        match self.byte(0) {
            0 if self.at >= self.text.len() => Ok(Token::End),
            b if b.is_ascii_digit() => Ok(Token::Number(self.number())),
            b if is_initial(b) => self.word(),
            b'.' if is_part(self.byte(1)) => {
                self.at += 1;
                let length = self.run(0);
                Ok(Token::Dot(self.take(length)))
            }
            b'"' => self.string(),
            b @ (b'{' | b'}' | b'(' | b')' | b'[' | b']' | b',' | b';' | b':' | b'@' | b'!' | b'|' | b'+' | b'-'
            | b'=' | b'<' | b'>' | b'~') => {
                self.at += 1;
                Ok(Token::Mark(char::from(b)))
            }
            _ => Err(self.unexpected()),
        }
    }

    fn unexpected(&self) -> ParseError {
        let found = self.rest().chars().next().unwrap_or('\0');
        self.error(format!("unexpected character {found:?}"))
    }

    /// How many bytes of a plain name start so far ahead.
    fn run(&self, ahead: usize) -> usize {
        let bytes = self.text.as_bytes().get(self.at + ahead..).unwrap_or(&[]);
        bytes.iter().take_while(|b| is_part(**b)).count()
    }

    fn word(&mut self) -> Result<Token<'t>, ParseError> {
        let mut length = 1 + self.run(1);
        if length == 1 && self.byte(0) == b'%' {
            return Err(self.error("a % that no name follows"));
        }
        loop {
            let joint = match (self.byte(length), self.byte(length + 1)) {
                (b'.', _) => 1,
                (b':', b':') => 2,
                _ => break,
            };
            let more = self.run(length + joint);
            if more == 0 {
                break;
            }
            length += joint + more;
        }
        Ok(Token::Word(self.take(length)))
    }

    /// An integer, `0f` and `0d` bits, or a decimal number with a point or an exponent.
    fn number(&mut self) -> &'t str {
        let mut length = self.run(0);
        let decimal = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        let plain = self.rest().get(..length).is_some_and(decimal);
        if plain && self.byte(length) == b'.' && self.byte(length + 1).is_ascii_digit() {
            length += 1 + self.run(length + 1);
        }
        let mantissa = self.rest().get(..length).unwrap_or("");
        let signed = mantissa
            .strip_suffix(['e', 'E'])
            .is_some_and(|m| m.bytes().all(|b| b.is_ascii_digit() || b == b'.'));
        if signed && matches!(self.byte(length), b'+' | b'-') {
            length += 1 + self.run(length + 1);
        }
        self.take(length)
    }

    fn string(&mut self) -> Result<Token<'t>, ParseError> {
        let bytes = self.rest().as_bytes();
        let mut end = 1;
        while let Some(byte) = bytes.get(end) {
            match byte {
                b'"' => {
                    let quoted = self.take(end + 1);
                    return Ok(Token::Text(quoted.get(1..end).unwrap_or("")));
                }
                b'\\' => end += 2,
                b'\n' => break,
                _ => end += 1,
            }
        }
        Err(self.error("a string without an end"))
    }
}

fn is_initial(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$' | b'%')
}

fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$')
}
