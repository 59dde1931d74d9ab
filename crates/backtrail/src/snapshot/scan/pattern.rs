//! One ignore rule, matched byte by byte as git does.

#[derive(Debug)]
pub(super) struct Pattern {
    /// Whether it includes again what earlier rules ignored.
    negated: bool,
    only_dirs: bool,
    /// Whether it matches the whole path and not only the last name.
    whole: bool,
    tokens: Vec<Token>,
}

#[derive(Debug)]
enum Token {
    Byte(u8),
    /// Any byte but `/`.
    Any,
    /// Any bytes but `/`.
    Star,
    /// Any directories, each with the `/` after it.
    Dirs,
    /// Everything in a directory.
    Rest,
    Class(Box<[bool; 256]>),
}

impl Pattern {
    /// Parses a line whose end was trimmed; `None` if it matches nothing.
    pub(super) fn new(line: &[u8]) -> Option<Self> {
        let (negated, line) = match line.strip_prefix(b"!") {
            Some(line) => (true, line),
            None => (false, line),
        };
        let (only_dirs, line) = match line.strip_suffix(b"/") {
            Some(line) => (true, line),
            None => (false, line),
        };
        let whole = line.contains(&b'/');
        let line = line.strip_prefix(b"/").unwrap_or(line);
        let tokens = tokens(line).filter(|tokens| !tokens.is_empty())?;
        Some(Self {
            negated,
            only_dirs,
            whole,
            tokens,
        })
    }

    /// Returns whether the rule ignores a path (true), includes it again (false), or does
    /// not match.
    pub(super) fn decide(&self, path: &[u8], is_dir: bool) -> Option<bool> {
        if self.only_dirs && !is_dir {
            return None;
        }
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        let matched = self.matches(if self.whole { path } else { name });
        matched.then_some(!self.negated)
    }

    /// Follows all possible matches at once, so the time is at most the product of both
    /// lengths, whatever the pattern.
    fn matches(&self, text: &[u8]) -> bool {
        let mut reached = vec![false; text.len() + 1];
        reached[0] = true;
        for token in &self.tokens {
            if !reached.contains(&true) {
                return false;
            }
            token.step(text, &mut reached);
        }
        reached[text.len()]
    }
}

impl Token {
    /// Advances the set of reached positions by one token.
    fn step(&self, text: &[u8], reached: &mut [bool]) {
        match self {
            Self::Byte(byte) => advance(text, reached, |next| next == *byte),
            Self::Any => advance(text, reached, |next| next != b'/'),
            Self::Class(class) => advance(text, reached, |next| class[usize::from(next)]),
            Self::Star => {
                for at in 0..text.len() {
                    reached[at + 1] |= reached[at] && text[at] != b'/';
                }
            }
            Self::Dirs => {
                let mut before = false;
                for at in 0..text.len() {
                    before |= reached[at];
                    reached[at + 1] |= before && text[at] == b'/';
                }
            }
            Self::Rest => {
                let any = reached[..text.len()].contains(&true);
                reached.fill(false);
                reached[text.len()] = any;
            }
        }
    }
}

fn advance(text: &[u8], reached: &mut [bool], takes: impl Fn(u8) -> bool) {
    for at in (0..text.len()).rev() {
        reached[at + 1] = reached[at] && takes(text[at]);
    }
    reached[0] = false;
}

fn tokens(line: &[u8]) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < line.len() {
        let starts = at == 0 || line[at - 1] == b'/';
        let rest = &line[at..];
        let (token, len) = match rest[0] {
            b'\\' => (Token::Byte(*rest.get(1)?), 2),
            b'?' => (Token::Any, 1),
            b'*' => {
                let stars = rest.iter().take_while(|byte| **byte == b'*').count();
                match rest.get(stars) {
                    Some(b'/') if starts && stars > 1 => (Token::Dirs, stars + 1),
                    None if starts && stars > 1 => (Token::Rest, stars),
                    _ => (Token::Star, stars),
                }
            }
            b'[' => {
                let (class, len) = class(&rest[1..])?;
                (Token::Class(class), 1 + len)
            }
            byte => (Token::Byte(byte), 1),
        };
        tokens.push(token);
        at += len;
    }
    Some(tokens)
}

/// Parses a class after its `[`, and returns it with its length; `None` if it has no end.
fn class(rest: &[u8]) -> Option<(Box<[bool; 256]>, usize)> {
    let mut set = Box::new([false; 256]);
    let negated = matches!(rest.first()?, b'!' | b'^');
    let start = usize::from(negated);
    let mut at = start;
    // The start of a possible range.
    let mut before: Option<u8> = None;
    while rest.get(at)? != &b']' || at == start {
        if rest[at..].starts_with(b"[:") {
            let end = at + 2 + rest[at + 2..].iter().position(|byte| *byte == b']')?;
            let name = rest[at + 2..end].strip_suffix(b":")?;
            add_named(&mut set, name)?;
            (before, at) = (None, end + 1);
            continue;
        }
        let is_range = rest[at] == b'-' && rest.get(at + 1)? != &b']';
        if let Some(from) = before.filter(|_| is_range) {
            let (to, len) = literal(&rest[at + 1..])?;
            (from..=to).for_each(|byte| set[usize::from(byte)] = true);
            (before, at) = (None, at + 1 + len);
            continue;
        }
        let (byte, len) = literal(&rest[at..])?;
        set[usize::from(byte)] = true;
        (before, at) = (Some(byte), at + len);
    }
    if negated {
        set.iter_mut().for_each(|is_in| *is_in = !*is_in);
    }
    set[usize::from(b'/')] = false;
    Some((set, at + 1))
}

fn literal(rest: &[u8]) -> Option<(u8, usize)> {
    match rest.first()? {
        b'\\' => Some((*rest.get(1)?, 2)),
        byte => Some((*byte, 1)),
    }
}

/// Adds the bytes of a named class.
fn add_named(set: &mut [bool; 256], name: &[u8]) -> Option<()> {
    let is_in: fn(&u8) -> bool = match name {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"cntrl" => u8::is_ascii_control,
        b"digit" => u8::is_ascii_digit,
        b"graph" => u8::is_ascii_graphic,
        b"lower" => u8::is_ascii_lowercase,
        b"print" => |byte| byte.is_ascii_graphic() || *byte == b' ',
        b"punct" => u8::is_ascii_punctuation,
        b"space" => |byte| byte.is_ascii_whitespace() || *byte == 0x0b,
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    };
    let bytes = (0..=u8::MAX).filter(is_in);
    bytes.for_each(|byte| set[usize::from(byte)] = true);
    Some(())
}
