//! A person at the keyboard of the screens, and a library of made-up sessions, without a terminal.

use std::ffi::OsString;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::Color;

use crate::app::App;
use crate::draw::draw;
use crate::look::Look;
use crate::request::{DiffRows, Effect, Event, Reply, Request};
use backtrail_view::library::{
    Action, Answer, Between, BlameLine, ChangedFile, Changes, CostRow, Costs, Failure, Fold, Line,
    Moment, OnConflict, Page, PageAt, PageRequest, Part, PartKind, Place, Plan, Report, Scope,
    SearchHit, SearchResults, SessionEntry, SessionHead, SessionList, Span, Timeline, TimelineRow,
};

/// The screens, answered at once.
pub(crate) struct Driver {
    pub(crate) app: App,
    pub(crate) library: Made,
    /// The requests in their order.
    pub(crate) asked: Vec<Request>,
    /// What was wanted of the terminal.
    pub(crate) wanted: Vec<Effect>,
}

/// Made-up sessions. Each record of a session is a part of two lines.
pub(crate) struct Made {
    pub(crate) sessions: Vec<SessionEntry>,
    pub(crate) conflicts: bool,
    pub(crate) applied: Vec<(Action, OnConflict)>,
    pub(crate) fails_to_apply: bool,
    /// Whether only an agent's own edits are known, and not the states around them.
    pub(crate) knows_no_states: bool,
    /// The record of each match of a search.
    pub(crate) matches: u64,
    pub(crate) agents: Vec<(String, String)>,
    planned: Option<Action>,
}

const PAGE: u64 = 30;

pub(crate) fn entry(n: u64, title: &str) -> SessionEntry {
    SessionEntry {
        id: format!("id-{n}"),
        short: format!("kkk{}", char::from(b'k' + (n % 10) as u8)),
        agent: "Claude Code".to_owned(),
        project: "shop".to_owned(),
        title: title.to_owned(),
        updated_ms: 0,
        when: "14:32".to_owned(),
        turns: 7,
        files: 12,
        cost: "$1.84".to_owned(),
        last_seq: 100,
        ..SessionEntry::default()
    }
}

impl Made {
    pub(crate) fn new() -> Self {
        let mut sub = entry(3, "look for callers");
        sub.depth = 1;
        sub.is_sub_agent = true;
        Self {
            sessions: vec![
                entry(1, "fix the currency rounding"),
                entry(2, "why is checkout slow"),
                sub,
                entry(4, "rotate the keys"),
            ],
            conflicts: false,
            applied: Vec::new(),
            fails_to_apply: false,
            knows_no_states: false,
            matches: 50,
            agents: vec![("codex".to_owned(), "Codex".to_owned())],
            planned: None,
        }
    }

