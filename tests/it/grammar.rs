//! `grammar/rnn.ebnf` is read here: it must be closed, and whatever it derives must parse and survive formatting.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rnnc::diagnostics::render::render;
use rnnc::syntax;
use std::collections::BTreeMap;
use std::path::Path;

/// What stands on the right of a rule.
#[derive(Debug)]
enum Term {
    Rule(String),
    Text(String),
    Special,
    Sequence(Vec<Term>),
    Choice(Vec<Term>),
    Optional(Box<Term>),
    Repeated(Box<Term>),
}

/// The rules by name.
type Grammar = BTreeMap<String, Term>;

/// The symbols of an EBNF file: names, quoted texts, `? ... ?`, punctuation.
fn symbols(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = source.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '(' if rest.starts_with("(*") => rest.find("*)").unwrap() + 2,
            '"' | '\'' | '?' => rest[1..].find(first).unwrap() + 2,
            c if c.is_alphanumeric() => rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len()),
            _ => 1,
        };
        if !rest.starts_with("(*") {
            found.push(rest[..length].to_string());
        }
        rest = rest[length..].trim_start();
    }
    found
}

fn choice(symbols: &mut std::iter::Peekable<std::vec::IntoIter<String>>) -> Term {
    let mut alternatives = vec![sequence(symbols)];
    while symbols.next_if(|s| s == "|").is_some() {
        alternatives.push(sequence(symbols));
    }
    if alternatives.len() == 1 {
        alternatives.remove(0)
    } else {
        Term::Choice(alternatives)
    }
}

fn sequence(symbols: &mut std::iter::Peekable<std::vec::IntoIter<String>>) -> Term {
    let mut parts = vec![part(symbols)];
    while symbols.next_if(|s| s == ",").is_some() {
        parts.push(part(symbols));
    }
    if parts.len() == 1 {
        parts.remove(0)
    } else {
        Term::Sequence(parts)
    }
}

fn part(symbols: &mut std::iter::Peekable<std::vec::IntoIter<String>>) -> Term {
    let symbol = symbols.next().unwrap();
    let mut inside = |close: &str| {
        let term = choice(symbols);
        assert_eq!(symbols.next().as_deref(), Some(close));
        term
    };
    match symbol.as_str() {
        "(" => inside(")"),
        "[" => Term::Optional(Box::new(inside("]"))),
        "{" => Term::Repeated(Box::new(inside("}"))),
        s if s.starts_with(['"', '\'']) => Term::Text(s[1..s.len() - 1].to_string()),
        s if s.starts_with('?') => Term::Special,
        s => Term::Rule(s.to_string()),
    }
}

fn grammar() -> Grammar {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("grammar/rnn.ebnf");
    let mut symbols = symbols(&std::fs::read_to_string(path).unwrap()).into_iter().peekable();
    let mut rules = Grammar::new();
    while let Some(name) = symbols.next() {
        assert_eq!(symbols.next().as_deref(), Some("="), "{name}");
        let term = choice(&mut symbols);
        assert_eq!(symbols.next().as_deref(), Some(";"), "{name}");
        assert!(rules.insert(name.clone(), term).is_none(), "{name} is defined twice");
    }
    rules
}

fn names<'t>(term: &'t Term, found: &mut Vec<&'t str>) {
    match term {
        Term::Rule(name) => found.push(name),
        Term::Text(_) | Term::Special => {}
        Term::Sequence(terms) | Term::Choice(terms) => terms.iter().for_each(|t| names(t, found)),
        Term::Optional(term) | Term::Repeated(term) => names(term, found),
    }
}

#[test]
fn every_rule_of_the_grammar_is_defined_and_used() {
    let rules = grammar();
    let mut used = vec!["file", "keyword"];
    rules.values().for_each(|term| names(term, &mut used));
    for name in &used {
        assert!(rules.contains_key(*name), "{name} is not defined");
    }
    for name in rules.keys() {
        assert!(used.contains(&name.as_str()), "{name} is not used");
    }
}

/// Rules inside of which no white space may stand.
const TOKENS: [&str; 6] = ["ident", "integer", "digits", "frames", "number", "string"];

