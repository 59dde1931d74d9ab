//! Choosing hunks on a terminal, as with `git checkout -p`.

use std::collections::{BTreeSet, VecDeque};
use std::io::{self, BufRead, IsTerminal, Write};
use std::ops::Range;
use std::path::PathBuf;

use backtrail::RewindPlan;
use backtrail::rewind::{Choice, Part, PathOutcomeKind};

use super::MoveRequest;
use super::conflict_text::changed_by;
use super::signal_guard::SignalGuard;
use crate::commands::Answer;
use crate::commands::diff::paint;
use crate::error::{CommandError, Result};
use crate::text::visible_path;
use crate::ui::{BOLD, DIM, Ui, unwritable};

/// How many equal lines are shown around what differs.
const CONTEXT: usize = 3;

/// A move of which the user chooses the parts.
pub(in crate::commands) struct HunkRequest<'a>(pub(in crate::commands) &'a MoveRequest<'a>);

impl HunkRequest<'_> {
    /// Refuses if there is no terminal to ask on.
    pub(in crate::commands) fn can_ask(ui: &Ui) -> Result<()> {
        if !ui.json() && io::stdin().is_terminal() && io::stderr().is_terminal() {
            return Ok(());
        }
        let program = ui.program();
        Err(CommandError::invalid("--patch needs a terminal")
            .hint(format!("see the hunks: {program} diff POINT"))
            .hint(format!(
                "restore whole files: {program} restore POINT PATHS"
            )))
    }

    /// Shows what differs, asks, and does what was chosen.
    pub(in crate::commands) fn go(
        &self,
        wrong: impl FnOnce(backtrail::Error) -> CommandError,
    ) -> Result<Answer> {
        let plan = match self.plan() {
            Ok(plan) => plan,
            Err(error) => return Err(self.0.error(error, wrong)),
        };
        let parts = plan.parts().map_err(|error| self.0.failed(error))?;
        if parts.is_empty() {
            return self.0.report(plan.outcome());
        }
        let mut screen = self.0.ui.dialogue();
        let chosen = ask(&parts, &mut io::stdin().lock(), &mut screen);
        let chosen = chosen.map_err(|error| unwritable(&error))?;
        match chosen {
            Some(chosen) if !chosen.is_empty() => self.act(plan, chosen),
            _ => {
                self.0.ui.status("nothing was chosen; nothing was touched");
                Ok(Answer::No)
            }
        }
    }

    fn plan(&self) -> backtrail::Result<RewindPlan> {
        let progress = SignalGuard::around(None);
        let options = self.0.options.clone().in_parts().progress(progress);
        let plan = self.0.movement.plan(options)?;
        Ok(plan.expect("a point is always something to go to"))
    }

    fn act(&self, plan: RewindPlan, chosen: Vec<(PathBuf, Choice)>) -> Result<Answer> {
        let outcome = plan.choose(chosen).and_then(RewindPlan::apply);
        let outcome = outcome.map_err(|error| self.0.failed(error))?;
        self.0.report(&outcome)
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
    Quit,
}

/// What was chosen of one part so far.
#[derive(Debug, Default)]
struct Chosen {
    whole: bool,
    mode: bool,
    pieces: BTreeSet<usize>,
}

/// Asks about every part. `None` if the user quits.
fn ask(
    parts: &[Part],
    keyboard: &mut impl BufRead,
    screen: &mut impl Write,
) -> io::Result<Option<Vec<(PathBuf, Choice)>>> {
    let mut all = Vec::new();
    for part in parts {
        match ask_part(part, keyboard, screen)? {
            None => return Ok(None),
            Some(chosen) => all.extend(
                chosen
                    .choice(part)
                    .map(|choice| (part.path().to_owned(), choice)),
            ),
        }
    }
    Ok(Some(all))
}

fn ask_part(
    part: &Part,
    keyboard: &mut impl BufRead,
    screen: &mut impl Write,
) -> io::Result<Option<Chosen>> {
    write_heading(part, screen)?;
    let mut ahead = questions(part);
    let mut chosen = Chosen::default();
    let mut number = 0;
    while let Some(question) = ahead.pop_front() {
        number += 1;
        question.show(part, screen)?;
        let count = (number, number + ahead.len());
        match ask_one(&question, part, count, keyboard, screen)? {
            Reply::Quit => return Ok(None),
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
    Ok(Some(chosen))
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

/// Asks until an answer fits. The end of the input quits.
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
            return Ok(Reply::Quit);
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
    writeln!(screen, "q - quit without changing anything")?;
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
