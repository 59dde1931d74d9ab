//! `search`: hits that lead to the message, and hints if there are none.

use serde_json::{Value, json};

use crate::find::{fill, ok};
use crate::kit::{Cli, screen, snapshot};

#[test]
fn hits_read_well_at_every_width() {
    let cli = Cli::new();
    let found = fill(&cli);
    let args = ["search", "rounding", "--newest", "--here"];
    snapshot("search", &cli, &args, &found.ids());
    snapshot(
        "search-nothing",
        &cli,
        &["search", "bananas", "rounding"],
        &found.ids(),
    );
}

#[test]
fn a_hit_leads_to_its_message() {
    let cli = Cli::new();
    let found = fill(&cli);
    let ran = ok(cli.run(&["search", "currency"]));
    let command = ran
        .stdout
        .lines()
        .find_map(|line| line.trim().strip_prefix("backtrail "));
    let args: Vec<&str> = command.unwrap().split(' ').collect();
    let shown = ok(cli.run(&args));
    assert!(
        shown.stdout.contains("fix the currency rounding"),
        "{shown:#?}"
    );
    assert!(
        args[1].len() >= 4 && found.rounding.starts_with(args[1]),
        "{args:?}"
    );
}

#[test]
fn hits_are_json_with_stable_names() {
    let cli = Cli::new();
    let found = fill(&cli);
    let ran = ok(cli.run(&["search", "currency", "--json"]));
    assert_eq!(ran.stderr, "");
    let mut hits = ran.json();
    let hit = &mut hits[0];
    assert!(hit["score"].take().as_f64().unwrap() > 0.0);
    assert!(hit["id"].take().is_string());
    let snippet = hit["snippet"].take();
    let (from, to) = (&hit["highlights"][0][0], &hit["highlights"][0][1]);
    let (from, to) = (
        from.as_u64().unwrap() as usize,
        to.as_u64().unwrap() as usize,
    );
    let marked = snippet.as_str().unwrap().chars().skip(from).take(to - from);
    assert_eq!(marked.collect::<String>(), "currency");
    hit["highlights"].take();
    assert_eq!(
        hits,
        json!([{
            "session": found.rounding, "id": null, "trail": 0, "seq": 1, "turn": 1,
            "at": "2020-11-14T14:05:00.000Z", "role": "user", "tools": [], "project": "work",
            "title": null, "score": null, "snippet": null, "highlights": null,
        }])
    );
}

#[test]
fn hits_match_all_words_and_filters() {
    let cli = Cli::new();
    let found = fill(&cli);
    let [checkout, sub_agent, rounding, keys] = found.ids();
    for (args, expected) in [
        (
            &["rounding"][..],
            &[rounding, checkout, sub_agent, keys][..],
        ),
        (&["rounding", "--role", "user"], &[rounding]),
        (&["half even", "--here"], &[checkout, sub_agent, rounding]),
        (&["--phrase", "currency", "rounding"], &[rounding]),
        (&["\"currency rounding\""], &[rounding]),
        (&["round_half_even", "--agent", "mine"], &[keys]),
        (&["currency", "or", "keys"], &[rounding, keys]),
        (&["slow", "--model", "small"], &[]),
        (&["cent", "--tool", "edit", "--project", "infra"], &[keys]),
        (&["slow", "--since", "2020-11-15"], &[checkout, sub_agent]),
    ] {
        let args = [&["search", "--json", "-n", "100"], args].concat();
        let ran = cli.run(&args);
        let mut sessions: Vec<String> = {
            let hits = ran.json();
            let hits = hits.as_array().unwrap().iter();
            hits.map(|hit| hit["session"].as_str().unwrap().to_owned())
                .collect()
        };
        sessions.sort();
        sessions.dedup();
        let mut expected: Vec<String> = expected.iter().map(|id| (*id).to_owned()).collect();
        expected.sort();
        assert_eq!(sessions, expected, "{args:?}");
        assert_eq!(ran.code, i32::from(expected.is_empty()), "{args:?}");
    }
}

#[test]
fn no_hits_show_what_a_wider_search_would_find() {
    let cli = Cli::new();
    let found = fill(&cli);
    let ran = cli.run(&["search", "currency", "bananas"]);
    assert_eq!(
        screen(&ran, &cli, &found.ids()),
        "\
exit 1
err: nothing found: currency bananas
err: messages with each word: currency 1, bananas 0
err: to match any of them: backtrail search 'currency or bananas'
"
    );
    let ran = cli.run(&["search", "currency", "--role", "tool"]);
    assert!(
        ran.stderr.contains("without --role tool: 1 message\n"),
        "{ran:#?}"
    );
    let ran = cli.run(&["search", "curren"]);
    assert!(
        ran.stderr.contains("'curren*' matches 1 message"),
        "{ran:#?}"
    );
    let ran = cli.run(&["search", "bananas", "--json"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, "[]\n"));
}

#[test]
fn an_invalid_query_is_refused() {
    let cli = Cli::new();
    fill(&cli);
    for args in [
        &["search", ""][..],
        &["search", "\"half"],
        &["search", "or"],
        &["search", "(a"],
        &["search"],
        &["search", "a", "--role", "nobody"],
        &["search", "a", "--sort", "oldest"],
        &["search", "a", "-n", "0"],
        &["search", "a", "--newest", "--sort", "best"],
    ] {
        let ran = cli.run(args);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (2, ""),
            "{args:?}: {ran:#?}"
        );
        assert!(
            ran.stderr.starts_with("error: "),
            "{args:?}: {}",
            ran.stderr
        );
        let ran = cli.run(&[&["--json"], args].concat());
        let error: Value = serde_json::from_str(&ran.stderr).unwrap();
        assert!(error["error"]["message"].is_string(), "{args:?}");
    }
}

#[test]
fn a_damaged_index_is_rebuilt_and_reported_once() {
    let cli = Cli::new();
    fill(&cli);
    let before = ok(cli.run(&["list", "--all"]));
    let found = ok(cli.run(&["search", "rounding"]));
    let mut files = Vec::new();
    all_files(&cli.store().join("derived"), &mut files);
    assert!(!files.is_empty());
    for file in files {
        std::fs::write(&file, "noise").unwrap();
    }
    let ran = ok(cli.run(&["list", "--all"]));
    assert_eq!(ran.stdout, before.stdout);
    assert_eq!(ran.stderr.matches("warning: ").count(), 1, "{ran:#?}");
    let again = ok(cli.run(&["list", "--all"]));
    assert!(!again.stderr.contains("warning: "), "said once: {again:#?}");
    assert_eq!(ok(cli.run(&["search", "rounding"])).stdout, found.stdout);
    let ran = ok(cli.run(&["rebuild"]));
    let told = "rebuilt the catalogue and search index from 4 sessions, ";
    assert!(
        ran.stdout.starts_with(told) && ran.stderr.is_empty(),
        "{ran:#?}"
    );
    assert_eq!(ok(cli.run(&["rebuild", "--json"])).json()["sessions"], 4);
    assert_eq!(ok(cli.run(&["search", "rounding"])).stdout, found.stdout);
}

fn all_files(dir: &std::path::Path, files: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all_files(&path, files),
            false => files.push(path),
        }
    }
}
