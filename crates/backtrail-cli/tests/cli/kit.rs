//! A store in a directory of its own, and the program to use it with.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A store, empty at first, and an empty directory to work in.
pub(crate) struct Cli {
    dir: TempDir,
    store: PathBuf,
}

/// The result of a run of the program.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Parses stdout as one JSON value.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {self:#?}"))
    }

    /// Parses each line of stdout as JSON.
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        let lines = self.stdout.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

impl Cli {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        Self::with(dir, store)
    }

    /// Uses a store that is there, in a directory to work in of its own.
    pub(crate) fn in_store(store: &Path) -> Self {
        Self::with(tempfile::tempdir().unwrap(), store.to_owned())
    }

    fn with(dir: TempDir, store: PathBuf) -> Self {
        std::fs::create_dir(dir.path().join("work")).unwrap();
        Self { dir, store }
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.store.clone()
    }

    /// Returns the packs of the store.
    pub(crate) fn packs(&self) -> Vec<PathBuf> {
        let names = std::fs::read_dir(self.store().join("objects")).unwrap();
        let paths = names.map(|entry| entry.unwrap().path());
        let is_pack = |path: &PathBuf| path.extension().is_some_and(|end| end != "lock");
        paths.filter(is_pack).collect()
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        command(&self.store(), &self.work(), args)
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.run_with(args, b"")
    }

    pub(crate) fn run_with(&self, args: &[&str], stdin: &[u8]) -> Ran {
        finish(&mut self.command(args), stdin)
    }

    /// Records one text in a new session and returns the session's id.
    pub(crate) fn new_session(&self, text: &str) -> String {
        let ran = self.run(&["record", "--text", text]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        ran.json()["session"].as_str().unwrap().to_owned()
    }

    /// Returns the texts of a session's messages, as `show --json` gives them.
    pub(crate) fn texts(&self, reference: &str) -> Vec<String> {
        texts(&self.run(&["show", reference, "--json"]).json())
    }

    /// Records a conversation with a tool call in it, and returns the session's id.
    pub(crate) fn talk(&self) -> String {
        let ran = self.run_with(&["record", "--title", "a talk"], TALK.as_bytes());
        assert_eq!(ran.code, 0, "{ran:#?}");
        ran.json_lines()[0]["session"].as_str().unwrap().to_owned()
    }

    /// Returns the present conversation: the messages, and the context of a model.
    pub(crate) fn conversation(&self, reference: &str) -> (String, String) {
        let shown = self.run(&["show", reference, "--json"]).json();
        let context = self.run(&["context", reference]);
        assert_eq!(context.code, 0, "{context:#?}");
        let said = [&shown["messages"], &shown["compactions"]];
        (said.map(Value::to_string).concat(), context.stdout)
    }

    /// Runs the printed command that reverses what was done.
    pub(crate) fn reverse(&self, ran: &Ran) -> Ran {
        let printed = |line: &str| line.strip_prefix("to reverse: ").map(str::to_owned);
        let command = ran.stderr.lines().find_map(printed);
        let command = command.unwrap_or_else(|| panic!("no command to reverse it in {ran:#?}"));
        let program = Path::new(env!("CARGO_BIN_EXE_backtrail"));
        let mut path = program.parent().unwrap().as_os_str().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap());
        let mut shell = Command::new("bash");
        shell
            .args(["-c", &command])
            .current_dir(self.work())
            .env("BACKTRAIL_HOME", self.store())
            .env("PATH", path);
        let back = finish(&mut shell, b"");
        assert_eq!(back.code, 0, "{command}: {back:#?}");
        back
    }

    pub(crate) fn trail(&self, session: &str, trail: u32) -> PathBuf {
        let name = format!("{trail:04}.jsonl");
        self.store().join("sessions").join(session).join(name)
    }
}

/// Five records, of which the third and the fourth belong together.
const TALK: &str = r#"{"role":"system","text":"Be short."}
{"role":"user","text":"what is here?"}
{"type":"message","message":{"role":"assistant","blocks":[{"type":"text","text":"Let me look."},{"type":"tool_use","id":"t1","name":"bash","input":{"command":"ls"}}],"usage":{"input_tokens":1000,"output_tokens":40,"cache_read_input_tokens":500}},"model":"m-1","response_id":"r1","cost_usd":0.0125,"duration_ms":61500}
{"type":"message","message":{"role":"tool","blocks":[{"type":"tool_result","tool_use_id":"t1","tool_name":"bash","output":"src","is_error":false}]},"duration_ms":500}
{"role":"assistant","text":"One folder: src."}
"#;

/// Returns a run as a person sees it: the exit code, then stdout and stderr. What differs from
/// run to run is replaced by a word.
pub(crate) fn screen(ran: &Ran, cli: &Cli, sessions: &[&str]) -> String {
    let mut screen = format!("exit {}\n", ran.code);
    for (stream, text) in [("out", &ran.stdout), ("err", &ran.stderr)] {
        for line in normal(text, cli, sessions).lines() {
            screen += format!("{stream}: {line}").trim_end();
            screen.push('\n');
        }
    }
    screen
}

