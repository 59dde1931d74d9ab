//! Following when things go wrong: files that shrink, vanish or come all at once, watches that run
//! out, several processes at once, and one that is killed.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use backtrail::Store;
use backtrail_formats::{Environment, FollowOptions, FollowedKind, Follower};

use crate::kit::{
    Claude, Kit, PATIENCE, append, import_all, kinds_of, next, next_kinds, next_session,
};

#[test]
fn two_hundred_files_at_once_are_all_followed() {
    let kit = Kit::new();
    let mut follower = kit.follow();
    let mut expected = BTreeSet::new();
    for n in 0..200 {
        let mut claude = Claude::new(n, kit.work());
        let name = format!(".claude/projects/-work-{}/{}.jsonl", n % 20, claude.session);
        kit.append(&name, claude.turn("hello").concat());
        expected.insert(claude.session);
    }
    let mut seen = BTreeSet::new();
    while seen.len() < expected.len() {
        let wake = next(&mut follower);
        assert!(wake.problems.is_empty(), "{:?}", wake.problems);
        seen.extend(wake.sessions.iter().map(|it| it.session.to_string()));
    }
    assert_eq!(seen, expected);
    assert_eq!(kit.contents(), kit.imported());
}

#[test]
fn a_file_that_is_cut_off_replaced_or_deleted_takes_nothing_from_the_session() {
    let kit = Kit::new();
    let mut follower = kit.follow();
    let mut claude = Claude::new(1, kit.work());
    let name = claude.name();
    let turns: Vec<String> = (0..3)
        .map(|n| claude.turn(&format!("turn {n}")).concat())
        .collect();
    kit.append(&name, turns.concat());
    assert_eq!(next_kinds(&mut follower, 13).len(), 13 + 2);
    let before = kit.contents();
    // Cut off: the store keeps what it has.
    let path = kit.path(&name);
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_len(turns[0].len() as u64).unwrap();
    let mut other = Claude::new(2, kit.work());
    kit.append(&other.name(), other.prompt("meanwhile"));
    assert_eq!(next_session(&mut follower).session.as_str(), other.session);
    std::fs::remove_file(kit.path(&other.name())).unwrap();
    assert!(kit.contents().starts_with(&before));
    // Written again as it was, and longer.
    std::fs::write(&path, turns.concat()).unwrap();
    kit.append(&name, claude.prompt("go on"));
    assert_eq!(next_kinds(&mut follower, 1), [FollowedKind::Prompt]);
    // Replaced by another file with the same content and one line more.
    let aside = kit.home().join("aside");
    let mut text = std::fs::read(&path).unwrap();
    text.extend(claude.answer("done").into_bytes());
    std::fs::write(&aside, text).unwrap();
    std::fs::rename(&aside, &path).unwrap();
    let kinds = next_kinds(&mut follower, 2);
    assert_eq!(kinds, [FollowedKind::Answer, FollowedKind::TurnEnd]);
    // Deleted and begun again by the agent, which continues it.
    std::fs::remove_file(&path).unwrap();
    let wake = follower.wait(Some(Instant::now())).unwrap();
    assert!(wake.is_empty(), "{wake:?}");
    drop(follower);
    let followed = kit.contents();
    kit.import();
    assert_eq!(kit.contents(), followed);
}

#[test]
fn without_room_for_watches_directories_are_searched_and_that_is_said() {
    let kit = Kit::new();
    let mut claude = Claude::new(1, kit.work());
    let name = claude.name();
    kit.append(&name, claude.prompt("before"));
    for room in [0, 1, 3] {
        let options = kit.options().max_watches(room);
        let mut follower = Follower::start(&kit.store, &options).unwrap();
        let wake = next(&mut follower);
        let problem = wake.problems[0].to_string();
        assert!(problem.contains("is searched every 250 ms"), "{problem}");
        assert_eq!(wake.problems.len(), 1);
        kit.append(&name, claude.prompt("after"));
        next_kinds(&mut follower, 1);
        let mut other = Claude::new(10 + u32::try_from(room).unwrap(), kit.work());
        let new = format!(".claude/projects/-new-{room}/{}.jsonl", other.session);
        kit.append(&new, other.prompt("hello"));
        assert_eq!(next_session(&mut follower).session.as_str(), other.session);
    }
    assert_eq!(kit.contents(), kit.imported());
}

