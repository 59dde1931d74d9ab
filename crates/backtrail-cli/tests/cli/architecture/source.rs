//! Reads Rust sources as far as the architecture test needs: which modules there are, and
//! which paths their code names outside of tests.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A module of a crate, without its tests.
pub(super) struct Module {
    /// Its path from the crate's root, such as `["snapshot", "scan", "walk"]`.
    pub(super) path: Vec<String>,
    /// Its file.
    pub(super) file: PathBuf,
    tokens: Vec<String>,
}

impl Module {
    /// Returns every path that this module names; those inside the crate begin with `crate`.
    pub(super) fn paths(&self) -> BTreeSet<Vec<String>> {
        let mut here = vec!["crate".to_owned()];
        here.extend(self.path.iter().cloned());
        let mut found = BTreeSet::new();
        let mut at = 0;
        while at + 1 < self.tokens.len() {
            let continues = at > 0 && self.tokens[at - 1] == "::";
            if continues || self.tokens[at + 1] != "::" || !is_name(&self.tokens[at]) {
                at += 1;
                continue;
            }
            let base = match self.tokens[at].as_str() {
                "super" => here[..here.len() - 1].to_vec(),
                "self" => here.clone(),
                name => vec![name.to_owned()],
            };
            at = self.tree(at + 2, base, &mut found);
        }
        found
    }

    /// Returns the names of the types and traits that the module defines.
    pub(super) fn types(&self) -> impl Iterator<Item = &str> {
        let pairs = self.tokens.windows(2);
        let defines = |pair: &&[String]| ["struct", "enum", "trait"].contains(&pair[0].as_str());
        pairs.filter(defines).map(|pair| pair[1].as_str())
    }

    /// Returns whether the module calls this macro.
    pub(super) fn calls(&self, name: &str) -> bool {
        let mut pairs = self.tokens.windows(2);
        pairs.any(|pair| pair[0] == name && pair[1] == "!")
    }

    /// Returns the paths that the crate's root exports.
    pub(super) fn exports(&self) -> BTreeSet<Vec<String>> {
        let mut found = BTreeSet::new();
        for at in 0..self.tokens.len() {
            if self.tokens[at] == "use" {
                self.tree(at + 1, vec!["crate".to_owned()], &mut found);
            }
        }
        found
    }

    /// Reads what follows a `::`, a name or a list of names; returns where it ends.
    fn tree(&self, at: usize, base: Vec<String>, found: &mut BTreeSet<Vec<String>>) -> usize {
        let token = |at: usize| self.tokens.get(at).map_or("", String::as_str);
        if token(at) == "{" {
            let mut at = at + 1;
            while token(at) != "}" && !token(at).is_empty() {
                if token(at) == "," {
                    at += 1;
                } else {
                    at = self.tree(at, base.clone(), found);
                }
            }
            return at + 1;
        }
        let mut path = base;
        match token(at) {
            "super" => drop(path.pop()),
            "self" | "*" => {}
            name if is_name(name) => path.push(name.to_owned()),
            _ => {
                found.insert(path);
                return at + 1;
            }
        }
        if token(at + 1) == "::" {
            return self.tree(at + 2, path, found);
        }
        found.insert(path);
        let mut at = at + 1;
        if token(at) == "as" {
            at += 2;
        }
        at
    }
}

fn is_name(token: &str) -> bool {
    token
        .chars()
        .all(|c| c.is_alphanumeric() || c == '_' || c == '#')
}

/// Returns the modules of the crate whose sources are in `dir`, without those that are
/// only there for tests.
pub(super) fn modules(dir: &Path) -> Vec<Module> {
    let mut found = Vec::new();
    let mut tests = BTreeSet::new();
    collect(dir, &[], &mut found, &mut tests);
    found.retain(|module| !(1..=module.path.len()).any(|len| tests.contains(&module.path[..len])));
    found
}

