//! A table of queries with what they must and must not find; the answer does not depend
//! on how the index was built.

use backtrail::{Block, Message, Role, Timestamp, ToolResult, ToolUse};
use proptest::prelude::*;

use super::testing::{TestTrail, built, opened, search, wanted};
use super::*;
use crate::feed::Sink as _;
use crate::plan::{Derived as _, Plan};

/// The searched texts, known by their numbers.
const TEXTS: &[&str] = &[
    /* 0 */ "call fooBar here",
    /* 1 */ "call foo_bar here",
    /* 2 */ "use foo::bar here",
    /* 3 */ "open src/foo/bar.rs here",
    /* 4 */ "run it with --foo-bar here",
    /* 5 */ "foo is not the same as bar",
    /* 6 */ "the foo bar phrase in words",
    /* 7 */ "bar before foo",
    /* 8 */ "an HTTPServer2 listens",
    /* 9 */ "sha256 of commit a3f09b2c1d4e5f60718293a4b5c6d7e8f9012345",
    /* 10 */ "Привет, мир! Ёлка в лесу",
    /* 11 */ "Καλημέρα κόσμε, ΟΔΟΣ",
    /* 12 */ "数据库查询很慢，请优化",
    /* 13 */ "日本語の全文検索をテストする",
    /* 14 */ "한국어 검색엔진을 시험합니다",
    /* 15 */ "بَحْث في النص العربي",
    /* 16 */ "การค้นหาข้อความภาษาไทย",
    /* 17 */ "un café naïve à Zürich, Straße",
    /* 18 */ "ship it 🚀 now 👍🏽",
    /* 19 */ "connection refused: 127.0.0.1:8080",
    /* 20 */ "שָׁלוֹם עולם",
    /* 21 */ "version 1.22.3 of tokio-util",
];

/// Returns the numbers of the texts that a query finds.
fn found(dir: &SearchIndex, query: &str) -> Vec<u64> {
    let mut found: Vec<u64> = search(dir, &wanted(query))
        .hits
        .iter()
        .map(|hit| hit.seq)
        .collect();
    found.sort_unstable();
    found
}

