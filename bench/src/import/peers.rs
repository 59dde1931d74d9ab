//! Many sessions: the first import, another one, and a usage report.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::corpus::{self, Corpus};
use super::home::Home;
use super::totals::Tokens;
use super::{agents, figure, programs};
use crate::Result;
use crate::args::Args;
use crate::command::{self, run_quietly};
use crate::measure::{Lane, Samples, interleave};
use crate::parts::{Shared, settle};
use crate::report::{Entry, Goal, Quantity, Unit};
use crate::store::process::{run, watch};

/// The memory limit of an import.
const MEMORY: f64 = (300_u32 << 20) as f64;
/// The time limit if nothing is new.
const AGAIN: f64 = 0.150;

pub(super) fn measure(args: &Args, dir: &Path, _shared: &Shared) -> Result<Vec<Entry>> {
    let bin = match command::find(args) {
        Ok(bin) => bin,
        Err(why) => return Ok(vec![Entry::skipped("peers", &why)]),
    };
    command::announce(&bin);
    let agents = dir.join("agents");
    let corpus = corpus::make(&agents, args.pick(310_000_000, 30_000_000))?;
    settle(dir)?;
    let bench = Bench {
        args,
        dir,
        agents,
        corpus,
        ours: bin,
        homes: Cell::new(0),
    };
    let (mut entries, home) = bench.first()?;
    entries.extend(bench.again(&home)?);
    entries.extend(bench.usage(&home)?);
    Ok(entries)
}

struct Bench<'b> {
    args: &'b Args,
    dir: &'b Path,
    agents: PathBuf,
    corpus: Corpus,
    ours: PathBuf,
    homes: Cell<u32>,
}

/// The homes in which both programs imported everything.
struct Homes {
    ours: Home,
    theirs: Option<(Home, PathBuf)>,
}

