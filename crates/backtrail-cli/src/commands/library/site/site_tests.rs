//! What the pages are told is what the commands print: ranges of records are the export, cut;
//! lists are those of `list`, and amounts those of `stats`.

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use backtrail::{Draft, Message, Note, Role, Session, SessionId, SessionOptions, Usage};
use backtrail_view::library::{Change, Library, Scope, Watch};
use backtrail_web::library::{
    Condition, GroupBy, RecordsRequest, Redaction, SessionQuery, SessionsFound, Site, SpendingQuery,
};
use proptest::collection::vec;
use proptest::prelude::*;

use super::super::StoreLibrary;
use super::super::lab::Lab;
use super::super::player::{Player, Step, step};
use super::super::testing::{Fixture, answer, call, imported_with_sub_agent, result};

/// Longer than anything takes on a busy machine.
const LONG: Duration = Duration::from_secs(30);

fn range(library: &StoreLibrary, session: &str, first: u64, last: u64) -> String {
    let request = RecordsRequest {
        session: session.to_owned(),
        first,
        last,
        trail: None,
    };
    library.records(&request).unwrap().html
}

/// Returns the records of a session, in ranges of so many.
fn in_ranges(library: &StoreLibrary, session: &Session, step: u64) -> String {
    let id = session.id().as_str();
    let ranges = (0..=session.last_seq()).step_by(step.try_into().unwrap());
    ranges
        .map(|first| range(library, id, first, first + step - 1))
        .collect()
}

/// Returns the conversation of an exported page.
fn exported(library: &StoreLibrary, session: &SessionId) -> String {
    let exported = library
        .export(session.as_str(), "html", Redaction::None)
        .unwrap();
    let page = String::from_utf8(exported.bytes).unwrap();
    let (_, page) = page.split_once("<header class=\"head\">").unwrap();
    let (_, body) = page.split_once("</header>\n").unwrap();
    let (body, _) = body.split_once("</main>\n<nav").unwrap();
    body.to_owned()
}

/// Fails with the first lines that differ.
fn assert_same(found: &str, expected: &str) {
    let mut pairs = found.lines().zip(expected.lines()).enumerate();
    let first = pairs.find(|(_, (a, b))| a != b);
    assert_eq!(first, None);
    assert_eq!(found.len(), expected.len(), "one ends before the other");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn ranges_of_records_are_the_export_cut_anywhere(
        steps in vec(step(), 1..160),
        size in 1..40u64,
    ) {
        let fixture = Fixture::new();
        let mut player = Player::measured(fixture.session(SessionOptions::new()));
        steps.iter().for_each(|step| player.play(step));
        let whole = exported(&fixture.library, player.session.id());
        assert_same(&in_ranges(&fixture.library, &player.session, size), &whole);
    }
}

#[test]
fn the_end_of_a_long_turn_has_the_cost_of_all_of_it() {
    let fixture = Fixture::new();
    let mut player = Player::measured(fixture.session(SessionOptions::new()));
    player.play(&Step::Prompt(1));
    for _ in 0..700 {
        player.play(&Step::Calls(1));
        player.play(&Step::Result(1));
    }
    player.play(&Step::Compaction);
    for _ in 0..1_100 {
        player.play(&Step::Answer(1));
    }
    player.play(&Step::Prompt(1));
    let whole = exported(&fixture.library, player.session.id());
    assert_eq!(whole.matches("turn-end").count(), 2);
    assert_same(&in_ranges(&fixture.library, &player.session, 100), &whole);
}

#[test]
fn results_in_one_record_have_one_place_to_link_to() {
    let fixture = Fixture::new();
    let session = fixture.session(SessionOptions::new());
    session.append(Message::user_text("look")).unwrap();
    for id in ["t1", "t2"] {
        session
            .append(Message::assistant([call(id, "ls")]))
            .unwrap();
    }
    let both = ["t1", "t2"].map(|id| result(id, "done").blocks.remove(0));
    session.append(Message::new(Role::Tool, both)).unwrap();
    let whole = exported(&fixture.library, session.id());
    assert_eq!(whole.matches("id=\"r4\"").count(), 1, "{whole}");
    assert_same(&in_ranges(&fixture.library, &session, 1), &whole);
}

