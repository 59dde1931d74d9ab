//! Choosing hunks on a terminal, as with `git checkout -p`.

use std::collections::{BTreeSet, VecDeque};
use std::io::{self, BufRead, Write};
use std::ops::Range;
use std::path::PathBuf;

use backtrail::rewind::{Choice, Part, PathOutcomeKind};
use backtrail::{Outcome, RewindPlan};

use super::MoveRequest;
use super::conflict_text::changed_by;
use super::signal_guard::SignalGuard;
use crate::commands::diff::paint;
use crate::error::{CommandError, Result};
use crate::layout::{BOLD, DIM};
use crate::text::visible_path;
use crate::ui::Ui;

/// How many equal lines are shown around what differs.
const CONTEXT: usize = 3;

/// Refuses `--patch` if there is no terminal to ask on.
pub(in crate::commands) fn check_patch(patch: bool, ui: &Ui) -> Result<()> {
    if !patch || ui.can_ask() {
        return Ok(());
    }
    let program = ui.program();
    Err(CommandError::invalid("--patch needs a terminal")
        .hint(format!("see the hunks: {program} diff POINT"))
        .hint(format!(
            "restore whole files: {program} restore POINT PATHS"
        )))
}

impl MoveRequest<'_> {
    /// Shows what differs, asks, and does what was chosen. `None` if that is nothing.
    pub(super) fn chosen_outcome(&self) -> backtrail::Result<Option<Outcome>> {
        let progress = SignalGuard::around(None);
        let options = self.how.add_damaged(self.options.clone());
        let options = options.in_parts().progress(progress);
        let plan = self.movement.plan(options)?;
        let plan = plan.expect("a point is always something to go to");
        let parts = plan.parts()?;
        if parts.is_empty() {
            return Ok(Some(plan.outcome().clone()));
        }
        let mut screen = self.ui.dialogue();
        // A terminal that is gone chooses nothing.
        match ask(&parts, &mut io::stdin().lock(), &mut screen) {
            Ok(chosen) if !chosen.is_empty() => {
                plan.choose(chosen).and_then(RewindPlan::apply).map(Some)
            }
            _ => Ok(None),
        }
    }
}

/// One question about a part.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Question {
    /// All of it, or nothing.
    Whole,
    Mode(u32, u32),
    Hunk(Range<usize>),
}

/// What was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reply {
    Yes,
    No,
    /// Yes to this one and the rest of the file.
    All,
    /// No to this one and the rest of the file.
    None,
    Split,
    /// No to this one and everything after it.
    Quit,
}

/// What was chosen of one part so far.
#[derive(Debug, Default)]
struct Chosen {
    whole: bool,
    mode: bool,
    pieces: BTreeSet<usize>,
}

/// Asks about every part, until the user quits: what was chosen before counts.
fn ask(
    parts: &[Part],
    keyboard: &mut impl BufRead,
    screen: &mut impl Write,
) -> io::Result<Vec<(PathBuf, Choice)>> {
    let mut all = Vec::new();
    for part in parts {
        let (chosen, quits) = ask_part(part, keyboard, screen)?;
        let choice = chosen.choice(part);
        all.extend(choice.map(|choice| (part.path().to_owned(), choice)));
        if quits {
            break;
        }
    }
    Ok(all)
}

/// Asks about one part. Returns what was chosen, and whether the user quits.
fn ask_part(
    part: &Part,
    keyboard: &mut impl BufRead,
    screen: &mut impl Write,
) -> io::Result<(Chosen, bool)> {
    write_heading(part, screen)?;
    let mut ahead = questions(part);
    let mut chosen = Chosen::default();
    let mut number = 0;
    while let Some(question) = ahead.pop_front() {
        number += 1;
        question.show(part, screen)?;
        let count = (number, number + ahead.len());
        match ask_one(&question, part, count, keyboard, screen)? {
            Reply::Quit => return Ok((chosen, true)),
            Reply::Yes => chosen.take(&question),
            Reply::No => {}
            Reply::All => {
                chosen.take(&question);
                ahead.iter().for_each(|question| chosen.take(question));
                break;
            }
            Reply::None => break,
            Reply::Split => {
                number -= 1;
                if let Question::Hunk(pieces) = question {
                    for piece in pieces.rev() {
                        ahead.push_front(Question::Hunk(piece..piece + 1));
                    }
                }
            }
        }
    }
    Ok((chosen, false))
}

fn questions(part: &Part) -> VecDeque<Question> {
    if !part.is_in_pieces() {
        return VecDeque::from([Question::Whole]);
    }
    let mode = part.modes().map(|(now, then)| Question::Mode(now, then));
    let hunks = part.groups(CONTEXT).into_iter().map(Question::Hunk);
    mode.into_iter().chain(hunks).collect()
}

