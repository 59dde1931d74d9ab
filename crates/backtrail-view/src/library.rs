//! What the screens show, and where it comes from.
//!
//! The screens know no store: they ask a [`Library`], which the command implements, and show what
//! it answers. Every method is called on a thread of its own and may take its time; none of
//! them is called while a frame is drawn.

use std::ffi::OsString;

use anstyle::Style;

/// The colours that there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Palette {
    /// No colours.
    #[default]
    None,
    /// Sixteen, whose look is decided where they are shown.
    Sixteen,
    /// 256, on a dark background.
    Dark,
    /// 256, on a light background.
    Light,
}

/// Text in one style. It must be clean: no escapes, no control characters, no tabs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Span {
    /// The style.
    pub style: Style,
    /// The text.
    pub text: String,
}

impl Span {
    /// Makes a span.
    pub fn new(style: Style, text: impl Into<String>) -> Self {
        Self {
            style,
            text: text.into(),
        }
    }

    /// Makes a span without a style.
    pub fn plain(text: impl Into<String>) -> Self {
        Self::new(Style::new(), text)
    }
}

/// Spans side by side.
pub type Line = Vec<Span>;

/// Why something could not be answered or done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What went wrong.
    pub message: String,
    /// Ways out, one each.
    pub hints: Vec<String>,
}

impl Failure {
    /// Makes a failure without hints.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hints: Vec::new(),
        }
    }
}

/// The answer of a library.
pub type Answer<T> = Result<T, Failure>;

/// Which sessions are listed and searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Those of this workspace.
    Workspace,
    /// Those of this project: every workspace of the same repository.
    Project,
    /// All of them.
    Everything,
}

/// How fresh an answer must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// As the catalogue was left, at once.
    Known,
    /// After catching up with what was written since.
    Current,
}

/// One session of the list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionEntry {
    /// Its id.
    pub id: String,
    /// Its short id, as long as it must be.
    pub short: String,
    /// The agent, as people call it.
    pub agent: String,
    /// The name of its project.
    pub project: String,
    /// Its title.
    pub title: String,
    /// When it was last active, in milliseconds since 1970.
    pub updated_ms: i64,
    /// The same, in a few characters.
    pub when: String,
    /// The number of turns.
    pub turns: u64,
    /// The number of files that it changed.
    pub files: u64,
    /// What it cost; empty if unknown.
    pub cost: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// How many generations it is below the first session of its family.
    pub depth: usize,
    /// Whether it is a sub-agent's.
    pub is_sub_agent: bool,
    /// Whether it is pinned.
    pub is_pinned: bool,
    /// Whether parts of it cannot be read.
    pub is_damaged: bool,
    /// Whether it has neither a prompt nor an answer: a run, or nothing.
    pub is_wordless: bool,
    /// The seq of its last record, by which unread ones are known.
    pub last_seq: u64,
}

/// The sessions of a scope: families together, the first session of each before its forks and
/// sub-agents.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionList {
    /// The sessions.
    pub entries: Vec<SessionEntry>,
    /// How many there are in the store.
    pub all: u64,
    /// The name of this workspace, if there is one here.
    pub workspace: Option<String>,
    /// The name of this project, if there is one.
    pub project: Option<String>,
}

/// A record of a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    /// The session.
    pub session: String,
    /// The record.
    pub seq: u64,
    /// The trail, if the record was undone.
    pub trail: Option<u32>,
}

/// How much of tool calls and of text that is not dialogue is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fold {
    /// Nothing of them.
    Hidden,
    /// A line each, and short diffs, as `show` does.
    #[default]
    Short,
    /// Outputs, thinking and injected text, as `show --full` does, up to 1,000 lines each.
    Full,
}

/// Where a page of a conversation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageAt {
    /// The first page.
    Start,
    /// The last page.
    End,
    /// The page with a record, some way down from its top.
    Around(u64),
    /// The page that ends before a record.
    Before(u64),
    /// The page that begins after a record.
    After(u64),
}