#[test]
fn an_undone_turn_is_read_from_its_trail() {
    let fixture = Fixture::new();
    let session = fixture.session(SessionOptions::new());
    for text in ["one", "two"] {
        session.append(Message::user_text(text)).unwrap();
        session
            .append(answer(&format!("answer to {text}")))
            .unwrap();
    }
    session.rewind_chat(2).unwrap();
    session.append(Message::user_text("three")).unwrap();
    let request = |trail| RecordsRequest {
        session: session.id().to_string(),
        first: 0,
        last: 99,
        trail,
    };
    let undone = fixture.library.records(&RecordsRequest {
        first: 4,
        ..request(Some(0))
    });
    let undone = undone.unwrap();
    assert_eq!(undone.end, 4);
    assert!(undone.html.contains("answer to two"), "{}", undone.html);
    assert!(!undone.html.contains("one") && !undone.html.contains("three"));
    let line = fixture.library.records(&request(None)).unwrap();
    assert_eq!(line.end, 3);
    assert!(!line.html.contains("answer to two"), "{}", line.html);
}

#[test]
fn a_turn_end_has_its_records_and_a_sub_agent_its_session() {
    let fixture = Fixture::new();
    let mut player = Player::measured(fixture.session(SessionOptions::new()));
    player.play(&Step::Prompt(1));
    let session = &player.session;
    session
        .append(Message::assistant([call("t2", "task")]))
        .unwrap();
    let child = session
        .spawn("t2", SessionOptions::new().title("<b>helper</b>"))
        .unwrap();
    session.append(result("t2", "done")).unwrap();
    player.play(&Step::Answer(1));
    fixture.library.fresh_index().unwrap().catch_up().unwrap();
    let html = range(&fixture.library, player.session.id().as_str(), 0, 99);
    assert_eq!(html.matches("data-session").count(), 1, "{html}");
    let last = player.session.last_seq();
    let end = format!("<p class=\"used turn-end\" data-first=\"1\" data-last=\"{last}\">");
    assert!(html.contains(&end), "{html}");
    let started = format!("<p class=\"note\" data-session=\"{}\">", child.id());
    assert!(html.contains(&started), "{html}");
    assert!(html.contains("&lt;b&gt;helper&lt;/b&gt;"), "{html}");
}

#[test]
fn a_call_of_an_imported_session_has_the_sub_agent_that_it_started() {
    let fixture = Fixture::new();
    let [parent, child] = imported_with_sub_agent(&fixture);
    let html = range(&fixture.library, parent.as_str(), 0, 99);
    let call = format!("</details>\n<p class=\"note\" data-session=\"{child}\">");
    let (before, after) = html.split_once(&call).expect(&html);
    assert!(before.contains("<b>Task</b>"), "{html}");
    let (words, _) = after.split_once("</p>").unwrap();
    assert!(words.ends_with(": count &lt;the&gt; zebras"), "{words}");
    assert_eq!(html.matches("data-session").count(), 1, "{html}");
    assert_eq!(exported(&fixture.library, &parent), html);
}

#[test]
fn no_text_of_a_session_is_markup() {
    let fixture = Fixture::new();
    let hostile = "</p><script>alert(1)</script><img src=x onerror=alert(2)>\"' onclick='x'";
    let options = SessionOptions::new().title(hostile).agent(hostile);
    let session = fixture.session(options.tags([hostile]));
    session.append(Message::user_text(hostile)).unwrap();
    session
        .append(Message::assistant([call("t1", hostile)]))
        .unwrap();
    session.append(result("t1", hostile)).unwrap();
    session
        .append(Draft::from(answer(hostile).usage(Usage::new(1, 1))).model(hostile))
        .unwrap();
    let id = session.id().as_str();
    let library = &fixture.library;
    let page = library.session_page(id).unwrap();
    let view = library.spending(&by(GroupBy::Model)).unwrap();
    for html in [range(library, id, 0, 99), page.head_html, view.svg] {
        let lower = html.to_lowercase();
        assert!(lower.contains("&lt;script&gt;"), "{html}");
        assert!(
            !lower.contains("<script") && !lower.contains("<img"),
            "{html}"
        );
        assert!(
            !lower.contains("<style") && !lower.contains("style="),
            "{html}"
        );
    }
}

