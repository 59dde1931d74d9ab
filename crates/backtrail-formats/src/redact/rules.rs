//! All rules, found in one pass: a text is searched for the words that any rule starts with, and
//! only what is around them is examined.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::assignments::Assignments;
use super::commands::COMMANDS;
use super::names::{self, Named, WORDS};
use super::pattern::Pattern;
use super::shapes::{SERVICES, SHAPES};
use super::values::{is_monotonous, is_placeholder, is_random, is_words};
use super::{People, Span, base64, judge, manifests, people, private_keys, urls};

/// What a word that was found may be the beginning of.
#[derive(Debug, Clone, Copy)]
enum Rule {
    Shape(usize),
    Word(usize),
    Service(usize),
    Command(usize),
    Url,
    Driver,
    WebToken,
    Telegram,
    PrivateKey,
    Putty,
    Manifest,
    Strings,
    Home,
    Root,
}

/// The rules, ready to be used.
pub(super) struct Rules {
    words: AhoCorasick,
    /// By the number of a word.
    rules: Vec<Vec<Rule>>,
    shapes: Vec<(&'static str, Pattern)>,
    services: Vec<(&'static str, Pattern)>,
}

/// The rules of this program: built when they are first used.
pub(super) static RULES: LazyLock<Rules> = LazyLock::new(Rules::new);

impl Rules {
    fn new() -> Self {
        let parsed = |(name, pattern): &(&'static str, &str)| (*name, Pattern::new(pattern));
        let shapes: Vec<_> = SHAPES.iter().map(parsed).collect();
        let services: Vec<_> = SERVICES.iter().map(parsed).collect();
        let mut all: BTreeMap<String, Vec<Rule>> = BTreeMap::new();
        let mut add = |word: &str, rule| {
            let word = word.to_ascii_lowercase();
            all.entry(word).or_default().push(rule);
        };
        for (number, (_, pattern)) in shapes.iter().enumerate() {
            add(&pattern.keyword, Rule::Shape(number));
        }
        for (number, word) in WORDS.iter().enumerate() {
            add(word.word, Rule::Word(number));
        }
        for (number, (service, _)) in services.iter().enumerate() {
            add(service, Rule::Service(number));
        }
        for (number, command) in COMMANDS.iter().enumerate() {
            add(command.name, Rule::Command(number));
        }
        for home in people::HOMES {
            add(home, Rule::Home);
        }
        for (word, rule) in [
            ("://", Rule::Url),
            ("@tcp(", Rule::Driver),
            ("@unix(", Rule::Driver),
            ("eyj", Rule::WebToken),
            (":a", Rule::Telegram),
            ("private key", Rule::PrivateKey),
            ("private-lines:", Rule::Putty),
            ("kind", Rule::Manifest),
            ("auth=(", Rule::Strings),
            ("auth: (", Rule::Strings),
            ("basicauth(", Rule::Strings),
            ("basic_auth(", Rule::Strings),
            (people::ROOT, Rule::Root),
        ] {
            add(word, rule);
        }
        let (words, rules): (Vec<String>, Vec<Vec<Rule>>) = all.into_iter().unzip();
        let words = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .kind(Some(AhoCorasickKind::DFA))
            .build(words)
            .expect("a few hundred short words are not too many");
        Self {
            words,
            rules,
            shapes,
            services,
        }
    }

    /// Finds the secret in the value of a field, by its name.
    pub(super) fn named(&self, name: &str, value: &str) -> Option<Span> {
        let (named, services) = self.meaning(name);
        judge::value_of(name, value, named, &services)
    }

    /// Returns what a name says about its value: by the longest word that it ends with, and the
    /// services in it.
    pub(super) fn meaning(&self, name: &str) -> (Option<Named>, Vec<&Pattern>) {
        /// The longest name.
        const LONGEST: usize = 96;
        let (mut longest, mut services) = (None, Vec::new());
        if name.len() > LONGEST || name.contains(char::is_whitespace) {
            return (None, services);
        }
        for hit in self.words.find_overlapping_iter(name) {
            for rule in &self.rules[hit.pattern().as_usize()] {
                let rest = &name.as_bytes()[hit.end()..];
                match rule {
                    Rule::Service(number) => services.push(&self.services[*number].1),
                    Rule::Word(number) if names::suffix_len(rest) == rest.len() => {
                        let found = (hit.start(), *number);
                        longest = Some(longest.map_or(found, |other| found.min(other)));
                    }
                    _ => {}
                }
            }
        }
        let named = longest.and_then(|(_, number)| names::named(name, &WORDS[number]));
        (named, services)
    }

    /// Finds what is to be removed from a text as it is written.
    pub(super) fn find(&self, text: &str, people: Option<&People>) -> Vec<Span> {
        let mut search = Search {
            rules: self,
            text,
            has_people: people.is_some(),
            assignments: Assignments::new(text),
            spans: Vec::new(),
            keys: Vec::new(),
            shape_end: 0,
            value_end: 0,
            command_end: 0,
            rejected: vec![0; self.shapes.len()],
        };
        for hit in self.words.find_overlapping_iter(text) {
            for rule in self
                .rules
                .get(hit.pattern().as_usize())
                .into_iter()
                .flatten()
            {
                search.apply(*rule, hit.start(), hit.end());
            }
        }
        let mut spans = search.spans;
        private_keys::find(text, &search.keys, &mut spans);
        if let Some(people) = people {
            let at_signs = memchr::memchr_iter(b'@', text.as_bytes());
            spans.extend(at_signs.filter_map(|at| people::address(text, at)));
            for home in &people.homes {
                people::given(text, home, &mut spans);
            }
        }
        spans
    }
}

/// One pass over a text.
struct Search<'t> {
    rules: &'t Rules,
    text: &'t str,
    has_people: bool,
    assignments: Assignments<'t>,
    spans: Vec<Span>,
    /// The places of `PRIVATE KEY`.
    keys: Vec<usize>,
    /// How far the text is examined: what is within a finding is not examined again.
    shape_end: usize,
    value_end: usize,
    command_end: usize,
    /// By shape, how far a long text was examined in vain.
    rejected: Vec<usize>,
}

impl Search<'_> {
    fn apply(&mut self, rule: Rule, start: usize, end: usize) {
        let text = self.text;
        match rule {
            Rule::Shape(number) => self.shape(number, start),
            Rule::Word(number) if start >= self.value_end => {
                let found = self.assignments.named(&WORDS[number], start);
                self.value(found);
            }
            Rule::Service(number) if start >= self.value_end => {
                let pattern = &self.rules.services[number].1;
                let found = self.assignments.service(pattern, start, end);
                self.value(found);
            }
            Rule::Word(_) | Rule::Service(_) => {}
            Rule::Command(number) if start >= self.command_end => {
                self.command_end = end;
                COMMANDS[number].find(text, end, &mut self.spans);
            }
            Rule::Command(_) => {}
            Rule::Url => self.spans.extend(urls::login(text, start)),
            Rule::Driver => self.spans.extend(urls::driver(text, start)),
            Rule::WebToken if start >= self.shape_end => self.token(web_token(text, start)),
            Rule::WebToken => {}
            Rule::Telegram => self.token(telegram(text, start)),
            Rule::PrivateKey if text.get(start..end) == Some("PRIVATE KEY") => {
                self.keys.push(start);
            }
            Rule::PrivateKey => {}
            Rule::Putty => self.spans.extend(private_keys::putty(text, start)),
            Rule::Manifest => manifests::secrets(text, end, &mut self.spans),
            Rule::Strings => {
                let found = self.assignments.second_string(end);
                self.value(found);
            }
            Rule::Home if self.has_people => {
                self.spans.extend(people::home(text, start, end - start));
            }
            Rule::Root if self.has_people => self.spans.extend(people::root(text, start)),
            Rule::Home | Rule::Root => {}
        }
    }

    fn value(&mut self, found: Option<Span>) {
        if let Some(span) = found {
            self.value_end = span.end;
            self.spans.push(span);
        }
    }

    fn token(&mut self, found: Option<Span>) {
        if let Some(span) = found {
            self.shape_end = self.shape_end.max(span.end);
            self.spans.push(span);
        }
    }

    fn shape(&mut self, number: usize, at: usize) {
        /// From this length on, what is rejected is not examined again.
        const LONG: usize = 512;
        let (kind, pattern) = &self.rules.shapes[number];
        if at < self.rejected[number] {
            return;
        }
        let Some(found) = pattern.at(self.text, at) else {
            return;
        };
        let is_inside = found.secret.start < self.shape_end && found.secret.end <= self.shape_end;
        if is_inside {
            return;
        }
        if !self.is_key(kind, &found.secret, &found.own) {
            if found.secret.len() >= LONG {
                self.rejected[number] = found.secret.end;
            }
            return;
        }
        self.token(Some(Span {
            start: found.secret.start,
            end: found.secret.end,
            kind,
            exact: true,
        }));
    }

    /// Returns whether what fits a pattern is a key, and not a name or a placeholder.
    fn is_key(
        &self,
        kind: &str,
        secret: &std::ops::Range<usize>,
        own: &std::ops::Range<usize>,
    ) -> bool {
        /// After more Base64 than this it is part of a file, if it begins with letters only, or
        /// with a sign as well.
        const FILE: [usize; 2] = [64, 400];
        let (Some(own), Some(secret_text)) =
            (self.text.get(own.clone()), self.text.get(secret.clone()))
        else {
            return false;
        };
        if is_placeholder(own) || is_words(own) || is_monotonous(own) {
            return false;
        }
        if matches!(
            kind,
            "bearer token" | "signature" | "cookie" | "vault token"
        ) {
            return is_random(secret_text) || secret_text.contains('%');
        }
        let is_coded = |byte: &&u8| is_word(**byte) || matches!(byte, b'+' | b'/');
        let before = &self.text.as_bytes()[..secret.start];
        let head = secret_text.strip_suffix(own).unwrap_or_default();
        let has_sign = head.bytes().any(|byte| !byte.is_ascii_alphanumeric());
        let most = FILE[usize::from(has_sign)];
        let run = before.iter().rev().take(most).take_while(is_coded).count();
        let has = |test: fn(&u8) -> bool| own.bytes().any(|byte| test(&byte));
        let is_mixed =
            has(u8::is_ascii_digit) || (has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase));
        run == 0 || (run < most && is_mixed)
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

fn run_end(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default().iter();
    from + rest.take_while(|byte| is_word(**byte)).count()
}

/// Finds a JSON web token: three or five parts with dots between them.
fn web_token(text: &str, start: usize) -> Option<Span> {
    let bytes = text.as_bytes();
    let first = run_end(bytes, start);
    if bytes.get(first) != Some(&b'.') || !is_header(text.get(start..first)?) {
        return None;
    }
    let second = run_end(bytes, first + 1);
    let third = run_end(bytes, (second + 1).min(bytes.len()));
    if bytes.get(second) != Some(&b'.') || second - first < 5 || third - second < 17 {
        return None;
    }
    let mut end = third;
    for _ in 0..2 {
        let next = run_end(bytes, (end + 1).min(bytes.len()));
        if bytes.get(end) == Some(&b'.') && next > end + 1 {
            end = next;
        }
    }
    Some(Span {
        start,
        end,
        kind: "json web token",
        exact: true,
    })
}

/// Returns whether it is the header of a JSON web token: Base64 of an object with an algorithm.
fn is_header(part: &str) -> bool {
    /// The longest header.
    const LONGEST: usize = 4096;
    if part.len() > LONGEST {
        return false;
    }
    let header = base64::decode(part).and_then(|header| String::from_utf8(header).ok());
    header.is_some_and(|header| {
        crate::json::Object::parse(&header).is_ok_and(|header| header.string("alg").is_some())
    })
}

/// Finds the token of a Telegram bot, `123456789:AA…`, by its colon: 35 characters follow.
fn telegram(text: &str, colon: usize) -> Option<Span> {
    let bytes = text.as_bytes();
    let before = bytes[colon.saturating_sub(17)..colon].iter().rev();
    let digits = before.take_while(|byte| byte.is_ascii_digit()).count();
    let end = run_end(bytes, colon + 1);
    let is_token = (5..=16).contains(&digits) && end - colon == 36 && bytes[colon + 1] == b'A';
    let own = text.get(colon + 1..end)?;
    (is_token && !is_words(own) && !is_placeholder(own)).then_some(Span {
        start: colon - digits,
        end,
        kind: "telegram token",
        exact: true,
    })
}
