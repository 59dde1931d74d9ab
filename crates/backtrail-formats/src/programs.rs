//! Which agent a command line starts.
//!
//! Agents are started by their own name, by their package (`npx @openai/codex`), as a script of an
//! interpreter (`node …/cli.js`), through a link or a small shell script, or behind programs that
//! only start others (`env`, `nice`). The names are in the agents' rows ([`Agent`]).
//!
//! [`Agent`]: crate::Agent

use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use crate::format::{Format, formats};

/// A program's file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProgramFile {
    /// Its path, without links.
    pub path: PathBuf,
    /// Its beginning, which tells what a script starts.
    pub beginning: Vec<u8>,
}

impl ProgramFile {
    /// How much of a script is read.
    const BEGINNING: u64 = 8 << 10;

    /// Creates one.
    pub fn new(path: impl Into<PathBuf>, beginning: impl Into<Vec<u8>>) -> Self {
        Self {
            path: path.into(),
            beginning: beginning.into(),
        }
    }

    /// Finds the program that a name means: a path from `directory`, or a name in one of the
    /// directories of `paths`, as the variable `PATH` has them.
    pub fn find(name: &OsStr, paths: &OsStr, directory: &Path) -> Option<Self> {
        let is_path = name.as_encoded_bytes().contains(&b'/');
        let found = match is_path {
            true => Some(directory.join(name)),
            false => std::env::split_paths(paths)
                .map(|folder| directory.join(folder).join(name))
                .find(|path| path.is_file()),
        };
        let path = found?.canonicalize().ok()?;
        let mut beginning = Vec::new();
        if path.is_file()
            && let Ok(file) = std::fs::File::open(&path)
        {
            file.take(Self::BEGINNING).read_to_end(&mut beginning).ok();
        }
        Some(Self { path, beginning })
    }
}

/// Returns the agent that a command line starts, by its own name, its package or its file. `find`
/// finds the file of a program, as [`ProgramFile::find`] does.
///
/// ```
/// use backtrail_formats::recognise_agent;
///
/// let argv = ["npx", "-y", "@openai/codex@latest", "exec", "hello"].map(Into::into);
/// let agent = recognise_agent(&argv, &|_| None).ok_or("no agent")?;
/// assert_eq!(agent.name(), "codex");
/// # Ok::<(), &str>(())
/// ```
pub fn recognise_agent(
    argv: &[OsString],
    find: &dyn Fn(&OsStr) -> Option<ProgramFile>,
) -> Option<&'static dyn Format> {
    let words: Vec<String> = argv
        .iter()
        .map(|word| word.to_string_lossy().into())
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    recognise(&words, find, MAX_DEPTH)
}

/// How many programs may start each other.
const MAX_DEPTH: u32 = 8;

/// A program that starts another one, and the options of it that have a value of their own.
struct Starter {
    names: &'static [&'static str],
    /// Words that come before the other program, such as `exec`.
    verbs: &'static [&'static str],
    valued: &'static [&'static str],
    /// How many words that are no options come before the other program.
    operands: usize,
}

const fn starter(
    names: &'static [&'static str],
    verbs: &'static [&'static str],
    valued: &'static [&'static str],
) -> Starter {
    Starter {
        names,
        verbs,
        valued,
        operands: 0,
    }
}