fn everything() -> SessionQuery {
    SessionQuery {
        scope: Scope::Everything,
        agents: Vec::new(),
        projects: Vec::new(),
        models: Vec::new(),
        tags: Vec::new(),
        since: None,
        until: None,
        title: String::new(),
        with_wordless: false,
        skip: 0,
        limit: 100,
    }
}

/// Catches up, and returns what is found then.
fn found(fixture: &Fixture, query: &SessionQuery) -> SessionsFound {
    fixture.library.fresh_index().unwrap().catch_up().unwrap();
    fixture.library.find_sessions(query).unwrap()
}

fn titles(found: &SessionsFound) -> Vec<&str> {
    let rows = found.rows.iter();
    rows.map(|row| row.entry.title.as_str()).collect()
}

/// Adds an answer that cost so much, at a time.
fn spend(session: &Session, model: &str, dollars: f64, at: &str) {
    let reply = answer("done").usage(Usage::new(1000, 500));
    let draft = Draft::from(reply).model(model).cost_usd(dollars);
    session.append(draft.at(at.parse().unwrap())).unwrap();
}

/// Makes three sessions, the last one the newest.
fn shop() -> (Fixture, [Session; 3]) {
    let fixture = Fixture::new();
    let session = |title: &str, agent: &str| {
        let session = fixture.session(SessionOptions::new().title(title).agent(agent));
        session
            .append(Message::user_text(format!("do {title}")))
            .unwrap();
        session
    };
    let cart = session("The Cart", "codex");
    spend(&cart, "m-1", 3.0, "2026-11-03T12:00:00Z");
    spend(&cart, "m-2", 1.0, "2026-11-03T13:00:00Z");
    spend(&cart, "m-2", 1.0, "2026-11-03T14:00:00Z");
    cart.note(&Note::new().tags(["money", "urgent"])).unwrap();
    let shelf = session("the shelf", "claude-code");
    spend(&shelf, "m-1", 0.5, "2026-11-05T12:00:00Z");
    shelf.note(&Note::new().tags(["money"])).unwrap();
    let till = session("till", "codex");
    (fixture, [cart, shelf, till])
}

#[test]
fn sessions_are_found_by_what_the_filters_of_list_take() {
    let (fixture, _sessions) = shop();
    let all = found(&fixture, &everything());
    assert_eq!((all.matching, all.all), (3, 3));
    let only = |change: &dyn Fn(&mut SessionQuery)| {
        let mut query = everything();
        change(&mut query);
        let found = found(&fixture, &query);
        let mut titles: Vec<String> = titles(&found).into_iter().map(str::to_owned).collect();
        titles.sort();
        titles
    };
    assert_eq!(
        only(&|query| query.agents = vec!["codex".into()]),
        ["The Cart", "till"]
    );
    // As people call it.
    assert_eq!(
        only(&|query| query.agents = vec!["claude".into()]),
        ["the shelf"]
    );
    assert_eq!(
        only(&|query| query.models = vec!["m-2".into()]),
        ["The Cart"]
    );
    assert_eq!(
        only(&|query| query.title = " THE ".into()),
        ["The Cart", "the shelf"]
    );
    assert_eq!(
        only(&|query| query.tags = vec!["money".into()]),
        ["The Cart", "the shelf"]
    );
    let both = vec!["money".into(), "urgent".into()];
    assert_eq!(only(&|query| query.tags = both.clone()), ["The Cart"]);
    assert_eq!(
        only(&|query| query.until = Some("2026-11-04".into())),
        ["The Cart"]
    );
    let mut wrong = everything();
    wrong.since = Some("soon".to_owned());
    let failure = fixture.library.find_sessions(&wrong).unwrap_err();
    assert!(failure.message.contains("must be a time"), "{failure:?}");
}

