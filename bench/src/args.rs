//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::Result;
use crate::parts::Area;

/// The usage text.
pub(crate) const USAGE: &str = "\
usage: backtrail-bench [trail|session|snapshot|store|find|import|follow|live|ui|web] [--quick] [--only NAME] [--dir DIR] [--bin PATH] [--json]
       backtrail-bench profile WHAT [--count N] [--dir DIR]

  trail        measure the session log: durable, group, append, stream (and tail), process
  session      measure sessions: context, moves, turns, load, payload
  snapshot     measure snapshots of a workspace: first, unchanged, changed, diff, rewind, history, blame
  store        measure the store as a whole: fork, verify, gc
  find         measure catalogue and search: index
  import       measure importing other agents' sessions: peers, totals, rollout
  follow       measure following an agent while it works: live, grown
  live         measure agents at work, as whole processes: hooks, wrapped, resume
  ui           measure the screen, driven by keys: browse, reading, claude-history
  web          measure the pages, also in a browser: pages, browser, agentsview-pages
  --quick      fewer rounds and a tenth of the sizes
  --only NAME  only this part
  --dir DIR    where to write; a real disk (default: beside this program)
  --bin PATH   the backtrail to run (default: beside this program, built if missing)
  --json       print JSON
  profile      do one thing in a loop, for perf or callgrind: append, trust, check, message,
               draft, context, turns, object, transcript or image";

/// The command line.
#[derive(Debug)]
pub(crate) struct Args {
    pub(crate) task: Task,
    /// What to measure; everything by default.
    pub(crate) area: Option<Area>,
    pub(crate) quick: bool,
    pub(crate) json: bool,
    pub(crate) only: Option<String>,
    pub(crate) dir: Option<PathBuf>,
    pub(crate) bin: Option<PathBuf>,
}

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Help,
    Measure,
    Profile {
        what: Profile,
        count: Option<u64>,
    },
    /// Streams a session in a process of its own; hidden.
    StreamChild {
        store: PathBuf,
        session: String,
    },
    /// Loads a file in a process of its own; hidden.
    LoadChild {
        file: PathBuf,
    },
}

/// What to run in a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    Append,
    Trust,
    Check,
    Message,
    Draft,
    Context,
    Turns,
    Object,
    Transcript,
    Image,
}

impl Args {
    /// Parses the command line, without the program's name.
    pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Self> {
        let mut args = Self {
            task: Task::Measure,
            area: None,
            quick: false,
            json: false,
            only: None,
            dir: None,
            bin: None,
        };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let mut value = || -> Result<OsString> {
                let name = word.to_string_lossy();
                Ok(words
                    .next()
                    .ok_or_else(|| format!("{name} needs a value"))?)
            };
            match word.to_str() {
                Some("trail") => args.area = Some(Area::Trail),
                Some("session") => args.area = Some(Area::Session),
                Some("snapshot") => args.area = Some(Area::Snapshot),
                Some("store") => args.area = Some(Area::Store),
                Some("find") => args.area = Some(Area::Find),
                Some("import") => args.area = Some(Area::Import),
                Some("follow") => args.area = Some(Area::Follow),
                Some("live") => args.area = Some(Area::Live),
                Some("ui") => args.area = Some(Area::Ui),
                Some("web") => args.area = Some(Area::Web),
                Some("--quick") => args.quick = true,
                Some("--json") => args.json = true,
                Some("--only") => args.only = Some(text(value()?)?),
                Some("--dir") => args.dir = Some(value()?.into()),
                Some("--bin") => args.bin = Some(value()?.into()),
                Some("--help" | "-h") => args.task = Task::Help,
                Some("profile") => {
                    let what = profile(&text(value()?)?)?;
                    args.task = Task::Profile { what, count: None };
                }
                Some("--count") => {
                    let given = text(value()?)?.parse()?;
                    match &mut args.task {
                        Task::Profile { count, .. } => *count = Some(given),
                        _ => return Err("--count goes with profile".into()),
                    }
                }
                Some("stream-child") => {
                    args.task = Task::StreamChild {
                        store: value()?.into(),
                        session: text(value()?)?,
                    };
                }
                Some("load-child") => {
                    args.task = Task::LoadChild {
                        file: value()?.into(),
                    };
                }
                _ => return Err(format!("what is {word:?}?\n{USAGE}").into()),
            }
        }
        Ok(args)
    }

    /// Returns `full`, or `quick` with `--quick`.
    pub(crate) fn pick<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }
}

fn text(word: OsString) -> Result<String> {
    Ok(word
        .into_string()
        .map_err(|word| format!("{word:?} is not text"))?)
}

fn profile(name: &str) -> Result<Profile> {
    Ok(match name {
        "append" => Profile::Append,
        "trust" => Profile::Trust,
        "check" => Profile::Check,
        "message" => Profile::Message,
        "draft" => Profile::Draft,
        "context" => Profile::Context,
        "turns" => Profile::Turns,
        "object" => Profile::Object,
        "transcript" => Profile::Transcript,
        "image" => Profile::Image,
        other => return Err(format!("cannot profile {other}\n{USAGE}").into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Args> {
        Args::parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn every_option_is_read() {
        let args = parse("trail --quick --json --dir /d --bin /b --only tail").unwrap();
        assert_eq!(args.task, Task::Measure);
        assert_eq!(args.area, Some(Area::Trail));
        assert!(args.quick && args.json);
        assert_eq!(args.dir, Some("/d".into()));
        assert_eq!(args.bin, Some("/b".into()));
        assert_eq!(args.only.as_deref(), Some("tail"));
        let args = parse("profile append --count 5").unwrap();
        let what = Profile::Append;
        let count = Some(5);
        assert_eq!(args.task, Task::Profile { what, count });
        assert_eq!(parse("session").unwrap().area, Some(Area::Session));
        assert_eq!(parse("snapshot").unwrap().area, Some(Area::Snapshot));
        assert_eq!(parse("store").unwrap().area, Some(Area::Store));
        assert_eq!(parse("import").unwrap().area, Some(Area::Import));
        assert_eq!(parse("follow").unwrap().area, Some(Area::Follow));
        assert_eq!(parse("live").unwrap().area, Some(Area::Live));
        assert_eq!(parse("ui").unwrap().area, Some(Area::Ui));
        assert_eq!(parse("web").unwrap().area, Some(Area::Web));
        let file = "/f".into();
        let task = parse("load-child /f").unwrap().task;
        assert_eq!(task, Task::LoadChild { file });
    }

    #[test]
    fn nonsense_is_refused() {
        for line in [
            "--dir",
            "--count 3",
            "profile nothing",
            "load-child",
            "snapshots",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
