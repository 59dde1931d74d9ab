//! What has to hold at the end of a life.

use std::collections::{BTreeMap, BTreeSet};

use backtrail::replica::{Answer, BlobKind, BlobName, Line, LogKey, Order, Replica, Request};

use super::world::{Shared, fence_of, object_of, payload_of, source_of};

/// All lines of the logs that were not purged, by place.
type Lines = BTreeMap<(LogKey, u32, u64), Vec<Line>>;

pub(super) fn check(world: &mut Shared) {
    let lines = everything(world);
    each_text_is_there_once(&lines);
    fences_never_fall(&lines);
    acknowledged_lines_are_there(world, &lines);
    refused_lines_are_nowhere(world, &lines);
    forks_continue_at_a_line_that_is_there(world, &lines);
    what_lines_name_is_there(world, &lines);
    what_was_purged_stays_away(world);
    followers_saw_each_append_once(world);
}

fn is_purged(world: &mut Shared, log: &LogKey) -> bool {
    match world.insist(&Request::Status { log: log.clone() }) {
        Answer::Purged(_) => {
            world.assert_may_be_purged(log);
            true
        }
        Answer::Log(_) | Answer::Absent => false,
        other => panic!("{other:?}"),
    }
}

/// Reads all logs; the lines of each trail have to rise.
fn everything(world: &mut Shared) -> Lines {
    let mut found = Lines::new();
    for log in world.logs.clone() {
        let trails = match world.insist(&Request::Trails { log: log.clone() }) {
            Answer::Trails(trails) => trails,
            Answer::Absent | Answer::Purged(_) => continue,
            other => panic!("{other:?}"),
        };
        for status in trails {
            let trail = status.end.trail;
            let request = Request::Read {
                log: log.clone(),
                trail,
                beyond: None,
                order: Order::Forwards,
                max_bytes: u64::MAX,
            };
            let Answer::Lines { lines, more: false } = world.insist(&request) else {
                panic!("trail {trail} of {log:?} cannot be read");
            };
            assert!(lines.is_sorted_by(|a, b| a.seq < b.seq), "{log:?} {trail}");
            for line in lines {
                let place = (log.clone(), trail, line.seq);
                found.entry(place).or_default().push(line);
            }
        }
    }
    found
}

fn each_text_is_there_once(lines: &Lines) {
    let mut texts = BTreeSet::new();
    for (place, there) in lines {
        assert_eq!(there.len(), 1, "{place:?}");
        assert!(texts.insert(&there[0].bytes), "{place:?} is there twice");
    }
}

/// No line of a writer comes behind one of its successor.
fn fences_never_fall(lines: &Lines) {
    let mut newest: BTreeMap<&LogKey, u64> = BTreeMap::new();
    for ((log, trail, seq), there) in lines {
        let fence = fence_of(&there[0]);
        let newest = newest.entry(log).or_default();
        assert!(
            fence >= *newest,
            "{log:?} {trail}:{seq}: {fence} behind {newest}"
        );
        *newest = fence;
    }
}

fn acknowledged_lines_are_there(world: &mut Shared, lines: &Lines) {
    for written in world.acknowledged.clone() {
        if is_purged(world, &written.log) {
            continue;
        }
        for line in &written.lines {
            let place = (written.log.clone(), written.trail, line.seq);
            let there = lines
                .get(&place)
                .unwrap_or_else(|| panic!("{place:?} is lost"));
            assert_eq!(there[0], *line);
        }
    }
}

fn refused_lines_are_nowhere(world: &Shared, lines: &Lines) {
    let there: BTreeSet<&[u8]> = lines.values().map(|there| &there[0].bytes[..]).collect();
    for written in &world.refused {
        for line in &written.lines {
            assert!(!there.contains(&line.bytes[..]), "{written:?} was refused");
        }
    }
}

fn forks_continue_at_a_line_that_is_there(world: &mut Shared, lines: &Lines) {
    for there in lines.values() {
        let Some((log, trail, seq)) = source_of(&there[0]) else {
            continue;
        };
        let source = (world.logs[log].clone(), trail, seq);
        assert!(
            lines.contains_key(&source) || is_purged(world, &source.0),
            "{source:?}"
        );
    }
}

fn what_lines_name_is_there(world: &mut Shared, lines: &Lines) {
    for ((log, ..), there) in lines {
        if let Some(payload) = payload_of(&there[0]) {
            let bytes = world.net.get_blob(log, payload, None).unwrap().unwrap();
            assert_eq!(*blake3::hash(&bytes).as_bytes(), payload.hash);
        }
    }
    for log in world.logs.clone() {
        let line = world.last_line(&log).map(|(_, line)| line);
        let Some(id) = line.as_ref().and_then(object_of) else {
            continue;
        };
        let place = world.locate(&log, id).expect("a line names it");
        let pack = BlobName {
            kind: BlobKind::Pack,
            hash: place.pack,
        };
        let part = Some((place.from, place.bytes));
        let bytes = world.net.get_blob(&log, pack, part).unwrap().unwrap();
        assert_eq!(*blake3::hash(&bytes).as_bytes(), id);
    }
}

fn what_was_purged_stays_away(world: &mut Shared) {
    let Answer::Logs(listed) = world.insist(&Request::List {
        after: None,
        limit: u32::MAX,
    }) else {
        panic!("no list");
    };
    for (log, is_answered) in world.purges.clone() {
        let purged = is_purged(world, &log);
        assert!(purged || !is_answered, "{log:?} came back");
        if !purged {
            continue;
        }
        assert!(listed.iter().all(|(there, _)| *there != log));
        let lease = Request::Lease {
            log: log.clone(),
            holder: "a newcomer".to_owned(),
            ttl_ms: 1,
            wrapped_key: Vec::new(),
        };
        assert!(matches!(world.insist(&lease), Answer::Purged(_)));
        for (owner, payload) in &world.payloads {
            if *owner == log {
                assert_eq!(world.net.get_blob(&log, *payload, None), Ok(None));
            }
        }
    }
}

fn followers_saw_each_append_once(world: &mut Shared) {
    let mut changes = Vec::new();
    let mut after = 0;
    loop {
        let request = Request::Changes { after, limit: 100 };
        let Answer::Changes(more) = world.insist(&request) else {
            panic!("no changes");
        };
        let Some(last) = more.last() else { break };
        after = last.id;
        changes.extend(more);
    }
    let followed = &world.followed;
    assert!(followed.is_sorted_by(|a, b| a.id < b.id));
    let followed: BTreeSet<u64> = followed.iter().map(|change| change.id).collect();
    assert!(changes.iter().all(|change| followed.contains(&change.id)));
    let mut counts: BTreeMap<_, u32> = BTreeMap::new();
    for change in &changes {
        let place = (change.log.clone(), change.end.trail, change.end.seq);
        *counts.entry(place).or_default() += 1;
    }
    assert!(counts.values().all(|count| *count == 1));
    for written in world.acknowledged.clone() {
        let end = written.end();
        let is_told = counts.contains_key(&(written.log.clone(), end.trail, end.seq));
        assert_eq!(is_told, !is_purged(world, &written.log), "{written:?}");
    }
}