    pub(crate) fn answer(&mut self, request: &Request) -> Reply {
        match request {
            Request::Sessions(..) => Reply::Sessions(Ok(SessionList {
                entries: self.sessions.clone(),
                all: self.sessions.len() as u64,
                workspace: Some("~/src/shop".to_owned()),
                project: Some("shop".to_owned()),
            })),
            Request::Head(session) => Reply::Head(self.find(session).map(|entry| SessionHead {
                title: entry.title.clone(),
                facts: "7 turns, $1.84".to_owned(),
                writer: None,
            })),
            Request::Page(request) => Reply::Page(self.page(request)),
            Request::Text(place, _) => Reply::Text(Ok(format!("whole text of {}", place.seq))),
            Request::Prompt(place, _) => Reply::Prompt(Ok(Some(place.seq / 10 * 10))),
            Request::Changes(_) => Reply::Changes(Ok(Changes {
                between: (!self.knows_no_states).then(between),
                ..changes()
            })),
            Request::Diff(request) => Reply::Diff(Ok(diff(&request.path))),
            Request::Files(..) => Reply::Files(Ok(vec!["a.rs".to_owned(), "b.rs".to_owned()])),
            Request::File(_, _, path) => {
                Reply::File(Ok(vec![vec![Span::plain(format!("content of {path}"))]]))
            }
            Request::Blame(..) => Reply::Blame(Ok(vec![BlameLine {
                who: "kkkl turn 3".to_owned(),
                when: "14:05".to_owned(),
                about: "round half even".to_owned(),
                place: Some(place("id-1", 40)),
                text: "let cents = 0;".to_owned(),
            }])),
            Request::Timeline(_) => Reply::Timeline(Ok(timeline())),
            Request::Search(words, _) => Reply::Search(self.search(words)),
            Request::Costs(..) => Reply::Costs(Ok(Costs {
                rows: vec![CostRow {
                    name: "claude-opus-5".to_owned(),
                    cost: "$38.20".to_owned(),
                    tokens: "412 k".to_owned(),
                    share: 1000,
                    sessions: vec!["id-2".to_owned()],
                }],
                total: "$38.20".to_owned(),
            })),
            Request::NextUndo => Reply::NextUndo("undo: prompt 3, 6 files".to_owned()),
            Request::Plan(action) => Reply::Plan(Ok(self.plan(action))),
            Request::Do(action) => {
                self.applied.push((action.clone(), OnConflict::Stop));
                Reply::Applied(Ok(Report::default()))
            }
            Request::Apply(_, on_conflict) => Reply::Applied(self.apply(*on_conflict)),
            Request::Agents(_) => Reply::Choices(self.agents.clone()),
            Request::Exports(_) => Reply::Choices(vec![("html".to_owned(), "html".to_owned())]),
        }
    }

    fn find(&self, session: &str) -> Answer<&SessionEntry> {
        let found = self.sessions.iter().find(|entry| entry.id == session);
        found.ok_or_else(|| Failure::new("the session is gone"))
    }

    fn page(&self, request: &PageRequest) -> Answer<Page> {
        let end = self.find(&request.session)?.last_seq;
        let first = match request.at {
            PageAt::Start => 1,
            PageAt::End => (end + 1).saturating_sub(PAGE).max(1),
            PageAt::Around(seq) => seq.saturating_sub(PAGE / 2).max(1),
            PageAt::Before(seq) => seq.saturating_sub(PAGE).max(1),
            PageAt::After(seq) => seq + 1,
        };
        let last = match request.at {
            PageAt::Before(seq) => seq.saturating_sub(1),
            _ => (first + PAGE - 1).min(end),
        };
        // The result of a call is shown with it.
        let is_result = |seq: u64| seq % 10 == 2 && seq == self.matches;
        let shown = (first..=last).filter(|seq| !is_result(*seq));
        let parts = shown.map(|seq| part(&request.session, seq, request.fold));
        Ok(Page {
            parts: parts.collect(),
            first,
            last,
            has_before: first > 1,
            has_after: last < end,
            end,
        })
    }

    fn search(&self, words: &str) -> Answer<SearchResults> {
        if words.contains(')') {
            return Err(Failure::new("the `)` closes nothing"));
        }
        let hits = self.sessions.iter().map(|entry| SearchHit {
            place: place(&entry.id, self.matches),
            heading: entry.title.clone(),
            snippet: vec![vec![
                Span::plain("it has "),
                Span::new(anstyle::Style::new().bold(), words),
                Span::plain(" in it"),
            ]],
            is_undone: false,
        });
        let hits: Vec<SearchHit> = hits.collect();
        Ok(SearchResults {
            all: hits.len() as u64,
            hits,
            suggestion: None,
        })
    }