#[test]
fn a_search_finds_messages_of_the_sessions_that_the_filters_leave() {
    let (fixture, sessions) = shop();
    let only = |change: &dyn Fn(&mut SessionQuery)| {
        let mut query = everything();
        change(&mut query);
        let found = fixture.library.find_messages("do", &query).unwrap();
        assert_eq!(found.all, found.hits.len() as u64);
        let ids = found.hits.into_iter().map(|hit| hit.place.session);
        let at = |id: String| sessions.iter().position(|it| it.id().as_str() == id);
        let mut found: Vec<usize> = ids.map(|id| at(id).unwrap()).collect();
        found.sort_unstable();
        // What is still being typed also finds "done".
        found.dedup();
        found
    };
    assert_eq!(only(&|_| {}), [0, 1, 2]);
    assert_eq!(only(&|query| query.agents = vec!["codex".into()]), [0, 2]);
    assert_eq!(only(&|query| query.models = vec!["m-2".into()]), [0]);
    assert_eq!(only(&|query| query.title = "THE".into()), [0, 1]);
    let tags = ["money", "urgent"];
    let tagged = |n: usize| tags[..n].iter().map(|&tag| tag.to_owned()).collect();
    assert_eq!(only(&|query| query.tags = tagged(1)), [0, 1]);
    assert_eq!(only(&|query| query.tags = tagged(2)), [0]);
    assert_eq!(only(&|query| query.scope = Scope::Project), [0, 1, 2]);
    assert!(only(&|query| query.title = "nowhere".into()).is_empty());
    let two = SessionQuery {
        limit: 2,
        ..everything()
    };
    let found = fixture.library.find_messages("do", &two).unwrap();
    assert_eq!((found.hits.len(), found.all), (2, 7));
}

#[test]
fn a_part_of_the_list_has_models_and_tokens_and_says_how_many_match() {
    let (fixture, _sessions) = shop();
    let all = found(&fixture, &everything());
    let part = found(
        &fixture,
        &SessionQuery {
            skip: 1,
            limit: 1,
            ..everything()
        },
    );
    assert_eq!(part.matching, 3);
    assert_eq!(part.rows, all.rows[1..2]);
    let list = fixture
        .library
        .sessions(Scope::Everything, backtrail_view::library::Freshness::Known);
    let list = list.unwrap();
    let entries: Vec<_> = all.rows.iter().map(|row| row.entry.clone()).collect();
    assert_eq!(entries, list.entries);
    let cart = all
        .rows
        .iter()
        .find(|row| row.entry.title == "The Cart")
        .unwrap();
    assert_eq!(
        (cart.model.as_str(), cart.tokens.as_str()),
        ("m-2", "4.5 k")
    );
}

#[test]
fn choices_are_the_most_used_first() {
    let (fixture, _sessions) = shop();
    found(&fixture, &everything());
    let choices = fixture.library.choices().unwrap();
    let agents: Vec<_> = choices
        .agents
        .iter()
        .map(|(name, title)| (name.as_str(), title.as_str()))
        .collect();
    assert_eq!(agents, [("codex", "Codex"), ("claude-code", "Claude Code")]);
    assert_eq!(choices.models, ["m-1", "m-2"]);
    assert_eq!(choices.tags, ["money", "urgent"]);
    assert_eq!(choices.projects, ["shop"]);
}

struct Told {
    changes: Receiver<Change>,
    _watch: Box<dyn Watch>,
}

fn watched(library: &StoreLibrary) -> Told {
    let (sender, changes) = channel();
    let tell = Box::new(move |change| drop(sender.send(change)));
    Told {
        changes,
        _watch: library.watch(tell).unwrap(),
    }
}

impl Told {
    fn wait_for(&self, wanted: &Change) {
        let deadline = Instant::now() + LONG;
        while self
            .changes
            .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            .unwrap()
            != *wanted
        {}
    }
}

