//! `blame` and `show COMMIT` on the real program.

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::kit::{Cli, Ran, snapshot};

fn ok(ran: Ran) -> Ran {
    assert_eq!(ran.code, 0, "{ran:#?}");
    ran
}

fn write(cli: &Cli, name: &str, text: &str) {
    fs::write(cli.work().join(name), text).unwrap();
}

/// Imports a session of Claude Code that wrote a poem and committed it, long ago.
fn import_poem(cli: &Cli) -> String {
    let id = "11111111-2222-4333-8444-555555555555";
    let work = cli.work().canonicalize().unwrap();
    let line = |n: usize, kind: &str, message: serde_json::Value| {
        let parent = (n > 1).then(|| format!("u{}", n - 1));
        let at = format!("2020-01-02T03:04:{n:02}.000Z");
        json!({"type": kind, "uuid": format!("u{n}"), "parentUuid": parent, "sessionId": id,
               "cwd": work, "timestamp": at, "version": "2.0.0", "message": message})
        .to_string()
    };
    let call = |id: &str, name: &str, input: serde_json::Value| {
        json!({"id": format!("m{id}"), "type": "message", "role": "assistant", "model": "claude-x",
               "content": [{"type": "tool_use", "id": id, "name": name, "input": input}]})
    };
    let result = |id: &str, text: &str| json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text}]});
    let text = "roses are red\n\nviolets are blue\n";
    let lines = [
        line(
            1,
            "user",
            json!({"role": "user", "content": "write a poem\nabout flowers"}),
        ),
        line(
            2,
            "assistant",
            call(
                "t1",
                "Write",
                json!({"file_path": work.join("poem"), "content": text}),
            ),
        ),
        line(3, "user", result("t1", "done")),
        line(
            4,
            "assistant",
            call("t2", "Bash", json!({"command": "git commit -am poem"})),
        ),
        line(
            5,
            "user",
            result("t2", "[main abc1234] a poem\n 1 file changed"),
        ),
    ];
    let file = cli.work().join("session.jsonl");
    fs::write(&file, lines.join("\n") + "\n").unwrap();
    ok(cli.run(&["import", file.to_str().unwrap()]));
    fs::remove_file(file).unwrap();
    id.to_owned()
}

#[test]
fn blame_shows_who_wrote_each_line() {
    let cli = Cli::new();
    let session = import_poem(&cli);
    write(
        &cli,
        "poem",
        "roses are red\n\nviolets are blue\nmine from before\n",
    );
    ok(cli.run(&["checkpoint"]));
    let script = "printf 'sugar is sweet\\nand so are you, whatever the length of a line may be in the end\\n' >> poem";
    ok(cli.run(&["run", "--", "sh", "-c", script]));
    ok(cli.run(&["run", "--", "mv", "poem", "verse"]));
    let text = fs::read_to_string(cli.work().join("verse")).unwrap();
    write(&cli, "verse", &format!("{text}the end\n"));
    let json = ok(cli.run(&["blame", "verse", "--json"])).json();
    let by = |n: usize| {
        let origin = json["lines"][n]["origin"].as_u64().unwrap() as usize;
        let origin = &json["origins"][origin];
        (
            origin["kind"].as_str().unwrap().to_owned(),
            origin["by"][0]["type"].clone(),
        )
    };
    let kind = |kind: &str, by: serde_json::Value| (kind.to_owned(), by);
    for n in 0..3 {
        assert_eq!(by(n), kind("imported", json!("turn")), "{n}");
    }
    assert_eq!(by(3), kind("before", json!(null)));
    assert_eq!(by(4), kind("written", json!("run")));
    assert_eq!(by(5), kind("written", json!("run")));
    assert_eq!(by(6), kind("written", json!("you")));
    let origin = &json["origins"][0]["by"][0];
    assert_eq!(origin["session"], json!(session));
    assert_eq!(origin["prompt"], "write a poem\nabout flowers");
    let runs: Vec<&str> = json["origins"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|origin| origin["by"][0]["session"].as_str())
        .filter(|id| *id != session)
        .collect();
    snapshot("blame", &cli, &["blame", "verse"], &[&session, runs[0]]);
    let one = ok(cli.run(&["blame", "verse:1"]));
    assert!(
        one.stdout.contains("\n  write a poem\n  about flowers\n"),
        "{one:#?}"
    );
    let part = ok(cli.run(&["blame", "verse", "-L", "5,+2", "--json"])).json();
    assert_eq!(part["lines"].as_array().unwrap().len(), 2);
    assert_eq!(part["lines"][0]["line"], 5);
}

