//! Files of version 1, imported into a store and loaded as plain values. Each runs in a
//! process of its own, so that its memory can be measured.

use std::fmt;
use std::fs::{self, File};
use std::hint::black_box;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;
use std::time::Duration;

use backtrail::{SessionId, Store, StoreOptions, Transcript};
use serde_json::{Value, json};

use super::context;
use super::storage::{CountedStorage, Syncs};
use super::version1::{Form, write};
use crate::args::Args;
use crate::machine;
use crate::measure::{Samples, interleave, time};
use crate::parts::settle;
use crate::report::{Entry, Figure, Goal, Quantity, Unit};
use crate::{Error, Result};

/// The original's time for a file of 100 MB.
const ORIGINAL_SECONDS: f64 = 1.3;
const ORIGINAL_BYTES: f64 = 479.0 * 1_048_576.0;

/// How a file is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Import,
    ImportUnsynced,
    Transcript,
}

impl Way {
    pub(crate) const ALL: [Self; 3] = [Self::Import, Self::ImportUnsynced, Self::Transcript];

    fn name(self) -> &'static str {
        match self {
            Self::Import => "import",
            Self::ImportUnsynced => "import-unsynced",
            Self::Transcript => "transcript",
        }
    }

    /// Returns its name in the table.
    fn label(self) -> &'static str {
        match self {
            Self::Import => "import",
            Self::ImportUnsynced => "import, no syncs",
            Self::Transcript => "load as a value",
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Way {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let way = Self::ALL.into_iter().find(|way| way.name() == name);
        way.ok_or_else(|| format!("no way to load is called {name}").into())
    }
}

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
        let mut most = [0.0_f64; 3];
        let [import, unsynced, transcript] = &mut most;
        let mut import = || self.in_child(Way::Import, import);
        let mut unsynced = || self.in_child(Way::ImportUnsynced, unsynced);
        let mut transcript = || self.in_child(Way::Transcript, transcript);
        let mut floor = || self.copy();
        let lanes: [crate::measure::Lane<'_>; 4] =
            [&mut floor, &mut import, &mut unsynced, &mut transcript];
        let [floor, import, unsynced, transcript] = interleave(args.pick(7, 3), lanes)?;
        let floor = ("copy + fdatasync", &floor);
        Ok(vec![
            self.speed(Way::Import, &import, floor, Goal::Open),
            self.speed(Way::ImportUnsynced, &unsynced, floor, Goal::AtLeast(200e6)),
            self.time_beside_the_original(Way::ImportUnsynced, &unsynced),
            self.time_beside_the_original(Way::Transcript, &transcript),
            self.memory(Way::Import, most[0].max(most[1])),
            self.memory(Way::Transcript, most[2]),
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

    fn speed(
        &self,
        way: Way,
        took: &Samples,
        (what, floor): (&'static str, &Samples),
        goal: Goal,
    ) -> Entry {
        let rate = |samples: &Samples| {
            Quantity::of(&samples.map(|took| self.bytes / took), Unit::BytesPerSecond)
        };
        Entry::Figure(Figure {
            name: self.named(way.label()),
            ours: rate(took),
            baseline: Some((what, rate(floor))),
            goal,
        })
    }

    fn time_beside_the_original(&self, way: Way, took: &Samples) -> Entry {
        let theirs = ORIGINAL_SECONDS * self.bytes / 100e6;
        Entry::Figure(Figure {
            name: self.named(way.label()),
            ours: Quantity::of(took, Unit::Seconds),
            baseline: Some(("the original", Quantity::single(theirs, Unit::Seconds))),
            goal: Goal::Open,
        })
    }

    fn memory(&self, way: Way, most: f64) -> Entry {
        let theirs = ORIGINAL_BYTES * self.bytes / 100e6;
        Entry::Figure(Figure {
            name: self.named(format!("{}, memory", way.label())),
            ours: Quantity::single(most, Unit::Bytes),
            baseline: Some(("the original", Quantity::single(theirs, Unit::Bytes))),
            goal: Goal::AtMost(1.3 * self.bytes),
        })
    }

    /// Copies the file, the least that an import must do.
    fn copy(&self) -> Result<Duration> {
        let to = self.file.with_extension("copy");
        let took = time(|| {
            let mut out = File::create_new(&to)?;
            io::copy(&mut File::open(&self.file)?, &mut out)?;
            Ok(out.sync_data()?)
        })?;
        fs::remove_file(to)?;
        Ok(took)
    }

    fn in_child(&self, way: Way, most: &mut f64) -> Result<Duration> {
        let output = Command::new(std::env::current_exe()?)
            .args(["load-child", way.name()])
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

/// Imports a file and continues it after a compaction; returns the store and the session.
fn compacted(file: &Path) -> Result<(PathBuf, SessionId)> {
    let store = file.with_extension("kept");
    let id = open(&store, Way::ImportUnsynced)?.import(file)?.id;
    context::compact(&store, &id)?;
    Ok((store, id))
}

/// Imports a file and reports the time, the memory beyond the process's own, and the
/// number of messages.
pub(crate) fn child(way: Way, file: &Path) -> Result<Value> {
    let before = machine::peak_memory(std::process::id())?;
    let store = file.with_extension("store");
    let mut messages = 0;
    let took = match way {
        Way::Import | Way::ImportUnsynced => {
            let store = open(&store, way)?;
            time(|| {
                messages = store.import(file)?.messages;
                Ok(())
            })?
        }
        Way::Transcript => time(|| {
            let loaded = black_box(Transcript::load_from_path(file)?);
            messages = loaded.messages().len() as u64;
            Ok(())
        })?,
    };
    let memory = machine::peak_memory(std::process::id())? - before;
    if store.exists() {
        fs::remove_dir_all(store)?;
    }
    Ok(json!({"seconds": took.as_secs_f64(), "memory": memory, "messages": messages}))
}

fn open(store: &Path, way: Way) -> Result<Store> {
    let syncs = match way {
        Way::ImportUnsynced => Syncs::Skipped,
        _ => Syncs::Made,
    };
    let options = StoreOptions::new().storage(CountedStorage::new(syncs));
    Ok(options.open_or_create(store)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_of_either_form_arrives_whichever_way() {
        let dir = tempfile::tempdir().unwrap();
        for form in Form::ALL {
            let file = dir.path().join(form.name());
            let messages = write(&file, form, 300_000).unwrap();
            assert!(messages > 100);
            for way in Way::ALL {
                let told = child(way, &file).unwrap();
                assert_eq!(told["messages"], messages, "{form:?} {way}");
            }
            let loaded = Transcript::load_from_path(&file).unwrap();
            assert!(loaded.skipped().is_empty());
            let (store, id) = compacted(&file).unwrap();
            context::render(&store, &id).unwrap();
        }
    }
}
