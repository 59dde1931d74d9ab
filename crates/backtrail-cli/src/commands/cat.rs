//! `backtrail cat`: prints a file as it was.

use std::io::{self, IsTerminal, Write};
use std::path::{Component, Path, PathBuf};

use backtrail::snapshot::FileKind;
use backtrail::{Point, Snapshot};

use super::Answer;
use super::recovery::Finish;
use super::workspace::WorkspaceArgs;
use crate::error::{CommandError, Result};
use crate::shell::quote_path;
use crate::text::{count, visible};
use crate::ui::Ui;

/// Print a file as it was at a point
#[derive(Debug, clap::Args)]
pub(crate) struct CatArgs {
    /// A checkpoint or record id, a label, last, last~N or REF:SEQ (see: help diff)
    #[arg(value_name = "POINT")]
    point: Point,

    /// The file, relative to the current directory; it need not exist now
    #[arg(value_name = "PATH")]
    path: PathBuf,

    #[command(flatten)]
    here: WorkspaceArgs,
}

pub(crate) fn run(args: &CatArgs, ui: &Ui) -> Result<Answer> {
    let workspace = args.here.require(ui, Finish::ToRead)?;
    let snapshot = args.here.resolve(&workspace, &args.point, ui)?.snapshot()?;
    let path = within(workspace.root(), &args.path)?;
    let state = snapshot.entry(&path)?;
    match state.as_ref().map(|state| state.kind) {
        Some(FileKind::File | FileKind::Link) => {}
        Some(_) => {
            let what = format!("{} was a directory at {}", args.path.display(), args.point);
            let error = CommandError::invalid(what);
            return Err(match files_in(&snapshot, &path)? {
                Some(files) => error.hint(format!("it contains: {files}")),
                None => error,
            });
        }
        None => return Err(not_there(&snapshot, &path, args, ui)),
    }
    print(&snapshot, &path)?;
    Ok(Answer::Done)
}

/// Prints the bytes as they are; on a terminal, without escapes.
fn print(snapshot: &Snapshot, path: &Path) -> Result<()> {
    let mut out = io::stdout().lock();
    if io::stdout().is_terminal() {
        let text = read_text(snapshot, path);
        let text = text.map_err(|error| match error.kind {
            "invalid" => error.hint("redirect it to a file: … > FILE"),
            _ => error,
        })?;
        out.write_all(text.as_bytes())?;
    } else {
        snapshot.write_to(path, &mut out)?;
    }
    Ok(out.flush()?)
}

/// Reads a file as text whose escapes are visible. Fails if it is binary.
pub(super) fn read_text(snapshot: &Snapshot, path: &Path) -> Result<String> {
    let bytes = snapshot.read(path)?.unwrap_or_default();
    if bytes.contains(&0) {
        let (name, bytes) = (path.display(), count(bytes.len(), "byte"));
        return Err(CommandError::invalid(format!("{name} is binary, {bytes}")));
    }
    Ok(visible(&String::from_utf8_lossy(&bytes)).into_owned())
}

/// Names the first few files in a directory; `None` if there are none.
fn files_in(snapshot: &Snapshot, dir: &Path) -> Result<Option<String>> {
    const NAMED: usize = 5;
    let mut names = Vec::new();
    for entry in snapshot.entries() {
        let (path, state) = entry?;
        let Ok(below) = path.strip_prefix(dir) else {
            continue;
        };
        if state.kind == FileKind::Dir {
            continue;
        }
        if names.len() == NAMED {
            names.push("…".to_owned());
            break;
        }
        names.push(quote_path(below));
    }
    Ok((!names.is_empty()).then(|| names.join(", ")))
}

fn not_there(snapshot: &Snapshot, path: &Path, args: &CatArgs, ui: &Ui) -> CommandError {
    let (shown, at) = (args.path.display(), &args.point);
    missing(snapshot, path, &format!("{shown} existed at {at}"))
        .unwrap_or_else(|| CommandError::not_found(format!("{shown} did not exist at {at}")))
        .hint(args.here.when_changed(&args.path, ui))
}

/// Returns the error of a path that was skipped; `existed` says when it was there. `None` if it
/// was not skipped.
pub(super) fn missing(snapshot: &Snapshot, path: &Path, existed: &str) -> Option<CommandError> {
    let reason = snapshot.skipped_reason(path).ok().flatten()?;
    let what = format!("{existed} but was skipped: {reason}");
    Some(CommandError::not_found(what))
}

/// Returns paths relative to the workspace's root.
pub(crate) fn within_all(root: &Path, paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    paths.iter().map(|path| within(root, path)).collect()
}

/// Returns a path relative to the workspace's root. It need not exist.
pub(super) fn within(root: &Path, path: &Path) -> Result<PathBuf> {
    let outside = || {
        let what = format!(
            "{} is outside the workspace {}",
            path.display(),
            root.display()
        );
        CommandError::invalid(what).hint("paths are relative to the current directory")
    };
    let absolute = if path.is_absolute() {
        path.to_owned()
    } else {
        let here = std::env::current_dir().and_then(|here| here.canonicalize());
        here.unwrap_or_else(|_| root.to_owned()).join(path)
    };
    let mut clean = PathBuf::new();
    for part in absolute.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            part => clean.push(part),
        }
    }
    if let Ok(below) = clean.strip_prefix(root) {
        return Ok(below.to_owned());
    }
    // A symbolic link on the way, such as /tmp on some systems. Deleted directories were none.
    let mut ways = clean.ancestors().skip(1);
    let real = ways.find_map(|dir| Some((dir, dir.canonicalize().ok()?)));
    let real = real.and_then(|(dir, real)| Some(real.join(clean.strip_prefix(dir).ok()?)));
    let below = real.and_then(|real| real.strip_prefix(root).ok().map(Path::to_owned));
    below.ok_or_else(outside)
}