#[test]
fn wrong_files_and_lines_have_hints() {
    let cli = Cli::new();
    assert_eq!(cli.run(&["blame", "a"]).code, 2, "no checkpoint yet");
    write(&cli, "a", "one\n");
    ok(cli.run(&["checkpoint", "first"]));
    fs::remove_file(cli.work().join("a")).unwrap();
    for (args, words) in [
        (
            &["blame", "a"][..],
            "as it was when it was last saved: backtrail blame a ",
        ),
        (&["blame", "nothing"], "relative to the current directory"),
        (&["blame", "."], "is a directory"),
        (&["blame", "../x"], "outside the workspace"),
        (
            &["blame", "a", "first", "-L", "3,4"],
            "there is no line 3: the file has 1 line",
        ),
        (&["blame", "a", "first", "-L", "x"], "10,20"),
        (&["blame", "a:1", "first", "-L", "1"], "omit :LINE or -L"),
        (&["blame", "a", "zzzz"], "matches"),
    ] {
        let ran = cli.run(args);
        assert_eq!(ran.code, 2, "{args:?}: {ran:#?}");
        assert!(ran.stderr.contains(words), "{args:?}: {ran:#?}");
    }
    assert_eq!(
        ok(cli.run(&["blame", "a:1", "first"])).stdout,
        "a:1  one\nbefore Backtrail\n"
    );
}

#[test]
fn after_gc_the_oldest_state_that_is_left_is_the_beginning() {
    let cli = Cli::new();
    write(&cli, "a", "one\n");
    ok(cli.run(&["checkpoint"]));
    for n in 0..3 {
        ok(cli.run(&["run", "--", "sh", "-c", &format!("echo {n} >> a")]));
    }
    let whole = ok(cli.run(&["blame", "a"]));
    assert!(!whole.stdout.contains('?'), "{whole:#?}");
    ok(cli.run(&["gc", "--older-than", "0s"]));
    write(&cli, "a", "one\n0\n1\n2\nmine\n");
    let after = ok(cli.run(&["blame", "a", "--json"])).json();
    let last = after["lines"][4]["origin"].as_u64().unwrap() as usize;
    assert_eq!(after["origins"][last]["by"], json!([{"type": "you"}]));
    let first = after["lines"][0]["origin"].as_u64().unwrap() as usize;
    assert_eq!(
        after["origins"][first]["kind"], "before",
        "nothing older is left"
    );
}