/// A request for a page of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// The session.
    pub session: String,
    /// Which page.
    pub at: PageAt,
    /// The trail, to see an undone turn.
    pub trail: Option<u32>,
    /// How wide lines may be.
    pub width: u16,
    /// How much of tools is shown.
    pub fold: Fold,
    /// The colours of code.
    pub palette: Palette,
}

/// What a part of a conversation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartKind {
    /// The heading of a turn, and its prompt.
    Prompt,
    /// A text of the assistant.
    Answer,
    /// A tool call with its result, a result alone, or a run.
    Tool,
    /// Thinking.
    Thinking,
    /// Text that an agent added.
    Injected,
    /// What a turn changed and spent, at its end.
    TurnEnd,
    /// A compaction, a note, a fork, damage.
    Remark,
}

/// A part of a conversation, laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its record.
    pub seq: u64,
    /// What it is.
    pub kind: PartKind,
    /// Its lines, the empty ones before it included.
    pub lines: Vec<Line>,
    /// The session of the sub-agent that it started.
    pub sub_agent: Option<String>,
    /// Whether it has output that is not shown whole.
    pub has_more: bool,
}

/// A page of a conversation: a bounded number of whole parts, whatever the session's length.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// The parts, in order.
    pub parts: Vec<Part>,
    /// The first record of the page; the page before ends before it.
    pub first: u64,
    /// The last record of the page; the page after begins after it.
    pub last: u64,
    /// Whether records come before.
    pub has_before: bool,
    /// Whether records come after.
    pub has_after: bool,
    /// The last record of the session.
    pub end: u64,
}

/// What is known of a session as a whole: title, agent, times, numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionHead {
    /// Its title.
    pub title: String,
    /// Facts in a line.
    pub facts: String,
    /// The process that is writing to it, if one is.
    pub writer: Option<String>,
}

/// A state of the files of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Moment {
    /// The files as they are now.
    Now,
    /// A checkpoint.
    Checkpoint(String),
    /// As they were at a record of a session.
    Record(Place),
}

/// Two states of the files. `workspace` is the one that they are of, as a library calls it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Between {
    /// The workspace.
    pub workspace: String,
    /// The earlier state.
    pub from: Moment,
    /// The later one.
    pub to: Moment,
}

/// A file that differs between two states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// Its path in the workspace.
    pub path: String,
    /// What happened to it: `edited`, `new`, `deleted`, `renamed from x`.
    pub what: String,
    /// Lines added and removed; `None` for a binary file.
    pub lines: Option<(u64, u64)>,
}

/// What changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// What it is the change of: `turn 3`, `edit of src/a.rs`, `14:02 to now`.
    pub title: String,
    /// The states that it is between; `None` if only an agent's own edits are known.
    pub between: Option<Between>,
    /// The files.
    pub files: Vec<ChangedFile>,
    /// A remark, such as why nothing is known.
    pub note: Option<String>,
}

/// Whose changes are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ChangesOf {
    /// The turn with a record, or the call if the record is one.
    Part(Place, PartOrTurn),
    /// A row of the timeline.
    Row(String),
    /// Two states.
    Between(Between),
}

/// Whether a single call or a whole turn is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PartOrTurn {
    /// The call alone.
    Part,
    /// The turn.
    Turn,
}

/// What a line of a diff is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffKind {
    /// The heading of a hunk.
    Hunk,
    /// A line in both.
    Same,
    /// A line that was removed.
    Removed,
    /// A line that was added.
    Added,
}

/// A line of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLine {
    /// What it is.
    pub kind: DiffKind,
    /// Its number before, if it was there.
    pub old: Option<u64>,
    /// Its number after, if it is there.
    pub new: Option<u64>,
    /// Its text, clean, without a sign.
    pub text: String,
}

/// The difference of one file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileDiff {
    /// Its path.
    pub path: String,
    /// The lines.
    pub lines: Vec<DiffLine>,
    /// A remark instead of lines, for a binary or very large file.
    pub note: Option<String>,
}

