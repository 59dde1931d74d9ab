//! Parses queries.
//!
//! All words must occur. `or` (or `|`) between two means either, `not` or a `-` before a
//! word means that it must not occur, and `and` may be written out. Words in quotes
//! follow each other. A `*` at the end stands for any ending. Parentheses group. Terms
//! without letters or digits (`=>`) are ignored, as they are in the text. `file:` and a part of a
//! path is a filter for the whole query.

use super::tokens::{APART, is_whole, words};
use super::touched::FilePattern;
use crate::error::{Error, Result};

/// A parsed query.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ParsedQuery {
    /// The words; `None` if there are only filters.
    pub(super) root: Option<Node>,
    /// The files that must have been touched.
    pub(crate) files: Vec<FilePattern>,
}

/// A part of a query.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    /// All of these must match. At least one is not a `Not`.
    All(Vec<Node>),
    /// One of these must match. None is a `Not`.
    Any(Vec<Node>),
    /// This must not match.
    Not(Box<Node>),
    /// Words that follow each other.
    Phrase(Phrase),
    /// Two words that follow each other, possibly in one name.
    Pair(Phrase),
}

/// A word, or words at fixed distances from each other.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Phrase {
    /// The distance of each word from the first one, which is at 0.
    pub(super) words: Vec<(usize, String)>,
    /// Whether the last word is a prefix.
    pub(super) is_prefix: bool,
}

/// How deep parentheses may be nested.
const DEEPEST: usize = 50;
/// The most words and phrases.
const MOST: usize = 200;

impl ParsedQuery {
    /// Parses a query; an invalid one is an `Error::Query`.
    pub(crate) fn parse(query: &str) -> Result<Self> {
        let (tokens, files) = split(query)?;
        if tokens.len() > MOST * 3 {
            return wrong(format!("too many words: at most {MOST}"));
        }
        let mut parser = Parser {
            tokens: &tokens,
            at: 0,
            depth: 0,
        };
        let root = parser.any()?;
        if let Some(token) = parser.peek() {
            // Only a parenthesis ends the parse early.
            return wrong(format!(
                "the `)` at character {} closes nothing",
                token.place
            ));
        }
        match root {
            None if files.is_empty() => {
                wrong("nothing to search for: no letters or digits".to_owned())
            }
            Some(Node::Not(_)) => wrong(ONLY_NOT.to_owned()),
            root => Ok(Self { root, files }),
        }
    }

    /// Returns whether there is anything besides filters.
    pub(crate) fn has_words(&self) -> bool {
        self.root.is_some()
    }
}

const ONLY_NOT: &str = "add a word to search for: the query only excludes words";

fn wrong<T>(what: String) -> Result<T> {
    Err(Error::Query(what))
}

/// A token, and its first character, counted from 1.
#[derive(Debug, Clone, PartialEq)]
struct Token {
    kind: TokenKind,
    place: usize,
}

#[derive(Debug, Clone, PartialEq)]
enum TokenKind {
    And,
    Or,
    /// The operator as it was written.
    Not(&'static str),
    Open,
    Close,
    /// A search term; `None` if it contains nothing searchable.
    Term(Option<Node>),
}

/// Splits a query into tokens and filters.
fn split(query: &str) -> Result<(Vec<Token>, Vec<FilePattern>)> {
    let mut splitter = Splitter {
        rest: query,
        place: 1,
        depth: 0,
        tokens: Vec::new(),
        files: Vec::new(),
    };
    while splitter.step()? {}
    Ok((splitter.tokens, splitter.files))
}

struct Splitter<'a> {
    rest: &'a str,
    place: usize,
    /// The number of open parentheses.
    depth: usize,
    tokens: Vec<Token>,
    files: Vec<FilePattern>,
}

/// How a filter by file begins.
const FILE: &str = "file:";

impl<'a> Splitter<'a> {
    /// Reads the next token; returns whether there was one.
    fn step(&mut self) -> Result<bool> {
        let blank = self.rest.len() - self.rest.trim_start().len();
        self.take(blank);
        let Some(first) = self.rest.chars().next() else {
            return Ok(false);
        };
        match first {
            '(' => {
                self.depth += 1;
                self.push(TokenKind::Open, 1);
            }
            ')' if self.depth > 0 => {
                self.depth -= 1;
                self.push(TokenKind::Close, 1);
            }
            ')' => self.push(TokenKind::Close, 1),
            '"' => self.quoted()?,
            'f' | 'F' if self.is_file() => self.file()?,
            '-' if self.is_exclusion() => self.push(TokenKind::Not("-"), 1),
            _ => self.word(),
        }
        Ok(true)
    }