#[test]
fn the_list_is_as_it_was_known_and_then_a_change_is_told_until_it_is_current() {
    let (fixture, [cart, ..]) = shop();
    let told = watched(&fixture.library);
    let find = || fixture.library.find_sessions(&everything()).unwrap();
    assert_eq!(find().all, 0, "nothing is known yet");
    while find().all < 3 {
        told.wait_for(&Change::Sessions);
    }
    spend(&cart, "m-3", 1.0, "2026-11-06T12:00:00Z");
    told.wait_for(&Change::Session(cart.id().to_string()));
    let turns = || {
        let found = find();
        let row = found.rows.iter().find(|row| row.entry.title == "The Cart");
        row.unwrap().tokens.clone()
    };
    while turns() != "6.0 k" {
        told.wait_for(&Change::Sessions);
    }
}

#[test]
fn several_sessions_that_are_shown_are_reported_however_old_they_are() {
    let (fixture, sessions) = shop();
    // Without a catalogue nothing is known to be recent.
    let told = watched(&fixture.library);
    for session in &sessions {
        range(&fixture.library, session.id().as_str(), 0, 9);
    }
    for session in &sessions {
        session.append(Message::user_text("more")).unwrap();
        told.wait_for(&Change::Session(session.id().to_string()));
    }
}

fn by(by: GroupBy) -> SpendingQuery {
    SpendingQuery {
        by,
        scope: Scope::Everything,
        since: None,
        until: None,
        limit: 100,
    }
}