/// A row of the timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelineRow {
    /// Its checkpoint, by which [`ChangesOf::Row`] and [`Moment::Checkpoint`] name it.
    pub id: String,
    /// The day, as a heading.
    pub day: String,
    /// The time.
    pub at: String,
    /// What it is: `turn 7`, `run`, `you`, `undo`.
    pub kind: String,
    /// The style of the kind.
    pub style: Style,
    /// What it was about, labels first.
    pub about: String,
    /// How much changed: `+48 −12  4 files`.
    pub change: String,
    /// The short id of its session.
    pub short: String,
    /// Its first record in that session.
    pub session: Option<Place>,
    /// Whether it is the step that undo would undo (`Some(true)`) or was undone (`Some(false)`).
    pub step: Option<bool>,
}

/// What happened in this workspace, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Timeline {
    /// The workspace, as a library calls it; empty if there is none here.
    pub workspace: String,
    /// Its name.
    pub name: String,
    /// The rows.
    pub rows: Vec<TimelineRow>,
    /// Whether there are older ones.
    pub has_more: bool,
}

/// A match of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    /// The record.
    pub place: Place,
    /// Title, agent and time of its session, and the turn.
    pub heading: String,
    /// The text around the match, with the matches in another style.
    pub snippet: Vec<Line>,
    /// Whether the record was undone.
    pub is_undone: bool,
}

/// The matches of a search, best first, those of a session together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchResults {
    /// The matches.
    pub hits: Vec<SearchHit>,
    /// How many there are in all.
    pub all: u64,
    /// Another spelling, if nothing was found.
    pub suggestion: Option<String>,
}

/// A line of a blame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlameLine {
    /// Who wrote it, briefly: `kxvm turn 3`, `you`, `before Backtrail`.
    pub who: String,
    /// When, briefly.
    pub when: String,
    /// The prompt, or what else is known.
    pub about: String,
    /// The record, if a session wrote it.
    pub place: Option<Place>,
    /// The line.
    pub text: String,
}

/// How costs are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CostsBy {
    /// By day.
    Day,
    /// By week.
    Week,
    /// By month.
    Month,
    /// By model.
    Model,
    /// By project.
    Project,
    /// By agent.
    Agent,
    /// By tag.
    Tag,
    /// By git branch.
    Branch,
    /// Calls of tools, instead of costs.
    Tool,
    /// In blocks of five hours.
    Block,
}

/// A group of the costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostRow {
    /// Its name.
    pub name: String,
    /// What it cost: `$1.84`; of a tool, how often it was called.
    pub cost: String,
    /// Its tokens: `412 k`; of a tool, how many calls failed.
    pub tokens: String,
    /// The length of its bar, in thousandths of the longest.
    pub share: u16,
    /// The sessions in it, by id.
    pub sessions: Vec<String>,
}

/// What was spent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Costs {
    /// The groups.
    pub rows: Vec<CostRow>,
    /// The total in a line, with what is not included.
    pub total: String,
}

/// Something that is done to files, history or a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Undo the last step of this workspace.
    Undo,
    /// Redo the step that was undone last.
    Redo,
    /// Rewind files and conversation to a moment of a workspace.
    Rewind(String, Moment),
    /// Restore files as they were at a moment of a workspace.
    Restore(String, Moment, Vec<String>),
    /// Reverse some hunks of a file's difference; hunks count from 0.
    RestoreHunks(Between, String, Vec<usize>),
    /// Fork a session at a record, or its end, into a directory.
    Fork(Place, String),
    /// Delete a session.
    Delete(String),
    /// Restore a session from the trash.
    Undelete(String),
    /// Set a session's title; empty removes it.
    Title(String, String),
    /// Change tags: `+a -b`.
    Tag(String, String),
    /// Pin or unpin.
    Pin(String, bool),
    /// Export to a format and a file.
    Export(String, String, String),
}