#[test]
fn queries_find_what_they_must_and_nothing_else() {
    let dir = tempfile::tempdir().expect("a directory");
    let index = built(dir.path(), &[TestTrail::of_texts("s", TEXTS)]);
    let names: &[u64] = &[0, 1, 2, 3, 4];
    let table: &[(&str, &[u64])] = &[
        // Names are found by their parts and as a whole.
        ("foo", &[0, 1, 2, 3, 4, 5, 6, 7]),
        ("BAR", &[0, 1, 2, 3, 4, 5, 6, 7]),
        ("fooBar", &[0]),
        ("foobar", &[0]),
        ("FOOBAR", &[0]),
        ("foo_bar", &[1]),
        ("foo::bar", &[2]),
        ("foo/bar", &[3]),
        ("--foo-bar", &[4]),
        ("src/foo/bar.rs", &[3]),
        ("foo/bar.rs", &[3]),
        ("bar.rs", &[3]),
        ("bar_foo", &[]),
        ("HTTPServer2", &[8]),
        ("httpserver", &[8]),
        ("http server", &[8]),
        ("httpserv*", &[8]),
        ("sha256", &[9]),
        ("sha", &[9]),
        ("a3f09b2c*", &[9]),
        ("a3f0*", &[9]),
        ("a3f09b2c1d4e5f60718293a4b5c6d7e8f9012345", &[9]),
        ("a3f09b2c", &[]),
        // Words, phrases, prefixes.
        ("foo bar", &[0, 1, 2, 3, 4, 5, 6, 7]),
        ("\"foo bar\"", &[0, 1, 2, 3, 4, 6]),
        ("\"foo bar\" not phrase", names),
        ("here \"foo bar\"", names),
        ("\"foo foo\"", &[]),
        ("\"bar before\"", &[7]),
        ("\"before bar\"", &[]),
        ("\"same as\"", &[5]),
        ("\"same bar\"", &[]),
        ("\"foo bar phrase\"", &[6]),
        ("\"foo bar phr*\"", &[6]),
        ("phr*", &[6]),
        ("foo_ba*", &[1]),
        ("hrase", &[]),
        // And, or, not, parentheses.
        ("call and here", &[0, 1]),
        ("call or open", &[0, 1, 3]),
        ("here not call", &[2, 3, 4]),
        ("here -call -open", &[2, 4]),
        ("(call or open) foo", &[0, 1, 3]),
        ("here not (call or open)", &[2, 4]),
        ("here not \"call foo\"", &[2, 3, 4]),
        ("phrase or (before not same)", &[6, 7]),
        ("absent or phrase", &[6]),
        ("absent phrase", &[]),
        // Every script.
        ("привет", &[10]),
        ("МИР елка", &[10]),
        ("лес", &[]),
        ("лес*", &[10]),
        ("καλημερα", &[11]),
        ("Κόσμε", &[11]),
        ("οδός", &[11]),
        ("查询", &[12]),
        ("数据库", &[12]),
        ("询很", &[12]),
        ("询慢", &[]),
        ("全文検索", &[13]),
        ("テスト", &[13]),
        ("検索 日本語", &[13]),
        ("検査", &[]),
        ("검색", &[14]),
        ("검색엔진", &[14]),
        ("한국", &[14]),
        ("국한", &[]),
        ("بحث", &[15]),
        ("العربي", &[15]),
        ("ค้นหา", &[16]),
        ("ภาษาไทย", &[16]),
        ("cafe naive", &[17]),
        ("CAFÉ", &[17]),
        ("zurich strasse", &[17]),
        ("🚀", &[18]),
        ("👍", &[18]),
        ("🚀 now", &[18]),
        ("שלום", &[20]),
        // Numbers and versions.
        ("8080", &[19]),
        ("127.0.0.1", &[19]),
        ("0.0.1.127", &[]),
        ("1.22", &[21]),
        ("22.1", &[]),
        ("tokio-util", &[21]),
    ];
    for (query, expected) in table {
        assert_eq!(&found(&index, query), expected, "{query}");
    }
}

#[test]
fn tools_models_roles_and_times_narrow_it_down() {
    let input = serde_json::json!({"file_path": "src/money.rs"});
    let call = ToolUse::new("t1", "Edit", &input).expect("a call");
    let messages = vec![
        Message::user_text("rounding in money"),
        Message::assistant([Block::text("rounding"), Block::from(call)]),
        Message::tool_result(ToolResult::ok("rounding done").answers("t1", "Edit")),
        Message::new(Role::System, [Block::text("rounding")]),
    ];
    let mut spoken = TestTrail::new("s", messages);
    spoken.model = Some("Claude-Opus-5".to_owned());
    let other = TestTrail::of_texts("t", &["rounding", "nothing"]);
    let dir = tempfile::tempdir().expect("a directory");
    let index = built(dir.path(), &[spoken, other]);
    let count = |change: &dyn Fn(&mut SearchQuery)| {
        let mut wanted = wanted("rounding");
        change(&mut wanted.query);
        search(&index, &wanted).total
    };
    let at = |seq: i64| Timestamp::from_millis(1_700_000_000_000 + 1000 * seq);
    assert_eq!(count(&|_| {}), 5);
    assert_eq!(count(&|w| w.tools = vec!["edit".into()]), 2);
    assert_eq!(count(&|w| w.tools = vec!["edi".into()]), 0);
    assert_eq!(count(&|w| w.filter.models = vec!["OPUS".into()]), 4);
    assert_eq!(count(&|w| w.filter.models = vec!["gpt".into()]), 0);
    assert_eq!(count(&|w| w.roles = vec!["user".into()]), 2);
    assert_eq!(
        count(&|w| w.roles = vec!["Tool".into(), "system".into()]),
        2
    );
    assert_eq!(count(&|w| w.filter.since = at(1)), 3);
    assert_eq!(count(&|w| w.filter.until = at(1)), 2);
    assert_eq!(count(&|w| w.limit = 0), 5);
    let allowed = AllowedTrails::of(index.known(), |trail| trail.session.as_str() == "t");
    let only = find(&wanted("rounding"), &[(&index, &allowed)]).expect("searched");
    assert_eq!(only.total, 1);
    assert_eq!(only.hits[0].session.as_str(), "t");
}

