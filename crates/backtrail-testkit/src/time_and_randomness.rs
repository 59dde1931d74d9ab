//! Repeatable time and randomness.
//!
//! Both are handles: clones share one state, so a test keeps one and gives the other to
//! the store.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use backtrail::{Clock, Randomness, Timestamp};

use crate::splitmix::{STEP, mix};

/// A clock that moves only when it is read or set.
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<ClockState>);

#[derive(Debug)]
struct ClockState {
    now_ms: AtomicI64,
    step_ms: AtomicI64,
}

impl ManualClock {
    /// Returns a clock whose first reading is `start_ms` after the start of 1970, and
    /// which advances by 1 ms with every reading.
    pub fn new(start_ms: i64) -> Self {
        Self(Arc::new(ClockState {
            now_ms: AtomicI64::new(start_ms),
            step_ms: AtomicI64::new(1),
        }))
    }

    /// Sets how far every reading moves the clock; 0 stops it, a negative value turns it
    /// back.
    pub fn set_step(&self, step_ms: i64) {
        self.0.step_ms.store(step_ms, Ordering::SeqCst);
    }

    /// Sets what the next reading returns.
    pub fn set(&self, now_ms: i64) {
        self.0.now_ms.store(now_ms, Ordering::SeqCst);
    }

    /// Moves the clock by `by_ms`.
    pub fn advance(&self, by_ms: i64) {
        self.0.now_ms.fetch_add(by_ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    /// Returns the current time, then advances by a step.
    ///
    /// Panics if the clock was set to an unrepresentable time.
    fn now(&self) -> Timestamp {
        let step_ms = self.0.step_ms.load(Ordering::SeqCst);
        let now_ms = self.0.now_ms.fetch_add(step_ms, Ordering::SeqCst);
        Timestamp::from_millis(now_ms).expect("tests set the clock to years that exist")
    }
}

/// Random bytes that are the same for the same seed.
#[derive(Debug, Clone)]
pub struct SeededRandomness(Arc<AtomicU64>);

impl SeededRandomness {
    /// Returns the randomness of this seed, from its beginning.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(AtomicU64::new(seed)))
    }
}

impl Randomness for SeededRandomness {
    fn fill(&self, bytes: &mut [u8]) -> io::Result<()> {
        for chunk in bytes.chunks_mut(8) {
            let state = self.0.fetch_add(STEP, Ordering::SeqCst);
            let word = mix(state.wrapping_add(STEP)).to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_starts_at_its_setting_and_moves_by_its_step() {
        let clock = ManualClock::new(1_000);
        assert_eq!(clock.now().as_millis(), 1_000);
        assert_eq!(clock.now().as_millis(), 1_001);
        clock.clone().set_step(0);
        clock.advance(10);
        assert_eq!(clock.now().as_millis(), 1_012);
        assert_eq!(clock.now().as_millis(), 1_012);
        clock.set(5);
        assert_eq!(clock.now().as_millis(), 5);
    }

    #[test]
    fn equal_seeds_give_equal_bytes_and_others_do_not() {
        let fill = |seed| {
            let mut bytes = [0; 21];
            SeededRandomness::new(seed).fill(&mut bytes).unwrap();
            bytes
        };
        assert_eq!(fill(7), fill(7));
        assert_ne!(fill(7), fill(8));
    }

    #[test]
    fn randomness_does_not_repeat_itself() {
        let random = SeededRandomness::new(0);
        let (mut first, mut second) = ([0; 16], [0; 16]);
        random.fill(&mut first).unwrap();
        random.clone().fill(&mut second).unwrap();
        assert_ne!(first, second);
    }
}