/// Draws sentences of the grammar.
struct Writer<'g> {
    rules: &'g Grammar,
    random: ChaCha8Rng,
    out: String,
    /// The names of keywords, which no `ident` may be.
    keywords: Vec<&'g str>,
}

impl Writer<'_> {
    /// Writes what a term derives. `depth` falls with every rule; when it is used up, what can be left out is.
    fn write(&mut self, term: &Term, depth: i32, token: bool) {
        match term {
            Term::Rule(name) if TOKENS.contains(&name.as_str()) && !token => self.token(name),
            Term::Rule(name) => {
                let rules = self.rules;
                self.write(&rules[name], depth - 1, token);
            }
            Term::Text(text) => {
                self.out += text;
                self.gap(token);
            }
            Term::Special => self
                .out
                .push(['a', ' ', '\u{3b1}', '#', '}'][self.random.random_range(0..5)]),
            Term::Sequence(terms) => terms.iter().for_each(|t| self.write(t, depth, token)),
            Term::Choice(terms) => {
                let pick = if depth < 0 {
                    0
                } else {
                    self.random.random_range(0..terms.len())
                };
                self.write(&terms[pick], depth, token);
            }
            Term::Optional(term) => {
                if depth > 0 && self.random.random_bool(0.4) {
                    self.write(term, depth, token);
                }
            }
            Term::Repeated(term) => {
                while depth > 0 && self.random.random_bool(0.4) {
                    self.write(term, depth - 4, token);
                }
            }
        }
    }

    fn token(&mut self, name: &str) {
        let start = self.out.len();
        loop {
            let rules = self.rules;
            self.write(&rules[name], if name == "number" { 3 } else { 6 }, true);
            if self.fits(name, &self.out[start..]) {
                break;
            }
            self.out.truncate(start);
        }
        self.gap(false);
    }

    /// Whether a token is one by what the grammar leaves to words: no keyword, and no number too large to be held.
    fn fits(&self, name: &str, text: &str) -> bool {
        match name {
            "ident" => !self.keywords.contains(&text),
            "number" => text.parse().is_ok_and(f64::is_finite),
            "integer" | "frames" => text.parse::<i32>().is_ok(),
            _ => true,
        }
    }

    /// White space or a comment, mostly a blank.
    fn gap(&mut self, token: bool) {
        if !token {
            let gaps = [" ", " ", " ", "\n", "\t\r\n", " # a \"comment\" }\n"];
            self.out += gaps[self.random.random_range(0..gaps.len())];
        }
    }
}

#[test]
fn what_the_grammar_derives_parses() {
    let rules = grammar();
    let Term::Choice(words) = &rules["keyword"] else {
        panic!("keywords are a choice")
    };
    let keywords: Vec<&str> = words
        .iter()
        .filter_map(|w| if let Term::Text(t) = w { Some(t.as_str()) } else { None })
        .collect();
    let mut longest = 0;
    for seed in 0..3000 {
        let random = ChaCha8Rng::seed_from_u64(seed);
        let mut writer = Writer {
            rules: &rules,
            random,
            out: String::new(),
            keywords: keywords.clone(),
        };
        writer.write(&rules["file"], 30, false);
        let text = writer.out;
        let (_, diagnostics) = syntax::parse(text.as_bytes());
        assert!(
            diagnostics.0.is_empty(),
            "seed {seed}: {}",
            render(&diagnostics, "f", &text, false)
        );
        let formatted = syntax::format(text.as_bytes()).unwrap();
        assert_eq!(syntax::format(formatted.as_bytes()).unwrap(), formatted, "seed {seed}");
        longest = longest.max(text.len());
    }
    assert!(longest > 2000, "only short files were drawn");
}

#[test]
fn every_keyword_is_reserved() {
    let Term::Choice(words) = &grammar()["keyword"] else {
        panic!("keywords are a choice")
    };
    for word in words {
        let Term::Text(word) = word else {
            panic!("a keyword is a text")
        };
        let codes = |name: &str| {
            let text = format!("cell c(H) {{ param {name}: [H] }}");
            syntax::parse(text.as_bytes())
                .1
                .0
                .iter()
                .map(|d| d.code.as_str())
                .collect::<Vec<_>>()
        };
        assert_eq!(codes(word), ["E0010"], "{word}");
        assert!(codes(&format!("{word}_")).is_empty(), "{word}");
    }
}
