//! `show`: the conversation, to be read.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use backtrail::{
    Block, Compaction, Message, Note, Session, SessionOptions, Store, ToolResult, ToolUse, Usage,
};
use serde_json::{Value, json};

use crate::kit::{Cli, Ran, finish, short, snapshot};
use crate::pty::Terminal;

/// An answer with everything that Markdown has.
const ANSWER: &str = "\
# What I found

The **cart** rounds *twice*: once in `Cart::total` and once in the view, which loses a cent on \
refunds. See [the report](https://example.org/reports/41) for more.

1. round half even
2. only once
   - in `money.rs`
   - nowhere else

> People are told what they pay.

```rust
fn total(&self) -> Money {
\tself.lines.iter().sum::<Money>().rounded()
}
```

| file | lines | why |
|---|---|---|
| src/money.rs | 12 | the rounding itself |
| src/cart.rs | 3 | calls it |

漢字を含む文章も正しい幅で折り返され、次の行に続きます。e\u{301}te\u{301} too.";

fn call(id: &str, name: &str, input: Value) -> Block {
    ToolUse::new(id, name, &input).unwrap().into()
}

fn store(cli: &Cli) -> Store {
    Store::open_or_create(cli.store()).unwrap()
}

/// A session of two turns that changed files, with a bit of everything.
fn rich_session(cli: &Cli) -> String {
    let store = store(cli);
    fs::write(cli.work().join("money.rs"), "fn total() {}\n").unwrap();
    let workspace = store.workspace(&cli.work()).unwrap();
    let options = SessionOptions::new()
        .workspace(&workspace)
        .agent("mine")
        .model("m-1")
        .title("the cart loses a cent");
    let session = store.create_session(options).unwrap();
    session
        .append(Message::system_text("Be short.\nBe kind."))
        .unwrap();
    first_turn(cli, &session);
    let compaction = Compaction::new("They *fixed* the rounding.").keep(2);
    session.compact(&compaction).unwrap();
    let turn = session.begin_turn(Message::user_text("thanks")).unwrap();
    turn.append(Message::assistant([Block::text("You are welcome.")]))
        .unwrap();
    turn.end().unwrap();
    store
        .note(session.id(), &Note::new().add_tag("money"))
        .unwrap();
    session.id().to_string()
}

fn first_turn(cli: &Cli, session: &Session) {
    let prompt = "why does the cart lose a cent?\n\n    total: 0.29\n    paid:  0.28";
    let turn = session.begin_turn(Message::user_text(prompt)).unwrap();
    let message = Message::assistant([
        Block::thinking("Let me look at the rounding first.\nThen at the view."),
        Block::text("Let me look."),
        call(
            "c1",
            "bash",
            json!({"command": "cargo test --workspace -- --nocapture cart"}),
        ),
        call("c2", "grep", json!({"pattern": "round", "path": "src"})),
        call(
            "c3",
            "edit",
            json!({"file_path": "money.rs", "old": "a", "new": "b"}),
        ),
        call("c4", "odd_tool", json!({"depth": 3, "flags": [true, null]})),
    ]);
    let message = message.usage(Usage::new(12_000, 345).cache_read(400_000));
    turn.append(
        backtrail::Draft::from(message)
            .cost_usd(0.2125)
            .response_id("r1"),
    )
    .unwrap();
    let answers = [
        ("c1", ToolResult::ok("running 2 tests\nok\nok\n")),
        ("c2", ToolResult::ok("src/money.rs")),
        (
            "c3",
            ToolResult::error("no match for the old text in money.rs\nnothing was changed"),
        ),
    ];
    for (id, result) in answers {
        let tool = turn.begin_tool(id).unwrap();
        fs::write(cli.work().join("money.rs"), "fn total() { round() }\n").unwrap();
        tool.finish(result).unwrap();
    }
    turn.append(Message::assistant([Block::text(ANSWER)]))
        .unwrap();
    turn.end().unwrap();
}

#[test]
fn a_conversation_reads_well_at_any_width() {
    let cli = Cli::new();
    let id = rich_session(&cli);
    snapshot("show", &cli, &["show", &id], &[&id]);
    snapshot(
        "show-full",
        &cli,
        &["show", &id, "--full", "--turn", "1"],
        &[&id],
    );
}

#[test]
fn a_session_that_is_not_there_brings_up_the_nearest() {
    let cli = Cli::new();
    let id = cli.talk();
    let wrong = format!("{}-zz", &id[..8]);
    snapshot("show-unknown", &cli, &["show", &wrong], &[&id]);
}

/// Sets a title, colours text, goes to another line, and writes from right to left, as
/// characters and as Markdown writes them.
const HOSTILE: &str = "\u{1b}]0;owned\u{7}\u{1b}[31mred\r\u{8}\u{9b}2J\u{202e}txt\u{2066}x \
    &#27;]0;owned&#7; &#x9b;2J &#8238;txt `\u{1b}[31mcode` [a\u{1b}[2J](http://x/\u{1b}[2J) \
    <b\u{1b}[2J>";

fn assert_clean(ran: &Ran, what: &str) {
    // Our own styles are signs and numbers alone.
    let text = [&*ran.stdout, &ran.stderr].concat();
    let plain = text
        .split("\u{1b}[")
        .map(|part| match part.split_once('m') {
            Some((style, rest)) if style.bytes().all(|b| b.is_ascii_digit() || b == b';') => rest,
            _ => part,
        });
    let plain: String = plain.collect();
    let is_unsafe = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!plain.contains(is_unsafe), "{what}: {plain:?}");
    assert!(!text.contains("\u{1b}[31m"), "{what}: {text:?}");
}

