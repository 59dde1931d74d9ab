//! `gc`: the store stays small, and every verb reports dropped files.

use std::path::PathBuf;

use crate::kit::{Cli, Ran};

fn write(cli: &Cli, path: &str, bytes: impl AsRef<[u8]>) {
    std::fs::write(cli.work().join(path), bytes).unwrap();
}

/// Returns bytes that do not compress.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_add(1);
    let byte = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    };
    (0..len).map(byte).collect()
}

/// Makes three states with no label, one with a label, and a newest one; returns the
/// ids, oldest first.
fn five_states(cli: &Cli) -> Vec<String> {
    let mut ids = Vec::new();
    for n in 0..5 {
        write(cli, "file", noise(n, 20_000));
        let ran = match n {
            3 => cli.run(&["checkpoint", "mine", "--json"]),
            _ => cli.run(&["checkpoint", "--json"]),
        };
        assert_eq!(ran.code, 0, "{ran:#?}");
        ids.push(ran.json()["id"].as_str().unwrap().to_owned());
    }
    ids
}

fn ok(ran: Ran) -> Ran {
    assert_eq!(ran.code, 0, "{ran:#?}");
    ran
}

fn packs(cli: &Cli) -> Vec<(PathBuf, u64)> {
    let files = std::fs::read_dir(cli.store().join("objects")).unwrap();
    let mut packs: Vec<(PathBuf, u64)> = files
        .map(|file| file.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|end| end == "pack" || end == "open")
        })
        .map(|path| (path.clone(), path.metadata().unwrap().len()))
        .collect();
    packs.sort();
    packs
}

#[test]
fn nothing_to_do_is_reported() {
    let cli = Cli::new();
    five_states(&cli);
    let before = packs(&cli);
    let ran = ok(cli.run(&["gc"]));
    assert!(
        ran.stdout
            .starts_with("nothing to free: everything stored is needed\n"),
        "{ran:#?}"
    );
    assert!(
        ran.stdout.contains(
            "with 5 file states; always kept: labelled checkpoints (1), the latest of each"
        ),
        "{ran:#?}"
    );
    assert_eq!(packs(&cli), before);
}

#[test]
fn dropped_files_are_reported_everywhere() {
    let cli = Cli::new();
    let ids = five_states(&cli);
    let before = packs(&cli);
    let dry = ok(cli.run(&["gc", "--older-than", "0s", "--dry-run"]));
    assert!(
        dry.stdout
            .contains("would drop the files of 3 checkpoints in"),
        "{dry:#?}"
    );
    assert!(dry.stdout.contains("would free"), "{dry:#?}");
    assert_eq!(packs(&cli), before, "a dry run changes nothing");
    let foretold = ok(cli.run(&["gc", "--older-than", "0s", "--dry-run", "--json"])).json();
    let report = ok(cli.run(&["gc", "--older-than", "0s", "--json"])).json();
    assert_eq!(report["dropped"][0]["checkpoints"], 3);
    assert_eq!(report["dropped"][0]["reason"], "age");
    assert_eq!(report["freed"], foretold["freed"]);
    assert!(report["freed"].as_u64().unwrap() > 60_000, "{report:#}");
    assert_eq!(report["kept"]["states"], 2);
    let bytes: u64 = packs(&cli).iter().map(|(_, len)| len).sum();
    let was: u64 = before.iter().map(|(_, len)| len).sum();
    assert_eq!(report["freed"], was - bytes);

    let log = ok(cli.run(&["log"]));
    assert_eq!(log.stdout.matches("files dropped").count(), 3, "{log:#?}");
    assert_eq!(log.stderr.matches("warning").count(), 0, "{log:#?}");
    let listed = ok(cli.run(&["log", "--json"])).json();
    assert_eq!(listed[4]["dropped"]["reason"], "age");
    assert_eq!(listed[0].get("dropped"), None);
    for args in [
        vec!["cat", &ids[1], "file"],
        vec!["diff", &ids[1], &ids[4]],
        vec!["rewind", &ids[1], "--files"],
        vec!["restore", &ids[1], "--", "file"],
    ] {
        let ran = cli.run(&args);
        assert_ne!(ran.code, 0, "{args:?} {ran:#?}");
        assert!(ran.stderr.contains("were dropped"), "{args:?} {ran:#?}");
        assert!(
            ran.stderr.contains("nearest with files: mine"),
            "{args:?} {ran:#?}"
        );
    }
    ok(cli.run(&["verify"]));
    ok(cli.run(&["status"]));
    let diff = ok(cli.run(&["diff", "mine", "last"]));
    assert!(diff.stdout.contains("file"), "{diff:#?}");
}