#[cfg(target_os = "linux")]
#[test]
fn when_notices_are_lost_everything_is_searched_and_that_is_said() {
    let kit = Kit::new();
    let (mut claude, mut other) = (Claude::new(1, kit.work()), Claude::new(2, kit.work()));
    let paths = [kit.path(&claude.name()), kit.path(&other.name())];
    append(&paths[0], claude.prompt("hello").as_bytes());
    append(&paths[1], other.prompt("hello").as_bytes());
    let mut follower = kit.follow();
    let limit = std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let limit: usize = limit.trim().parse().unwrap();
    for n in 0..=limit {
        append(&paths[n % 2], b"\n");
    }
    // Nothing tells of this one.
    let mut lost = Claude::new(3, kit.work());
    kit.append(&lost.name(), lost.prompt("hello"));
    let (mut problems, mut seen) = (Vec::new(), BTreeSet::new());
    while !seen.contains(&lost.session) {
        let wake = next(&mut follower);
        problems.extend(wake.problems.iter().map(ToString::to_string));
        seen.extend(wake.sessions.iter().map(|it| it.session.to_string()));
    }
    assert!(problems[0].contains("changes were missed"), "{problems:?}");
    assert_eq!(problems.len(), 1);
    assert_eq!(kit.contents(), kit.imported());
}

#[test]
fn two_followers_report_the_same_and_import_it_once() {
    let kit = Kit::new();
    let mut followers = [kit.follow(), kit.follow()];
    let mut claude = Claude::new(1, kit.work());
    let name = claude.name();
    for turn in 0..5 {
        for line in claude.turn(&format!("turn {turn}")) {
            kit.append(&name, line);
            let [a, b] = followers.each_mut().map(|it| kinds_of(next_session(it)));
            assert_eq!(a, b);
        }
    }
    assert_eq!(kit.contents(), kit.imported());
    // At the same time.
    let lines: Vec<String> = (0..10)
        .flat_map(|n| claude.turn(&format!("fast {n}")))
        .collect();
    let [mut a, mut b] = followers;
    std::thread::scope(|scope| {
        let follow = |follower: &mut Follower| next_kinds(follower, 50).len();
        let a = scope.spawn(move || follow(&mut a));
        let b = scope.spawn(move || follow(&mut b));
        for line in lines {
            kit.append(&name, line);
        }
        assert_eq!((a.join().unwrap(), b.join().unwrap()), (50, 50));
    });
    assert_eq!(kit.contents(), kit.imported());
}

#[test]
fn imports_at_the_same_time_change_nothing() {
    let kit = Kit::new();
    let mut follower = kit.follow();
    let mut claude = Claude::new(1, kit.work());
    let name = claude.name();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                kit.import();
            }
        });
        for turn in 0..5 {
            for line in claude.turn(&format!("turn {turn}")) {
                kit.append(&name, line);
                next_kinds(&mut follower, 1);
            }
        }
        is_done.store(true, Ordering::Relaxed);
    });
    assert_eq!(kit.contents(), kit.imported());
}

#[test]
fn a_follower_is_stopped_from_another_thread_and_stays_stopped() {
    let kit = Kit::new();
    let mut follower = kit.follow();
    let handle = follower.stop_handle();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| follower.wait(None).unwrap().is_stopped);
        handle.stop();
        handle.stop();
        assert!(waiting.join().unwrap());
    });
    assert!(follower.wait(None).unwrap().is_stopped);
}

#[test]
fn without_changes_it_waits_until_the_deadline() {
    let kit = Kit::new();
    let mut follower = kit.follow();
    let wake = follower.wait(Some(Instant::now())).unwrap();
    assert!(wake.is_empty());
}

/// The directory of the kit, for the process that is killed.
const CHILD: &str = "BACKTRAIL_FOLLOW_CHILD";

#[test]
#[ignore = "the process that another test kills"]
fn child() {
    let dir = std::path::PathBuf::from(std::env::var_os(CHILD).unwrap());
    let store = Store::open(dir.join("store")).unwrap();
    let options = FollowOptions::new(Environment::new(dir.join("home")));
    let mut follower = Follower::start(&store, &options).unwrap();
    println!("\nready");
    loop {
        let wake = follower.wait(Some(Instant::now() + PATIENCE)).unwrap();
        assert!(!wake.is_empty());
        println!("\nsaw {}", wake.sessions.len());
    }
}

#[test]
fn a_follower_that_is_killed_loses_nothing_and_the_next_import_adds_the_rest_once() {
    let kit = Kit::new();
    let mut claude = Claude::new(1, kit.work());
    let name = claude.name();
    for round in 0..12_usize {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "hostile::child", "--ignored", "--nocapture"])
            .env(CHILD, kit.home().parent().unwrap())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut said = lines.map(Result::unwrap);
        said.find(|line| line == "ready").unwrap();
        let lines: Vec<String> = (0..3)
            .flat_map(|n| claude.turn(&format!("turn {n}")))
            .collect();
        for (n, line) in lines.iter().enumerate() {
            kit.append(&name, line);
            // In some rounds it is killed at once, in others while it imports.
            if n < round {
                said.find(|line| line.starts_with("saw")).unwrap();
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if round % 3 == 0 {
            import_all(&kit.store, &kit.environment());
            assert_eq!(kit.contents(), kit.imported(), "round {round}");
        }
    }
    import_all(&kit.store, &kit.environment());
    let whole = kit.contents();
    assert_eq!(whole, kit.imported());
    import_all(&kit.store, &kit.environment());
    assert_eq!(kit.contents(), whole);
}
