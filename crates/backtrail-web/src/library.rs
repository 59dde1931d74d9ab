//! What the pages need besides what the screens need.
//!
//! A [`Site`] is implemented by the command. Every method is called on a thread of its own and
//! may take its time. Text in its answers is plain text, which the pages escape, except where a
//! field says that it is HTML: those are made and escaped by the templates of the HTML export.

use std::sync::Arc;

use backtrail_view::library::{Answer, Library, Scope, SearchResults, SessionEntry};

/// Which sessions are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionQuery {
    /// Which sessions are listed at all.
    pub scope: Scope,
    /// Names of agents, as [`FilterChoices`] gives them; empty for all.
    pub agents: Vec<String>,
    /// Names of projects; empty for all.
    pub projects: Vec<String>,
    /// Names of models; empty for all.
    pub models: Vec<String>,
    /// Tags, all of which a session must have.
    pub tags: Vec<String>,
    /// The earliest and the latest day or moment, as `--since` and `--until` take them.
    pub since: Option<String>,
    /// See `since`.
    pub until: Option<String>,
    /// A part of the title, whatever its case; empty for all.
    pub title: String,
    /// Whether sessions without a conversation are listed, too.
    pub with_wordless: bool,
    /// How many are passed over.
    pub skip: usize,
    /// How many are wanted at most.
    pub limit: usize,
}

/// Sessions that match, families together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionsFound {
    /// The sessions that were asked for, with their models.
    pub rows: Vec<SessionRow>,
    /// How many match in all.
    pub matching: u64,
    /// How many there are in the store.
    pub all: u64,
}

/// A session of the list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionRow {
    /// What the screens show of it, too.
    pub entry: SessionEntry,
    /// The model that answered most, empty if none did.
    pub model: String,
    /// Its tokens in a few characters: `1.8 M`.
    pub tokens: String,
}

/// What sessions can be filtered by, the most used first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FilterChoices {
    /// Agents: the name that a query takes, and the title that people know.
    pub agents: Vec<(String, String)>,
    /// Projects.
    pub projects: Vec<String>,
    /// Models.
    pub models: Vec<String>,
    /// Tags.
    pub tags: Vec<String>,
}

/// A session as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionPage {
    /// Its row in the list.
    pub row: SessionRow,
    /// The head of its page as the HTML export has it: title, facts, cost. HTML.
    pub head_html: String,
    /// The first record and the last one.
    pub first: u64,
    /// See `first`.
    pub end: u64,
    /// The process that is writing to it, if one is.
    pub writer: Option<String>,
    /// Its family, itself included: forks, sub-agents, and what it comes from, as a tree.
    pub family: Vec<SessionEntry>,
    /// The workspace that has its files, as the library calls it; empty if there is none.
    pub workspace: String,
}

/// A request for records of a conversation, as HTML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordsRequest {
    /// The session.
    pub session: String,
    /// The first and the last record that are wanted.
    pub first: u64,
    /// See `first`.
    pub last: u64,
    /// The trail, to see an undone turn.
    pub trail: Option<u32>,
}

/// Records of a conversation. Ranges tile: no part is in two of them, and none is missing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Records {
    /// The parts as the HTML export has them. The end of a turn is an element with the class
    /// `turn-end` and the attributes `data-first` and `data-last`, its records; the start of a
    /// sub-agent has `data-session`, the id of its session. HTML.
    pub html: String,
    /// The last record of the session now.
    pub end: u64,
}

/// An entry of an outline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutlineEntry {
    /// Its record.
    pub seq: u64,
    /// Whether it is a compaction, not a prompt.
    pub is_compaction: bool,
    /// Its text in a line.
    pub text: String,
}

/// The prompts and compactions of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outline {
    /// The entries, in order.
    pub entries: Vec<OutlineEntry>,
    /// How many more there are.
    pub left: u64,
}

/// What is removed from an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redaction {
    /// Nothing.
    None,
    /// Recognised kinds of secrets.
    Secrets,
    /// Secrets, home directories and e-mail addresses.
    People,
}

/// An export, ready to be saved.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exported {
    /// A name for the file.
    pub file_name: String,
    /// Its media type.
    pub media_type: &'static str,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// What could not be written or was removed, a line each.
    pub notes: Vec<String>,
}

/// How spending is grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GroupBy {
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
    /// By tool: calls, without tokens.
    Tool,
    /// By session, the dearest first.
    Session,
    /// In blocks of five hours.
    Block,
}

/// Which spending is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpendingQuery {
    /// How it is grouped.
    pub by: GroupBy,
    /// Of which sessions.
    pub scope: Scope,
    /// As `--since` takes it.
    pub since: Option<String>,
    /// As `--until` takes it.
    pub until: Option<String>,
    /// How many groups are wanted at most: of times the newest.
    pub limit: usize,
}

/// Amounts, as `stats` has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Amounts {
    /// Model calls, or calls of a tool.
    pub calls: u64,
    /// Tokens.
    pub input: u64,
    /// See `input`.
    pub output: u64,
    /// See `input`.
    pub cache_read: u64,
    /// See `input`.
    pub cache_write: u64,
    /// Millionths of a dollar; `None` if nothing has a price.
    pub micro_dollars: Option<i64>,
}

