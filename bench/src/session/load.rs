//! Files of version 1: loaded as a plain value, in a process of its own, so that its
//! memory can be measured; and continued in an old store, as its sessions' first trail.

use std::fmt;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use backtrail::{SessionId, Store, Transcript};
use serde_json::{Value, json};

use super::context;
use super::version1::{Form, write};
use crate::args::Args;
use crate::machine;
use crate::measure::{interleave, time};
use crate::parts::settle;
use crate::report::{Entry, Figure, Goal, Quantity, Unit};
use crate::{Error, Result};

/// The original's time for a file of 100 MB.
const ORIGINAL_SECONDS: f64 = 1.3;
const ORIGINAL_BYTES: f64 = 479.0 * 1_048_576.0;

pub(super) fn measure(args: &Args, dir: &Path) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for form in Form::ALL {
        let file = dir.join(form.name().replace(' ', "-") + ".jsonl");
        let messages = write(&file, form, args.pick(100_000_000, 10_000_000))?;
        settle(dir)?;
        let subject = Subject {
            bytes: fs::metadata(&file)?.len() as f64,
            file,
            form,
            messages,
        };
        entries.extend(subject.measure(args)?);
        entries.extend(subject.context(args)?);
    }
    Ok(entries)
}

struct Subject {
    file: PathBuf,
    form: Form,
    bytes: f64,
    messages: u64,
}

impl Subject {
    fn measure(&self, args: &Args) -> Result<Vec<Entry>> {
        let mut most = 0.0_f64;
        let mut load = || self.in_child(&mut most);
        let lanes: [crate::measure::Lane<'_>; 1] = [&mut load];
        let [took] = interleave(args.pick(7, 3), lanes)?;
        let original = "the original";
        let seconds = ORIGINAL_SECONDS * self.bytes / 100e6;
        let bytes = ORIGINAL_BYTES * self.bytes / 100e6;
        Ok(vec![
            Entry::Figure(Figure {
                name: self.named("load as a value"),
                ours: Quantity::of(&took, Unit::Seconds),
                baseline: Some((original, Quantity::single(seconds, Unit::Seconds))),
                goal: Goal::Open,
            }),
            Entry::Figure(Figure {
                name: self.named("load as a value, memory"),
                ours: Quantity::single(most, Unit::Bytes),
                baseline: Some((original, Quantity::single(bytes, Unit::Bytes))),
                goal: Goal::AtMost(1.3 * self.bytes),
            }),
        ])
    }

    /// Compares continuing from this file with continuing from a tenth of it.
    fn context(&self, args: &Args) -> Result<Vec<Entry>> {
        let tenth = self.file.with_extension("tenth.jsonl");
        write(&tenth, self.form, (self.bytes / 10.0) as u64)?;
        let (long, long_id) = compacted(&self.file)?;
        let (short, short_id) = compacted(&tenth)?;
        let times = context::rendered(args.pick(20, 5), (&long, &long_id), (&short, &short_id))?;
        let name = self.named("context, compacted since");
        Ok(context::figures(&name, "of a tenth", times))
    }

    fn named(&self, what: impl fmt::Display) -> String {
        let size = self.bytes / 1e6;
        format!("version 1, {size:.0} MB, {}: {what}", self.form.name())
    }

    fn in_child(&self, most: &mut f64) -> Result<Duration> {
        let output = Command::new(std::env::current_exe()?)
            .arg("load-child")
            .arg(&self.file)
            .output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(Error::from(said));
        }
        let told: Value = serde_json::from_slice(&output.stdout)?;
        let number = |name: &str| told[name].as_f64().ok_or("the child told no number");
        if told["messages"].as_u64() != Some(self.messages) {
            return Err(format!("{told} of {} messages", self.messages).into());
        }
        *most = most.max(number("memory")?);
        Ok(Duration::from_secs_f64(number("seconds")?))
    }
}

/// Makes an old session of a file, as its first trail, and continues it behind a
/// compaction; returns the store and the session.
fn compacted(file: &Path) -> Result<(PathBuf, SessionId)> {
    let store = file.with_extension("kept");
    Store::open_or_create(&store)?;
    let id: SessionId = "old".parse()?;
    let dir = store.join("sessions/old");
    fs::create_dir_all(&dir)?;
    fs::copy(file, dir.join("0000.jsonl"))?;
    context::compact(&store, &id)?;
    Ok((store, id))
}

/// Loads a file and returns how long that took, how much memory it took beside what the
/// process had anyway, and how many messages it has.
pub(crate) fn child(file: &Path) -> Result<Value> {
    let before = machine::peak_memory(std::process::id())?;
    let mut messages = 0;
    let took = time(|| {
        let loaded = black_box(Transcript::load_from_path(file)?);
        messages = loaded.messages().len() as u64;
        Ok(())
    })?;
    let memory = machine::peak_memory(std::process::id())? - before;
    Ok(json!({"seconds": took.as_secs_f64(), "memory": memory, "messages": messages}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_of_either_form_is_loaded() {
        let dir = tempfile::tempdir().unwrap();
        for form in Form::ALL {
            let file = dir.path().join(form.name());
            let messages = write(&file, form, 300_000).unwrap();
            assert!(messages > 100);
            assert_eq!(child(&file).unwrap()["messages"], messages, "{form:?}");
            let loaded = Transcript::load_from_path(&file).unwrap();
            assert!(loaded.skipped().is_empty());
            let (store, id) = compacted(&file).unwrap();
            context::render(&store, &id).unwrap();
        }
    }
}