/// What happens to files with other changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnConflict {
    /// Stop before anything is touched.
    Stop,
    /// Leave them as they are.
    Keep,
    /// Remove the step's lines and keep the others.
    Merge,
    /// Overwrite them.
    Overwrite,
}

/// What an action would do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// The library's name for it; it forgets older ones.
    pub token: u64,
    /// What is done, in a few words: `Undo prompt 3 "port the parser"`.
    pub title: String,
    /// What happens to each file, and to the conversation.
    pub lines: Vec<Line>,
    /// Whether it can be done; if not, the lines say why.
    pub is_possible: bool,
    /// The choices if files have other changes: what to choose, and what it means.
    pub choices: Vec<(OnConflict, String)>,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// In a line: `Undid prompt 3: 6 files`.
    pub message: String,
    /// The action that reverses it, if one does.
    pub reverse: Option<Action>,
}

/// Something that changed outside of the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Sessions came, went or got other titles.
    Sessions,
    /// A session grew.
    Session(String),
    /// Something happened in this workspace.
    Workspace,
}

/// Stops watching when it is dropped.
pub trait Watch: Send {}

/// Where the screens get everything from, and what does everything.
pub trait Library: Send + Sync + 'static {
    /// Lists sessions.
    fn sessions(&self, scope: Scope, freshness: Freshness) -> Answer<SessionList>;
    /// Returns what is known of a session.
    fn head(&self, session: &str) -> Answer<SessionHead>;
    /// Reads a page of a conversation. Its session is the open one: [`watch`](Self::watch) reports
    /// its growth at once.
    fn page(&self, request: &PageRequest) -> Answer<Page>;
    /// Returns the whole text of a part: what was said, or a call and its output.
    fn text(&self, place: &Place) -> Answer<String>;
    /// Returns the next or previous prompt from a record, without it.
    fn prompt_from(&self, place: &Place, forwards: bool) -> Answer<Option<u64>>;
    /// Returns what a turn, a call, or a row of the timeline changed.
    fn changes(&self, of: &ChangesOf) -> Answer<Changes>;
    /// Returns the difference of a file. `of` is what the file was listed for.
    fn diff(&self, of: &ChangesOf, between: Option<&Between>, path: &str) -> Answer<FileDiff>;
    /// Returns the paths of all files at a moment.
    fn files(&self, workspace: &str, moment: &Moment) -> Answer<Vec<String>>;
    /// Returns a file as text.
    fn file(&self, workspace: &str, moment: &Moment, path: &str) -> Answer<String>;
    /// Returns who wrote each line of a file.
    fn blame(&self, workspace: &str, moment: &Moment, path: &str) -> Answer<Vec<BlameLine>>;
    /// Returns what happened in this workspace: the newest rows, at most `limit`.
    fn timeline(&self, limit: usize) -> Answer<Timeline>;
    /// Searches all messages.
    fn search(&self, words: &str, scope: Scope) -> Answer<SearchResults>;
    /// Returns what was spent.
    fn costs(&self, by: CostsBy, scope: Scope) -> Answer<Costs>;
    /// Says what undo would do here, in a line.
    fn next_undo(&self) -> String;
    /// Plans an action; nothing changes.
    fn plan(&self, action: &Action) -> Answer<Plan>;
    /// Does what was planned. Fails if the files changed since.
    fn apply(&self, token: u64, on_conflict: OnConflict) -> Answer<Report>;
    /// Returns the agents that a session can continue in, its own first: name and title.
    fn agents(&self, session: &str) -> Vec<(String, String)>;
    /// Returns the command that continues a session in an agent.
    fn continue_command(&self, place: &Place, agent: &str) -> Vec<OsString>;
    /// Returns the formats of exports: name and file name extension.
    fn exports(&self, session: &str) -> Vec<(String, String)>;
    /// Reports changes from now on, from a thread of its own.
    fn watch(&self, tell: Box<dyn Fn(Change) + Send>) -> Answer<Box<dyn Watch>>;
}