/// A group of spending.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpendingRow {
    /// Its name.
    pub name: String,
    /// What it is to the library: a day is `2026-11-18`, a session its id.
    pub key: String,
    /// The amounts.
    pub amounts: Amounts,
    /// What it cost as people write it, with a + for a lower bound: `$1.84+`.
    pub cost: String,
    /// Its tokens as people write them: `412 k`.
    pub tokens: String,
    /// The length of its bar, in thousandths of the longest.
    pub share: u16,
    /// The sessions in it, where the filters of the list cannot show them: of weeks and blocks.
    /// Empty if there would be more than 200.
    pub sessions: Vec<NamedSession>,
}

/// A session as people know it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NamedSession {
    /// Its id.
    pub id: String,
    /// Its short id.
    pub short: String,
    /// Its title, or the beginning of its first prompt.
    pub title: String,
}

/// What was spent, in groups.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpendingView {
    /// The groups.
    pub rows: Vec<SpendingRow>,
    /// How many groups there are.
    pub all: u64,
    /// The total, named `total`. If only the newest times are shown, it is theirs.
    pub total: SpendingRow,
    /// What is not included, or a lower bound, a line each.
    pub notes: Vec<String>,
    /// The plot that `stats --svg` draws. It is SVG without styles or scripts of its own.
    pub svg: String,
}

/// A turn that cost much.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DearTurn {
    /// The session.
    pub session: String,
    /// Its title.
    pub title: String,
    /// The record of the prompt.
    pub seq: u64,
    /// The prompt in a line.
    pub prompt: String,
    /// What it cost.
    pub cost: String,
    /// Its tokens.
    pub tokens: String,
}

/// A part of what a model is sent now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContextPart {
    /// What it is: `prompts`, `answers`, `output of Bash`.
    pub name: String,
    /// Its tokens, estimated.
    pub tokens: u64,
    /// The same as people write them.
    pub shown: String,
    /// Its share in thousandths.
    pub share: u16,
}

/// How something about the store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// Fine.
    Fine,
    /// Something to look at.
    Warning,
    /// Something to mend.
    Bad,
}

/// A finding about the store, the agents or what is protected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What it is about: `damage`, `disk`, `Claude Code`.
    pub name: String,
    /// How it is.
    pub condition: Condition,
    /// In a sentence.
    pub text: String,
    /// The command that helps, or what to do.
    pub hint: Option<String>,
}

/// How the store is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Health {
    /// What it holds: `sessions` and `10,412`, `on disk` and `1.2 GiB`.
    pub numbers: Vec<(String, String)>,
    /// The findings, the worst first.
    pub findings: Vec<Finding>,
    /// What is not protected, workspace by workspace: this one first, even without a checkpoint.
    pub protection: Vec<Protection>,
    /// How many workspaces were not looked at, because that took too long.
    pub unchecked: u64,
}

/// How well a workspace is protected by its last checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Protection {
    /// Its name.
    pub name: String,
    /// Its directory, as people write it.
    pub directory: String,
    /// Whether it is the one that the program was started in.
    pub is_here: bool,
    /// Why nothing in it is protected, or not what was done last.
    pub problem: Option<String>,
    /// What the last checkpoint does not hold, and why.
    pub skipped: Vec<(String, String)>,
    /// Whether it skips more than that.
    pub has_more: bool,
}

/// A workspace that has checkpoints.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkspaceEntry {
    /// As the library calls it.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its directory, as people write it.
    pub directory: String,
    /// Whether it is the one that the program was started in.
    pub is_here: bool,
}

/// Where the pages get everything from.
pub trait Site: Library {
    /// Finds sessions.
    fn find_sessions(&self, query: &SessionQuery) -> Answer<SessionsFound>;
    /// Searches the messages of the sessions that a query finds, within its time. The limit is one of
    /// matches; nothing is passed over, and sessions without a conversation are searched, too.
    fn find_messages(&self, words: &str, query: &SessionQuery) -> Answer<SearchResults>;
    /// Returns what sessions can be filtered by.
    fn choices(&self) -> Answer<FilterChoices>;
    /// Returns a session as a whole. `reference` is an id or a short id.
    fn session_page(&self, reference: &str) -> Answer<SessionPage>;
    /// Reads records of a conversation. Changes of its session are reported from now on.
    fn records(&self, request: &RecordsRequest) -> Answer<Records>;
    /// Returns the prompts and compactions of a session.
    fn outline(&self, session: &str) -> Answer<Outline>;
    /// Exports a session to a format that [`exports`](Library::exports) names.
    fn export(&self, session: &str, format: &str, redaction: Redaction) -> Answer<Exported>;
    /// Returns what was spent.
    fn spending(&self, query: &SpendingQuery) -> Answer<SpendingView>;
    /// Returns the turns that cost most, the dearest first.
    fn dearest_turns(&self, query: &SpendingQuery) -> Answer<Vec<DearTurn>>;
    /// Returns what fills the context of a session, the largest part first.
    fn context_parts(&self, session: &str) -> Answer<Vec<ContextPart>>;
    /// Checks the store, the agents, and what is protected here.
    fn health(&self) -> Answer<Health>;
    /// Returns the workspaces that have checkpoints, this one first.
    fn workspaces(&self) -> Answer<Vec<WorkspaceEntry>>;
    /// Returns the same store as it is seen from another workspace. Its plans are its own.
    fn in_workspace(&self, workspace: &str) -> Answer<Arc<dyn Site>>;
}
