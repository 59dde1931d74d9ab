//! Which bytes at the end of a log a writer wrote and did not acknowledge.
//!
//! If another machine took over, they are cut off: nobody was told that they are there. But
//! whatever another process wrote behind them was acknowledged to it, and stays, with
//! everything before it.

/// Bytes of a trail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) trail: u32,
    pub(super) from: u64,
    pub(super) to: u64,
}

/// The bytes at the end that nothing was acknowledged of.
#[derive(Debug, Default)]
pub(super) struct Unacknowledged(Vec<Written>);

impl Unacknowledged {
    /// Takes note of where the log ends before something is written.
    pub(super) fn stands_at(&mut self, trail: u32, end: u64) {
        let last = self.0.last();
        if last.is_some_and(|last| (last.trail, last.to) != (trail, end)) {
            self.0.clear();
        }
    }

    /// Adds what was just written at the end.
    pub(super) fn add(&mut self, written: Written) {
        match self.0.last_mut() {
            Some(last) if (last.trail, last.to) == (written.trail, written.from) => {
                last.to = written.to;
            }
            _ => self.0.push(written),
        }
    }

    /// Takes note that everything is acknowledged.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Takes the newest bytes if the log still ends with them.
    pub(super) fn take_at(&mut self, trail: u32, end: u64) -> Option<Written> {
        self.0
            .pop()
            .filter(|last| (last.trail, last.to) == (trail, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(trail: u32, from: u64, to: u64) -> Written {
        Written { trail, from, to }
    }

    #[test]
    fn what_another_process_wrote_stays_with_everything_before_it() {
        let mut ours = Unacknowledged::default();
        ours.stands_at(0, 100);
        ours.add(written(0, 100, 150));
        ours.stands_at(0, 170);
        ours.add(written(0, 170, 200));
        assert_eq!(ours.take_at(0, 200), Some(written(0, 170, 200)));
        assert_eq!(ours.take_at(0, 170), None);
        ours.add(written(0, 170, 200));
        assert_eq!(ours.take_at(0, 210), None, "something follows");
    }

    #[test]
    fn several_writes_and_a_new_trail_are_cut_off_from_the_end() {
        let mut ours = Unacknowledged::default();
        ours.stands_at(0, 100);
        ours.add(written(0, 100, 150));
        ours.stands_at(0, 150);
        ours.add(written(0, 150, 200));
        ours.add(written(1, 0, 80));
        assert_eq!(ours.take_at(1, 80), Some(written(1, 0, 80)));
        assert_eq!(ours.take_at(0, 200), Some(written(0, 100, 200)));
        ours.add(written(0, 100, 120));
        ours.clear();
        assert_eq!(ours.take_at(0, 120), None);
    }
}
