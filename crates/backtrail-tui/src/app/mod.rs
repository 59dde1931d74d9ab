//! The state of the screens, and how events change it.

pub(crate) mod areas;
pub(crate) mod changes;
pub(crate) mod costs;
mod dialog;
mod field;
mod live;
mod mouse;
mod moves;
pub(crate) mod overlay;
mod perform;
mod reader;
mod replies;
pub(crate) mod sessions;
pub(crate) mod timeline;

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent};

use self::areas::Areas;
use self::changes::{ChangesPanel, DiffPanel};
use self::costs::CostsPanel;
use self::overlay::{Overlay, SearchBox};
use self::reader::Reader;
use self::sessions::SessionsPanel;
use self::timeline::TimelinePanel;
use crate::command::{Command, Panel, command_of};
use crate::look::{Background, Look};
use crate::request::{DiffRequest, Effect, Event, Request};
use backtrail_view::library::{
    ChangesOf, Fold, Freshness, PageAt, PageRequest, PartKind, PartOrTurn, Place, Scope,
};

/// How long a preview waits, so that a held key does not open every session that it passes.
const PREVIEW_AFTER: Duration = Duration::from_millis(40);
/// How long news of other processes are collected before the list is read again.
const NEWS_AFTER: Duration = Duration::from_millis(120);

/// The whole screens, one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    Sessions,
    Timeline,
    Costs,
}

/// Whether a message is good or bad news.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Done,
    Wrong,
}

/// The state of the screens.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) look: Look,
    pub(crate) size: (u16, u16),
    pub(crate) view: View,
    pub(crate) focus: Panel,
    pub(crate) sessions: SessionsPanel,
    /// The open conversation: that of the selected session, or one that was jumped to.
    pub(crate) reader: Option<Reader>,
    /// The conversations to go back to, each with its record.
    back: Vec<Place>,
    pub(crate) changes: ChangesPanel,
    pub(crate) diff: DiffPanel,
    pub(crate) timeline: TimelinePanel,
    pub(crate) costs: CostsPanel,
    pub(crate) overlays: Vec<Overlay>,
    /// The last search, for the next match.
    pub(crate) found: Option<SearchBox>,
    /// What undo would do.
    pub(crate) next_undo: String,
    /// A message, until the next key.
    pub(crate) notice: Option<(Tone, String)>,
    pub(crate) fold: Fold,
    /// Whether the user chose the scope.
    is_scope_chosen: bool,
    /// The scope whose list was read to its end.
    current_scope: Option<Scope>,
    /// The session that was deleted last.
    last_deleted: Option<String>,
    /// Whether to leave as soon as what is being done is done.
    leaves_when_done: bool,
    /// Whether a session was selected that is not open yet.
    preview_due: bool,
    /// Whether the list of sessions is out of date.
    list_due: bool,
    /// Whether a wake-up call is on its way.
    is_waking: bool,
}

impl App {
    /// Makes the state for a terminal of `size` columns and rows, and what it wants first.
    pub(crate) fn new(scope: Scope, look: Look, size: (u16, u16)) -> (Self, Vec<Effect>) {
        let mut app = Self {
            look,
            size,
            view: View::Sessions,
            focus: Panel::Sessions,
            sessions: SessionsPanel::new(scope),
            reader: None,
            back: Vec::new(),
            changes: ChangesPanel::default(),
            diff: DiffPanel::default(),
            timeline: TimelinePanel::default(),
            costs: CostsPanel::default(),
            overlays: Vec::new(),
            found: None,
            next_undo: String::new(),
            notice: None,
            fold: Fold::default(),
            is_scope_chosen: scope == Scope::Everything,
            current_scope: None,
            last_deleted: None,
            leaves_when_done: false,
            preview_due: false,
            list_due: false,
            is_waking: false,
        };
        app.sessions.is_loading = true;
        // The rest is asked when this is on the screen.
        let first = Request::Sessions(scope, Freshness::Known);
        (app, vec![Effect::Ask(first)])
    }