/// A state of the files: which file changed, and whether its checkpoint has a label, so that
/// its files stay.
const PATHS: [(&str, bool); 12] = [
    ("a", true),
    ("b", false),
    ("a", false),
    ("b", true),
    ("a", true),
    ("b", true),
    ("a", false),
    ("sub/a", true),
    ("a", true),
    ("b", true),
    ("b", false),
    ("a", false),
];

/// What `log -- PATH` must list once the states without a label are dropped: the lines whose
/// two states are there and that changed the path. The others are counted.
fn expected(path: &str) -> (Vec<usize>, usize) {
    let last = PATHS.len() - 1;
    let is_kept = |n: usize| PATHS[n].1 || n == last;
    let is_known = |n: &usize| is_kept(n - 1) && is_kept(*n);
    let known = (1..PATHS.len()).filter(is_known);
    let touched = known.filter(|n| PATHS[*n].0 == path);
    let unknown = (1..PATHS.len()).filter(|n| !is_known(n)).count();
    (touched.collect(), unknown)
}

#[test]
fn the_log_of_a_path_lists_only_what_changed_it_and_counts_what_is_unknown() {
    let cli = Cli::new();
    std::fs::create_dir(cli.work().join("sub")).unwrap();
    let mut ids = Vec::new();
    for (n, (path, labelled)) in PATHS.iter().enumerate() {
        write(&cli, path, format!("state {n}"));
        let label = format!("label-{n}");
        let mut args = vec!["checkpoint", "--json"];
        args.extend(labelled.then_some(label.as_str()));
        let id = ok(cli.run(&args)).json()["id"].clone();
        ids.push(id.as_str().unwrap().to_owned());
    }
    let listed = |path: &str| {
        let text = ok(cli.run(&["log", "--", path]));
        let json = ok(cli.run(&["log", "--json", "--", path]));
        let every = ok(cli.run(&["log", "--all", "--", path]));
        assert_eq!(text.stdout.lines().count(), every.stdout.lines().count());
        let ns: Vec<usize> = json
            .json()
            .as_array()
            .unwrap()
            .iter()
            .rev()
            .map(|checkpoint| {
                let id = checkpoint["id"].as_str().unwrap();
                ids.iter().position(|known| known == id).unwrap()
            })
            .collect();
        for (n, id) in ids.iter().enumerate() {
            let mut shown = text
                .stdout
                .lines()
                .filter_map(|line| line.split(' ').next_back());
            let shown = shown.any(|shown| shown.len() >= 4 && id.starts_with(shown));
            assert_eq!(shown, ns.contains(&n), "{path} {n}: {text:#?}");
        }
        (ns, text.stderr, json.stderr)
    };
    for path in ["a", "b", "sub", "sub/a", "nothing"] {
        let (ns, text, json) = listed(path);
        let all = (1..PATHS.len()).filter(|n| {
            let changed = PATHS[*n].0;
            changed == path || changed.starts_with(&format!("{path}/"))
        });
        assert_eq!(ns, all.collect::<Vec<_>>(), "nothing is dropped yet");
        assert!(
            !text.contains("dropped") && json.is_empty(),
            "{text} {json}"
        );
    }
    ok(cli.run(&["gc", "--older-than", "0s"]));
    for path in ["a", "b", "sub/a", "nothing"] {
        let (ns, text, json) = listed(path);
        let (touched, unknown) = expected(path);
        assert_eq!(ns, touched, "{path}");
        let words = "not listed: their files were dropped, so changes to these paths are unknown";
        let said = format!("warning: {unknown} lines are {words}");
        assert_eq!(text.matches(&said).count(), 1, "{text}");
        assert_eq!(
            json.matches(&format!("{unknown} checkpoints are {words}"))
                .count(),
            1
        );
    }
    let nothing = ok(cli.run(&["log", "--", "nothing"]));
    assert!(
        nothing
            .stderr
            .starts_with("no known changes to these paths\n"),
        "{nothing:#?}"
    );
}

