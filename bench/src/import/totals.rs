//! The usage of every sample by itself, compared with ccusage. Every difference must be
//! explained in `docs/ccusage.md`, to the token.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::agents::{AGENTS, Agent};
use super::home::Home;
use super::samples::{self, Sample};
use super::{figure, programs};
use crate::Result;
use crate::args::Args;
use crate::command;
use crate::parts::Shared;
use crate::report::{Entry, Goal, Quantity, Unit};
use crate::store::process::run;

/// Where differences are explained.
const EXPLAINED: &str = include_str!("../../../docs/ccusage.md");

/// Token counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tokens {
    input: i64,
    output: i64,
    cache_write: i64,
    cache_read: i64,
}

impl Tokens {
    /// Parses the output of `stats --json`.
    pub(super) fn ours(told: &Value) -> Self {
        let count = |name: &str| told["totals"][name].as_i64().unwrap_or(0);
        Self {
            input: count("input_tokens"),
            output: count("output_tokens"),
            cache_write: count("cache_write_tokens"),
            cache_read: count("cache_read_tokens"),
        }
    }

    /// Parses the output of ccusage, which omits tokens if there is nothing to report.
    pub(super) fn ccusage(told: &Value) -> Self {
        let count = |name: &str| told["totals"][name].as_i64().unwrap_or(0);
        Self {
            input: count("inputTokens"),
            output: count("outputTokens"),
            cache_write: count("cacheCreationTokens"),
            cache_read: count("cacheReadTokens"),
        }
    }

    fn zip(self, other: Self, join: impl Fn(i64, i64) -> i64) -> Self {
        Self {
            input: join(self.input, other.input),
            output: join(self.output, other.output),
            cache_write: join(self.cache_write, other.cache_write),
            cache_read: join(self.cache_read, other.cache_read),
        }
    }

    /// Returns a figure for each kind of token, compared with the other's.
    pub(super) fn beside(&self, theirs: &Self, name: &str) -> Vec<Entry> {
        let one = |what: &str, ours: i64, theirs: i64| {
            let count = |n: i64| Quantity::single(n as f64, Unit::Count);
            let baseline = Some(("ccusage", count(theirs)));
            figure(format!("{name}: {what}"), count(ours), baseline, Goal::Open)
        };
        vec![
            one("input", self.input, theirs.input),
            one("output", self.output, theirs.output),
            one("written to the cache", self.cache_write, theirs.cache_write),
            one("read from the cache", self.cache_read, theirs.cache_read),
        ]
    }
}

impl std::fmt::Display for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            input,
            output,
            cache_write,
            cache_read,
        } = self;
        write!(f, "{input}, {output}, {cache_write}, {cache_read}")
    }
}

pub(super) fn measure(args: &Args, dir: &Path, _shared: &Shared) -> Result<Vec<Entry>> {
    let skipped = |why: &str| Ok(vec![Entry::skipped("totals", why)]);
    let ours = match command::find(args) {
        Ok(bin) => bin,
        Err(why) => return skipped(&why),
    };
    let ccusage = match programs::ccusage() {
        Ok(bin) => bin,
        Err(why) => return skipped(&why),
    };
    let Some(samples) = samples::root() else {
        return skipped("there are no samples here");
    };
    let mut entries = Vec::new();
    for agent in &AGENTS {
        let programs = Programs {
            ours: &ours,
            ccusage: &ccusage,
        };
        entries.extend(compare(&programs, agent, &samples, &dir.join(agent.name))?);
    }
    Ok(entries)
}

struct Programs<'p> {
    ours: &'p Path,
    ccusage: &'p Path,
}

/// Compares the usage of all samples of an agent.
fn compare(
    programs: &Programs<'_>,
    agent: &Agent,
    samples: &Path,
    dir: &Path,
) -> Result<Vec<Entry>> {
    let found = samples::of(agent, samples)?;
    let mut sums = [Tokens::default(); 2];
    let (mut equal, mut explained, mut open) = (0, 0, 0);
    for (n, sample) in found.iter().enumerate() {
        let [ours, theirs] = used(programs, agent, sample, &dir.join(n.to_string()))?;
        sums[0] = sums[0].zip(ours, |sum, n| sum + n);
        sums[1] = sums[1].zip(theirs, |sum, n| sum + n);
        let name = &sample.name;
        let more = ours.zip(theirs, |ours, theirs| ours - theirs);
        if ours == theirs {
            equal += 1;
        } else if is_explained(EXPLAINED, name, &more) {
            explained += 1;
        } else {
            open += 1;
            eprintln!("differs:   {name}: ours {ours}; ccusage {theirs}; more here: {more}");
        }
    }
    let name = format!(
        "totals, {}: {equal} of {} samples equal, {explained} explained, the others",
        agent.name,
        found.len()
    );
    let open = Quantity::single(f64::from(open), Unit::Count);
    let mut entries = vec![figure(name, open, None, Goal::AtMost(0.0))];
    let name = format!("tokens, {} samples", agent.name);
    entries.extend(sums[0].beside(&sums[1], &name));
    Ok(entries)
}

/// Returns whether a line names a sample and the exact difference.
fn is_explained(text: &str, name: &str, more: &Tokens) -> bool {
    let (name, more) = (format!("`{name}`"), format!("| {more} |"));
    text.lines()
        .any(|line| line.contains(&name) && line.contains(&more))
}

/// Returns the usage of a sample according to Backtrail and ccusage.
fn used(
    programs: &Programs<'_>,
    agent: &Agent,
    sample: &Sample,
    dir: &Path,
) -> Result<[Tokens; 2]> {
    copy(&sample.path, &dir.join(&sample.place))?;
    let home = Home::new(dir, dir.to_owned())?;
    // All that is found, and not this file, so that a sample that is not a session is skipped.
    run(&mut home.ours(programs.ours, &["import", "--from", agent.name]))?;
    let ours = run(&mut home.ours(programs.ours, &["stats", "--all"]))?;
    let theirs = run(&mut home.ccusage(programs.ccusage, agent))?;
    Ok([Tokens::ours(&ours.told), Tokens::ccusage(&theirs.told)])
}

/// Copies a file, or a directory with all that is in it, without its permissions: samples may be
/// read-only.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if !from.is_dir() {
        fs::create_dir_all(to.parent().ok_or("it has no directory")?)?;
        return Ok(fs::write(to, fs::read(from)?)?);
    }
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_explained_by_its_name_and_to_the_token() {
        let more = Tokens {
            input: 4,
            output: -5,
            cache_write: 0,
            cache_read: 7,
        };
        let text = "| `a/b.jsonl` | 4, -5, 0, 7 | because |";
        assert!(is_explained(text, "a/b.jsonl", &more));
        assert!(!is_explained(text, "b.jsonl", &more));
        assert!(!is_explained(text, "a/b.jsonl", &Tokens::default()));
    }
}