    /// Advances by bytes that end at a character.
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        self.place += taken.chars().count();
        taken
    }

    fn push(&mut self, kind: TokenKind, bytes: usize) {
        let place = self.place;
        self.take(bytes);
        self.tokens.push(Token { kind, place });
    }

    /// Returns whether a `-` excludes the following term: `--flag` is an ordinary word.
    fn is_exclusion(&self) -> bool {
        let next = self.rest.chars().nth(1);
        next.is_some_and(|next| next.is_alphanumeric() || next == '"' || next == '(')
    }

    fn is_file(&self) -> bool {
        let begins = self.rest.get(..FILE.len());
        begins.is_some_and(|begins| begins.eq_ignore_ascii_case(FILE))
            // `file::open` and `file://` are ordinary words.
            && ![":", "//"].iter().any(|more| self.rest[FILE.len()..].starts_with(more))
    }

    /// Reads `file:src/a.rs` or `file:"a b.txt"`.
    fn file(&mut self) -> Result<()> {
        let place = self.place;
        self.take(FILE.len());
        let path = match self.rest.strip_prefix('"') {
            Some(inside) => {
                let Some(end) = inside.find('"') else {
                    let place = self.place;
                    return wrong(format!("the quote at character {place} is not closed"));
                };
                self.take(end + 2).trim_matches('"')
            }
            None => {
                let end = self.rest.find(char::is_whitespace);
                self.take(end.unwrap_or(self.rest.len()))
            }
        };
        let Some(pattern) = FilePattern::parse(path) else {
            return wrong(format!(
                "nothing after the `file:` at character {place}; write file:src/main.rs"
            ));
        };
        let after_operator = self.tokens.last().is_some_and(|token| {
            matches!(
                token.kind,
                TokenKind::Not(_) | TokenKind::Or | TokenKind::And
            )
        });
        if self.depth > 0 || after_operator {
            return wrong(format!(
                "the `file:` at character {place} is a filter for the whole query: write it \
                 without and, or, not and parentheses"
            ));
        }
        self.files.push(pattern);
        Ok(())
    }

    fn quoted(&mut self) -> Result<()> {
        let place = self.place;
        let inside = self.rest.get(1..).unwrap_or_default();
        let Some(end) = inside.find('"') else {
            return wrong(format!("the quote at character {place} is not closed"));
        };
        let (text, after) = (&inside[..end], &inside[end + 1..]);
        let star = usize::from(after.starts_with('*'));
        let is_prefix = star > 0 || text.ends_with('*');
        let kind = TokenKind::Term(in_quotes(text, is_prefix));
        self.push(kind, 1 + end + 1 + star);
        Ok(())
    }

    fn word(&mut self) {
        let is_end = |c: char| c.is_whitespace() || c == '"';
        let mut word = &self.rest[..self.rest.find(is_end).unwrap_or(self.rest.len())];
        // A parenthesis at the end closes an open one, unless it belongs to the word.
        let count = |word: &str, c: char| word.chars().filter(|&other| other == c).count();
        let extra = count(word, ')').saturating_sub(count(word, '('));
        for _ in 0..extra.min(self.depth) {
            match word.strip_suffix(')') {
                Some(rest) if !rest.is_empty() => word = rest,
                _ => break,
            }
        }
        let kind = match word.to_ascii_lowercase().as_str() {
            "and" => TokenKind::And,
            "or" | "|" | "||" => TokenKind::Or,
            "not" => TokenKind::Not("not"),
            _ => TokenKind::Term(bare(word)),
        };
        self.push(kind, word.len());
    }
}

/// Parses a word without quotes: a name means the whole name.
fn bare(word: &str) -> Option<Node> {
    let stem = word.trim_end_matches('*');
    let is_prefix = stem.len() < word.len() && ends_in_word(stem);
    let found = words(stem);
    let phrase = phrase(&found, is_prefix)?;
    let first = found.first();
    let together = match first {
        // The whole term is one name with upper case inside: `foobar` matches it as well.
        Some(first) if is_whole(first) && first.offset_to == stem.len() => Some(first.text.clone()),
        // A prefix of an unsplit word, when it is all there is.
        Some(_) if is_prefix && found.len() > 1 && is_one_run(stem) => {
            Some(stem.to_ascii_lowercase())
        }
        _ => None,
    };
    Some(match together {
        Some(word) => Node::Any(vec![
            Node::Phrase(phrase),
            Node::Phrase(Phrase {
                words: vec![(0, word)],
                is_prefix,
            }),
        ]),
        None => Node::Phrase(phrase),
    })
}

/// Parses words in quotes: they follow each other. Two may also be a name; more are
/// hardly ever one, and looking for it would take twice as long.
fn in_quotes(text: &str, is_prefix: bool) -> Option<Node> {
    let stem = text.trim_end_matches('*');
    let phrase = phrase(&words(stem), is_prefix && ends_in_word(stem))?;
    let is_pair = matches!(&phrase.words[..], [_, (APART, _)]) && !phrase.is_prefix;
    Some(match is_pair {
        true => Node::Pair(phrase),
        false => Node::Phrase(phrase),
    })
}