impl Bench<'_> {
    fn name(&self, what: &str) -> String {
        let Corpus { files, bytes, from } = self.corpus;
        format!("{what}, {files} files, {} MB ({from})", bytes / 1_000_000)
    }

    /// Creates an unused home. Earlier ones stay, because removing a directory slows down
    /// the next one.
    fn new_home(&self) -> Result<Home> {
        let n = self.homes.replace(self.homes.get() + 1);
        let home = Home::new(&self.agents, self.dir.join(format!("home-{n}")))?;
        settle(self.dir)?;
        Ok(home)
    }

    /// Measures the first import.
    fn first(&self) -> Result<(Vec<Entry>, Homes)> {
        let peaks = [Cell::new(0), Cell::new(0)];
        let last = [RefCell::new(None), RefCell::new(None)];
        let mut ours = || {
            let home = self.new_home()?;
            let ran = run(&mut home.ours(&self.ours, &IMPORT))?;
            self.check(&ran.told)?;
            peaks[0].set(ran.peak.max(peaks[0].get()));
            last[0].replace(Some(home));
            Ok(ran.took)
        };
        let rounds = self.args.pick(3, 1);
        let theirs = programs::agentsview();
        let (samples, other) = match &theirs {
            Ok(bin) => {
                let mut theirs = || {
                    let home = self.new_home()?;
                    let (took, peak, _) = watch(&mut home.agentsview(bin))?;
                    peaks[1].set(peak.max(peaks[1].get()));
                    last[1].replace(Some(home));
                    Ok(took)
                };
                let lanes: [Lane<'_>; 2] = [&mut ours, &mut theirs];
                let [ours, theirs] = interleave(rounds, lanes)?;
                (ours, Some(theirs))
            }
            Err(why) => {
                eprintln!("SKIPPED: agentsview: {why}");
                let [ours] = interleave(rounds, [&mut ours])?;
                (ours, None)
            }
        };
        let entries = self.first_entries(&samples, other.as_ref(), peaks.map(Cell::into_inner));
        let [ours, other] = last.map(RefCell::into_inner);
        let homes = Homes {
            ours: ours.ok_or("nothing was imported")?,
            theirs: other.zip(theirs.ok()),
        };
        Ok((entries, homes))
    }

    fn first_entries(
        &self,
        ours: &Samples,
        theirs: Option<&Samples>,
        [peak, their_peak]: [u64; 2],
    ) -> Vec<Entry> {
        let baseline = theirs.map(|theirs| ("agentsview sync", seconds(theirs)));
        let goal = match baseline {
            Some(_) => Goal::SpeedAtLeast(3.0),
            None => Goal::Open,
        };
        let memory = |peak: u64| Quantity::single(peak as f64, Unit::Bytes);
        let their_memory = theirs.map(|_| ("agentsview sync", memory(their_peak)));
        let name = self.name("first import");
        let peak_name = format!("{name}, peak memory");
        vec![
            figure(name, seconds(ours), baseline, goal),
            figure(peak_name, memory(peak), their_memory, Goal::AtMost(MEMORY)),
        ]
    }

    /// Checks that everything was imported.
    fn check(&self, told: &Value) -> Result<()> {
        let agent = &told["agents"]["claude-code"];
        let errors = agent["errors"].as_array().map_or(0, Vec::len);
        match agent["found"] == self.corpus.files && errors == 0 {
            true => Ok(()),
            false => Err(format!("{agent} where {} files are", self.corpus.files).into()),
        }
    }

    /// Measures an import if nothing is new.
    fn again(&self, homes: &Homes) -> Result<Vec<Entry>> {
        let mut ours = || run_quietly(&mut homes.ours.ours(&self.ours, &IMPORT));
        let rounds = self.args.pick(11, 3);
        let (ours, baseline) = match &homes.theirs {
            Some((home, bin)) => {
                let mut theirs = || run_quietly(&mut home.agentsview(bin));
                let lanes: [Lane<'_>; 2] = [&mut ours, &mut theirs];
                let [ours, theirs] = interleave(rounds, lanes)?;
                (ours, Some(("agentsview sync", seconds(&theirs))))
            }
            None => {
                let [ours] = interleave(rounds, [&mut ours])?;
                (ours, None)
            }
        };
        let name = self.name("again, nothing new");
        let goal = Goal::AtMost(AGAIN);
        Ok(vec![figure(name, seconds(&ours), baseline, goal)])
    }

    /// Measures the usage report and compares the answers.
    fn usage(&self, homes: &Homes) -> Result<Vec<Entry>> {
        let bin = match programs::ccusage() {
            Ok(bin) => bin,
            Err(why) => return Ok(vec![Entry::skipped("what was used", &why)]),
        };
        let home = &homes.ours;
        let (ours, theirs): (RefCell<Value>, RefCell<Value>) = Default::default();
        let ask = |told: &RefCell<Value>, mut command| -> Result<Duration> {
            let ran = run(&mut command)?;
            told.replace(ran.told);
            Ok(ran.took)
        };
        let mut stats = || ask(&ours, home.ours(&self.ours, &STATS));
        let mut ccusage = || ask(&theirs, home.ccusage(&bin, &agents::CLAUDE_CODE));
        let lanes: [Lane<'_>; 2] = [&mut stats, &mut ccusage];
        let [stats, ccusage] = interleave(self.args.pick(11, 3), lanes)?;
        let baseline = Some(("ccusage", seconds(&ccusage)));
        let name = self.name("what was used");
        let goal = Goal::SpeedAtLeast(4.0);
        let mut entries = vec![figure(name, seconds(&stats), baseline, goal)];
        let ours = Tokens::ours(&ours.into_inner());
        let theirs = Tokens::ccusage(&theirs.into_inner());
        entries.extend(ours.beside(&theirs, &self.name("tokens")));
        Ok(entries)
    }
}

const IMPORT: [&str; 3] = ["import", "--from", "claude-code"];
const STATS: [&str; 3] = ["stats", "--agent", "claude-code"];

fn seconds(samples: &Samples) -> Quantity {
    Quantity::of(samples, Unit::Seconds)
}