fn git(cli: &Cli, args: &[&str]) -> Option<String> {
    let mut git = Command::new("git");
    git.current_dir(cli.work())
        .args(args)
        .env("HOME", cli.store());
    git.env("GIT_CONFIG_NOSYSTEM", "1");
    for who in ["AUTHOR", "COMMITTER"] {
        git.env(format!("GIT_{who}_NAME"), "n")
            .env(format!("GIT_{who}_EMAIL"), "e");
    }
    let output = git.output().ok()?;
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

#[test]
fn show_of_a_commit_finds_who_made_it() {
    let cli = Cli::new();
    if git(&cli, &["init", "-q"]).is_none() {
        eprintln!("SKIPPED: needs git; show COMMIT is not tested");
        return;
    }
    write(&cli, "a", "one\n");
    git(&cli, &["add", "a"]);
    git(&cli, &["commit", "-qm", "old one"]);
    let old = git(&cli, &["rev-parse", "HEAD"]).unwrap();
    // Git's times have whole seconds: each commit gets its own.
    let trail = cli.work().join(".git/logs/HEAD");
    let log = fs::read_to_string(&trail).unwrap();
    let (head, tail) = log.rsplit_once("> ").unwrap();
    let (_, tail) = tail.split_once(' ').unwrap();
    fs::write(&trail, format!("{head}> 1700000000 {tail}")).unwrap();
    ok(cli.run(&["checkpoint"]));
    let before = cli.run(&["show", &old[..7]]);
    assert_eq!(before.code, 1, "{before:#?}");
    assert!(
        before.stdout.contains("(old one) was made at 2023-11-14"),
        "{before:#?}"
    );
    assert!(before.stdout.contains("before Backtrail"), "{before:#?}");
    let script =
        "echo two > b; git add b; git -c user.name=n -c user.email=e commit -qm 'by a run'";
    ok(cli.run(&["run", "--", "sh", "-c", script]));
    let new = git(&cli, &["rev-parse", "HEAD"]).unwrap();
    let made = ok(cli.run(&["show", &new]));
    assert!(
        made.stdout
            .contains("(by a run) was made by the run `sh -c"),
        "{made:#?}"
    );
    let head = cli.run(&["show", "HEAD"]);
    assert_eq!((head.code, head.stdout), (made.code, made.stdout.clone()));
    let none = cli.run(&["show", "0123456789"]);
    assert_eq!(none.code, 2);
    assert!(none.stderr.contains("no session"), "{none:#?}");
}

#[test]
fn a_commit_that_an_imported_session_printed_is_shown_with_its_turn() {
    let cli = Cli::new();
    let session = import_poem(&cli);
    write(&cli, "a", "one\n");
    ok(cli.run(&["checkpoint"]));
    let shown = ok(cli.run(&["show", "abc1234"]));
    assert!(shown.stdout.contains("write a poem"), "{shown:#?}");
    assert!(
        shown.stderr.contains("abc1234 (a poem) was made by turn"),
        "{shown:#?}"
    );
    let agent = [" of Claude Code ", " of claude-code "].map(|name| shown.stderr.contains(name));
    assert_eq!(agent, [true, false], "{shown:#?}");
    let json = ok(cli.run(&["show", "abc1234", "--json"])).json();
    assert_eq!(json["id"], json!(session));
    assert_eq!(cli.run(&["show", "abc1234", "--follow"]).code, 2);
}

#[test]
fn a_commit_between_turns_is_yours_in_every_worktree() {
    let cli = Cli::new();
    if git(&cli, &["init", "-q"]).is_none() {
        eprintln!("SKIPPED: needs git; show COMMIT in worktrees is not tested");
        return;
    }
    write(&cli, "a", "one\n");
    git(&cli, &["add", "a"]);
    git(&cli, &["commit", "-qm", "first"]);
    git(&cli, &["worktree", "add", "-q", "beside"]);
    ok(cli.run(&["checkpoint"]));
    // Git's times have whole seconds: this one is well after the checkpoint.
    git(
        &cli,
        &["-C", "beside", "commit", "-qm", "mine", "--allow-empty"],
    );
    let log = cli.work().join(".git/worktrees/beside/logs/HEAD");
    let text = fs::read_to_string(&log).unwrap();
    let (head, tail) = text.rsplit_once("> ").unwrap();
    let (seconds, tail) = tail.split_once(' ').unwrap();
    let later = seconds.parse::<u64>().unwrap() + 60;
    fs::write(&log, format!("{head}> {later} {tail}")).unwrap();
    let id = git(&cli, &["-C", "beside", "rev-parse", "HEAD"]).unwrap();
    let shown = cli.run(&["show", &id[..10]]);
    assert_eq!(shown.code, 1, "{shown:#?}");
    let line = format!("you made {} (mine) at ", &id[..7]);
    assert!(shown.stdout.starts_with(&line), "{shown:#?}");
}

#[test]
fn the_beginning_of_two_commits_names_both() {
    let cli = Cli::new();
    if git(&cli, &["init", "-q"]).is_none() {
        eprintln!("SKIPPED: needs git; ambiguous commits are not tested");
        return;
    }
    write(&cli, "a", "one\n");
    git(&cli, &["add", "a"]);
    git(&cli, &["commit", "-qm", "first"]);
    ok(cli.run(&["checkpoint"]));
    let log = cli.work().join(".git/logs/HEAD");
    let ids = ["1", "2"].map(|end| format!("{}{end}", "abcdef0".repeat(5) + "0000"));
    let line = |id: &String| {
        format!(
            "{} {id} n <e> 1700000000 +0000\tcommit: x\n",
            "1".repeat(40)
        )
    };
    let text = fs::read_to_string(&log).unwrap() + &ids.iter().map(line).collect::<String>();
    fs::write(&log, text).unwrap();
    let both = cli.run(&["show", "abcdef0"]);
    assert_eq!(both.code, 2, "{both:#?}");
    assert!(both.stderr.contains("matches 2 commits"), "{both:#?}");
    for id in &ids {
        assert!(both.stderr.contains(id), "{both:#?}");
        let one = cli.run(&["show", id]);
        assert!(
            one.stdout.contains("(x) was made at 2023-11-14"),
            "{one:#?}"
        );
    }
}

#[test]
fn a_single_line_has_its_prompt_where_there_is_room() {
    let cli = Cli::new();
    let file = cli.work().join("a.txt");
    fs::write(&file, "one\n").unwrap();
    cli.run(&["run", "--", "sh", "-c", "echo two >> a.txt"]);
    for columns in ["60", "80", "160"] {
        let mut command = cli.command(&["blame", "a.txt"]);
        let ran = crate::kit::finish(command.env("COLUMNS", columns), b"");
        assert!(ran.stdout.contains("echo two >> a.txt"), "{ran:#?}");
    }
}