#[test]
fn a_dropped_state_that_another_checkpoint_has_is_known() {
    let cli = Cli::new();
    for (n, text) in ["one", "two", "one", "two"].into_iter().enumerate() {
        write(&cli, "a", text);
        let label = format!("label-{n}");
        match n {
            0 | 3 => ok(cli.run(&["checkpoint", &label])),
            _ => ok(cli.run(&["checkpoint"])),
        };
    }
    ok(cli.run(&["gc", "--older-than", "0s"]));
    let log = ok(cli.run(&["log", "--", "a"]));
    assert_eq!(log.stdout.lines().count(), 3, "{log:#?}");
    assert_eq!(log.stderr, "");
}

/// A turn's files may be saved after each tool call: the turn changed them all the same.
#[test]
fn the_log_of_a_path_has_a_run_with_checkpoints_of_its_own_as_json_too() {
    let cli = Cli::new();
    write(&cli, "a", "one");
    let program = env!("CARGO_BIN_EXE_backtrail");
    let script = format!("echo two > a; {program} checkpoint; echo > b");
    ok(cli.run(&["run", "--", "sh", "-c", &script]));
    let log = ok(cli.run(&["log", "--json", "--", "a"])).json();
    let reasons: Vec<&str> = log
        .as_array()
        .unwrap()
        .iter()
        .map(|checkpoint| checkpoint["reason"].as_str().unwrap())
        .collect();
    assert_eq!(reasons, ["run-end", "manual"], "{log:#}");
}

#[test]
fn a_limit_that_cannot_be_met_is_reported() {
    let cli = Cli::new();
    five_states(&cli);
    let ran = cli.run(&["gc", "--max-size", "1K"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(
        ran.stdout.contains("dropped the files of 3 checkpoints"),
        "{ran:#?}"
    );
    assert!(ran.stderr.contains("over the limit"), "{ran:#?}");
    let ran = ok(cli.run(&["gc", "--max-size", "20G"]));
    assert!(ran.stdout.contains("nothing to free"), "{ran:#?}");
}

#[test]
fn wrong_arguments_are_refused_with_a_hint() {
    let cli = Cli::new();
    let ran = cli.run(&["gc"]);
    assert_eq!(ran.code, 2, "there is no store: {ran:#?}");
    five_states(&cli);
    for args in [
        ["gc", "--older-than", "30"],
        ["gc", "--older-than", "a while"],
        ["gc", "--max-size", "-1"],
        ["gc", "--max-size", "20X"],
    ] {
        let ran = cli.run(&args);
        assert_eq!(ran.code, 2, "{ran:#?}");
        assert!(ran.stdout.is_empty(), "{ran:#?}");
    }
    let before = packs(&cli);
    let workspaces = cli.store().join("workspaces");
    let mut dirs = std::fs::read_dir(workspaces)
        .unwrap()
        .map(|dir| dir.unwrap().path());
    let trail = dirs.find(|dir| dir.is_dir()).unwrap().join("0000.jsonl");
    let mut bytes = std::fs::read(&trail).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&trail, bytes).unwrap();
    let ran = cli.run(&["gc", "--older-than", "0s"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("gc stopped"), "{ran:#?}");
    assert!(ran.stderr.contains("0000.jsonl"), "{ran:#?}");
    assert!(ran.stderr.contains("verify"), "{ran:#?}");
    assert_eq!(packs(&cli), before);
}
