//! Signs of life of a turn or run: the file that marks it as running ends with the time, and
//! a thread renews it every second. If the process dies, what changed before its last sign of
//! life belongs to the turn or run.
//!
//! Files' times come from the system's clock, and so do these. A clock that was set back in
//! between would make later changes look earlier, so each sign also has the time since the
//! system started, which nobody can set.

use std::ops::RangeInclusive;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::process::{boot_id, read};
use super::scan::scan_time;
use crate::storage::StorageFile;
use crate::sync::lock;
use crate::time::Timestamp;

/// How often a sign is given, once the turn or run is older than that.
const EVERY: Duration = Duration::from_secs(1);
/// How long the first sign takes; the pause doubles until it is a second.
const FIRST: Duration = Duration::from_millis(25);
/// A file system's clock may be a few ticks behind.
const TICKS_MS: i64 = 20;

/// No time at all.
pub(super) const NEVER: RangeInclusive<i64> = RangeInclusive::new(1, 0);

/// A sign of life. Times are in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SignOfLife {
    /// When the turn or run began.
    pub(super) from: i64,
    pub(super) at: i64,
    /// The time since the system started.
    up: i64,
    /// The id that the system got when it started.
    boot: String,
}

impl SignOfLife {
    /// Returns a sign at this moment; `None` if the system does not say when it started.
    pub(super) fn now(from: Option<i64>) -> Option<Self> {
        let (up, boot) = since_boot()?;
        let at = scan_time().as_millis();
        Some(Self {
            from: from.unwrap_or(at),
            at,
            up,
            boot,
        })
    }

    /// Returns it as a line of the file.
    pub(super) fn line(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads it from the content of a file.
    pub(super) fn read(file: &[u8]) -> Option<Self> {
        let second = file.split(|byte| *byte == b'\n').nth(1)?;
        serde_json::from_slice(second).ok()
    }

    /// Returns the time of it.
    pub(super) fn timestamp(&self) -> Option<Timestamp> {
        Timestamp::from_millis(self.at)
    }

    /// Returns when files changed that the turn or run changed for certain: until this sign.
    /// Empty where the clock cannot be trusted.
    pub(super) fn lived(&self) -> RangeInclusive<i64> {
        self.lived_by(Self::now(None).as_ref())
    }

    fn lived_by(&self, now: Option<&Self>) -> RangeInclusive<i64> {
        let Some(now) = now.filter(|now| now.boot == self.boot) else {
            return NEVER;
        };
        let by_clock = now.at.saturating_sub(self.at);
        let passed = now.up.saturating_sub(self.up);
        // If the clock was set back since, later changes look that much earlier.
        let set_back = passed.saturating_sub(by_clock).max(0);
        let until = self.at.saturating_sub(set_back + TICKS_MS);
        self.from.saturating_sub(1000)..=until
    }
}

/// Returns how long the system is up in milliseconds, and the id that it got when it started.
fn since_boot() -> Option<(i64, String)> {
    let up: f64 = read("/proc/uptime")?.split(' ').next()?.parse().ok()?;
    Some(((up * 1000.0) as i64, boot_id()?))
}

/// Gives signs of life until it is dropped.
#[derive(Debug)]
pub(super) struct Heartbeat {
    ends: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Heartbeat {
    /// Writes signs to a file, after its first `len` bytes. `None` if there can be no thread:
    /// then the first sign remains the last.
    pub(super) fn start(file: &Arc<dyn StorageFile>, len: u64, from: i64) -> Option<Self> {
        let ends = Arc::new((Mutex::new(false), Condvar::new()));
        let (file, until) = (Arc::clone(file), Arc::clone(&ends));
        let beat = move || {
            let mut pause = FIRST;
            while !has_ended(&until, pause) {
                pause = (pause * 2).min(EVERY);
                if let Some(sign) = SignOfLife::now(Some(from)) {
                    // A sign that cannot be written is missing, which is safe.
                    file.replace_end(len, &sign.line()).ok();
                }
            }
        };
        let thread = std::thread::Builder::new().name("backtrail-alive".to_owned());
        let thread = thread.spawn(beat).ok()?;
        Some(Self {
            ends,
            thread: Some(thread),
        })
    }
}

/// Waits, and returns whether it has ended.
fn has_ended((ends, woken): &(Mutex<bool>, Condvar), pause: Duration) -> bool {
    let waited = woken.wait_timeout_while(lock(ends), pause, |ended| !*ended);
    waited.map_or(true, |(ended, _)| *ended)
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        let (ends, woken) = &*self.ends;
        *lock(ends) = true;
        woken.notify_all();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sign(at: i64, up: i64) -> SignOfLife {
        SignOfLife {
            from: 10_000,
            at,
            up,
            boot: "a".to_owned(),
        }
    }

    #[test]
    fn a_change_before_the_last_sign_of_life_is_claimed_and_no_other() {
        let last = sign(50_000, 7_000);
        let now = sign(90_000, 47_000);
        let claims = |changed| last.lived_by(Some(&now)).contains(&changed);
        assert!(claims(10_000) && claims(40_000) && claims(50_000 - TICKS_MS));
        assert!(!claims(50_000) && !claims(50_001) && !claims(80_000));
        assert!(!claims(5_000), "it changed before the run began");
        assert!(last.lived_by(None).is_empty());
    }

    /// Whatever the clock did since, no change after the last sign of life is claimed.
    #[test]
    fn a_clock_that_was_set_leads_to_no_wrong_claim() {
        let last = sign(50_000, 7_000);
        for set_ms in [-45_000, -30_000, -1_000, -100, 0, 100, 1_000, 3_600_000] {
            // The clock is set right after the last sign, and the change comes 10 s later.
            let (changed, now) = (60_000 + set_ms, sign(70_000 + set_ms, 27_000));
            assert!(!last.lived_by(Some(&now)).contains(&changed), "{set_ms}");
        }
    }

    #[test]
    fn after_a_restart_of_the_system_nothing_is_claimed() {
        let now = SignOfLife {
            boot: "b".to_owned(),
            ..sign(90_000, 47_000)
        };
        assert!(sign(50_000, 7_000).lived_by(Some(&now)).is_empty());
    }

    #[test]
    fn a_sign_is_read_back_and_a_torn_one_is_none() {
        let whole = sign(50_000, 7_000);
        let file = [b"{}\n".to_vec(), whole.line()].concat();
        assert_eq!(SignOfLife::read(&file), Some(whole));
        for len in 0..file.len() {
            assert_eq!(SignOfLife::read(&file[..len]), None, "{len}");
        }
    }
}
