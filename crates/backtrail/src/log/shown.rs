//! The records that were already returned.

use std::collections::BTreeMap;

use crate::trail::sum::Sum;

/// A set of seqs, as ranges that do not touch. Read in order it is one range; only gaps
/// and disorder, which are damage, create more.
#[derive(Debug, Default)]
pub(crate) struct Shown(BTreeMap<u64, u64>);

impl Shown {
    /// Adds a seq; returns false if it is already there.
    pub(crate) fn insert(&mut self, seq: u64) -> bool {
        let before = self.0.range(..=seq).next_back();
        let before = before.map(|(first, last)| (*first, *last));
        if before.is_some_and(|(_, last)| last >= seq) {
            return false;
        }
        let first = match before {
            Some((first, last)) if last + 1 == seq => first,
            _ => seq,
        };
        let after = seq.checked_add(1).and_then(|next| self.0.remove(&next));
        self.0.insert(first, after.unwrap_or(seq));
        true
    }
}

/// The sums of the records returned last, by which duplicate lines are recognized.
/// Remembering all would take memory in proportion to the history.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    sums: Vec<Sum>,
    /// Where the oldest one is, once the buffer is full.
    oldest: usize,
}

impl Recent {
    const KEPT: usize = 4096;

    pub(crate) fn contains(&self, sum: Sum) -> bool {
        self.sums.contains(&sum)
    }

    pub(crate) fn push(&mut self, sum: Sum) {
        if self.sums.len() < Self::KEPT {
            self.sums.push(sum);
        } else {
            self.sums[self.oldest] = sum;
            self.oldest = (self.oldest + 1) % Self::KEPT;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_sums_are_remembered() {
        let sum = |n: usize| Sum::of(&n.to_le_bytes());
        let mut recent = Recent::default();
        for n in 0..Recent::KEPT + 10 {
            assert!(!recent.contains(sum(n)));
            recent.push(sum(n));
        }
        assert!((10..Recent::KEPT + 10).all(|n| recent.contains(sum(n))));
        assert!(!(0..10).any(|n| recent.contains(sum(n))));
    }

    #[test]
    fn each_seq_is_new_once_in_whatever_order_it_comes() {
        let orders: [&[u64]; 4] = [
            &[1, 2, 3, 4, 5],
            &[5, 4, 3, 2, 1],
            &[3, 1, 5, 2, 4],
            &[u64::MAX, 0, u64::MAX - 1, 7, 1],
        ];
        for order in orders {
            let mut shown = Shown::default();
            assert!(order.iter().all(|seq| shown.insert(*seq)), "{order:?}");
            assert!(!order.iter().any(|seq| shown.insert(*seq)), "{order:?}");
        }
        let mut shown = Shown::default();
        assert!((1..1000).all(|seq| shown.insert(seq)));
        assert_eq!(shown.0.len(), 1, "in order it is one range");
    }
}