#[test]
fn amounts_are_those_of_stats_and_of_times_the_newest_are_kept() {
    let (fixture, [cart, ..]) = shop();
    let view = fixture.library.spending(&by(GroupBy::Model)).unwrap();
    let rows: Vec<_> = view
        .rows
        .iter()
        .map(|row| {
            (
                row.key.as_str(),
                row.amounts.micro_dollars,
                row.cost.as_str(),
                row.share,
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            ("m-1", Some(3_500_000), "$3.50", 1000),
            ("m-2", Some(2_000_000), "$2.00", 571),
        ]
    );
    assert_eq!(view.total.amounts.micro_dollars, Some(5_500_000));
    assert_eq!(
        (view.total.amounts.input, view.total.amounts.output),
        (4000, 2000)
    );
    assert!(view.svg.starts_with("<svg") && view.svg.contains("class=\"bar\""));
    let days = fixture
        .library
        .spending(&SpendingQuery {
            limit: 2,
            ..by(GroupBy::Day)
        })
        .unwrap();
    let keys: Vec<_> = days.rows.iter().map(|row| row.key.as_str()).collect();
    assert_eq!((keys, days.all), (vec!["2026-11-04", "2026-11-05"], 3));
    let sessions = fixture.library.spending(&by(GroupBy::Session)).unwrap();
    assert_eq!(sessions.rows[0].key, cart.id().to_string());
    assert_eq!(sessions.rows[0].amounts.micro_dollars, Some(5_000_000));
    let blocks = fixture.library.spending(&by(GroupBy::Block)).unwrap();
    assert_eq!(
        (blocks.rows.len(), blocks.rows[0].cost.as_str()),
        (2, "$5.00")
    );
    let since = SpendingQuery {
        since: Some("2026-11-04".to_owned()),
        ..by(GroupBy::Project)
    };
    assert_eq!(
        fixture.library.spending(&since).unwrap().total.cost,
        "$0.50"
    );
}

#[test]
fn a_total_above_the_newest_times_is_theirs() {
    let (fixture, _sessions) = shop();
    let newest = |by_time| {
        let query = SpendingQuery {
            limit: 1,
            ..by(by_time)
        };
        let view = fixture.library.spending(&query).unwrap();
        assert_eq!(view.rows.len(), 1, "{view:?}");
        (view.total.cost, view.all)
    };
    assert_eq!(newest(GroupBy::Day), ("$0.50".to_owned(), 3));
    assert_eq!(newest(GroupBy::Block), ("$0.50".to_owned(), 2));
    assert_eq!(newest(GroupBy::Month), ("$5.50".to_owned(), 1));
    // Groups that are no times add up to all of it.
    assert_eq!(newest(GroupBy::Model), ("$5.50".to_owned(), 2));
    let session = fixture.session(SessionOptions::new());
    spend(&session, "m-1", 2.0, "2026-11-12T12:00:00Z");
    let library = fixture.again();
    let query = SpendingQuery {
        limit: 1,
        ..by(GroupBy::Week)
    };
    let view = library.spending(&query).unwrap();
    let key = view.rows[0].key.as_str();
    assert_eq!((key, view.total.cost.as_str()), ("2026-W46", "$2.00"));
    assert!(view.svg.contains("$2.00") && !view.svg.contains("$7.50"));
}

#[test]
fn the_sessions_of_weeks_and_blocks_have_titles_and_short_ids() {
    let (fixture, [cart, shelf, _]) = shop();
    let week = fixture.library.spending(&by(GroupBy::Week)).unwrap();
    let mut named: Vec<_> = week.rows[0].sessions.iter().collect();
    named.sort_by_key(|session| &session.title);
    let found: Vec<_> = named
        .iter()
        .map(|it| (it.title.as_str(), it.id.as_str()))
        .collect();
    let expected = [
        ("The Cart", cart.id().as_str()),
        ("the shelf", shelf.id().as_str()),
    ];
    assert_eq!(found, expected);
    assert!(cart.id().short().starts_with(&named[0].short), "{named:?}");
    let blocks = fixture.library.spending(&by(GroupBy::Block)).unwrap();
    assert_eq!(blocks.rows[1].sessions[0].title, "the shelf");
}

#[test]
fn tools_are_counted_by_calls() {
    let fixture = Fixture::new();
    let session = fixture.session(SessionOptions::new());
    for n in 0..3 {
        session
            .append(Message::assistant([call(&format!("t{n}"), "ls")]))
            .unwrap();
    }
    let view = fixture.library.spending(&by(GroupBy::Tool)).unwrap();
    assert_eq!(
        (view.rows[0].name.as_str(), view.rows[0].amounts.calls),
        ("bash", 3)
    );
    assert_eq!(view.rows[0].amounts.micro_dollars, None);
}

#[test]
fn the_dearest_turns_come_first_with_their_prompts() {
    let fixture = Fixture::new();
    let mut ids = Vec::new();
    for (name, dollars) in [("a", [1.0, 4.0]), ("b", [3.0, 2.0])] {
        let session = fixture.session(SessionOptions::new().title(name));
        for (n, dollars) in dollars.into_iter().enumerate() {
            session
                .append(Message::user_text(format!("{name}{n}")))
                .unwrap();
            spend(&session, "m", dollars / 2.0, "2026-11-03T12:00:00Z");
            spend(&session, "m", dollars / 2.0, "2026-11-03T12:00:00Z");
        }
        ids.push(session.id().to_string());
    }
    let query = SpendingQuery {
        limit: 3,
        ..by(GroupBy::Session)
    };
    let turns = fixture.library.dearest_turns(&query).unwrap();
    let found: Vec<_> = turns
        .iter()
        .map(|it| {
            (
                it.prompt.as_str(),
                it.cost.as_str(),
                it.seq,
                it.title.as_str(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("a1", "$4.00", 4, "a"),
            ("b0", "$3.00", 1, "b"),
            ("b1", "$2.00", 4, "b"),
        ]
    );
    assert_eq!(turns[0].session, ids[0]);
}

#[test]
fn what_fills_a_context_is_named_by_role_and_tool() {
    let fixture = Fixture::new();
    let session = fixture.session(SessionOptions::new());
    session
        .append(Message::user_text("x".repeat(4000)))
        .unwrap();
    session
        .append(Message::assistant([call("t1", "ls")]))
        .unwrap();
    session.append(result("t1", &"y".repeat(40_000))).unwrap();
    session.append(answer(&"z".repeat(400))).unwrap();
    let parts = fixture
        .library
        .context_parts(session.id().as_str())
        .unwrap();
    let found: Vec<_> = parts
        .iter()
        .map(|part| (part.name.as_str(), part.tokens))
        .collect();
    assert_eq!(
        found[..3],
        [
            ("output of bash", 10_000),
            ("prompts", 1_000),
            ("answers", 100)
        ]
    );
    assert_eq!(found[3].0, "calls of bash");
    let shares: u32 = parts.iter().map(|part| u32::from(part.share)).sum();
    assert!((997..=1000).contains(&shares), "{shares}");
}

#[test]
fn a_session_is_found_by_its_short_id_and_has_its_family() {
    let fixture = Fixture::new();
    let session = fixture.session(SessionOptions::new().title("first").agent("codex"));
    session.append(Message::user_text("begin")).unwrap();
    spend(&session, "m-1", 1.0, "2026-11-03T12:00:00Z");
    let fork = session.fork(&backtrail::ForkOptions::new()).unwrap();
    fork.note(&Note::new().title("again")).unwrap();
    let page = fixture
        .library
        .session_page(&session.id().short()[..6])
        .unwrap();
    assert_eq!(page.row.entry.id, session.id().to_string());
    assert_eq!((page.first, page.end), (0, 2));
    let family: Vec<_> = page
        .family
        .iter()
        .map(|it| (it.depth, it.title.as_str()))
        .collect();
    assert_eq!(family, [(0, "first"), (1, "[fork] again")]);
    // The head is that of the export.
    let exported = fixture
        .library
        .export(&page.row.entry.id, "html", Redaction::None)
        .unwrap();
    let exported = String::from_utf8(exported.bytes).unwrap();
    assert!(exported.contains(&page.head_html), "{}", page.head_html);
    assert!(page.writer.is_some());
    assert_eq!(page.workspace, "");
}

#[test]
fn an_outline_has_prompts_and_compactions_in_order() {
    let fixture = Fixture::new();
    let mut player = Player::new(fixture.session(SessionOptions::new()));
    for step in [
        Step::Prompt(1),
        Step::Answer(1),
        Step::Compaction,
        Step::Injected(1),
        Step::Prompt(1),
    ] {
        player.play(&step);
    }
    let outline = fixture
        .library
        .outline(player.session.id().as_str())
        .unwrap();
    let found: Vec<_> = outline
        .entries
        .iter()
        .map(|it| (it.seq, it.is_compaction))
        .collect();
    assert_eq!(found, [(1, false), (3, true), (5, false)]);
    assert_eq!(outline.entries[0].text, "please");
    assert!(
        outline.entries[1].text.starts_with("a summary ("),
        "{outline:?}"
    );
    assert_eq!(outline.left, 0);
}

#[test]
fn an_export_has_a_name_and_says_what_was_removed() {
    let fixture = Fixture::new();
    let session = fixture.session(SessionOptions::new());
    let key = format!("sk-ant-api03-{}AA", "a1B2".repeat(23));
    session
        .append(Message::user_text(format!("use {key}")))
        .unwrap();
    let id = session.id().as_str();
    let whole = fixture
        .library
        .export(id, "markdown", Redaction::None)
        .unwrap();
    assert!(
        whole.file_name.ends_with(".md") && whole.notes.is_empty(),
        "{whole:?}"
    );
    assert!(String::from_utf8(whole.bytes).unwrap().contains(&key));
    let redacted = fixture
        .library
        .export(id, "markdown", Redaction::Secrets)
        .unwrap();
    assert!(!String::from_utf8(redacted.bytes).unwrap().contains(&key));
    assert_eq!(redacted.notes.len(), 1, "{:?}", redacted.notes);
    let wrong = fixture
        .library
        .export(id, "docx", Redaction::None)
        .unwrap_err();
    assert!(wrong.message.contains("is not a format"), "{wrong:?}");
}

#[test]
fn health_counts_what_there_is_and_names_damage_first() {
    let (fixture, [cart, ..]) = shop();
    let numbers = |health: &backtrail_web::library::Health, name: &str| {
        let found = health.numbers.iter().find(|(it, _)| it == name);
        found.unwrap().1.clone()
    };
    let health = fixture.library.health().unwrap();
    assert_eq!(numbers(&health, "sessions"), "3");
    let damage = health
        .findings
        .iter()
        .find(|it| it.name == "damage")
        .unwrap();
    assert_eq!(damage.condition, Condition::Fine);
    let id = cart.id().clone();
    drop(cart);
    fixture.damage(&id);
    let library = fixture.again();
    let health = library.health().unwrap();
    let first = &health.findings[0];
    assert_eq!(
        (first.condition, first.name.as_str()),
        (Condition::Bad, "damage")
    );
    assert!(first.hint.as_ref().unwrap().contains("verify"), "{first:?}");
}

#[test]
fn another_workspace_has_its_own_plans() {
    let lab = Lab::new();
    lab.write("a.txt", "1");
    lab.turn("write a", "a.txt", "2");
    let store = lab.library.store.clone();
    let other = lab.dir.path().join("other");
    super::super::testing::make_directory(&other);
    let other = store.workspace(&other).unwrap();
    other
        .checkpoint(backtrail::CheckpointOptions::new())
        .unwrap();
    let entries = lab.library.workspaces().unwrap();
    let names: Vec<_> = entries
        .iter()
        .map(|it| (it.name.as_str(), it.is_here))
        .collect();
    assert_eq!(names, [("work", true), ("other", false)]);
    let here = lab.library.in_workspace(&lab.id()).unwrap();
    let there = lab.library.in_workspace(&entries[1].id).unwrap();
    assert_eq!(here.timeline(9).unwrap().workspace, lab.id());
    assert_eq!(there.timeline(9).unwrap().workspace, entries[1].id);
    let again = lab.library.in_workspace(&entries[1].id).unwrap();
    assert!(std::sync::Arc::ptr_eq(&there, &again), "it is remembered");
    let plan = here.plan(&backtrail_view::library::Action::Undo).unwrap();
    let apply = |site: &dyn Site| site.apply(plan.token, backtrail_view::library::OnConflict::Stop);
    assert!(apply(&*there).is_err(), "the plan is of the other one");
    apply(&*here).unwrap();
    assert_eq!(lab.read("a.txt"), "1");
    assert!(lab.library.in_workspace("../x").is_err());
}

#[test]
fn once_the_program_ends_nothing_begins_to_move_in_any_workspace() {
    let lab = Lab::new();
    lab.turn("write a", "a.txt", "2");
    let seen = lab.library.in_workspace(&lab.id()).unwrap();
    let plan = seen.plan(&backtrail_view::library::Action::Undo).unwrap();
    lab.library.close();
    let (done, is_done) = channel();
    // It never ends: the process does.
    std::thread::spawn(move || {
        let stop = backtrail_view::library::OnConflict::Stop;
        drop(done.send(seen.apply(plan.token, stop)));
    });
    assert!(is_done.recv_timeout(Duration::from_secs(1)).is_err());
    assert_eq!(lab.read("a.txt"), "2");
}

#[test]
fn a_shared_library_is_its_own_workspace() {
    let lab = Lab::new();
    lab.turn("write a", "a.txt", "2");
    let id = lab.id();
    let shared = lab.library.shared();
    let plan = shared.plan(&backtrail_view::library::Action::Undo).unwrap();
    let own = shared.in_workspace(&id).unwrap();
    own.apply(plan.token, backtrail_view::library::OnConflict::Stop)
        .unwrap();
}

#[test]
fn what_happens_in_another_workspace_that_is_looked_at_is_told() {
    let lab = Lab::new();
    let other = lab.dir.path().join("other");
    super::super::testing::make_directory(&other);
    let other = lab.library.store.workspace(&other).unwrap();
    other
        .checkpoint(backtrail::CheckpointOptions::new())
        .unwrap();
    let told = watched(&lab.library);
    lab.library.in_workspace(other.id().as_str()).unwrap();
    other
        .checkpoint(backtrail::CheckpointOptions::new())
        .unwrap();
    told.wait_for(&Change::Workspace);
}
