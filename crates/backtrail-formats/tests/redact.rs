//! Every known kind of secret is found in every surrounding (F39). The secrets are made here, from
//! patterns and a fixed seed.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests fail by panicking, and read the samples"
)]

#[path = "redact/kinds.rs"]
mod kinds;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use backtrail::Json;
use backtrail_formats::{JsonRedactor, Redactor};
use kinds::{CONTEXTS, NAMED, NOT_TEXT, SHAPES, WORDS};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::json;

/// How many secrets are made of each kind.
const EACH: u8 = 3;

/// Makes a secret from a pattern.
fn secret(pattern: &str, seed: u8) -> String {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = proptest::string::string_regex(pattern).unwrap();
    strategy.new_tree(&mut runner).unwrap().current()
}

fn redact(text: &str) -> String {
    Redactor::new().redact(text).into_owned()
}

fn redact_json(value: &serde_json::Value) -> String {
    let json = Json::from_value(value).unwrap();
    let redacted = Redactor::new().redact_json(&json).unwrap_or(json);
    let _: serde_json::Value = redacted.parse().expect("it stays JSON");
    redacted.as_str().to_owned()
}

fn redact_lines(text: &str) -> String {
    let mut redactor = Redactor::new();
    let mut out = Vec::new();
    let mut writer = JsonRedactor::lines(&mut out, &mut redactor);
    std::io::Write::write_all(&mut writer, text.as_bytes()).unwrap();
    writer.finish().unwrap();
    String::from_utf8(out).unwrap()
}

