//! Passwords among the arguments of commands: `curl -u user:…`, `sshpass -p …`, `mysql -p…`.

use std::ops::Range;

use super::Span;
use super::values::is_placeholder;

/// A command that takes a password, and the options that do.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) name: &'static str,
    options: &'static [(&'static str, Form)],
}

/// How a password is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `-p PASSWORD` or `-pPASSWORD`.
    Next,
    /// Only `-pPASSWORD`.
    Attached,
    /// `-u USER:PASSWORD`, or attached.
    AfterColon,
    /// `-U USER%PASSWORD`.
    AfterPercent,
    /// `-b NAME=VALUE`.
    Cookie,
    /// `pass:PASSWORD`.
    Labelled,
}

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "curl",
        options: &[
            ("-u", Form::AfterColon),
            ("--user", Form::AfterColon),
            ("-U", Form::AfterColon),
            ("--proxy-user", Form::AfterColon),
            ("-b", Form::Cookie),
            ("--cookie", Form::Cookie),
        ],
    },
    Command {
        name: "sshpass",
        options: &[("-p", Form::Next)],
    },
    Command {
        name: "mysql",
        options: &[("-p", Form::Attached)],
    },
    Command {
        name: "mariadb",
        options: &[("-p", Form::Attached)],
    },
    Command {
        name: "mongo",
        options: &[("-p", Form::Next)],
    },
    Command {
        name: "redis-cli",
        options: &[("-a", Form::Next), ("--pass", Form::Next)],
    },
    Command {
        name: "docker login",
        options: &[("-p", Form::Next)],
    },
    Command {
        name: "podman login",
        options: &[("-p", Form::Next)],
    },
    Command {
        name: "az login",
        options: &[("-p", Form::Next)],
    },
    Command {
        name: "ldapsearch",
        options: &[("-w", Form::Next)],
    },
    Command {
        name: "smbclient",
        options: &[("-U", Form::AfterPercent)],
    },
    Command {
        name: "unzip",
        options: &[("-P", Form::Next)],
    },
    Command {
        name: "openssl",
        options: &[
            ("-passin", Form::Labelled),
            ("-passout", Form::Labelled),
            ("-pass", Form::Labelled),
            ("-k", Form::Next),
        ],
    },
];

impl Command {
    /// Finds the passwords of the command whose name ends at a place.
    pub(super) fn find(&self, text: &str, at: usize, spans: &mut Vec<Span>) {
        /// How far the arguments of a command are followed.
        const MOST: usize = 64;
        let mut words = Words { text, at };
        let Some(first) = text.as_bytes().get(at) else {
            return;
        };
        // `mysqldump` and `mongosh` are commands, too.
        if first.is_ascii_alphabetic() && words.next().is_none() {
            return;
        }
        let mut option: Option<Form> = None;
        for word in words.take(MOST) {
            let own = text.get(word.clone()).unwrap_or_default();
            if own.contains(self.name) {
                break;
            }
            let found = match option.take() {
                Some(form) => form.secret(own),
                None => match self.option(own) {
                    Some((form, "")) => {
                        option = (form != Form::Attached).then_some(form);
                        None
                    }
                    Some((form, value)) => form.secret(value).map(|(part, kind)| {
                        let before = own.len() - value.len();
                        (before + part.start..before + part.end, kind)
                    }),
                    None => None,
                },
            };
            if let Some((part, kind)) = found {
                spans.push(Span {
                    start: word.start + part.start,
                    end: word.start + part.end,
                    kind,
                    exact: false,
                });
            }
        }
    }

    /// Returns the form of an option, and the value that is attached to it.
    fn option<'w>(&self, word: &'w str) -> Option<(Form, &'w str)> {
        let is_long = |name: &str| name.starts_with("--") || name.len() > 2;
        for (name, form) in self.options {
            let Some(value) = word.strip_prefix(name) else {
                continue;
            };
            match value.strip_prefix('=') {
                Some(value) if is_long(name) => return Some((*form, value)),
                _ if value.is_empty() => return Some((*form, "")),
                _ if is_long(name) => {}
                _ => return Some((*form, value)),
            }
        }
        // Several short options in one word: `-sSu user:…`.
        let letters = word.strip_prefix('-')?;
        let is_short = (2..=6).contains(&letters.len())
            && letters.bytes().all(|byte| byte.is_ascii_alphabetic());
        let last = letters.get(letters.len().checked_sub(1)?..)?;
        let found = self
            .options
            .iter()
            .find(|(name, form)| name[1..] == *last && *form == Form::AfterColon);
        found.filter(|_| is_short).map(|(_, form)| (*form, ""))
    }
}