#[test]
fn the_newest_come_first_where_they_are_wanted() {
    let dir = tempfile::tempdir().expect("a directory");
    let texts = ["word", "word word word", "no", "word and more of it"];
    let index = built(dir.path(), &[TestTrail::of_texts("s", &texts)]);
    let mut wanted = wanted("word");
    wanted.query.order = Order::Newest;
    wanted.query.limit = 2;
    let newest = search(&index, &wanted);
    let seqs: Vec<u64> = newest.hits.iter().map(|hit| hit.seq).collect();
    assert_eq!((seqs, newest.total), (vec![3, 1], 3));
    wanted.query.order = Order::Best;
    assert_eq!(search(&index, &wanted).hits[0].seq, 1);
}

#[test]
fn records_are_not_indexed_twice() {
    let dir = tempfile::tempdir().expect("a directory");
    let trail = TestTrail::of_texts("s", &["apple", "pear"]);
    let index = built(dir.path(), std::slice::from_ref(&trail));
    let mut writer = SearchWriter::resume(dir.path(), &index).expect("a writer");
    // A file of version 1 is read from its beginning, whatever was requested.
    writer.begin(&trail.place(2)).expect("begun");
    trail.feed_one(0, &mut writer);
    trail.feed_one(1, &mut writer);
    writer.end(None).expect("ended");
    let index = writer.commit().expect("committed");
    assert_eq!(search(&index, &wanted("apple or pear")).total, 2);
    assert_eq!(index.known()[0].known.read_to, 200);
}

#[test]
fn roles_that_do_not_exist_are_named() {
    let mut query = SearchQuery::new("word");
    query.roles = vec!["User".to_owned(), "run".to_owned()];
    assert!(SearchRequest::new(&query).is_ok());
    query.roles = vec!["robot".to_owned()];
    let error = SearchRequest::new(&query).expect_err("no role");
    assert!(error.to_string().starts_with("unknown role `robot`"));
}

/// Trails that are added in parts.
fn trails(texts: &[Vec<String>]) -> Vec<TestTrail> {
    let names = ["a", "b", "c", "d"];
    let trail = |(texts, name): (&Vec<String>, &&'static str)| {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        TestTrail::of_texts(name, &texts)
    };
    texts.iter().zip(&names).map(trail).collect()
}

const QUERIES: [&str; 8] = [
    "ab",
    "ab ba",
    "ab or ba or bb",
    "\"ab ba\"",
    "\"ab ab\" or b",
    "a*",
    "ab not ba",
    "a_b",
];