fn percent(text: &str) -> String {
    let encode = |byte: u8| match byte.is_ascii_alphanumeric() {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

fn xml(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

fn quoted(text: &str) -> String {
    json!(text).to_string()
}

/// Collects what is not removed.
#[derive(Default)]
struct Missed {
    tried: usize,
    missed: Vec<String>,
}

impl Missed {
    /// Notes a secret that is still in a text, whole or in one of its halves.
    fn check(&mut self, kind: &str, how: &str, before: &str, after: &str, parts: &[&str]) {
        self.tried += 1;
        let has = |part: &&&str| {
            let forms = [part.to_string(), percent(part), xml(part), quoted(part)];
            part.len() >= 4
                && forms
                    .iter()
                    .any(|form| after.contains(form.trim_matches('"')))
        };
        if parts.iter().any(|part| has(&part)) {
            self.missed
                .push(format!("{kind}, {how}:\n   {before:?}\n   {after:?}"));
        }
    }

    fn done(self, least: usize) {
        let missed = self.missed.len();
        let shown: Vec<String> = self.missed.into_iter().take(60).collect();
        assert!(
            shown.is_empty(),
            "{missed} of {} missed:\n{}",
            self.tried,
            shown.join("\n")
        );
        assert!(self.tried >= least, "{}", self.tried);
    }
}

/// Every surrounding of a text that has a secret.
fn surroundings(text: &str) -> Vec<(&'static str, String)> {
    let coloured = |color: &str, end: &str| format!("{color}{text}{end}next");
    let middle = (text.len() / 2..)
        .find(|at| text.is_char_boundary(*at))
        .unwrap();
    let (left, right) = text.split_at(middle);
    vec![
        ("plain", text.to_owned()),
        ("in a sentence", format!("here: {text} and more")),
        ("coloured", coloured("\u{1b}[31m", "\u{1b}[0m")),
        (
            "coloured after a word",
            coloured("word\u{1b}[1;31m", "\u{1b}[m"),
        ),
        ("coloured in parts", format!("{left}\u{1b}[32m{right}")),
        (
            "coloured by one character",
            format!("\u{9b}31m{text}\u{9b}0m"),
        ),
        (
            "colour as a program writes it",
            coloured("\\x1b[31m", "\\x1b[0m"),
        ),
        ("colour in JSON", coloured("\\u001b[31m", "\\u001b[0m")),
        ("colour in octal", coloured("\\033[31m", "\\033[0m")),
        ("colour as cat -v shows it", coloured("^[[31m", "^[[0m")),
        (
            "URL-encoded",
            format!("https://x.test/?q={}", percent(text)),
        ),
        ("URL-encoded twice", percent(&percent(text))),
        ("in JSON", format!("{{\"a\":{}}}", quoted(text))),
        (
            "in JSON in JSON",
            json!({"a": json!({"b": text}).to_string()}).to_string(),
        ),
        ("in YAML", format!("a:\n  - {text}\n")),
        ("in XML", format!("<a>{}</a>", xml(text))),
        ("in an attribute", format!("<a b=\"{}\"/>", xml(text))),
        ("after a line", format!("first\n{text}\nlast")),
        ("after an escaped line", format!("first\\n{text}\\nlast")),
    ]
}

/// Also where a key that has a shape of its own may be.
fn more_surroundings(secret: &str) -> Vec<(&'static str, String)> {
    vec![
        ("in quotes", format!("\"{secret}\"")),
        ("in single quotes", format!("'{secret}'")),
        ("in backticks", format!("`{secret}`")),
        ("after an equals sign", format!("X={secret}")),
        ("after a dash", format!("a-{secret}")),
        ("after an underscore", format!("a_{secret}")),
        ("after an encoded sign", format!("k%3D{secret}%26b")),
        ("in YAML", format!("k: {secret}\n")),
        ("in a path", format!("/tmp/{secret}/file")),
        ("in a file name", format!("/tmp/x-{secret}.txt")),
        ("in an argument", format!("tool --x={secret} y")),
        ("in a link", format!("[a](https://x.test/{secret})")),
    ]
}

/// Keys whose first characters are those of a word are not found after a letter.
fn may_follow_a_letter(secret: &str) -> bool {
    let first = secret.bytes().take_while(u8::is_ascii_alphanumeric).count();
    let weak = [
        "A3-", "4b1d", "ABSK", "pul-", "ico-", "API-", "cio", "key-", "SK", "EAA", "EZ", "live_",
        "test_", "pk.", "sl.", "pat", "sat.", "s.", "t1.", "AQVN", "YC", "1//0", "fm",
    ];
    !weak.iter().any(|weak| secret.starts_with(weak))
        && first < 32
        && !secret.as_bytes()[0].is_ascii_digit()
        && !secret.contains("Q~")
        && !secret.contains("_mmk")
        && !secret.contains("atlasv1")
}

/// Broken over two lines, in three ways.
fn broken(secret: &str) -> Vec<(&'static str, String, Vec<String>)> {
    let middle = secret.len() / 2;
    let (left, right) = secret.split_at(middle);
    let parts = vec![left.to_owned(), right.to_owned()];
    [
        ("broken over two lines", "\n"),
        ("broken over two indented lines", "\r\n    "),
        ("broken by a backslash", "\\\n"),
        ("broken in JSON", "\\n"),
    ]
    .map(|(how, sign)| (how, format!("{left}{sign}{right}"), parts.clone()))
    .into()
}

#[test]
fn every_shape_is_found_in_every_surrounding() {
    let mut missed = Missed::default();
    for (kind, pattern) in SHAPES {
        for seed in 0..EACH {
            let secret = secret(pattern, seed);
            let mut texts = surroundings(&secret);
            texts.extend(more_surroundings(&secret));
            if may_follow_a_letter(&secret) {
                texts.push(("after a letter", format!("x{secret}")));
            }
            for (how, text) in texts {
                missed.check(kind, how, &text, &redact(&text), &[&secret]);
            }
            for (how, text, parts) in broken(&secret) {
                let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
                missed.check(kind, how, &text, &redact(&text), &parts);
            }
            let arguments = [
                json!({"command": format!("echo {secret}")}),
                json!({"args": ["echo", secret]}),
                json!({"a": {"b": [secret]}}),
                json!({secret.as_str(): 1}),
            ];
            for value in arguments {
                let text = value.to_string();
                missed.check(
                    kind,
                    "in arguments",
                    &text,
                    &redact_json(&value),
                    &[&secret],
                );
                missed.check(kind, "in a line", &text, &redact_lines(&text), &[&secret]);
            }
        }
    }
    missed.done(17_000);
}

/// Every way to give a value a name.
fn assignments(name: &str, value: &str) -> Vec<(&'static str, String)> {
    let upper = name.to_ascii_uppercase().replace('-', "_");
    let red = "\u{1b}[31m";
    vec![
        ("set in a shell", format!("{upper}={value}")),
        ("exported", format!("export {upper}={value}\n")),
        (
            "exported in quotes",
            format!("export {upper}=\"{value}\"\n"),
        ),
        (
            "exported in single quotes",
            format!("export {upper}='{value}'\n"),
        ),
        (
            "in a file of settings",
            format!("a = 1\n{name} = {value}\n"),
        ),
        ("without blanks", format!("a=1\n{name}={value}\n")),
        ("in TOML", format!("{name} = \"{value}\"\n")),
        ("in YAML", format!("a: 1\n{name}: {value}\n")),
        ("in YAML in quotes", format!("  {name}: '{value}'\n")),
        (
            "in a list of YAML",
            format!("- name: {name}\n  value: {value}\n"),
        ),
        (
            "in a list of YAML in quotes",
            format!("- name: \"{name}\"\n  value: \"{value}\"\n"),
        ),
        ("in JSON", format!("{{\"{name}\":\"{value}\"}}")),
        (
            "in indented JSON",
            format!("{{\n  \"{name}\": \"{value}\",\n  \"a\": 1\n}}"),
        ),
        (
            "as two fields",
            format!("{{\"name\":\"{name}\",\"value\":\"{value}\"}}"),
        ),
        ("as a list", format!("[\"{name}\", \"{value}\"]")),
        (
            "in JSON in JSON",
            json!({"a": format!("{{\"{name}\": \"{value}\"}}")}).to_string(),
        ),
        ("as an element", format!("<{name}>{value}</{name}>")),
        (
            "as attributes",
            format!("<add key=\"{name}\" value=\"{value}\" />"),
        ),
        (
            "as a named element",
            format!("<string name=\"{name}\">{value}</string>"),
        ),
        (
            "in a property list",
            format!("<key>{name}</key>\n<string>{value}</string>"),
        ),
        (
            "in a query",
            format!("https://x.test/?a=1&{name}={value}&b=2"),
        ),
        (
            "URL-encoded",
            format!("{name}%3D{}%26b%3D2", percent(value)),
        ),
        (
            "JSON, URL-encoded",
            percent(&format!("{{\"{name}\":\"{value}\"}}")),
        ),
        (
            "a coloured value",
            format!("{upper}={red}{value}\u{1b}[0m\n"),
        ),
        (
            "a coloured line",
            format!("\u{1b}[36m{name}\u{1b}[0m: {red}\"{value}\"\u{1b}[0m\n"),
        ),
        ("after a dash", format!("my-{name}={value}\n")),
        ("after an underscore", format!("my_{name}={value}\n")),
        ("in a path", format!("/tmp/{name}={value}")),
        ("on the next line", format!("{name}:\n  {value}\n")),
        ("in code", format!("const {name} = \"{value}\";")),
        ("in a call", format!("set(\"{name}\", \"{value}\")")),
        ("with a type", format!("let {name}: &str = \"{value}\";")),
    ]
}

fn check_named(missed: &mut Missed, kind: &str, name: &str, value: &str) {
    for (how, text) in assignments(name, value) {
        missed.check(kind, how, &text, &redact(&text), &[value]);
        if serde_json::from_str::<serde_json::Value>(&text).is_ok() {
            missed.check(kind, how, &text, &redact_lines(&text), &[value]);
        }
    }
    let values = [
        json!({name: value}),
        json!({"env": {name: value}}),
        json!({"name": name, "value": value}),
        json!([{"Key": name, "Value": value}]),
        json!({"headers": [[name, value]]}),
        json!({"env": [format!("{name}={value}")]}),
        json!({"command": format!("{}={value} run", name.to_ascii_uppercase().replace('-', "_"))}),
    ];
    for json in values {
        let text = json.to_string();
        missed.check(kind, "in arguments", &text, &redact_json(&json), &[value]);
    }
}

#[test]
fn every_named_kind_is_found_in_every_surrounding() {
    let mut missed = Missed::default();
    for (kind, name, pattern) in NAMED {
        for seed in 0..EACH {
            check_named(&mut missed, kind, name, &secret(pattern, seed));
        }
    }
    missed.done(13_000);
}

#[test]
fn a_password_that_is_a_word_is_found() {
    let mut missed = Missed::default();
    for name in ["password", "DB_PASSWORD", "smtp-pass", "user_pwd", "passwd"] {
        for word in WORDS {
            check_named(&mut missed, "word", name, word);
        }
    }
    missed.done(800);
}

#[test]
fn every_context_is_found_in_every_surrounding() {
    let mut missed = Missed::default();
    for (kind, template, pattern) in CONTEXTS {
        for seed in 0..EACH {
            let secret = secret(pattern, seed);
            let text = template.replace("{}", &secret);
            for (how, text) in surroundings(&text) {
                // What begins a line in a file of settings is not found within one.
                let is_settings = template.contains('\n') || template.contains("password is");
                if is_settings && how == "coloured in parts" {
                    continue;
                }
                missed.check(kind, how, &text, &redact(&text), &[&secret]);
            }
            if serde_json::from_str::<serde_json::Value>(&text).is_ok() {
                missed.check(kind, "as JSON", &text, &redact_lines(&text), &[&secret]);
            }
            let values = [
                json!({"command": text}),
                json!({"args": ["sh", "-c", text]}),
            ];
            for json in values {
                let text = json.to_string();
                missed.check(kind, "in arguments", &text, &redact_json(&json), &[&secret]);
            }
        }
    }
    let words = |words: &[&str]| json!({"args": words});
    let value = "Zk3vQ9wLm2";
    for list in [
        words(&["curl", "-s", "-u", &format!("me:{value}"), "https://x.test"]),
        words(&["sshpass", "-p", value, "ssh", "host"]),
        words(&["mysql", "-u", "root", &format!("-p{value}")]),
        words(&["deploy", "--password", value]),
        words(&["deploy", &format!("--password={value}")]),
        words(&["login", "--token", &format!("{value}{value}")]),
    ] {
        let text = list.to_string();
        missed.check(
            "a list of words",
            "in JSON",
            &text,
            &redact_json(&list),
            &[value],
        );
        missed.check(
            "a list of words",
            "as text",
            &text,
            &redact(&text),
            &[value],
        );
    }
    missed.done(3_000);
}

#[test]
fn every_private_key_is_found_whole_and_cut_off() {
    let mut missed = Missed::default();
    let lines: Vec<String> = (0..8).map(|n| secret("[A-Za-z0-9+/]{64}", n)).collect();
    let parts: Vec<&str> = lines.iter().map(String::as_str).collect();
    for label in [
        "RSA PRIVATE KEY",
        "PRIVATE KEY",
        "EC PRIVATE KEY",
        "DSA PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "ENCRYPTED PRIVATE KEY",
        "PGP PRIVATE KEY BLOCK",
    ] {
        for sign in ["\n", "\r\n", "\\n", "\n    ", "\n+", "\n> ", "\", \""] {
            let body = lines.join(sign);
            let begin = format!("-----BEGIN {label}-----");
            let end = format!("-----END {label}-----");
            let whole = format!("{begin}{sign}{body}{sign}{end}");
            for (how, text) in surroundings(&whole) {
                missed.check(label, how, &text, &redact(&text), &parts);
            }
            if sign != "\n+" && sign != "\", \"" {
                let headless = format!("{body}{sign}{end}\nafter it");
                missed.check(
                    label,
                    "without its beginning",
                    &headless,
                    &redact(&headless),
                    &parts,
                );
                let endless = format!("see\n{begin}{sign}{body}");
                missed.check(
                    label,
                    "without its end",
                    &endless,
                    &redact(&endless),
                    &parts,
                );
            }
        }
        let headers = format!(
            "-----BEGIN {label}-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n{}",
            lines.join("\n")
        );
        missed.check(
            label,
            "with headers, cut off",
            &headers,
            &redact(&headers),
            &parts,
        );
    }
    let mut list = vec!["-----BEGIN PRIVATE KEY-----"];
    list.extend(&parts);
    list.push("-----END PRIVATE KEY-----");
    let list = json!({"lines": list, "after": ["it stays"]});
    let redacted = redact_json(&list);
    assert!(redacted.contains("it stays"));
    missed.check(
        "in a list",
        "line by line",
        &list.to_string(),
        &redacted,
        &parts,
    );
    let putty = format!(
        "PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 8\n{}\nPrivate-MAC: 00\n",
        lines.join("\n")
    );
    missed.check("PuTTY", "plain", &putty, &redact(&putty), &parts);
    missed.done(900);
}

#[test]
fn a_number_that_is_secret_becomes_a_string() {
    let number =
        json!({"a": 12345678, "b": {"pin_pass": 99887766}, "c": 12345678, "password": 12345678});
    assert_eq!(
        redact_json(&number),
        r#"{"a":12345678,"b":{"pin_pass":"[removed: password]"},"c":12345678,"password":"[removed: password]"}"#
    );
    let ids = json!({"discord_client_id": 123456789012345678u64, "max_tokens": 4096});
    assert!(!redact_json(&ids).contains("1234567890"));
    assert!(redact_json(&ids).contains("4096"));
}

#[test]
fn people_are_removed_only_on_request() {
    let home = Path::new("/srv/people/erika");
    let people = |text: &str| Redactor::new().people(Some(home)).redact(text).into_owned();
    for (text, expected) in [
        ("cd /home/erika/src", "cd [removed: home path]/src"),
        ("/Users/erika.m/x y", "[removed: home path]/x y"),
        (r"C:\Users\Erika\x", r"[removed: home path]\x"),
        (r"C:\\Users\\Erika\\x", r"[removed: home path]\\x"),
        ("file:///home/erika", "file://[removed: home path]"),
        ("%2Fhome%2Ferika%2Fx", "[removed: home path]%2Fx"),
        ("-home-erika-src", "[removed: home path]-src"),
        ("/srv/people/erika/x", "[removed: home path]/x"),
        ("ls /root/.ssh", "ls [removed: home path]/.ssh"),
        ("write to erika@mail.test.", "write to [removed: e-mail]."),
        ("<erika+x@mail.example.com>", "<[removed: e-mail]>"),
        ("erika%40mail.test", "[removed: e-mail]"),
        (
            "\u{1b}[1merika\u{1b}[0m@mail.test",
            "\u{1b}[1m[removed: e-mail]",
        ),
    ] {
        assert_eq!(people(text), expected);
        assert_eq!(redact(text), text, "without being asked nothing is removed");
    }
    for text in [
        "git@github.com:me/x.git",
        "npm i react@18.2.0 @scope/name",
        "/rooted/x and /opt/root",
        "a home-made thing",
        "/Users/Shared/x",
        "x@y",
    ] {
        assert_eq!(people(text), text);
    }
}

fn shared(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let places = ["../../../shared", "../../../../shared"];
    let mut places = places.iter().map(|place| root.join(place).join(name));
    places.find(|place| place.exists())
}

#[test]
fn every_listed_kind_has_a_pattern() {
    let Some(list) = shared("secret-kinds.md") else {
        eprintln!("SKIPPED: needs the samples; there is no list of kinds");
        return;
    };
    let list = std::fs::read_to_string(list).unwrap();
    let rows = list.lines().filter_map(|line| line.strip_prefix("| "));
    let kinds: BTreeSet<&str> = rows
        .filter_map(|row| Some(row.split_once(" |")?.0))
        .filter(|kind| *kind != "kind" && *kind != "private-key")
        .collect();
    let tested: BTreeSet<&str> = SHAPES
        .iter()
        .map(|it| it.0)
        .chain(NAMED.iter().map(|it| it.0))
        .chain(CONTEXTS.iter().map(|it| it.0))
        .chain(NOT_TEXT)
        .collect();
    let missing: Vec<&&str> = kinds.difference(&tested).collect();
    assert!(kinds.len() > 200 && missing.is_empty(), "{missing:?}");
}

/// Prints how much would be removed from real sessions, by kind: false alarms, unless a sample has
/// a secret. `cargo test -p backtrail-formats --test redact alarms -- --ignored --nocapture`;
/// with `SHOW=1` also what is removed.
#[test]
#[ignore = "a tool: prints what is removed from the samples"]
fn alarms() {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut bytes, mut files) = (0, 0);
    let mut left: Vec<PathBuf> = ["samples", "agents/samples"]
        .into_iter()
        .filter_map(shared)
        .collect();
    let begun = std::time::Instant::now();
    while let Some(path) = left.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).unwrap();
            left.extend(entries.map(|entry| entry.unwrap().path()));
            continue;
        }
        let Ok(text) = String::from_utf8(std::fs::read(&path).unwrap()) else {
            continue;
        };
        let mut redactor = Redactor::new();
        let mut out = Vec::new();
        let mut writer = JsonRedactor::lines(&mut out, &mut redactor);
        std::io::Write::write_all(&mut writer, text.as_bytes()).unwrap();
        writer.finish().unwrap();
        if std::env::var_os("SHOW").is_some() {
            show(&path, &text, &String::from_utf8_lossy(&out));
        }
        for found in redactor.findings() {
            *counts.entry(found.kind).or_default() += found.count;
        }
        bytes += text.len();
        files += 1;
    }
    println!("{files} files, {bytes} bytes, {:?}", begun.elapsed());
    counts
        .iter()
        .for_each(|(kind, count)| println!("{count:6} {kind}"));
}

/// Prints what is around each removal, before and after.
fn show(path: &Path, before: &str, after: &str) {
    for (before, after) in before.lines().zip(after.lines()) {
        let mut from = 0;
        let mut shift = 0isize;
        while let Some(at) = after[from..].find("[removed: ").map(|at| from + at) {
            let end = at + after[at..].find(']').unwrap_or(0) + 1;
            let tail: String = after[end..].chars().take(12).collect();
            let place = usize::try_from(at as isize + shift).unwrap_or(0);
            let start = (0..=place.min(before.len()))
                .rev()
                .find(|it| before.is_char_boundary(*it));
            let rest = &before[start.unwrap_or(0)..];
            let length = rest.find(&tail).unwrap_or(rest.len()).min(400);
            let head: String = after[..at].chars().rev().take(50).collect();
            let head: String = head.chars().rev().collect();
            let own: String = rest.chars().take(length).collect();
            println!("{}: {head}«{own}» {}", path.display(), &after[at..end]);
            shift += length as isize - (end - at) as isize;
            from = end;
        }
    }
}