    /// Changes the state by an event; returns what is to be done.
    pub(crate) fn update(&mut self, event: Event) -> Vec<Effect> {
        let mut effects = match event {
            Event::Key(key) => self.key(key),
            Event::Mouse(mouse) => self.mouse(mouse),
            Event::Paste(text) => self.paste(&text),
            Event::Resize(width, height) => self.resize((width, height)),
            Event::Reply(request, reply) => self.reply(*request, reply),
            Event::Changed(change) => self.changed(&change),
            Event::Woken => self.woken(),
            Event::Returned(error) => self.returned(error),
        };
        effects.extend(self.details());
        effects
    }

    /// Sets the background, and asks again for what has the colours of the other one.
    pub(crate) fn set_background(&mut self, background: Background) -> Vec<Effect> {
        if self.look.background == background {
            return Vec::new();
        }
        self.look.background = background;
        let page = self.reader.as_mut().map(Reader::reload).map(Request::Page);
        let asked = [page, self.diff.again()];
        asked.into_iter().flatten().map(Effect::Ask).collect()
    }

    pub(crate) fn areas(&self) -> Areas {
        Areas::new(self.size, self.view, self.focus)
    }

    /// Returns how many rows of a panel are visible.
    fn height(&self, panel: Panel) -> usize {
        self.areas().height(panel)
    }

    fn key(&mut self, key: KeyEvent) -> Vec<Effect> {
        self.notice = None;
        if !self.overlays.is_empty() {
            return self.overlay_key(key);
        }
        // Escape goes back, but only q leaves.
        if key.code == KeyCode::Esc && self.is_at_start() {
            return Vec::new();
        }
        match command_of(key, self.focus) {
            Some(command) => self.perform(command),
            None => Vec::new(),
        }
    }

    /// Returns whether there is nothing to go back to.
    fn is_at_start(&self) -> bool {
        self.view == View::Sessions
            && self.focus == Panel::Sessions
            && self.sessions.filter.is_empty()
            && self.sessions.only.is_none()
    }

    fn resize(&mut self, size: (u16, u16)) -> Vec<Effect> {
        self.size = size;
        let areas = self.areas();
        let panel_height = |panel| areas.height(panel);
        let shown = self.sessions.shown.len();
        self.sessions
            .cursor
            .fit(shown, panel_height(Panel::Sessions));
        let files = self.changes.changes.files.len();
        self.changes.cursor.fit(files, panel_height(Panel::Changes));
        let rows = self.timeline.timeline.rows.len();
        self.timeline
            .cursor
            .fit(rows, panel_height(Panel::Timeline));
        let groups = self.costs.costs.rows.len();
        self.costs.cursor.fit(groups, panel_height(Panel::Costs));
        self.preview_due = true;
        self.open_preview()
    }

    /// Returns the width of the lines of a conversation, beside its gutter.
    fn reader_width(&self) -> u16 {
        let area = self.areas().inner(Panel::Conversation);
        let width = area.map_or(self.size.0, |area| area.width);
        width.saturating_sub(2).max(10)
    }

    /// Opens a conversation.
    fn open(&mut self, session: &str, at: PageAt, trail: Option<u32>) -> Vec<Effect> {
        let mut reader = self.reader_of(session, trail);
        let page = reader.open(at);
        self.read(reader, page)
    }

    fn reader_of(&self, session: &str, trail: Option<u32>) -> Reader {
        let mut reader = Reader::new(session, self.fold, self.reader_width());
        reader.trail = trail;
        if let Some(entry) = self.sessions.entry(session) {
            reader.title.clone_from(&entry.title);
        }
        reader
    }

    fn read(&mut self, reader: Reader, page: PageRequest) -> Vec<Effect> {
        let head = Request::Head(reader.session.clone());
        self.reader = Some(reader);
        self.preview_due = false;
        [head, Request::Page(page)].map(Effect::Ask).into()
    }

    /// Opens a conversation at a record, and gives it the focus.
    fn jump(&mut self, place: &Place) -> Vec<Effect> {
        self.jump_to_words(place, Vec::new())
    }

