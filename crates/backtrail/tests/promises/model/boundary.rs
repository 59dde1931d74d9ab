//! What a compaction must keep, by definition rather than by an algorithm.
//!
//! The context begins at some message. Of all beginnings that leave at least as many
//! messages as requested, separate no result from its call, and leave every call that
//! still waits, the last one is right. All of them are tried.

use std::collections::HashMap;

use super::state::{Cover, Line, Talk, What};

/// Returns the expected compaction with the number `seq` at the end of a line, and how
/// many messages stay.
pub(crate) fn cover(line: &Line, keep: u64, seq: u64) -> (Cover, u64) {
    let newest = line.iter().rev().find_map(|entry| match entry.what {
        What::Compaction(cover) => Some(cover),
        _ => None,
    });
    let start = newest.map_or(0, |cover| cover.keeps_from);
    let all: Vec<(u64, &Talk)> = line
        .iter()
        .filter_map(|entry| match &entry.what {
            What::Message(talk) => Some((entry.seq, talk)),
            _ => None,
        })
        // The instructions are not compacted.
        .skip_while(|(_, talk)| talk.role == "system")
        .filter(|(seq, _)| *seq >= start)
        .collect();
    let talks: Vec<&Talk> = all.iter().map(|(_, talk)| *talk).collect();
    let begin = (0..=talks.len())
        .rev()
        .find(|begin| is_allowed(&talks, *begin, keep))
        .expect("all of it is always allowed");
    let cover = Cover {
        count: newest.map_or(0, |cover| cover.count) + 1,
        removed: begin as u64,
        keeps_from: all.get(begin).map_or(seq, |(seq, _)| *seq),
    };
    (cover, (talks.len() - begin) as u64)
}

fn is_allowed(talks: &[&Talk], begin: usize, keep: u64) -> bool {
    let enough = (talks.len() - begin) as u64 >= keep.min(talks.len() as u64);
    let (pairs, open) = matched(talks);
    let whole = pairs
        .iter()
        .all(|(call, result)| (*call >= begin) == (*result >= begin));
    let stretch = last_stretch(talks);
    let waits = open.iter().filter(|call| **call >= stretch).min();
    enough && whole && waits.is_none_or(|call| *call >= begin)
}

/// Matches calls and results like brackets: a result answers the newest unanswered call
/// of its id. Returns the pairs, and the unanswered calls.
fn matched(talks: &[&Talk]) -> (Vec<(usize, usize)>, Vec<usize>) {
    let mut open: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut pairs = Vec::new();
    for (at, talk) in talks.iter().enumerate() {
        for id in &talk.calls {
            open.entry(id).or_default().push(at);
        }
        for id in &talk.results {
            if let Some(call) = open.get_mut(id.as_str()).and_then(Vec::pop) {
                pairs.push((call, at));
            }
        }
    }
    (pairs, open.into_values().flatten().collect())
}

/// Returns where the last stretch begins: the assistant's last message, followed only by
/// results.
fn last_stretch(talks: &[&Talk]) -> usize {
    let is_result = |talk: &&&Talk| talk.only_answers();
    let results = talks.iter().rev().take_while(is_result).count();
    let said = talks[..talks.len() - results].iter().rev();
    let said = said.take_while(|talk| talk.role == "assistant").count();
    talks.len() - results - said
}