const STARTERS: &[Starter] = &[
    starter(&["env"], &[], &["-u", "--unset", "-C", "--chdir"]),
    starter(&["npx", "bunx", "pnpx"], &[], &["-p", "--package"]),
    starter(
        &["npm", "pnpm", "yarn"],
        &["exec", "x", "dlx"],
        &["-p", "--package"],
    ),
    starter(&["uvx"], &[], &["--with", "--python", "-p"]),
    starter(&["uv"], &["tool", "run"], &["--with", "--python", "-p"]),
    starter(&["pipx"], &["run"], &["--python"]),
    starter(
        &["node", "nodejs", "tsx"],
        &[],
        &["-r", "--require", "--import", "--loader"],
    ),
    starter(&["bun"], &["x", "run"], &["-r", "--preload"]),
    starter(&["deno"], &["run"], &["--config", "-c"]),
    starter(&["python", "python3"], &[], &["-W", "-X"]),
    starter(&["nice", "ionice"], &[], &["-n", "-c", "--adjustment"]),
    starter(&["stdbuf"], &[], &["-i", "-o", "-e"]),
    starter(
        &[
            "nohup",
            "time",
            "setsid",
            "command",
            "caffeinate",
            "unbuffer",
            "exec",
        ],
        &[],
        &["-a"],
    ),
    Starter {
        operands: 1,
        ..starter(&["timeout"], &[], &["-s", "-k", "--signal", "--kill-after"])
    },
];

fn recognise(
    words: &[&str],
    find: &dyn Fn(&OsStr) -> Option<ProgramFile>,
    depth: u32,
) -> Option<&'static dyn Format> {
    let (program, rest) = words.split_first()?;
    let depth = depth.checked_sub(1)?;
    if let Some(agent) = by_word(program) {
        return Some(agent);
    }
    let name = name_of(Path::new(program));
    if let Some(starter) = STARTERS.iter().find(|it| it.names.contains(&name.as_str())) {
        return started(starter, rest, find, depth);
    }
    let file = find(OsStr::new(program))?;
    by_path(&file.path).or_else(|| script_target(&file, find, depth))
}

/// Looks at what a program starts.
fn started(
    starter: &Starter,
    words: &[&str],
    find: &dyn Fn(&OsStr) -> Option<ProgramFile>,
    depth: u32,
) -> Option<&'static dyn Format> {
    let mut operands = starter.operands;
    let mut words = words;
    while let Some((word, rest)) = words.split_first() {
        words = rest;
        match word.split_once('=') {
            // A package, given apart from the program in it.
            Some(("--package" | "--from", package)) => {
                if let Some(agent) = by_word(package) {
                    return Some(agent);
                }
            }
            Some((name, _)) if !name.contains('/') => {}
            _ if matches!(*word, "-m" | "-p" | "--package" | "--from") => {
                if let Some(agent) = rest.first().and_then(|word| by_word(word)) {
                    return Some(agent);
                }
                words = rest.get(1..).unwrap_or_default();
            }
            _ if starter.valued.contains(word) => words = rest.get(1..).unwrap_or_default(),
            _ if word.starts_with('-') || starter.verbs.contains(word) => {}
            _ if operands > 0 => operands -= 1,
            _ => {
                let mut command = vec![*word];
                command.extend(rest);
                return recognise(&command, find, depth);
            }
        }
    }
    None
}

/// Looks at what a script starts: a shell script ends in `exec PROGRAM`.
fn script_target(
    file: &ProgramFile,
    find: &dyn Fn(&OsStr) -> Option<ProgramFile>,
    depth: u32,
) -> Option<&'static dyn Format> {
    let text = String::from_utf8_lossy(&file.beginning);
    let (first, rest) = text.strip_prefix("#!")?.split_once('\n')?;
    let interpreter = first.split_whitespace().next()?;
    if let Some(agent) = by_path(Path::new(interpreter)) {
        return Some(agent);
    }
    let mut lines = rest.lines().rev().map(str::trim_start);
    let command = lines.find_map(|line| line.strip_prefix("exec "))?;
    let words = command.split_whitespace();
    let words: Vec<&str> = words.map(|word| word.trim_matches(['"', '\''])).collect();
    recognise(&words, find, depth)
}

/// Returns the agent of a program's name or path, or of a package.
fn by_word(word: &str) -> Option<&'static dyn Format> {
    let without_version = match word.rfind('@') {
        Some(at) if at > 0 => &word[..at],
        _ => word,
    };
    let is_package = |format: &&dyn Format| format.agent().packages.contains(&without_version);
    let package = formats().find(is_package);
    package.or_else(|| by_path(Path::new(word)))
}