    /// Does the same, and goes to the line of the record that has some words.
    fn jump_to_words(&mut self, place: &Place, words: Vec<String>) -> Vec<Effect> {
        self.view = View::Sessions;
        self.focus = Panel::Conversation;
        let height = self.height(Panel::Sessions);
        self.sessions.select(&place.session, height);
        let mut reader = self.reader_of(&place.session, place.trail);
        let page = reader.open_match(place.seq, words);
        self.read(reader, page)
    }

    /// Asks for what the visible panels need and do not have.
    fn details(&mut self) -> Vec<Effect> {
        let areas = self.areas();
        let mut asked = Vec::new();
        if let Some(area) = areas.inner(Panel::Conversation)
            && let Some(reader) = &mut self.reader
        {
            let width = area.width.saturating_sub(2).max(10);
            if reader.width != width {
                reader.width = width;
                asked.push(Request::Page(reader.reload()));
            }
            let needed = reader.needed(area.height.into());
            asked.extend(needed.into_iter().map(Request::Page));
        }
        if areas.is_visible(Panel::Changes) || areas.is_visible(Panel::Diff) {
            if let Some(of) = self.changes_wanted() {
                asked.extend(self.changes.ask(of));
            }
            if let Some(area) = areas.inner(Panel::Diff) {
                asked.extend(self.diff_wanted(area.width));
            }
        }
        asked.into_iter().map(Effect::Ask).collect()
    }

    /// Returns whose changes belong to what is selected.
    fn changes_wanted(&self) -> Option<ChangesOf> {
        match self.view {
            View::Sessions => self.changes_of_part(),
            View::Timeline => self.timeline.changes_of(),
            View::Costs => None,
        }
    }

    /// A call has its own changes; everything else shows those of its turn.
    fn changes_of_part(&self) -> Option<ChangesOf> {
        let reader = self.reader.as_ref()?;
        let place = reader.place()?;
        let is_call = reader
            .selected()
            .is_some_and(|part| part.kind == PartKind::Tool);
        Some(match is_call {
            true => ChangesOf::Part(place, PartOrTurn::Part),
            false => {
                // Any record names its turn; the prompt's is the same for all of them.
                let seq = reader.turn_seq().unwrap_or(place.seq);
                ChangesOf::Part(Place { seq, ..place }, PartOrTurn::Turn)
            }
        })
    }

    fn diff_wanted(&mut self, width: u16) -> Option<Request> {
        if self.changes.is_loading {
            return None;
        }
        let Some((file, of)) = self.changes.selected().zip(self.changes.of.as_ref()) else {
            self.diff.clear();
            return None;
        };
        let request = DiffRequest {
            of: of.clone(),
            between: self.changes.changes.between.clone(),
            path: file.path.clone(),
            width,
            skip: self.diff.skip,
            side_by_side: self.diff.is_side_by_side,
        };
        self.diff.ask(request)
    }

    /// Shows a message until the next key.
    fn say(&mut self, tone: Tone, message: impl Into<String>) -> Vec<Effect> {
        self.notice = Some((tone, message.into()));
        Vec::new()
    }

    /// Returns the place that a command is about: the selected record, or the end of the selected
    /// session.
    fn place(&self) -> Option<Place> {
        if self.focus == Panel::Sessions {
            let entry = self.sessions.selected()?;
            return Some(Place {
                session: entry.id.clone(),
                seq: entry.last_seq,
                trail: None,
            });
        }
        self.reader.as_ref()?.place()
    }

    /// Returns the session that a command is about.
    fn session(&self) -> Option<String> {
        match self.focus {
            Panel::Sessions => self.sessions.selected().map(|entry| entry.id.clone()),
            _ => self.reader.as_ref().map(|reader| reader.session.clone()),
        }
    }

    /// Lets a command of the palette or a key do its work.
    fn perform(&mut self, command: Command) -> Vec<Effect> {
        perform::perform(self, command)
    }
}

#[cfg(test)]
pub(crate) mod driver_tests;
#[cfg(test)]
#[path = "app_tests.rs"]
mod tests;