    fn plan(&mut self, action: &Action) -> Plan {
        self.planned = Some(action.clone());
        let choices = [
            (OnConflict::Keep, "keep src/a.rs as it is"),
            (OnConflict::Merge, "merge"),
            (OnConflict::Overwrite, "overwrite"),
        ];
        let choices = choices.map(|(choice, meaning)| (choice, meaning.to_owned()));
        Plan {
            token: 7,
            title: format!("{action:?}").chars().take(40).collect(),
            lines: vec![vec![Span::plain("restored   src/a.rs")]],
            is_possible: true,
            choices: if self.conflicts {
                choices.into()
            } else {
                Vec::new()
            },
        }
    }

    fn apply(&mut self, on_conflict: OnConflict) -> Answer<Report> {
        if self.fails_to_apply {
            return Err(Failure::new("src/a.rs changed since the plan"));
        }
        let action = self.planned.take().expect("nothing was planned");
        self.applied.push((action.clone(), on_conflict));
        if let Action::Delete(id) = &action {
            self.sessions.retain(|entry| entry.id != *id);
        }
        Ok(Report {
            message: "Undid prompt 3: 6 files".to_owned(),
            reverse: Some(Action::Redo),
        })
    }
}

pub(crate) fn place(session: &str, seq: u64) -> Place {
    Place {
        session: session.to_owned(),
        seq,
        trail: None,
    }
}

/// Every tenth record is a prompt, the one after it a call, whose output is folded.
fn part(session: &str, seq: u64, fold: Fold) -> Part {
    let kind = match seq % 10 {
        0 => PartKind::Prompt,
        1 => PartKind::Tool,
        _ => PartKind::Answer,
    };
    let line = |text: String| -> Line { vec![Span::plain(text)] };
    let mut lines = vec![Line::new(), line(format!("{kind:?} {seq} of {session}"))];
    if kind == PartKind::Tool && fold == Fold::Full {
        lines.extend((0..30).map(|n| line(format!("output {n} of tool call {seq}"))));
        lines.push(line(format!("a Needle in call {seq}")));
    }
    Part {
        seq,
        kind,
        lines,
        sub_agent: (seq % 10 == 1 && session == "id-2").then(|| "id-3".to_owned()),
        has_more: false,
    }
}

fn between() -> Between {
    Between {
        workspace: "w".to_owned(),
        from: Moment::Checkpoint("c1".to_owned()),
        to: Moment::Checkpoint("c2".to_owned()),
    }
}

fn changes() -> Changes {
    let file = |path: &str, what: &str| ChangedFile {
        path: path.to_owned(),
        what: what.to_owned(),
        lines: Some((48, 12)),
    };
    Changes {
        title: "turn 3".to_owned(),
        between: Some(between()),
        files: vec![file("src/a.rs", "edited"), file("src/b.rs", "new")],
        note: None,
    }
}

/// Two hunks of three rows.
fn diff(path: &str) -> DiffRows {
    let rows = (0..6).map(|n| {
        let line = vec![Span::plain(format!("{n} {path}"))];
        (line, Some(n / 3))
    });
    DiffRows {
        rows: rows.collect(),
        note: None,
    }
}

fn timeline() -> Timeline {
    let row = |n: u32, kind: &str, step: Option<bool>| TimelineRow {
        id: format!("c{n}"),
        day: "Monday".to_owned(),
        at: "14:32".to_owned(),
        kind: kind.to_owned(),
        style: anstyle::Style::new(),
        about: "fix the currency rounding".to_owned(),
        change: "+48 -12  4 files".to_owned(),
        short: "kkkl".to_owned(),
        session: (kind == "turn 7").then(|| place("id-1", 70)),
        step,
    };
    Timeline {
        workspace: "w".to_owned(),
        name: "~/src/shop".to_owned(),
        rows: vec![
            row(3, "turn 7", Some(true)),
            row(2, "you", None),
            row(1, "turn 6", Some(false)),
        ],
        has_more: false,
    }
}

impl Driver {
    pub(crate) fn new(columns: u16, rows: u16) -> Self {
        Self::with(Made::new(), columns, rows)
    }

