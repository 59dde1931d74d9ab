//! Takes times in alternating rounds and reports the median.
//!
//! A machine never stays the same for two minutes. So sides that are compared are
//! measured in turns, each going first as often as the other, and the median is reported
//! with the spread of the middle half of the rounds.

use std::time::{Duration, Instant};

use crate::Result;

/// One side of a comparison: does a round of work and returns the time it took, without
/// the setup.
pub(crate) type Lane<'a> = &'a mut dyn FnMut() -> Result<Duration>;

/// Runs the lanes in turns, after one round that does not count. The samples are in
/// seconds.
pub(crate) fn interleave<const N: usize>(
    rounds: usize,
    lanes: [Lane<'_>; N],
) -> Result<[Samples; N]> {
    interleave_after(rounds, &mut || Ok(()), lanes)
}

/// The same, with an action before each round that all lanes see.
pub(crate) fn interleave_after<const N: usize>(
    rounds: usize,
    before: &mut dyn FnMut() -> Result<()>,
    mut lanes: [Lane<'_>; N],
) -> Result<[Samples; N]> {
    before()?;
    for lane in &mut lanes {
        lane()?;
    }
    let mut times = [const { Vec::new() }; N];
    for round in 0..rounds {
        before()?;
        for n in turn(round, N) {
            times[n].push(lanes[n]()?.as_secs_f64());
        }
    }
    Ok(times.map(Samples::new))
}

/// Returns the order of a round: each lane goes first as often as the others, and before
/// its neighbour as often as after it.
fn turn(round: usize, lanes: usize) -> impl Iterator<Item = usize> {
    let reversed = (round / lanes) % 2 == 1;
    (0..lanes).map(move |n| {
        let n = (n + round) % lanes;
        if reversed { lanes - 1 - n } else { n }
    })
}

/// Returns the time that a piece of work takes.
pub(crate) fn time(work: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed())
}

/// Measurements of one thing, sorted.
#[derive(Debug, Clone)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    pub(crate) fn new(mut values: Vec<f64>) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        Self(values)
    }

    /// Returns every measurement converted by `f`.
    pub(crate) fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        Self::new(self.0.iter().map(|value| f(*value)).collect())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn median(&self) -> f64 {
        self.percentile(50.0)
    }

    /// Returns the value that `percent` of the measurements do not exceed; NaN if there
    /// are none.
    pub(crate) fn percentile(&self, percent: f64) -> f64 {
        let rank = (percent / 100.0 * self.0.len() as f64).ceil() as usize;
        self.0
            .get(rank.saturating_sub(1))
            .copied()
            .unwrap_or(f64::NAN)
    }

    pub(crate) fn least(&self) -> f64 {
        self.percentile(0.0)
    }

    pub(crate) fn greatest(&self) -> f64 {
        self.percentile(100.0)
    }

    pub(crate) fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    /// Returns half the interquartile range, relative to the median.
    pub(crate) fn spread(&self) -> f64 {
        (self.percentile(75.0) - self.percentile(25.0)) / 2.0 / self.median()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_measured_values() {
        let samples = Samples::new((1..=100).rev().map(f64::from).collect());
        assert_eq!(samples.median(), 50.0);
        assert_eq!(samples.percentile(99.0), 99.0);
        assert_eq!((samples.least(), samples.greatest()), (1.0, 100.0));
        assert_eq!(samples.spread(), 0.5);
        assert!(Samples::new(Vec::new()).median().is_nan());
    }

    #[test]
    fn lanes_take_turns_and_the_first_round_does_not_count() {
        let order = std::cell::RefCell::new(Vec::new());
        let go = |n: usize| {
            order.borrow_mut().push(n);
            Ok(Duration::from_secs(1))
        };
        let [a, b] = interleave(4, [&mut || go(0), &mut || go(1)]).unwrap();
        assert_eq!((a.len(), b.len()), (4, 4));
        assert_eq!(*order.borrow(), [0, 1, 0, 1, 1, 0, 1, 0, 0, 1]);
    }

    #[test]
    fn all_lanes_see_what_was_done_before_their_round() {
        let done = std::cell::Cell::new(0_u64);
        let mut before = || {
            done.set(done.get() + 1);
            Ok(())
        };
        let see = || Ok(Duration::from_secs(done.get()));
        let seen = interleave_after(3, &mut before, [&mut || see(), &mut || see()]).unwrap();
        for samples in seen {
            assert_eq!((samples.least(), samples.greatest()), (2.0, 4.0));
        }
    }

    #[test]
    fn every_lane_goes_first_as_often_as_the_others() {
        for lanes in 1..5 {
            let mut first = vec![0; lanes];
            for round in 0..2 * lanes {
                let order: Vec<usize> = turn(round, lanes).collect();
                first[order[0]] += 1;
                assert_eq!(order.len(), lanes);
            }
            assert_eq!(first, vec![2; lanes]);
        }
    }
}