/// Replaces what differs from run to run by words. The first session is
/// `<session>` or `<id>`, the others `<session2>`, `<id2>` and so on.
pub(crate) fn normal(text: &str, cli: &Cli, sessions: &[&str]) -> String {
    let mut text = text.to_owned();
    for (n, session) in sessions.iter().enumerate() {
        let n = match n {
            0 => String::new(),
            n => (n + 1).to_string(),
        };
        text = text
            .replace(session, &format!("<session{n}>"))
            .replace(&session[..8], &format!("<id{n}>"));
        text = without_short(&text, session, &format!("<id{n}>"));
    }
    let work = cli.work().canonicalize().unwrap();
    let text = text
        .replace(cli.store().to_str().unwrap(), "<store>")
        .replace(work.to_str().unwrap(), "<work>");
    let mut out = String::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').map(normal_word).collect();
        out.push_str(words.join(" ").trim_end());
        out.push('\n');
    }
    out
}

/// Returns the short id of a session, as a test with few sessions sees it.
pub(crate) fn short(session: &str) -> String {
    long_short(session)[..4].to_owned()
}

fn long_short(session: &str) -> String {
    session.parse::<backtrail::SessionId>().unwrap().short()
}

/// Replaces the short id of a session, where it is a word.
fn without_short(text: &str, session: &str, by: &str) -> String {
    let short = short(session);
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(&short) {
        let end = at + short.len();
        let is_part = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        let is_word =
            !is_part(rest[..at].chars().next_back()) && !is_part(rest[end..].chars().next());
        out += &rest[..at];
        out += if is_word { by } else { &short };
        rest = &rest[end..];
    }
    out + rest
}

fn normal_word(word: &str) -> &str {
    let is_time = |word: &str| {
        let digits = |word: &str| word.len() == 2 && word.bytes().all(|b| b.is_ascii_digit());
        word.split_once(':')
            .is_some_and(|(hours, minutes)| digits(hours) && digits(minutes))
    };
    let in_brackets = |end: &str| {
        let inside = word
            .strip_prefix('(')
            .and_then(|word| word.strip_suffix(end));
        inside.is_some_and(is_time)
    };
    match word.matches(':').count() {
        _ if is_time(word) => "<when>",
        _ if in_brackets(")") => "(<when>)",
        _ if in_brackets("):") => "(<when>):",
        2 if !word.contains('"') => "<time>",
        _ if word.len() == 10 && word.matches('-').count() == 2 => "<day>",
        _ => word,
    }
}

/// Compares the output of a command with the file `screens/NAME.txt`: at 60, 80 and 160 columns
/// without colours, and at 80 with them. What differs from run to run is replaced by something
/// as wide: of `ids`, whole ids of sessions and checkpoints, the first becomes `aaaa…`, the
/// second `bbbb…`, wherever 4 or more characters of it appear. `BACKTRAIL_BLESS=1` rewrites the
/// file: look at what changed.
pub(crate) fn snapshot(name: &str, cli: &Cli, args: &[&str], ids: &[&str]) {
    let mut seen = String::new();
    for (columns, colour) in [
        ("60", "never"),
        ("80", "never"),
        ("160", "never"),
        ("80", "always"),
    ] {
        let mut command = cli.command(&[&["--color", colour], args].concat());
        command
            .env("COLUMNS", columns)
            .env("LANG", "C.UTF-8")
            .env("HOME", cli.dir.path());
        let ran = finish(&mut command, b"");
        let args = args.join(" ");
        seen += &format!("$ backtrail {args}    [{columns} columns, colours: {colour}]\n");
        seen += &format!("[exit {}]\n{}", ran.code, ran.stdout);
        if !ran.stderr.is_empty() {
            seen += &format!("[stderr]\n{}", ran.stderr);
        }
        seen.push('\n');
    }
    compare(name, &stable(&seen, cli, ids));
}