#[test]
fn no_escape_of_any_text_reaches_the_terminal() {
    let cli = Cli::new();
    let store = store(&cli);
    let options = SessionOptions::new()
        .agent(HOSTILE)
        .model(HOSTILE)
        .title(HOSTILE);
    let session = store.create_session(options).unwrap();
    let markdown = format!(
        "# {HOSTILE}\n\n> {HOSTILE}\n\n- {HOSTILE}\n\n```{HOSTILE}\n{HOSTILE}\n```\n\n\
         |{HOSTILE}|b|\n|-|-|\n|{HOSTILE}|x|\n"
    );
    session.append(Message::system_text(HOSTILE)).unwrap();
    session.append(Message::user_text(HOSTILE)).unwrap();
    let inputs = [
        json!({"command": HOSTILE}),
        json!({"file_path": HOSTILE}),
        json!({ HOSTILE: HOSTILE }),
        json!(HOSTILE),
    ];
    let mut blocks = vec![
        Block::thinking(HOSTILE),
        Block::text(markdown.as_str()),
        Block::image(HOSTILE, "AAAA").unwrap(),
    ];
    for (n, input) in inputs.into_iter().enumerate() {
        blocks.push(call(&n.to_string(), HOSTILE, input));
    }
    session.append(Message::assistant(blocks)).unwrap();
    for (id, result) in [
        ("0", ToolResult::ok(HOSTILE)),
        ("1", ToolResult::error(HOSTILE)),
    ] {
        let result = result.answers(id, HOSTILE);
        session.append(Message::tool_result(result)).unwrap();
    }
    let result = ToolResult::ok(HOSTILE).answers("of no call", HOSTILE);
    session.append(Message::tool_result(result)).unwrap();
    session.compact(&Compaction::new(markdown).keep(1)).unwrap();
    let id = session.id().clone();
    store.note(&id, &Note::new().add_tag(HOSTILE)).unwrap();
    drop(session);
    let reference = id.to_string();
    for more in [&[][..], &["--full"], &["--turn", "1"], &["--turn", "0"]] {
        for colour in ["never", "always"] {
            let args = [&["show", &reference, "--color", colour], more].concat();
            let ran = cli.run(&args);
            assert_eq!(ran.code, 0, "{ran:#?}");
            assert!(ran.stdout.contains("txt"), "{ran:#?}");
            assert_clean(&ran, &format!("{args:?}"));
        }
    }
}