fn phrase(found: &[tantivy::tokenizer::Token], is_prefix: bool) -> Option<Phrase> {
    let mut parts = found.iter().filter(|token| !is_whole(token)).peekable();
    let first = parts.peek()?.position;
    let words = parts.map(|token| (token.position - first, token.text.clone()));
    Some(Phrase {
        words: words.collect(),
        is_prefix,
    })
}

fn ends_in_word(stem: &str) -> bool {
    stem.chars().next_back().is_some_and(char::is_alphanumeric)
}

fn is_one_run(stem: &str) -> bool {
    stem.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.at)
    }

    fn is_next(&self, kind: &TokenKind) -> bool {
        self.peek().is_some_and(|token| token.kind == *kind)
    }

    /// Skips a token of this kind; returns its place if there was one.
    fn next_if(&mut self, kind: &TokenKind) -> Option<usize> {
        let token = self.peek().filter(|token| token.kind == *kind)?;
        self.at += 1;
        Some(token.place)
    }

    /// One or more alternatives; `None` if they contain nothing searchable.
    fn any(&mut self) -> Result<Option<Node>> {
        let mut nodes = Vec::new();
        let mut alternatives = 1;
        nodes.extend(self.all()?);
        while let Some(place) = self.next_if(&TokenKind::Or) {
            alternatives += 1;
            if self.is_at_end() {
                return wrong(format!("nothing after the `or` at character {place}"));
            }
            nodes.extend(self.all()?);
        }
        if alternatives > 1 && nodes.iter().any(|node| matches!(node, Node::Not(_))) {
            return wrong(format!("next to an `or`, {ONLY_NOT}"));
        }
        Ok(one_or(nodes, Node::Any))
    }

    /// All terms up to an `or` or a parenthesis.
    fn all(&mut self) -> Result<Option<Node>> {
        let mut nodes = Vec::new();
        let mut after: Option<(&str, usize)> = None;
        let mut is_first = true;
        while let Some(token) = self.peek() {
            match token.kind {
                TokenKind::Or if is_first => {
                    let place = token.place;
                    return wrong(format!("nothing before the `or` at character {place}"));
                }
                TokenKind::And if is_first || after.is_some() => {
                    let place = token.place;
                    return wrong(format!("nothing before the `and` at character {place}"));
                }
                TokenKind::And => {
                    self.at += 1;
                    after = Some(("and", token.place));
                    continue;
                }
                TokenKind::Or | TokenKind::Close => break,
                _ => nodes.extend(self.unary()?),
            }
            is_first = false;
            after = None;
        }
        if let Some((what, place)) = after {
            return wrong(format!("nothing after the `{what}` at character {place}"));
        }
        let (not, mut all): (Vec<_>, Vec<_>) = nodes
            .into_iter()
            .partition(|node| matches!(node, Node::Not(_)));
        if all.is_empty() {
            // Only exclusions: the caller decides whether that is allowed.
            return Ok(not.into_iter().next());
        }
        all.extend(not);
        Ok(one_or(all, Node::All))
    }

    fn unary(&mut self) -> Result<Option<Node>> {
        let Some(token) = self.peek() else {
            return Ok(None);
        };
        self.at += 1;
        match &token.kind {
            TokenKind::Term(node) => Ok(node.clone()),
            TokenKind::Not(written) => {
                if self.is_at_end() || self.is_next(&TokenKind::And) {
                    let place = token.place;
                    return wrong(format!(
                        "nothing after the `{written}` at character {place}"
                    ));
                }
                self.deeper(token.place)?;
                let inner = self.unary()?;
                self.depth -= 1;
                Ok(inner.map(|inner| match inner {
                    Node::Not(twice) => *twice,
                    inner => Node::Not(Box::new(inner)),
                }))
            }
            TokenKind::Open => self.group(token.place),
            TokenKind::And | TokenKind::Or | TokenKind::Close => Ok(None),
        }
    }

    fn group(&mut self, place: usize) -> Result<Option<Node>> {
        self.deeper(place)?;
        if self.is_next(&TokenKind::Close) {
            return wrong(format!(
                "nothing inside the parentheses at character {place}"
            ));
        }
        let inner = self.any()?;
        self.depth -= 1;
        match self.next_if(&TokenKind::Close) {
            Some(_) => Ok(inner),
            None => wrong(format!("the `(` at character {place} is not closed")),
        }
    }

    fn deeper(&mut self, place: usize) -> Result<()> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return wrong(format!(
                "parentheses are nested too deep at character {place}"
            ));
        }
        Ok(())
    }

    fn is_at_end(&self) -> bool {
        let kind = self.peek().map(|token| &token.kind);
        matches!(kind, None | Some(TokenKind::Or | TokenKind::Close))
    }
}

/// Returns the only node, or what `many` makes of several.
fn one_or(mut nodes: Vec<Node>, many: impl FnOnce(Vec<Node>) -> Node) -> Option<Node> {
    match nodes.len() {
        0 => None,
        1 => nodes.pop(),
        _ => Some(many(nodes)),
    }
}

#[cfg(test)]
#[path = "query_tests.rs"]
mod tests;