/// Asserts that two indexes of the same records give the same answers, including scores.
fn assert_same(
    one: &dyn Fn(&SearchRequest) -> FoundRecords,
    other: &dyn Fn(&SearchRequest) -> FoundRecords,
) {
    for query in QUERIES {
        for order in [Order::Best, Order::Newest] {
            let mut wanted = wanted(query);
            wanted.query.order = order;
            wanted.query.limit = 5;
            assert_eq!(one(&wanted), other(&wanted), "{query} {order:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn an_index_in_pieces_answers_like_one_made_at_once(
        texts in proptest::collection::vec(
            proptest::collection::vec("[ab]{1,2}([ _][ab]{1,2}){0,4}", 1..8), 1..4),
        cut in 0..8_usize,
        again in 0..4_usize,
    ) {
        let trails = trails(&texts);
        let (one, other) = (tempfile::tempdir().expect("dir"), tempfile::tempdir().expect("dir"));
        let fresh = built(one.path(), &trails);

        // The first part of each, then the rest of each; one of them from its beginning.
        let mut writer = SearchWriter::rebuild(other.path()).expect("a writer");
        for trail in &trails {
            let mut part = trail.clone();
            part.messages.truncate(cut);
            part.feed(0, &mut writer);
        }
        let first = writer.commit().expect("committed");
        let mut writer = SearchWriter::resume(other.path(), &first).expect("a writer");
        let mut memory = SearchWriter::in_memory().expect("a writer");
        for (at, trail) in trails.iter().enumerate() {
            let from = if at == again { 0 } else { cut.min(trail.messages.len()) };
            trail.feed(from, &mut writer);
            trail.feed(cut.min(trail.messages.len()), &mut memory);
        }
        let memory = memory.commit().expect("committed");
        let (on_disk, in_memory) = (
            AllowedTrails::of(first.known(), |_| true),
            AllowedTrails::of(memory.known(), |_| true),
        );
        let sources = [(&first, &on_disk), (&memory, &in_memory)];
        assert_same(
            &|wanted| search(&fresh, wanted),
            &|wanted| find(wanted, &sources).expect("searched"),
        );
        let second = writer.commit().expect("committed");
        assert_same(&|wanted| search(&fresh, wanted), &|wanted| search(&second, wanted));
        let opened = opened(other.path());
        assert_same(&|wanted| search(&fresh, wanted), &|wanted| search(&opened, wanted));
    }
}

#[test]
fn many_small_commits_become_one_segment_and_answer_the_same() {
    let dir = tempfile::tempdir().expect("a directory");
    let texts: Vec<String> = (0..40).map(|at| format!("word number{at} ab")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let whole = TestTrail::of_texts("s", &texts);
    let mut index = built(dir.path(), &[]);
    for count in 1..=texts.len() {
        let mut part = whole.clone();
        part.messages.truncate(count);
        let mut writer = SearchWriter::resume(dir.path(), &index).expect("a writer");
        part.feed(count - 1, &mut writer);
        index = writer.commit().expect("committed");
        assert!(index.searcher.segment_readers().len() <= 13);
    }
    let other = tempfile::tempdir().expect("a directory");
    let fresh = built(other.path(), &[whole]);
    for query in ["word", "number7 or number8 or ab", "num*"] {
        assert_eq!(
            search(&index, &wanted(query)),
            search(&fresh, &wanted(query)),
            "{query}"
        );
    }
}

#[test]
fn what_is_forgotten_or_given_up_is_not_found() {
    let dir = tempfile::tempdir().expect("a directory");
    let (one, two) = (
        TestTrail::of_texts("one", &["apple", "pear"]),
        TestTrail::of_texts("two", &["apple"]),
    );
    let index = built(dir.path(), &[one.clone(), two.clone()]);
    let mut writer = SearchWriter::resume(dir.path(), &index).expect("a writer");
    let plan = Plan {
        gone: vec!["two".to_owned()],
        ..Plan::default()
    };
    writer.start(&plan).expect("forgotten");
    // Reading it fails after the first record: it stays as it was.
    writer.begin(&one.place(0)).expect("begun");
    one.feed_one(0, &mut writer);
    let index = writer.commit().expect("committed");
    assert_eq!(search(&index, &wanted("apple")).total, 1);
    assert_eq!(search(&index, &wanted("pear")).total, 1);

    // It fails while continuing: mixed records are forgotten, to be read again.
    let mut writer = SearchWriter::resume(dir.path(), &index).expect("a writer");
    writer.begin(&one.place(1)).expect("begun");
    one.feed_one(1, &mut writer);
    two.feed(0, &mut writer);
    let index = writer.commit().expect("committed");
    let sessions: Vec<&str> = index.known().iter().map(|t| t.session.as_str()).collect();
    assert_eq!(sessions, ["two"]);
    assert_eq!(search(&index, &wanted("pear")).total, 0);
}
