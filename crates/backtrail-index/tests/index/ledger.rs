//! The ledger against a count of every line on disk, and against the conversation.

use std::collections::BTreeMap;
use std::path::Path;

use backtrail::conversation::Item;
use backtrail::{
    Block, Compaction, Draft, ForkOptions, Message, Session, SessionId, SessionOptions,
    SessionReader, Timestamp, ToolUse, Usage,
};
use backtrail_index::{Filter, Group, Prices, SessionPrices, Spending, SpendingReport};
use serde_json::Value;

use crate::kit::Home;
use crate::random::Random;

/// Counts every line of every trail, without Backtrail's code.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Counted {
    calls: u64,
    input: u64,
    output: u64,
    cache_write: u64,
    cache_read: u64,
}

impl From<&Spending> for Counted {
    fn from(spending: &Spending) -> Self {
        Self {
            calls: spending.calls,
            input: spending.input_tokens,
            output: spending.output_tokens,
            cache_write: spending.cache_write_tokens,
            cache_read: spending.cache_read_tokens,
        }
    }
}

/// Counts each response id once, by its last line with usage.
fn count_by_hand(store: &Path) -> Counted {
    let mut responses: BTreeMap<String, Value> = BTreeMap::new();
    let mut sessions: Vec<_> = std::fs::read_dir(store.join("sessions"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    sessions.sort();
    for session in sessions {
        let mut trails: Vec<_> = std::fs::read_dir(&session)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
            .collect();
        trails.sort();
        for trail in trails {
            for (n, line) in std::fs::read_to_string(&trail).unwrap().lines().enumerate() {
                let record: Value = serde_json::from_str(line).unwrap();
                let usage = match record["type"].as_str() {
                    Some("message") => &record["message"]["usage"],
                    Some("compaction") => &record["usage"],
                    _ => continue,
                };
                if usage.is_null() {
                    continue;
                }
                let key = match record["response_id"].as_str() {
                    Some(id) => id.to_owned(),
                    None => format!("{}:{n}", trail.display()),
                };
                responses.insert(key, usage.clone());
            }
        }
    }
    let mut counted = Counted::default();
    for usage in responses.values() {
        let field = |name: &str| usage[name].as_u64().unwrap_or(0);
        counted.calls += 1;
        counted.input += field("input_tokens");
        counted.output += field("output_tokens");
        counted.cache_write += field("cache_creation_input_tokens");
        counted.cache_read += field("cache_read_input_tokens");
    }
    counted
}

/// Random sessions: messages, calls, repetitions, forks, rewinds, compactions, spawns.
struct Life {
    home: Home,
    random: Random,
    sessions: Vec<Session>,
    /// Responses that a later session repeats, as agents do that resume in a new file.
    replayed: Vec<(String, Usage)>,
    responses: u64,
    calls: u64,
}

impl Life {
    fn new(seed: u64) -> Self {
        let home = Home::new();
        let sessions = vec![home.session()];
        Self {
            home,
            random: Random::new(seed),
            sessions,
            replayed: Vec::new(),
            responses: 0,
            calls: 0,
        }
    }

    fn usage(&mut self) -> Usage {
        let mut next = || self.random.next() % 1000;
        Usage::new(next(), next())
            .cache_creation(next())
            .cache_read(next())
    }

    fn respond(&mut self, at: usize) {
        self.responses += 1;
        let id = format!("r{}", self.responses);
        let times = 1 + self.random.below(3);
        let mut last = None;
        for n in 0..times {
            let mut message = Message::assistant([Block::text(format!("part {n} of {id}"))]);
            // Not every line of a response has usage.
            if n + 1 == times || self.random.one_in(2) {
                let usage = self.usage();
                last = Some(usage.clone());
                message = message.usage(usage);
            }
            let mut draft = Draft::from(message).model("m-1");
            if times > 1 || !self.random.one_in(4) {
                draft = draft.response_id(id.clone());
            } else {
                last = None;
            }
            self.sessions[at].append(draft).unwrap();
        }
        if let Some(usage) = last.filter(|_| self.random.one_in(3)) {
            self.replayed.push((id, usage));
        }
    }

    /// Says something of a response again, perhaps in a later turn.
    fn repeat(&mut self, at: usize) {
        let id = format!("r{}-{at}", self.random.below(4));
        let message = Message::assistant([Block::text("again")]).usage(self.usage());
        let draft = Draft::from(message).model("m-1").response_id(id);
        self.sessions[at].append(draft).unwrap();
    }

    /// Says again, in another session, what was said before.
    fn replay(&mut self) {
        let session = self.home.session();
        for (id, usage) in &self.replayed {
            let message = Message::assistant([Block::text("again")]).usage(usage.clone());
            let draft = Draft::from(message).model("m-1").response_id(id.clone());
            session.append(draft).unwrap();
        }
        self.sessions.push(session);
    }

    fn spawn(&mut self, at: usize) {
        self.calls += 1;
        let id = format!("t{}", self.calls);
        let call = ToolUse::new(id.clone(), "task", &serde_json::json!({})).unwrap();
        let parent = &self.sessions[at];
        parent.append(Message::assistant([call.into()])).unwrap();
        let options = SessionOptions::new().agent("mine");
        let child = self.home.store.spawn_session(parent.id(), &id, options);
        self.sessions.push(child.unwrap());
    }

    fn step(&mut self) {
        let at = self.random.below(self.sessions.len());
        let last = self.sessions[at].last_seq();
        match self.random.below(16) {
            0..=2 => {
                let prompt = Message::user_text("go on");
                self.sessions[at].append(prompt).unwrap();
            }
            3..=8 => self.respond(at),
            9 if last > 0 => {
                let to = self.random.next() % last;
                self.sessions[at].rewind_chat(to).unwrap();
            }
            10 if last > 0 => {
                self.sessions[at].undo().ok();
            }
            11 if last > 0 => {
                let to = 1 + self.random.next() % last;
                let fork = self.sessions[at].fork(&ForkOptions::new().at(to));
                self.sessions.push(fork.unwrap());
            }
            12 if last > 1 => {
                let usage = self.usage();
                let compaction = Compaction::new("what was said").usage(usage).model("m-1");
                self.sessions[at].compact(&compaction).ok();
            }
            13 => self.spawn(at),
            14 => self.replay(),
            _ => self.check(),
        }
    }

    /// Every reader of a conversation counts the same, and the ledger of a session that
    /// has only its line counts what its conversation does.
    fn check_conversations(&self, plain: &[bool]) {
        let index = self.home.index();
        let rows = index.sessions(&Filter::default()).unwrap();
        for (session, is_plain) in self.sessions.iter().zip(plain) {
            let reader = session.reader();
            let (surveyed, shown) = spending_of(&reader);
            match reader.info().unwrap().forked_from {
                None => assert_eq!(surveyed, shown, "{}", session.id()),
                // It shows what it inherited, and did not spend it.
                Some(_) => assert!(surveyed.tokens() <= shown.tokens(), "{}", session.id()),
            }
            let row = rows.iter().find(|row| row.id == *session.id()).unwrap();
            if *is_plain {
                assert_eq!(row.spending, surveyed, "{}", session.id());
            }
            let mut filter = Filter::default();
            filter.session = Some(session.id().clone());
            let report = index.spending(&filter).unwrap();
            assert_eq!(report.total, row.spending, "{}", session.id());
        }
    }

    fn check(&self) {
        let counted = count_by_hand(self.home.store.root());
        let index = self.home.index();
        let report = index.spending(&Filter::default()).unwrap();
        assert_eq!(Counted::from(&report.total), counted);
        for first in GROUPS {
            let one = index.spending_by(&Filter::default(), &[first]).unwrap();
            let sums = sums_of(&one);
            let mut sum = Spending::default();
            sums.values().for_each(|part| sum.add(part));
            assert_eq!(sum, one.total, "{first:?}");
            assert_eq!(Counted::from(&sum), counted, "{first:?}");
            for second in GROUPS.into_iter().filter(|second| *second != first) {
                let both = [first, second];
                let two = index.spending_by(&Filter::default(), &both).unwrap();
                assert_eq!(two.total, one.total, "{both:?}");
                assert_eq!(sums_of(&two), sums, "{both:?}");
            }
        }
    }
}

/// All groups that have each call once; no session here has two tags.
const GROUPS: [Group; 11] = [
    Group::Session,
    Group::Model,
    Group::Family,
    Group::Day,
    Group::Week,
    Group::Month,
    Group::Hour,
    Group::Agent,
    Group::Project,
    Group::Tag,
    Group::Branch,
];

/// Returns the sums of the first groups in which anything was spent.
fn sums_of(report: &SpendingReport) -> BTreeMap<Option<String>, Spending> {
    let mut sums: BTreeMap<Option<String>, Spending> = BTreeMap::new();
    for row in &report.by {
        sums.entry(row.key.clone()).or_default().add(&row.spending);
    }
    sums.retain(|_, sum| *sum != Spending::default());
    sums
}

/// Returns what a conversation used, by its survey and by its items.
fn spending_of(reader: &SessionReader) -> (Spending, Spending) {
    let prices = SessionPrices::of(&reader.info().unwrap(), Prices::default());
    let mut surveyed = Spending::default();
    let survey = reader.survey(|response| surveyed.add(&prices.spending(&response)));
    let mut shown = Spending::default();
    for item in reader.conversation().unwrap() {
        if let Item::Spending(item) = item.unwrap() {
            shown.add(&prices.spending(&item.response));
            if let Some(already) = &item.already {
                shown.remove(&prices.spending(already));
            }
        }
    }
    assert_eq!(survey.unwrap().stats.usage.total(), surveyed.tokens());
    (surveyed, shown)
}

#[test]
fn f24_the_conversation_and_the_ledger_agree_on_what_a_session_spent() {
    for seed in 100..108 {
        let mut life = Life::new(seed);
        // Whether everything that a session spent is on its line, and is nobody else's.
        let mut plain = vec![true];
        for _ in 0..80 {
            let at = life.random.below(life.sessions.len());
            let last = life.sessions[at].last_seq();
            match life.random.below(12) {
                0..=2 => drop(
                    life.sessions[at]
                        .append(Message::user_text("go on"))
                        .unwrap(),
                ),
                3..=6 => life.respond(at),
                7 => life.repeat(at),
                8 if last > 1 => {
                    let usage = life.usage();
                    let compaction = Compaction::new("what was said").usage(usage).model("m-1");
                    life.sessions[at].compact(&compaction).ok();
                }
                9 if last > 1 => {
                    let to = 1 + life.random.next() % (last - 1);
                    life.sessions[at].rewind_chat(to).unwrap();
                    plain[at] = false;
                }
                10 if last > 0 => {
                    let fork = life.sessions[at].fork(&ForkOptions::new());
                    life.sessions.push(fork.unwrap());
                    plain.push(false);
                }
                11 => life.check_conversations(&plain),
                _ => {}
            }
        }
        life.check_conversations(&plain);
        life.home.index().rebuild().unwrap();
        life.check_conversations(&plain);
    }
}

#[test]
fn f24_totals_equal_a_count_of_unique_responses_whatever_happens() {
    for seed in 0..12 {
        let mut life = Life::new(seed);
        for _ in 0..60 {
            life.step();
        }
        life.check();
        let caught_up = life.home.rows();
        assert_eq!(caught_up, life.home.rebuilt_rows(), "seed {seed}");
        life.check();

        // A deleted session removes only its own spending.
        let goes = life.sessions.swap_remove(0);
        let id: SessionId = goes.id().clone();
        drop(goes);
        let scope = backtrail::trash::DeleteScope::default();
        let plan = life.home.store.delete_plan(&[id], scope).unwrap();
        plan.apply().unwrap();
        life.check();
        assert_eq!(life.home.rows(), life.home.rebuilt_rows(), "seed {seed}");
    }
}

#[test]
fn f24_a_fork_counts_nothing_that_it_inherits() {
    let home = Home::new();
    let session = home.session();
    crate::kit::respond(&session, "r1", (7, 3), "said once");
    for _ in 0..90 {
        session.fork(&ForkOptions::new()).unwrap();
    }
    let report = home.index().spending(&Filter::default()).unwrap();
    assert_eq!((report.total.calls, report.total.tokens()), (1, 10));
}

/// Sums and single calls say the same of models without a price, also where a model's calls have
/// a price in part.
#[test]
fn calls_without_a_price_are_the_same_from_sums_and_one_by_one() {
    let home = Home::new();
    let at = |ms: i64| Timestamp::from_millis(1_794_726_326_000 + ms).unwrap();
    for n in 0..3 {
        let session = home.session();
        for (call, model) in ["m-1", "m-1", "m-2", "claude-sonnet-4-5"]
            .iter()
            .enumerate()
        {
            let reply = Message::assistant([Block::text("answer")]).usage(Usage::new(10, 1 + n));
            let draft = Draft::from(reply).model(*model).at(at(call as i64));
            let draft = draft.response_id(format!("r{n}-{call}"));
            // In the first session a part of the calls of m-1 was billed.
            let is_billed = n == 0 && call == 0;
            let draft = match is_billed {
                true => draft.cost_usd(0.5),
                false => draft,
            };
            session.append(draft).unwrap();
        }
    }
    let index = home.index();
    let mut timed = Filter::default();
    timed.since = Some(at(0));
    let by_sums = index.unpriced(&Filter::default()).unwrap();
    assert_eq!(by_sums, index.unpriced(&timed).unwrap());
    let told = by_sums
        .iter()
        .map(|it| (it.model.as_deref(), it.calls, it.tokens));
    let expected = [
        (Some("m-1"), 5, 10 * 5 + 1 + 2 * 2 + 2 * 3),
        (Some("m-2"), 3, 10 * 3 + 1 + 2 + 3),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

#[test]
fn a_prompt_that_another_session_copied_counts_once() {
    let home = Home::new();
    let at = |ms: i64| Timestamp::from_millis(1_794_726_326_000 + ms);
    let prompt = |session: &Session, text: &str, at: Option<Timestamp>| {
        let draft = Draft::from(Message::user_text(text));
        let draft = match at {
            Some(at) => draft.at(at),
            None => draft,
        };
        session.append(draft).unwrap();
    };
    let (first, copy, silent) = (home.session(), home.session(), home.session());
    for session in [&first, &copy, &silent] {
        prompt(session, "fix it", at(1));
    }
    prompt(&first, "fix it", at(2));
    prompt(&copy, "and test it", at(2));
    prompt(&silent, "nobody answered", at(3));
    crate::kit::respond(&first, "r1", (1, 1), "fixed");
    crate::kit::respond(&copy, "r2", (1, 1), "tested");
    let index = home.index();
    assert_eq!(index.prompts(&Filter::default()).unwrap(), 3);
    let mut of_copy = Filter::default();
    of_copy.session = Some(copy.id().clone());
    assert_eq!(index.prompts(&of_copy).unwrap(), 2);
    let mut later = Filter::default();
    later.since = at(2);
    assert_eq!(index.prompts(&later).unwrap(), 2);
}