/// Returns the agent of a program's file, by its name or by the package that it is in.
fn by_path(path: &Path) -> Option<&'static dyn Format> {
    let name = name_of(path);
    let is_named = |format: &&dyn Format| format.agent().programs.contains(&name.as_str());
    formats().find(is_named).or_else(|| {
        formats().find(|format| {
            let packages = format.agent().packages.iter();
            packages.into_iter().any(|package| is_in(path, package))
        })
    })
}

/// Returns whether a file is in a package, or in the one of its binaries for this machine.
fn is_in(path: &Path, package: &str) -> bool {
    const BINARIES: [&str; 4] = ["-linux", "-darwin", "-win32", "-binary"];
    let parts: Vec<_> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(part) => part.to_str(),
            _ => None,
        })
        .collect();
    // A name without a scope is a package only where packages are.
    let above = |at: usize| at.checked_sub(1).map(|at| parts[at]);
    let is_it = |part: &str, name: &str| {
        let rest = part.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || BINARIES.iter().any(|it| rest.starts_with(it)))
    };
    (0..parts.len().saturating_sub(1)).any(|at| match package.split_once('/') {
        Some((scope, name)) => is_it(parts[at], name) && above(at) == Some(scope),
        None => {
            is_it(parts[at], package)
                && matches!(
                    above(at),
                    Some("node_modules" | "site-packages" | "tools" | "venvs")
                )
        }
    })
}