fn write_heading(part: &Part, screen: &mut impl Write) -> io::Result<()> {
    let path = visible_path(part.path());
    let also = part.conflict().map_or_else(String::new, |conflict| {
        format!("  {DIM}(also changed by {}){DIM:#}", changed_by(conflict))
    });
    writeln!(screen, "{BOLD}{path}{BOLD:#}{also}")
}

/// Asks until an answer fits. The end of the input is an error.
fn ask_one(
    question: &Question,
    part: &Part,
    (number, count): (usize, usize),
    keyboard: &mut impl BufRead,
    screen: &mut impl Write,
) -> io::Result<Reply> {
    loop {
        let (words, keys) = (question.words(part), question.keys());
        write!(
            screen,
            "{BOLD}({number}/{count}) {words} [{keys}]?{BOLD:#} "
        )?;
        screen.flush()?;
        let mut answer = String::new();
        if keyboard.read_line(&mut answer)? == 0 {
            writeln!(screen)?;
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let reply = match answer.trim() {
            "y" | "Y" => Reply::Yes,
            "n" | "N" => Reply::No,
            "q" | "Q" => Reply::Quit,
            "a" | "A" => Reply::All,
            "d" | "D" => Reply::None,
            "s" | "S" if question.splits() => Reply::Split,
            _ => {
                write_help(question, screen)?;
                continue;
            }
        };
        return Ok(reply);
    }
}

fn write_help(question: &Question, screen: &mut impl Write) -> io::Result<()> {
    writeln!(screen, "y - restore this")?;
    writeln!(screen, "n - leave this as it is")?;
    writeln!(
        screen,
        "q - quit: restore what you chose, leave this and the rest as they are"
    )?;
    writeln!(screen, "Ctrl-C - quit without changing anything")?;
    writeln!(screen, "a - restore this and the rest of this file")?;
    writeln!(
        screen,
        "d - leave this and the rest of this file as they are"
    )?;
    if question.splits() {
        writeln!(screen, "s - split this hunk into smaller ones")?;
    }
    writeln!(screen, "? - show this help")
}

impl Question {
    /// Returns whether it is about a hunk of several pieces.
    fn splits(&self) -> bool {
        matches!(self, Self::Hunk(pieces) if pieces.len() > 1)
    }

    fn keys(&self) -> &'static str {
        match self.splits() {
            true => "y,n,q,a,d,s,?",
            false => "y,n,q,a,d,?",
        }
    }

    fn words(&self, part: &Part) -> String {
        let it = if part.is_dir() { "directory" } else { "file" };
        match (self, part.kind()) {
            (Self::Hunk(_), _) => "Restore this hunk".to_owned(),
            (Self::Mode(now, then), _) => format!("Restore the mode, {now:03o} to {then:03o}"),
            (Self::Whole, PathOutcomeKind::Create) => format!("Restore this deleted {it}"),
            (Self::Whole, PathOutcomeKind::Delete) => format!("Delete this {it}"),
            (Self::Whole, PathOutcomeKind::Mode) => match part.modes() {
                Some((now, then)) => format!("Restore the mode, {now:03o} to {then:03o}"),
                None => "Restore the mode".to_owned(),
            },
            (Self::Whole, _) => format!("Restore this whole {it}"),
        }
    }

    /// Shows the hunk.
    fn show(&self, part: &Part, screen: &mut impl Write) -> io::Result<()> {
        let pieces = match self {
            Self::Mode(..) => return Ok(()),
            Self::Hunk(pieces) => pieces.clone(),
            Self::Whole if part.pieces() > 0 => 0..part.pieces(),
            Self::Whole => return Ok(()),
        };
        paint(&part.shown(pieces, CONTEXT), screen)
    }
}

impl Chosen {
    fn take(&mut self, question: &Question) {
        match question {
            Question::Whole => self.whole = true,
            Question::Mode(..) => self.mode = true,
            Question::Hunk(pieces) => self.pieces.extend(pieces.clone()),
        }
    }

    /// Returns the choice; `None` if nothing was chosen.
    fn choice(self, part: &Part) -> Option<Choice> {
        let all = self.pieces.len() == part.pieces() && (self.mode || part.modes().is_none());
        if self.whole || (all && !self.pieces.is_empty()) {
            return Some(Choice::Whole);
        }
        let some = self.mode || !self.pieces.is_empty();
        some.then_some(Choice::Pieces {
            pieces: self.pieces,
            mode: self.mode,
        })
    }
}