fn collect(
    dir: &Path,
    path: &[String],
    found: &mut Vec<Module>,
    tests: &mut BTreeSet<Vec<String>>,
) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let file = entry.unwrap().path();
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let mut inner = path.to_vec();
        if file.is_dir() {
            inner.push(name);
            collect(&file, &inner, found, tests);
        } else if file.extension().is_some_and(|ext| ext == "rs") {
            if name.ends_with("_tests") {
                continue;
            }
            if !["lib", "main", "mod"].contains(&name.as_str()) {
                inner.push(name);
            }
            let text = std::fs::read_to_string(&file).unwrap();
            let mut tokens = tokens(&text);
            for name in cut_tests(&mut tokens) {
                let mut test = inner.clone();
                test.push(name);
                tests.insert(test);
            }
            found.push(Module {
                path: inner,
                file,
                tokens,
            });
        }
    }
}

/// Removes what is only compiled for tests; returns the names of modules among it.
fn cut_tests(tokens: &mut Vec<String>) -> Vec<String> {
    let marker = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut modules = Vec::new();
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if !tokens[at..].iter().take(marker.len()).eq(marker.iter()) {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        at += marker.len();
        let begin = at;
        let mut depth = 0;
        while at < tokens.len() {
            match tokens[at].as_str() {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            at += 1;
            if depth == 0 && [";", "}"].contains(&tokens[at - 1].as_str()) {
                break;
            }
        }
        if let Some(name) = tokens[begin..at].iter().position(|token| token == "mod") {
            modules.push(tokens[begin + name + 1].clone());
        }
    }
    *tokens = kept;
    modules
}

/// Cuts a source into names, `::` and single characters; comments and literals are left out.
fn tokens(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let at = |at: usize| chars.get(at).copied().unwrap_or('\0');
    let mut tokens = Vec::new();
    let mut i = 0;
    while i < chars.len() {
        let c = chars[i];
        if c == '/' && at(i + 1) == '/' {
            while i < chars.len() && chars[i] != '\n' {
                i += 1;
            }
        } else if c == '/' && at(i + 1) == '*' {
            i += 2;
            while i < chars.len() && !(chars[i] == '*' && at(i + 1) == '/') {
                i += 1;
            }
            i += 2;
        } else if let Some(hashes) = raw_string(&chars, i) {
            i = end_of_raw(&chars, i, hashes);
        } else if c == '"' || (c == 'b' && at(i + 1) == '"') {
            i = end_of_string(&chars, i + 1 + usize::from(c == 'b'));
        } else if c == '\'' && (at(i + 1) == '\\' || at(i + 2) == '\'') {
            i = end_of_char(&chars, i);
        } else if c.is_alphanumeric() || c == '_' {
            let begin = i;
            while at(i).is_alphanumeric() || at(i) == '_' {
                i += 1;
            }
            tokens.push(chars[begin..i].iter().collect());
        } else if c == ':' && at(i + 1) == ':' {
            tokens.push("::".to_owned());
            i += 2;
        } else {
            if !c.is_whitespace() {
                tokens.push(c.to_string());
            }
            i += 1;
        }
    }
    tokens
}

/// Returns how many `#` a raw string that begins here has.
fn raw_string(chars: &[char], at: usize) -> Option<usize> {
    let before = at.checked_sub(1).map(|at| chars[at]);
    if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
        return None;
    }
    let rest = match chars[at..] {
        ['r', ..] => &chars[at + 1..],
        ['b', 'r', ..] => &chars[at + 2..],
        _ => return None,
    };
    let hashes = rest.iter().take_while(|c| **c == '#').count();
    (rest.get(hashes) == Some(&'"')).then_some(hashes)
}

fn end_of_raw(chars: &[char], at: usize, hashes: usize) -> usize {
    let open = chars[at..].iter().position(|c| *c == '"').unwrap();
    let mut i = at + open + 1;
    while i < chars.len() {
        let closes = chars[i] == '"' && chars[i + 1..].iter().take(hashes).all(|c| *c == '#');
        i += 1;
        if closes {
            return i + hashes;
        }
    }
    i
}

fn end_of_string(chars: &[char], at: usize) -> usize {
    let mut i = at;
    while i < chars.len() && chars[i] != '"' {
        i += 1 + usize::from(chars[i] == '\\');
    }
    i + 1
}

fn end_of_char(chars: &[char], at: usize) -> usize {
    let mut i = at + 1;
    while i < chars.len() && chars[i] != '\'' {
        i += 1 + usize::from(chars[i] == '\\');
    }
    i + 1
}