    pub(crate) fn with(library: Made, columns: u16, rows: u16) -> Self {
        let (app, effects) = App::new(Scope::Workspace, Look::default(), (columns, rows));
        let mut driver = Self {
            app,
            library,
            asked: Vec::new(),
            wanted: Vec::new(),
        };
        driver.settle(effects);
        driver
    }

    /// Presses keys: letters, and names such as `<Enter>`.
    pub(crate) fn press(&mut self, keys: &str) {
        let mut rest = keys;
        while let Some(c) = rest.chars().next() {
            let name = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'));
            let (key, after) = match name {
                Some((name, after)) if !name.is_empty() => (named(name), after),
                _ => (
                    KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE),
                    &rest[c.len_utf8()..],
                ),
            };
            self.send(Event::Key(key));
            rest = after;
        }
    }

    pub(crate) fn send(&mut self, event: Event) {
        let effects = self.app.update(event);
        self.settle(effects);
    }

    /// Answers everything that is asked until nothing more is.
    fn settle(&mut self, effects: Vec<Effect>) {
        let mut waiting: std::collections::VecDeque<Effect> = effects.into();
        for _ in 0..10_000 {
            let Some(effect) = waiting.pop_front() else {
                return;
            };
            let event = match effect {
                Effect::Ask(request) => {
                    let reply = self.library.answer(&request);
                    self.asked.push(request.clone());
                    Event::Reply(Box::new(request), reply)
                }
                Effect::Wake(_) => Event::Woken,
                other => {
                    self.wanted.push(other);
                    continue;
                }
            };
            waiting.extend(self.app.update(event));
        }
        panic!("it never stops asking: {:?}", self.asked.last());
    }

    fn drawn(&self) -> Buffer {
        self.drawn_at(self.app.size)
    }

    /// Draws on a terminal of a size that the state may not know yet.
    pub(crate) fn drawn_at(&self, (columns, rows): (u16, u16)) -> Buffer {
        let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
        terminal.draw(|frame| draw(&self.app, frame)).unwrap();
        terminal.backend().buffer().clone()
    }

    /// Returns the colours on the screen.
    pub(crate) fn colours(&self) -> Vec<Color> {
        let buffer = self.drawn();
        let colours = buffer.content().iter().flat_map(|cell| [cell.fg, cell.bg]);
        colours.filter(|colour| *colour != Color::Reset).collect()
    }

    /// Returns the rows of the screen, without the spaces at their ends.
    pub(crate) fn screen(&self) -> Vec<String> {
        let buffer = self.drawn();
        let columns = self.app.size.0;
        let cells = buffer.content().chunks(columns.max(1).into());
        cells
            .map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>())
            .map(|row| row.trim_end().to_owned())
            .collect()
    }

    pub(crate) fn shows(&self, text: &str) -> bool {
        self.screen().iter().any(|row| row.contains(text))
    }

    /// Fails unless a text is on the screen.
    pub(crate) fn expect(&self, text: &str) {
        assert!(
            self.shows(text),
            "no {text:?} in\n{}",
            self.screen().join("\n")
        );
    }

    /// Returns the programs that were to get the terminal.
    pub(crate) fn started(&self) -> Vec<Vec<OsString>> {
        let started = self.wanted.iter().filter_map(|effect| match effect {
            Effect::Continue(place, agent) => {
                Some(vec![agent.into(), place.session.clone().into()])
            }
            _ => None,
        });
        started.collect()
    }
}

fn named(name: &str) -> KeyEvent {
    let code = match name {
        "Enter" => KeyCode::Enter,
        "Esc" => KeyCode::Esc,
        "Tab" => KeyCode::Tab,
        "Down" => KeyCode::Down,
        "Up" => KeyCode::Up,
        "Backspace" => KeyCode::Backspace,
        "Space" => KeyCode::Char(' '),
        "Ctrl-C" => return KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL),
        other => panic!("no key {other}"),
    };
    KeyEvent::new(code, KeyModifiers::NONE)
}