/// Compares a text with a file of the tests, or writes it.
fn compare(name: &str, seen: &str) {
    let screens = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/screens");
    let file = screens.join(name).with_extension("txt");
    if std::env::var_os("BACKTRAIL_BLESS").is_some() {
        std::fs::create_dir_all(&screens).unwrap();
        std::fs::write(&file, seen).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    let mut lines = expected.lines().zip(seen.lines()).enumerate();
    let first = lines.find(|(_, (expected, seen))| expected != seen);
    assert!(
        expected == seen,
        "{} differs, first at {first:#?}; if that is meant, run the test again with \
         BACKTRAIL_BLESS=1. Seen:\n{seen}",
        file.display()
    );
}

/// Replaces what differs from run to run by something as wide.
fn stable(text: &str, cli: &Cli, ids: &[&str]) -> String {
    let mut text = text.replace('\u{1b}', "␛");
    for dir in [
        cli.dir.path().canonicalize().unwrap().as_path(),
        cli.dir.path(),
    ] {
        text = text.replace(dir.to_str().unwrap(), "<dir>");
    }
    for (n, id) in ids.iter().enumerate() {
        let letter = char::from(b'a' + u8::try_from(n).unwrap());
        text = without_id(&text, id, letter);
        text = without_id(&text, &long_short(id), letter);
    }
    let mut out = String::new();
    for line in text.lines() {
        out.push_str(without_times(line).trim_end());
        out.push('\n');
    }
    out
}

/// Replaces every character of an id by a letter, where 4 or more of it appear.
fn without_id(text: &str, id: &str, letter: char) -> String {
    let mut text = text.to_owned();
    for length in (4..=id.len()).rev() {
        let start = &id[..length];
        let mut from = 0;
        while let Some(found) = text[from..].find(start).map(|at| at + from) {
            let end = found + length;
            let is_part = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
            // Styles end with a letter that is part of no word.
            let before = text[..found].chars().next_back();
            let styled = text[..found].rsplit('␛').next().is_some_and(|style| {
                style.strip_prefix('[').is_some_and(|style| {
                    style.ends_with('m') && style[..style.len() - 1].parse::<u8>().is_ok()
                })
            });
            if (!is_part(before) || styled) && !is_part(text[end..].chars().next()) {
                let over = |c: char| if c == '-' { '-' } else { letter };
                let over: String = start.chars().map(over).collect();
                text.replace_range(found..end, &over);
            }
            from = end;
        }
    }
    text
}

/// Replaces every digit of a day or a time by `0`.
fn without_times(line: &str) -> String {
    const SHAPES: [&str; 3] = ["0000-00-00", "00:00:00", "00:00"];
    let mut bytes = line.as_bytes().to_vec();
    for shape in SHAPES {
        for at in 0..bytes.len().saturating_sub(shape.len() - 1) {
            let here = &bytes[at..at + shape.len()];
            let mut pairs = here.iter().zip(shape.bytes());
            let is_digit = |at: Option<usize>| {
                at.and_then(|at| bytes.get(at))
                    .is_some_and(u8::is_ascii_digit)
            };
            let alone = !is_digit(at.checked_sub(1)) && !is_digit(Some(at + shape.len()));
            let alike = |(byte, shape): (&u8, u8)| match shape {
                b'0' => byte.is_ascii_digit(),
                _ => *byte == shape,
            };
            if alone && pairs.all(alike) {
                bytes[at..at + shape.len()].copy_from_slice(shape.as_bytes());
            }
        }
    }
    String::from_utf8(bytes).unwrap()
}

/// Returns the program, with a store and a current directory.
pub(crate) fn command(store: &Path, work: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_backtrail"));
    command
        .args(args)
        .current_dir(work)
        .env("BACKTRAIL_HOME", store)
        // A person's settings and ignore rules are not those of the tests.
        .env("HOME", "/home/of/nobody")
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("CLAUDE_CONFIG_DIR")
        .env_remove("CODEX_HOME")
        .env_remove("GEMINI_CLI_HOME")
        .env_remove("PI_CODING_AGENT_DIR")
        .env_remove("PI_CODING_AGENT_SESSION_DIR")
        .env_remove("BACKTRAIL_SESSION")
        .env_remove("BACKTRAIL_IDENTITY")
        .env_remove("PGPASSWORD")
        .env_remove("PGPASSFILE")
        .env_remove("NO_COLOR")
        .env_remove("COLUMNS")
        .env("TZ", "UTC");
    command
}

pub(crate) fn finish(command: &mut Command, stdin: &[u8]) -> Ran {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let stdin = stdin.to_vec();
    // The program may end before it has read everything.
    let writer = std::thread::spawn(move || pipe.write_all(&stdin).ok());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

pub(crate) fn texts(shown: &Value) -> Vec<String> {
    let messages = shown["messages"].as_array().unwrap();
    let text = |message: &Value| message["blocks"][0]["text"].as_str().unwrap().to_owned();
    messages.iter().map(text).collect()
}

/// A `record` that is running: lines in, answers out.
pub(crate) struct Recording {
    pub(crate) child: Child,
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) answers: BufReader<ChildStdout>,
}

impl Recording {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            stdin: child.stdin.take(),
            answers: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    /// Sends a message and waits for its answer.
    pub(crate) fn say(&mut self, text: &str) -> Value {
        self.send(text);
        self.answer().expect("the program answers")
    }

    pub(crate) fn send(&mut self, text: &str) {
        self.send_line(line(text).trim_end());
    }

    /// Sends a line as it is.
    pub(crate) fn send_line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Returns the next answer, or `None` when there are no more.
    pub(crate) fn answer(&mut self) -> Option<Value> {
        let mut line = String::new();
        let n = self.answers.read_line(&mut line).unwrap_or(0);
        // A program that was killed can leave half a line.
        (n > 0 && line.ends_with('\n')).then(|| serde_json::from_str(&line).unwrap())
    }

    pub(crate) fn end(mut self) -> i32 {
        drop(self.stdin.take());
        while self.answer().is_some() {}
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

/// A line of input in the short form.
pub(crate) fn line(text: &str) -> String {
    format!("{}\n", serde_json::json!({"role": "user", "text": text}))
}

/// Numbers that look random and are the same every time.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}
