//! Which turns of a session are shown.

use std::str::FromStr;

use crate::commands::conversation::Survey;
use crate::error::{CommandError, Result};
use crate::text::count;

impl Survey {
    /// Returns the records of some turns.
    pub(super) fn select(&self, turns: &Turns) -> Result<Selection> {
        let from = self.number(turns.from)?;
        let to = self.number(turns.to)?;
        if from > to {
            let what = format!("turn {to} comes before turn {from}");
            let error = CommandError::invalid(what);
            return Err(error.hint("write the earlier one first: --turn 2..4"));
        }
        Ok(self.selection(from, to))
    }

    /// Returns the records of the turn that a record is in.
    pub(super) fn around(&self, seq: u64) -> Selection {
        let turn = self.turns.partition_point(|start| *start <= seq);
        self.selection(turn, turn)
    }

    fn selection(&self, from: usize, to: usize) -> Selection {
        Selection {
            before: from.saturating_sub(1) as u64,
            first: from.checked_sub(1).map_or(0, |n| self.turns[n]),
            last: self.turns.get(to).map_or(u64::MAX, |next| next - 1),
        }
    }

    /// Returns the number of a turn that is counted from either end; 0 is what comes
    /// before the first.
    fn number(&self, turn: i64) -> Result<usize> {
        let turns = self.turns.len();
        let back = |n: u64| (turns + 1).checked_sub(usize::try_from(n).unwrap_or(usize::MAX));
        let number = match turn {
            i64::MAX => Some(turns),
            n if n < 0 => back(n.unsigned_abs()).filter(|n| *n > 0),
            n => usize::try_from(n).ok().filter(|n| *n <= turns),
        };
        number.ok_or_else(|| {
            let what = format!("no turn {turn}: the session has {}", count(turns, "turn"));
            CommandError::not_found(what).hint("the last turn is --turn -1")
        })
    }
}

/// Some records of a session.
#[derive(Debug, Clone, Copy)]
pub(super) struct Selection {
    /// How many turns come before them.
    pub(super) before: u64,
    pub(super) first: u64,
    pub(super) last: u64,
}

/// Turns as they are given: `5`, `2..4`, `3..`, `-1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turns {
    from: i64,
    /// The greatest number there is means the last one.
    to: i64,
}

impl FromStr for Turns {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str, default: i64| match text.trim() {
            "" => Ok(default),
            text => text.parse::<i64>().map_err(|_| {
                "expected a number or a range: 5, 2..4, 3.., or -1 for the last turn".to_owned()
            }),
        };
        match text.split_once("..") {
            Some((from, to)) => Ok(Self {
                from: number(from, 1)?,
                to: number(to, i64::MAX)?,
            }),
            None if text.trim().is_empty() => Err("which turn? 5, 2..4 or -1".to_owned()),
            None => {
                let turn = number(text, 0)?;
                Ok(Self {
                    from: turn,
                    to: turn,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_counted_from_either_end() {
        let survey = Survey {
            turns: vec![2, 6, 9],
            ..Survey::default()
        };
        let records = |text: &str| {
            let found = survey.select(&text.parse().unwrap());
            found
                .map(|it| (it.before, it.first, it.last))
                .map_err(|error| error.to_string())
        };
        assert_eq!(records("1"), Ok((0, 2, 5)));
        assert_eq!(records("3"), Ok((2, 9, u64::MAX)));
        assert_eq!(records("-1"), records("3"));
        assert_eq!(records("-2..-1"), Ok((1, 6, u64::MAX)));
        assert_eq!(records("2.."), records("-2..-1"));
        assert_eq!(records("..2"), Ok((0, 2, 8)));
        assert_eq!(records("0"), Ok((0, 0, 1)), "what comes before the first");
        for wrong in [
            "4",
            "-4",
            "2..9",
            "3..1",
            "9999999999",
            "-9223372036854775808",
        ] {
            assert!(records(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "x", "1..x", "..-", "1,2"] {
            assert!(wrong.parse::<Turns>().is_err(), "{wrong}");
        }
        assert_eq!((survey.around(7).first, survey.around(7).last), (6, 8));
        assert_eq!(survey.around(6).first, 6, "a prompt is in its own turn");
        assert_eq!((survey.around(1).first, survey.around(1).last), (0, 1));
    }
}
