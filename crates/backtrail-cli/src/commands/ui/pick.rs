//! Pickers where an argument is missing on a terminal. What is chosen becomes an argument, and the
//! command line is run again as if it had been typed.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use backtrail_tui::picker::{
    Choices, Files, Matches, PointPreview, Points, Sessions, Ways, pick, restore_plan, rewind_plan,
};
use backtrail_view::library::{Answer as Asked, Library, Plan};
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::super::library::StoreLibrary;
use crate::commands::Answer;
use crate::error::{CommandError, Result};
use crate::ui::Ui;

/// The row of the timeline that is not a checkpoint.
const NOW: &str = "now";

/// What can be missing, by verb: the name of the argument, and what is picked.
const MISSING: [(&str, &str, What); 6] = [
    ("show", "<REF>", What::Session),
    ("export", "<REF>", What::Session),
    ("fork", "<POINT>", What::Session),
    ("restore", "<POINT>", What::Point),
    ("cat", "<POINT>", What::Point),
    ("search", "<WORDS>...", What::Match),
];

/// What is picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Session,
    Point,
    Match,
}

/// Lets the user pick the argument that is missing, and runs the command line with it. Returns
/// `None` if nothing that can be picked is missing, or nobody is there to pick it.
pub(crate) fn missing(error: &clap::Error, verb: &str) -> Option<Result<Answer>> {
    if error.kind() != ErrorKind::MissingRequiredArgument {
        return None;
    }
    let Some(ContextValue::Strings(arguments)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let first = arguments.first()?;
    let is_it = |(of, name, _): &&(&str, &str, What)| *of == verb && first == name;
    let (.., what) = MISSING.iter().find(is_it)?;
    let words: Vec<OsString> = env::args_os().skip(1).collect();
    offer(*what, verb, words)
}

/// Lets the user pick the point of `rewind`. Returns `None` if nobody is there to pick it.
pub(crate) fn rewind_point() -> Option<Result<Answer>> {
    offer(What::Point, "rewind", env::args_os().skip(1).collect())
}

fn offer(what: What, verb: &str, words: Vec<OsString>) -> Option<Result<Answer>> {
    if !can_pick() || words.iter().any(|word| names_workspace(word)) {
        return None;
    }
    let store = value_of("--store", &words).map(PathBuf::from);
    let ui = Ui::new(false, clap::ColorChoice::Auto).store(store.as_deref());
    // The verb itself says what is wrong with the store.
    let library = Arc::new(StoreLibrary::open(&ui).ok()?);
    let picked = picked(what, verb, &library, is_plain(&words));
    picked.transpose().map(|picked| {
        let arguments = picked?;
        match arguments.is_empty() {
            true => Ok(Answer::No),
            false => Err(run_again(what, words, &arguments)),
        }
    })
}

/// Returns whether somebody is there to pick, on a terminal that can show a picker.
fn can_pick() -> bool {
    let term = env::var_os("TERM").unwrap_or_default();
    let is_able = !term.is_empty() && term != "dumb";
    let json = env::args_os().any(|word| word == "--json");
    let terminals = io::stdin().is_terminal() && io::stderr().is_terminal();
    is_able && !json && terminals && io::stdout().is_terminal()
}

/// Another workspace is named, whose points are not those here.
fn names_workspace(word: &OsStr) -> bool {
    word.to_string_lossy().starts_with("--workspace")
}

/// Returns whether a rewind or restore does all that it can, and nothing is decided yet about files
/// with other changes.
fn is_plain(words: &[OsString]) -> bool {
    const OTHERWISE: [&str; 8] = [
        "--files",
        "--chat",
        "--patch",
        "-p",
        "--dry-run",
        "--keep",
        "--merge",
        "--overwrite",
    ];
    !words
        .iter()
        .any(|word| OTHERWISE.iter().any(|it| word == it))
}

/// Returns the value of an option.
fn value_of(option: &str, words: &[OsString]) -> Option<OsString> {
    let mut words = words.iter().take_while(|word| *word != "--");
    while let Some(word) = words.next() {
        if word == option {
            return words.next().cloned();
        }
        let joined = word.to_str().and_then(|word| word.strip_prefix(option));
        if let Some(value) = joined.and_then(|rest| rest.strip_prefix('=')) {
            return Some(value.into());
        }
    }
    None
}

/// Returns the arguments that were picked, none if the user cancelled; `None` if the terminal
/// cannot show a picker.
fn picked(
    what: What,
    verb: &str,
    library: &Arc<StoreLibrary>,
    is_plain: bool,
) -> Result<Option<Vec<OsString>>> {
    let shown = Arc::clone(library) as Arc<dyn Library>;
    let choices: Arc<dyn Choices> = match what {
        What::Session => Arc::new(Sessions(shown)),
        What::Match => Arc::new(Matches(shown)),
        What::Point => Arc::new(Points {
            library: shown,
            except: NOW,
            preview: match verb {
                "rewind" if is_plain => PointPreview::Rewind,
                "restore" => PointPreview::Differences,
                _ => PointPreview::Row,
            },
        }),
    };
    let title = match what {
        What::Session | What::Match => format!("{verb}:"),
        What::Point => format!("{verb} as it was after:"),
    };
    let Ok(chosen) = pick(&title, choices, None) else {
        return Ok(None);
    };
    let Some(chosen) = chosen else {
        return Ok(Some(Vec::new()));
    };
    let arguments = match (what, verb) {
        (What::Match, _) => match chosen.split_once(' ') {
            Some((place, trail)) => vec![place.into(), "--trail".into(), trail.into()],
            None => vec![chosen.into()],
        },
        (What::Point, "restore" | "cat") => {
            return with_file(verb, chosen, library, is_plain).map(Some);
        }
        (What::Point, "rewind") if is_plain => {
            let plan = rewind_plan(library.as_ref(), &chosen);
            return with_decision(verb, plan, vec![chosen.into()]).map(Some);
        }
        _ => vec![chosen.into()],
    };
    Ok(Some(arguments))
}

/// Picks a file at a point, too: both are missing.
fn with_file(
    verb: &str,
    point: String,
    library: &Arc<StoreLibrary>,
    is_plain: bool,
) -> Result<Vec<OsString>> {
    let files = Files {
        library: Arc::clone(library) as Arc<dyn Library>,
        point: point.clone(),
        only_changed: verb == "restore",
    };
    let chosen = pick_next(&format!("{verb} file:"), Arc::new(files))?;
    let Some((path, root)) = chosen.zip(library.root.as_ref()) else {
        return Ok(Vec::new());
    };
    let arguments = vec![point.clone().into(), root.join(&path).into_os_string()];
    match verb == "restore" && is_plain {
        true => with_decision(
            verb,
            restore_plan(library.as_ref(), &point, &path),
            arguments,
        ),
        false => Ok(arguments),
    }
}

/// Picks what happens to files with other changes, too, if there are any. The command itself says
/// why something cannot be planned.
fn with_decision(verb: &str, plan: Asked<Plan>, arguments: Vec<OsString>) -> Result<Vec<OsString>> {
    let Some(plan) = plan.ok().filter(|plan| !plan.choices.is_empty()) else {
        return Ok(arguments);
    };
    let title = format!("{verb}: files with other changes:");
    let chosen = pick_next(&title, Arc::new(Ways(plan)))?;
    let chosen = chosen.map(|way| [vec![format!("--{way}").into()], arguments].concat());
    Ok(chosen.unwrap_or_default())
}

/// Picks once more, on a terminal that showed a picker before.
fn pick_next(title: &str, choices: Arc<dyn Choices>) -> Result<Option<String>> {
    let chosen = pick(title, choices, None);
    chosen.map_err(|error| CommandError::io("cannot use the terminal", None, &error))
}

/// Becomes the program with the arguments that were missing. Returns only if that fails.
fn run_again(what: What, mut words: Vec<OsString>, picked: &[OsString]) -> CommandError {
    if what == What::Match {
        // A match is opened, with the options that every verb has.
        let globals = ["--store", "--color"];
        let kept = globals.into_iter().filter_map(|option| {
            let value = value_of(option, &words)?;
            Some([option.into(), value])
        });
        words = kept.flatten().chain(["show".into()]).collect();
    }
    let program = env::current_exe();
    let error = match program {
        Ok(program) => Command::new(program).args(words).args(picked).exec(),
        Err(error) => error,
    };
    CommandError::io("cannot run the command again", None, &error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_an_option_is_found_in_both_spellings() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert_eq!(
            value_of("--store", &words("--store /a show")),
            Some("/a".into())
        );
        assert_eq!(
            value_of("--store", &words("show --store=/a b")),
            Some("/a".into())
        );
        assert_eq!(value_of("--store", &words("show -- --store /a")), None);
        assert_eq!(value_of("--store", &words("show --stored /a")), None);
    }

    #[test]
    fn a_workspace_that_is_named_is_noticed() {
        assert!(names_workspace(OsStr::new("--workspace=x")));
        assert!(names_workspace(OsStr::new("--workspace")));
        assert!(!names_workspace(OsStr::new("--without")));
    }
}