impl Form {
    /// Returns the secret part of a value, and its kind.
    fn secret(self, value: &str) -> Option<(Range<usize>, &'static str)> {
        let all = 0..value.len();
        let after = |sign: char| {
            let (user, password) = value.split_once(sign)?;
            match password.is_empty() {
                // Some services take a key as the user.
                true if user.len() >= 16 => Some(0..user.len()),
                true => None,
                false => Some(user.len() + 1..value.len()),
            }
        };
        let (part, kind) = match self {
            Self::Next => (all, "password"),
            // `mysql -port` is not a password.
            Self::Attached if value.len() < 3 => return None,
            Self::Attached => (all, "password"),
            Self::AfterColon => (after(':')?, "password"),
            Self::AfterPercent => (after('%')?, "password"),
            Self::Cookie if !value.contains('=') => return None,
            Self::Cookie => (all, "cookie"),
            Self::Labelled => (
                value.strip_prefix("pass:").map(|_| 5..value.len())?,
                "password",
            ),
        };
        let own = value.get(part.clone())?;
        let is_kept = own.is_empty() || own.starts_with('-') || is_placeholder(own);
        (!is_kept).then_some((part, kind))
    }
}

/// The words of a command line, without their quotes, up to its end.
struct Words<'t> {
    text: &'t str,
    at: usize,
}

impl Iterator for Words<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Self::Item> {
        /// The longest word.
        const LONGEST: usize = 1024;
        let bytes = self.text.as_bytes();
        // Blanks, continued lines, and what is between the words of a list of JSON.
        while let Some(byte) = bytes.get(self.at) {
            match byte {
                b' ' | b'\t' | b',' => self.at += 1,
                b'\\' if matches!(bytes.get(self.at + 1), Some(b'\n' | b'"' | b'\'')) => {
                    self.at += 1 + usize::from(bytes[self.at + 1] == b'\n');
                }
                b'\n' if bytes.get(self.at.wrapping_sub(1)) == Some(&b',') => self.at += 1,
                // The end of the quotes around the word before.
                b'"' | b'\''
                    if self.at > 0
                        && matches!(bytes.get(self.at + 1), Some(b',' | b' '))
                        && !matches!(bytes[self.at - 1], b' ' | b',') =>
                {
                    self.at += 1;
                }
                _ => break,
            }
        }
        let first = *bytes.get(self.at)?;
        let quote = matches!(first, b'"' | b'\'').then_some(first);
        let start = self.at + usize::from(quote.is_some());
        let rest = bytes.get(start..)?.iter().take(LONGEST);
        let is_end = |byte: &u8| match quote {
            Some(quote) => *byte == quote || *byte == b'\n',
            None => {
                byte.is_ascii_whitespace()
                    || matches!(byte, b'|' | b';' | b'"' | b'`' | b')' | b'\\')
            }
        };
        let length = rest.take_while(|byte| !is_end(byte)).count();
        let is_done = length == 0 || length == LONGEST;
        if is_done || !self.text.is_char_boundary(start + length) {
            return None;
        }
        // Quotes within a word: `--user='a:b'`.
        let end = start + length;
        self.at = end + usize::from(quote.is_some());
        let value = self.text.get(start..end)?;
        let is_open = quote.is_none() && value.ends_with('=');
        match bytes.get(end) {
            Some(b'"' | b'\'') if is_open => {
                let inner = bytes[end + 1..].iter().take(LONGEST);
                let length = inner
                    .take_while(|byte| **byte != bytes[end] && **byte != b'\n')
                    .count();
                self.at = end + 1 + length + 1;
                Some(start..end + 1 + length)
            }
            _ => {
                let trimmed = value.trim_matches('\'');
                let start = start + (value.len() - value.trim_start_matches('\'').len());
                Some(start..start + trimmed.len())
            }
        }
    }
}
