//! Which records came up already.

use std::collections::BTreeMap;

/// A set of seqs, as ranges that do not touch. Read in order it is one range;
/// only gaps and disorder, which are damage, make more.
#[derive(Debug, Default)]
pub(crate) struct Shown(BTreeMap<u64, u64>);

impl Shown {
    /// Adds a seq; false if it is there already.
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

#[cfg(test)]
mod tests {
    use super::Shown;

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