/// Returns the name of a program without the ending of a script.
fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let endings = [".exe", ".cmd", ".js", ".mjs", ".cjs", ".py"];
    let ending = endings.iter().find(|ending| name.ends_with(**ending));
    name[..name.len() - ending.map_or(0, |ending| ending.len())].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A computer with these files: where a name leads, and how the file begins.
    const FILES: &[(&str, &str, &str)] = &[
        (
            "mine",
            "/usr/lib/node_modules/@anthropic-ai/claude-code/cli.js",
            "#!/usr/bin/env node\n",
        ),
        (
            "native",
            "/opt/node_modules/@openai/codex-linux-x64/vendor/bin",
            "\u{7f}ELF",
        ),
        (
            "wrapped",
            "/home/u/bin/wrapped",
            "#!/bin/sh\nset -e\nexec /opt/gemini/bin/gemini \"$@\"\n",
        ),
        (
            "shim",
            "/home/u/bin/shim",
            "#!/bin/sh\nbasedir=$(dirname \"$0\")\n  exec node  \"$basedir/../@qwen-code/qwen-code/index.js\" \"$@\"\n",
        ),
        (
            "chat",
            "/home/u/bin/chat",
            "#!/home/u/.local/share/uv/tools/aider-chat/bin/python\nimport x\n",
        ),
        ("loop", "/home/u/bin/loop", "#!/bin/sh\nexec loop\n"),
        (
            "./agent.js",
            "/usr/lib/node_modules/opencode-ai/bin/x.js",
            "x",
        ),
        ("ls", "/usr/bin/ls", "\u{7f}ELF"),
        ("make", "/usr/bin/make", "\u{7f}ELF"),
    ];

    fn agent_of(line: &str) -> Option<&'static str> {
        let find = |name: &OsStr| {
            let (_, path, text) = FILES.iter().find(|(it, ..)| name == *it)?;
            Some(ProgramFile::new(*path, *text))
        };
        let argv: Vec<OsString> = line.split_whitespace().map(Into::into).collect();
        recognise_agent(&argv, &find).map(Format::name)
    }

    #[test]
    fn an_agent_is_recognised_by_its_program_through_anything_that_starts_it() {
        for (line, agent) in [
            ("claude -p hello", "claude-code"),
            ("/home/u/.local/bin/claude", "claude-code"),
            ("codex exec x", "codex"),
            ("gemini", "gemini-cli"),
            ("opencode run", "opencode"),
            ("qwen", "qwen-code"),
            ("copilot", "copilot-cli"),
            ("cursor-agent", "cursor"),
            ("pi", "pi"),
            ("cline", "cline"),
            ("kilocode", "kilo-code"),
            ("goose session", "goose"),
            ("crush", "crush"),
            ("aider --model x", "aider"),
            ("droid", "droid"),
            ("kimi", "kimi-cli"),
            ("grok", "grok-cli"),
            ("openclaw", "openclaw"),
            ("hermes", "hermes"),
            ("claw", "claw-code"),
            ("npx @anthropic-ai/claude-code", "claude-code"),
            ("npx -y @google/gemini-cli@0.61.0 -p x", "gemini-cli"),
            ("npx --package=@openai/codex codex", "codex"),
            ("npx -p @openai/codex whatever", "codex"),
            ("npm exec -- @github/copilot", "copilot-cli"),
            ("pnpm dlx opencode-ai", "opencode"),
            ("bunx opencode-ai@latest", "opencode"),
            ("bun x @earendil-works/pi-coding-agent", "pi"),
            ("uvx --python 3.12 aider-chat", "aider"),
            ("uvx --from aider-chat aider", "aider"),
            ("uv tool run kimi-cli", "kimi-cli"),
            ("pipx run aider-chat", "aider"),
            ("python3 -m aider", "aider"),
            (
                "node --require ./hook.js /x/node_modules/cline/dist/cli.mjs",
                "cline",
            ),
            ("node ./agent.js", "opencode"),
            (
                "deno run /x/node_modules/@qwen-code/qwen-code/cli.js",
                "qwen-code",
            ),
            ("env -u A B=c FOO=/x/y claude", "claude-code"),
            ("nice -n 5 timeout -k 3 600 codex", "codex"),
            ("mine --continue", "claude-code"),
            ("native", "codex"),
            ("wrapped x", "gemini-cli"),
            ("shim", "qwen-code"),
            ("chat", "aider"),
            ("env mine", "claude-code"),
        ] {
            assert_eq!(agent_of(line), Some(agent), "{line}");
        }
    }

    #[test]
    fn other_programs_are_no_agents() {
        for line in [
            "",
            "ls claude",
            "make codex",
            "sh -c claude",
            "npx cowsay claude",
            "node server.js",
            "cat /x/node_modules/@openai/codex/README.md",
            "env",
            "timeout 5",
            "loop",
            "npx -p",
            "/home/u/claude/run",
            "/home/u/cline/build",
        ] {
            assert_eq!(agent_of(line), None, "{line}");
        }
    }

    #[test]
    fn no_two_agents_share_a_name() {
        let mut names: Vec<&str> = formats()
            .flat_map(|format| {
                let agent = format.agent();
                agent
                    .programs
                    .iter()
                    .chain(agent.packages)
                    .copied()
                    .collect::<std::collections::BTreeSet<_>>()
            })
            .collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn a_program_is_found_in_the_path_and_links_are_followed() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("real");
        std::fs::write(&real, "#!/bin/sh\n").unwrap();
        std::fs::create_dir(dir.path().join("bin")).unwrap();
        std::os::unix::fs::symlink(&real, dir.path().join("bin/tool")).unwrap();
        let found = ProgramFile::find("tool".as_ref(), "/nowhere:bin".as_ref(), dir.path());
        let expected = ProgramFile::new(real.canonicalize().unwrap(), "#!/bin/sh\n");
        assert_eq!(found.as_ref(), Some(&expected));
        let found = ProgramFile::find("./bin/tool".as_ref(), "".as_ref(), dir.path());
        assert_eq!(found, Some(expected));
        assert_eq!(
            ProgramFile::find("none".as_ref(), "bin".as_ref(), dir.path()),
            None
        );
    }
}