fn show(cli: &Cli, args: &[&str]) -> String {
    let ran = cli.run(&[&["show"], args].concat());
    assert_eq!(ran.code, 0, "{ran:#?}");
    ran.stdout
}

/// Records a conversation of prompts, each with an answer.
fn talk_of(cli: &Cli, turns: u64) -> String {
    let store = store(cli);
    let session = store.create_session(SessionOptions::new()).unwrap();
    for n in 1..=turns {
        session
            .append(Message::user_text(format!("question {n}")))
            .unwrap();
        let answer = Block::text(format!("answer {n}"));
        session.append(Message::assistant([answer])).unwrap();
    }
    session.id().to_string()
}

#[test]
fn turns_are_chosen_from_either_end_and_records_lead_to_theirs() {
    let cli = Cli::new();
    let id = talk_of(&cli, 5);
    let turns = |args: &[&str]| -> Vec<String> {
        let text = show(&cli, &[&[&*id], args].concat());
        let heads = text.lines().filter(|line| line.starts_with("── turn"));
        let number = |line: &str| line.split(' ').nth(2).unwrap().to_owned();
        let heads: Vec<String> = heads.map(number).collect();
        for n in 1..=5 {
            let is_shown = heads.contains(&n.to_string());
            assert_eq!(
                text.contains(&format!("answer {n}")),
                is_shown,
                "{args:?}: {text}"
            );
        }
        heads
    };
    assert_eq!(turns(&[]), ["1", "2", "3", "4", "5"]);
    assert_eq!(turns(&["--turn", "2"]), ["2"]);
    assert_eq!(turns(&["--turn", "-1"]), ["5"]);
    assert_eq!(turns(&["--turn", "2..3"]), ["2", "3"]);
    assert_eq!(turns(&["--turn=-2.."]), ["4", "5"]);
    let of_record = show(&cli, &[&format!("{id}:4")]);
    assert!(of_record.contains("── turn 2 "), "{of_record}");
    assert!(
        of_record.contains("→ record 4\n\n  answer 2\n"),
        "{of_record}"
    );
    assert!(!of_record.contains("answer 3"), "{of_record}");

    for (wrong, why) in [
        (&["--turn", "6"][..], "no turn 6: the session has 5 turns"),
        (&["--turn", "-6"], "no turn -6"),
        (&["--turn", "3..2"], "turn 2 comes before turn 3"),
        (&["--turn", "x"], "expected a number or a range"),
        (&["--raw", "--follow"], "cannot be used with"),
    ] {
        let ran = cli.run(&[&["show", &id], wrong].concat());
        assert_eq!((ran.code, &*ran.stdout), (2, ""), "{ran:#?}");
        assert!(ran.stderr.contains(why), "{wrong:?}: {}", ran.stderr);
    }
    let ran = cli.run(&["show", &format!("{id}:99")]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("has no record 99") && ran.stderr.contains("its last record is 10")
    );
    let ran = cli.run(&["show", &format!("{id}:2"), "--turn", "1"]);
    assert!(
        ran.code == 2 && ran.stderr.contains("omit :SEQ"),
        "{ran:#?}"
    );
}

