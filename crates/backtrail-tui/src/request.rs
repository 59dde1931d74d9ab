//! What goes into the state of the screens, and what comes out of it.

use std::time::Duration;

use crossterm::event::{KeyEvent, MouseEvent};

use backtrail_view::library::{
    Action, Answer, Between, BlameLine, Change, Changes, ChangesOf, Costs, CostsBy, Freshness,
    Line, Moment, OnConflict, Page, PageRequest, Place, Plan, Report, Scope, SearchResults,
    SessionHead, SessionList, Timeline,
};

/// Something that happened.
#[derive(Debug)]
pub(crate) enum Event {
    /// A key was pressed.
    Key(KeyEvent),
    /// The mouse did something.
    Mouse(MouseEvent),
    /// Text was pasted.
    Paste(String),
    /// The terminal has another size: columns and rows.
    Resize(u16, u16),
    /// An answer came.
    Reply(Box<Request>, Reply),
    /// Something changed outside.
    Changed(Change),
    /// The time of [`Effect::Wake`] has come.
    Woken,
    /// A program that had the terminal ended, with an error if it could not run.
    Returned(Option<String>),
}

/// Something to ask of the library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    /// The sessions of a scope.
    Sessions(Scope, Freshness),
    /// What is known of a session.
    Head(String),
    /// A page of a conversation.
    Page(PageRequest),
    /// The whole text of a part, and what it is for.
    Text(Place, TextFor),
    /// The next prompt after a record, or the one before it.
    Prompt(Place, Direction),
    /// What changed.
    Changes(ChangesOf),
    /// The difference of a file, laid out.
    Diff(DiffRequest),
    /// The files at a moment of a workspace.
    Files(String, Moment),
    /// A file at a moment of a workspace.
    File(String, Moment, String),
    /// Who wrote a file.
    Blame(String, Moment, String),
    /// What happened in this workspace: at most this many rows.
    Timeline(usize),
    /// A search.
    Search(String, Scope),
    /// What was spent.
    Costs(CostsBy, Scope),
    /// What undo would do.
    NextUndo,
    /// What an action would do.
    Plan(Action),
    /// Plans an action that needs no confirmation, and does it.
    Do(Action),
    /// Does what was planned.
    Apply(u64, OnConflict),
    /// The agents that a session can continue in.
    Agents(Place),
    /// The formats that a session can be exported to.
    Exports(String),
}

/// A direction in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Towards the end.
    Forwards,
    /// Towards the beginning.
    Backwards,
}

/// What a text is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextFor {
    /// To be read.
    Reading,
    /// For the clipboard.
    Copying,
}

/// A request for a difference, laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiffRequest {
    /// What the file was listed for.
    pub(crate) of: ChangesOf,
    /// The states that it is between.
    pub(crate) between: Option<Between>,
    /// The file.
    pub(crate) path: String,
    /// How wide it may be.
    pub(crate) width: u16,
    /// How many columns are scrolled out on the left.
    pub(crate) skip: usize,
    /// Whether old and new are side by side.
    pub(crate) side_by_side: bool,
}

/// A difference, laid out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct DiffRows {
    /// The lines, and the hunk that each is in.
    pub(crate) rows: Vec<(Line, Option<usize>)>,
    /// A remark instead of lines.
    pub(crate) note: Option<String>,
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) enum Reply {
    /// Sessions.
    Sessions(Answer<SessionList>),
    /// The head of a session.
    Head(Answer<SessionHead>),
    /// A page.
    Page(Answer<Page>),
    /// A text.
    Text(Answer<String>),
    /// A prompt.
    Prompt(Answer<Option<u64>>),
    /// Changes.
    Changes(Answer<Changes>),
    /// A difference.
    Diff(Answer<DiffRows>),
    /// Names of files.
    Files(Answer<Vec<String>>),
    /// A file, highlighted if its language is known.
    File(Answer<Vec<Line>>),
    /// A blame.
    Blame(Answer<Vec<BlameLine>>),
    /// A timeline.
    Timeline(Answer<Timeline>),
    /// Matches.
    Search(Answer<SearchResults>),
    /// Costs.
    Costs(Answer<Costs>),
    /// What undo would do.
    NextUndo(String),
    /// A plan.
    Plan(Answer<Plan>),
    /// What was done.
    Applied(Answer<Report>),
    /// Agents or formats: name, and title or extension.
    Choices(Vec<(String, String)>),
}

/// Something that the state wants to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Ask the library.
    Ask(Request),
    /// Send [`Event::Woken`] after a time.
    Wake(Duration),
    /// Put text on the clipboard.
    Copy(String),
    /// Give the terminal to a command that continues a session in an agent.
    Continue(Place, String),
    /// Draw everything again.
    Redraw,
    /// Stop, as Ctrl-Z does.
    Suspend,
    /// End.
    Quit,
}
