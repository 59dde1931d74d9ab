//! What a compaction must keep, by definition rather than by a way to find it.
//!
//! The context begins at some message. Of all beginnings that leave at least as
//! many messages as were asked for, part no result from its call, and leave every
//! call that still waits, the last one is right. All of them are tried.

use std::collections::HashSet;

use super::state::{Cover, Line, Talk, What};

/// Returns what a compaction with the number `seq` says at the end of a line, and
/// how many messages stay.
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
        // The instructions are not part of what is compacted.
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
    let whole = pairs(talks).all(|(call, result)| (call >= begin) == (result >= begin));
    enough && whole && waiting(talks).is_none_or(|call| call >= begin)
}

/// Returns each result with the nearest call of its id that is not after it.
fn pairs<'a>(talks: &'a [&Talk]) -> impl Iterator<Item = (usize, usize)> + 'a {
    talks.iter().enumerate().flat_map(move |(at, talk)| {
        talk.results.iter().filter_map(move |id| {
            let call = (0..=at).rev().find(|n| talks[*n].calls.contains(id));
            call.map(|call| (call, at))
        })
    })
}

/// Returns the last message that is not only results, if it calls for more than
/// came after it.
fn waiting(talks: &[&Talk]) -> Option<usize> {
    let last = talks.iter().rposition(|talk| !talk.only_answers())?;
    let came: HashSet<&String> = talks[last..].iter().flat_map(|t| &t.results).collect();
    let waits = talks[last].calls.iter().any(|id| !came.contains(id));
    waits.then_some(last)
}