#[test]
fn an_undone_turn_is_shown_by_its_record_and_says_so() {
    let cli = Cli::new();
    let id = talk_of(&cli, 3);
    let back = cli.run(&["rewind", &format!("{id}:2"), "--chat"]);
    assert_eq!(back.code, 0, "{back:#?}");
    let line = show(&cli, &[&id]);
    assert!(
        line.contains("answer 1") && !line.contains("answer 2"),
        "{line}"
    );
    let gone = show(&cli, &[&format!("{id}:4")]);
    assert!(gone.contains("this turn was undone"), "{gone}");
    assert!(
        gone.contains("question 2") && gone.contains("answer 2"),
        "{gone}"
    );
    assert!(
        !gone.contains("answer 1") && !gone.contains("answer 3"),
        "{gone}"
    );

    // Another one has its number now; both can be seen.
    for text in ["another question", "and another"] {
        let ran = cli.run(&["record", "--session", &id, "--text", text]);
        assert_eq!(ran.code, 0, "{ran:#?}");
    }
    let now = show(&cli, &[&format!("{id}:3")]);
    assert!(
        now.contains("another question") && !now.contains("undone"),
        "{now}"
    );
    let gone = show(&cli, &[&format!("{id}:3"), "--trail", "0"]);
    assert!(
        gone.contains("question 2") && gone.contains("undone"),
        "{gone}"
    );
}

#[test]
fn raw_is_what_is_on_disk() {
    let cli = Cli::new();
    let id = talk_of(&cli, 3);
    let trail = fs::read_to_string(cli.trail(&id, 0)).unwrap();
    let (_, records) = trail.split_once('\n').unwrap();
    assert_eq!(show(&cli, &[&id, "--raw"]), records);
    let second: Vec<&str> = records.split_inclusive('\n').skip(2).take(2).collect();
    assert_eq!(show(&cli, &[&id, "--raw", "--turn", "2"]), second.concat());
    let json = cli.run(&["show", &id, "--json", "--turn", "2"]).json();
    let texts = crate::kit::texts(&json);
    assert_eq!(texts, ["question 2", "answer 2"]);
}

#[test]
fn damage_shows_where_it_is_and_the_rest_is_read() {
    let cli = Cli::new();
    let id = talk_of(&cli, 3);
    let trail = fs::read_to_string(cli.trail(&id, 0)).unwrap();
    fs::write(cli.trail(&id, 0), trail.replace("answer 2", "ANSWER 2")).unwrap();
    let ran = cli.run(&["show", &id]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(
        ran.stdout
            .contains("skipped 1 damaged place before record 5"),
        "{ran:#?}"
    );
    assert!(
        ran.stdout.contains("answer 3") && !ran.stdout.contains("ANSWER"),
        "{ran:#?}"
    );
    assert!(ran.stderr.contains("backtrail verify"), "{ran:#?}");
}

#[test]
fn a_fork_shows_where_its_own_part_begins() {
    let cli = Cli::new();
    let id = talk_of(&cli, 2);
    let fork = cli.run(&["fork", &format!("{id}:2"), "--json"]).json();
    let fork = fork["session"].as_str().unwrap().to_owned();
    cli.run(&["record", "--session", &fork, "--text", "my own way"]);
    let text = show(&cli, &[&fork]);
    let parts: Vec<&str> = text.split("── forked here from ").collect();
    assert_eq!(parts.len(), 2, "{text}");
    assert!(
        parts[0].contains("answer 1") && !parts[0].contains("my own way"),
        "{text}"
    );
    assert!(
        parts[1].starts_with(&short(&id)) && parts[1].contains("my own way"),
        "{text}"
    );
    assert!(!text.contains("answer 2"), "{text}");
}

/// A call is shown with its result however much comes between, and if that is too much,
/// the result is still shown.
#[test]
fn results_are_shown_with_their_calls_within_bounds() {
    let cli = Cli::new();
    let store = store(&cli);
    let session = store.create_session(SessionOptions::new()).unwrap();
    session.append(Message::user_text("go")).unwrap();
    for id in ["never", "late"] {
        let block = call(id, id, json!({"command": "x"}));
        session.append(Message::assistant([block])).unwrap();
    }
    for n in 0..1100 {
        let text = Block::text(format!("between {n}"));
        session.append(Message::assistant([text])).unwrap();
    }
    let result = ToolResult::ok("at last").answers("late", "late");
    session.append(Message::tool_result(result)).unwrap();
    let id = session.id().to_string();
    drop(session);
    let text = show(&cli, &[&id]);
    assert!(text.contains("⚙ never  x   no result\n"), "{text}");
    assert!(text.contains("⚙ late  ✓ at last"), "{text}");
    for n in 0..1100 {
        assert!(text.contains(&format!("  between {n}\n")), "{n}");
    }
}

#[test]
fn signs_are_ascii_if_the_locale_is() {
    let cli = Cli::new();
    let id = cli.talk();
    let with = |locale: &str| {
        let mut command = cli.command(&["show", &id]);
        finish(command.env("LC_ALL", locale), b"").stdout
    };
    assert!(with("C").is_ascii(), "{}", with("C"));
    assert!(with("C").contains("* bash  ls   ok: src"), "{}", with("C"));
    assert!(with("C.UTF-8").contains("⚙ bash  ls   ✓ src"));
}

#[test]
fn what_has_no_cost_is_worked_out_by_the_prices() {
    let cli = Cli::new();
    let store = store(&cli);
    let options = SessionOptions::new().model("my-local-model");
    let session = store.create_session(options).unwrap();
    session.append(Message::user_text("go")).unwrap();
    let answer = Message::assistant([Block::text("gone")]);
    // Two records of one response count once.
    for _ in 0..2 {
        let usage = Usage::new(1_000_000, 500_000);
        let draft = backtrail::Draft::from(answer.clone().usage(usage));
        session.append(draft.response_id("r1")).unwrap();
    }
    let id = session.id().to_string();
    drop(session);
    let unpriced = show(&cli, &[&id]);
    assert!(unpriced.contains("1.5 M tokens · unpriced\n"), "{unpriced}");
    let prices = "[prices.my-local-model]\ninput = 0.5\noutput = 1.5\n";
    fs::write(cli.store().join("config.toml"), prices).unwrap();
    let priced = show(&cli, &[&id]);
    assert_eq!(
        priced.matches("1.5 M tokens · $1.25\n").count(),
        2,
        "{priced}"
    );
}

/// Runs `show` in a terminal of 80 columns, with a pager.
fn on_screen(cli: &Cli, args: &[&str], pager: &str) -> (i32, String) {
    let mut command = cli.command(&[&["show"], args].concat());
    command.env("BACKTRAIL_PAGER", pager).env("TERM", "xterm");
    Terminal::start(&command).end()
}

#[test]
fn on_a_terminal_it_goes_through_the_pager_and_is_clean_there() {
    if !crate::pty::is_there() {
        return;
    }
    let cli = Cli::new();
    let id = rich_session(&cli);
    let (code, screen) = on_screen(&cli, &[&id], "cat > paged; echo left");
    assert_eq!((code, screen.trim()), (0, "left"));
    let paged = fs::read_to_string(cli.work().join("paged")).unwrap();
    assert!(paged.contains("\u{1b}[1mturn 1"), "with colours: {paged}");
    assert!(paged.contains("You are welcome."), "{paged}");
    // Records as they are can hold what a terminal would obey.
    let hostile = cli.new_session("\u{9b}2J\u{202e}\u{7f}txt");
    let raw = |args: &[&str]| {
        cli.run(&[&["show", &hostile, "--raw"], args].concat())
            .stdout
    };
    assert!(raw(&[]).contains('\u{9b}'), "{}", raw(&[]));
    let (code, screen) = on_screen(&cli, &[&hostile, "--raw"], "cat");
    assert_eq!(code, 0, "{screen}");
    let is_unsafe = |c: char| matches!(c, '\u{7f}'..='\u{9f}' | '\u{202e}' | '\u{1b}');
    assert!(
        screen.contains("txt") && !screen.contains(is_unsafe),
        "{screen:?}"
    );
}

#[test]
fn code_is_in_the_colours_of_the_terminal_where_styles_are_printed() {
    let cli = Cli::new();
    let text = "So:\n\n```rust\nfn main() {}\n```\n\n```\nfn other() {}\n```\n";
    let answer = json!({"role": "assistant", "text": text});
    let id = recorded(&cli, &[json!({"role": "user", "text": "how?"}), answer]);
    let plain = cli.run(&["show", &id]).stdout;
    assert!(plain.contains("    fn main() {}\n"), "{plain}");
    assert!(!plain.contains('\u{1b}'), "{plain:?}");
    let never = cli.run(&["show", &id, "--color", "never"]).stdout;
    assert_eq!(never, plain);
    let colored = cli.run(&["show", &id, "--color", "always"]).stdout;
    let line = |text: &str| {
        let line = colored.lines().find(|line| line.contains(text));
        line.unwrap_or_else(|| panic!("no {text}: {colored:?}"))
    };
    // One of the terminal's own sixteen, and none beyond.
    assert!(line("main").contains("\u{1b}[3"), "{colored:?}");
    assert!(!colored.contains("[38;"), "{colored:?}");
    assert!(
        line("other").ends_with("\u{1b}[2mfn other() {}\u{1b}[0m"),
        "{colored:?}"
    );
    assert_eq!(anstream::adapter::strip_str(&colored).to_string(), plain);
    if crate::pty::is_there() {
        let mut command = cli.command(&["show", &id]);
        command.env("BACKTRAIL_PAGER", "cat").env("TERM", "xterm");
        command.env("NO_COLOR", "1");
        let (code, screen) = Terminal::start(&command).end();
        assert_eq!(code, 0, "{screen}");
        assert!(screen.contains("fn main() {}"), "{screen:?}");
        assert!(!screen.contains("\u{1b}[3"), "{screen:?}");
    }
}

#[test]
fn a_follower_reads_a_conversation_as_it_continues() {
    let cli = Cli::new();
    let id = cli.talk();
    let mut command = cli.command(&["show", &id, "--follow"]);
    let mut follower = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    let mut until = |text: &str| {
        let found = lines
            .by_ref()
            .map(Result::unwrap)
            .find(|line| line.contains(text));
        found.unwrap_or_else(|| panic!("{text} never came"))
    };
    assert!(until("turn 1").starts_with("── turn 1 · "));
    assert_eq!(until("⚙"), "  ⚙ bash  ls");
    assert_eq!(until("⚙"), "  ⚙ bash  ✓ src");
    until("One folder: src.");
    let ran = cli.run(&["record", "--session", &id, "--text", "and now?"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    until("turn 2");
    assert_eq!(until("and now?"), "› and now?");
    follower.kill().unwrap();
    follower.wait().unwrap();
}

/// Records lines of JSON as a session; returns its id.
pub(crate) fn recorded(cli: &Cli, lines: &[Value]) -> String {
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let ran = cli.run_with(&["record"], lines.as_bytes());
    assert_eq!(ran.code, 0, "{ran:#?}");
    let id = &ran.json_lines()[0]["session"];
    id.as_str().unwrap().to_owned()
}

#[test]
fn injected_text_has_no_tags_and_empty_output_is_not_shown() {
    let cli = Cli::new();
    let said = |text: &str| json!({"role": "user", "text": text});
    let id = recorded(
        &cli,
        &[
            said("go"),
            said("<local-command-stdout></local-command-stdout>"),
            said("<bash-stdout>it works</bash-stdout><bash-stderr></bash-stderr>"),
            said("<environment_context>\n  <cwd>/w</cwd>\n</environment_context>"),
        ],
    );
    let folded = cli.run(&["show", &id]).stdout;
    assert!(
        folded.contains("  output of a command (8 bytes)\n"),
        "{folded}"
    );
    let whole = cli.run(&["show", &id, "--full"]).stdout;
    assert!(whole.contains("output of a command: it works\n"), "{whole}");
    assert!(whole.contains("environment: cwd: /w\n"), "{whole}");
    let html = cli.run(&["export", &id, "--to", "html"]).stdout;
    let markdown = cli.run(&["export", &id, "--to", "markdown"]).stdout;
    for page in [folded, whole, html, markdown] {
        assert_eq!(page.matches("output of a command").count(), 1, "{page}");
        for tag in ["stdout", "stderr", "environment_context", "cwd>", "cwd&gt;"] {
            assert!(!page.contains(tag), "{tag}: {page}");
        }
    }
}

#[test]
fn tokens_that_count_elsewhere_are_explained() {
    let cli = Cli::new();
    let answer = json!({"type": "message", "response_id": "r1", "model": "m-1", "message":
        {"role": "assistant", "blocks": [{"type": "text", "text": "Yes."}],
        "usage": {"input_tokens": 900, "output_tokens": 100}}});
    let prompt = json!({"role": "user", "text": "Is it?"});
    let ids = [(); 2].map(|()| recorded(&cli, &[prompt.clone(), answer.clone()]));
    let pages = ids.each_ref().map(|id| cli.run(&["show", id]).stdout);
    let note = "1.0 k tokens are counted in other sessions with the same responses";
    let explained: Vec<&String> = pages.iter().filter(|page| page.contains(note)).collect();
    assert_eq!(explained.len(), 1, "{pages:#?}");
    let head = |page: &str| page.lines().nth(2).unwrap().contains("1.0 k tokens");
    assert!(!head(explained[0]), "{explained:#?}");
    let id = ids.iter().zip(&pages).find(|(_, page)| page.contains(note));
    let id = id.unwrap().0;
    for args in [
        &["stats", id][..],
        &["export", id, "--to", "html"],
        &["export", id, "--to", "markdown"],
    ] {
        let page = cli.run(args).stdout;
        assert!(page.contains(note), "{args:?} {page}");
    }
}

#[test]
fn facts_in_the_head_are_not_torn() {
    let cli = Cli::new();
    let id = rich_session(&cli);
    for columns in ["60", "80", "160"] {
        let mut command = cli.command(&["show", &id]);
        let page = finish(command.env("COLUMNS", columns), b"").stdout;
        let head = page.lines().take_while(|line| !line.is_empty());
        for line in head {
            let line = line.trim();
            assert!(!line.ends_with('·') && !line.starts_with('·'), "{page}");
            assert!(!line.ends_with(" k"), "{page}");
        }
    }
}

/// claw-code does not write where it worked.
#[test]
fn without_a_known_directory_paths_are_seen_from_the_one_that_has_all_files_of_the_calls() {
    let cli = Cli::new();
    let call = |id: &str, name: &str, path: &str| {
        let input = json!({"path": path, "old_string": "x", "new_string": "y"});
        let call = json!({"type": "tool_use", "id": id, "name": name, "input": input.to_string()});
        json!({"role": "assistant", "blocks": [call]})
    };
    let prompt = json!({"type": "text", "text": "look"});
    let messages = [
        json!({"role": "user", "blocks": [prompt]}),
        call("t1", "read_file", "/srv/shop/src/a.rs"),
        call("t2", "edit_file", "/srv/shop/b.rs"),
    ];
    let file = json!({"version": 1, "messages": messages});
    fs::write(cli.work().join("old.json"), file.to_string()).unwrap();
    assert_eq!(cli.run(&["import", "old.json"]).code, 0);
    for words in [
        &["show", "latest"][..],
        &["export", "latest", "--to", "markdown"],
        &["export", "latest", "--to", "html"],
    ] {
        let ran = cli.run(words);
        assert_eq!(ran.code, 0, "{ran:#?}");
        assert!(ran.stdout.contains("src/a.rs"), "{words:?}: {ran:#?}");
        assert!(ran.stdout.contains("b.rs"), "{words:?}: {ran:#?}");
        assert!(!ran.stdout.contains("/srv/shop"), "{words:?}: {ran:#?}");
    }
}
