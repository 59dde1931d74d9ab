//! News from outside: other processes, time, and programs that had the terminal.

use super::{App, NEWS_AFTER, PREVIEW_AFTER, Tone, View};
use crate::command::Panel;
use crate::request::{Effect, Request};
use backtrail_view::library::{Change, Freshness, PageAt};

impl App {
    /// Takes note of a change; what is visible is read again soon.
    pub(super) fn changed(&mut self, change: &Change) -> Vec<Effect> {
        let mut effects = Vec::new();
        match change {
            Change::Sessions => self.list_due = true,
            Change::Session(id) => {
                self.list_due = true;
                effects.extend(self.grow(id));
            }
            Change::Workspace => {
                effects.push(Effect::Ask(Request::NextUndo));
                effects.extend(self.refresh_timeline());
                effects.extend(self.changes.again().map(Effect::Ask));
            }
        }
        effects.extend(self.wake_for_news());
        effects
    }

    /// Reads the end of the open conversation again, if it is the one that grew.
    fn grow(&mut self, id: &str) -> Option<Effect> {
        let reader = self.reader.as_mut().filter(|reader| reader.session == id)?;
        reader.grow().map(|page| Effect::Ask(Request::Page(page)))
    }

    /// Reads the timeline again if it is visible, else when it is shown next.
    pub(super) fn refresh_timeline(&mut self) -> Option<Effect> {
        if self.view == View::Timeline {
            return self.timeline.ask().map(Effect::Ask);
        }
        self.timeline.is_loaded = false;
        None
    }

    fn wake_for_news(&mut self) -> Option<Effect> {
        let is_needed = self.list_due && !self.is_waking;
        self.is_waking |= is_needed;
        is_needed.then_some(Effect::Wake(NEWS_AFTER))
    }

    /// A session was selected: its conversation is opened soon.
    pub(super) fn preview(&mut self) -> Vec<Effect> {
        self.preview_due = true;
        let is_needed = !self.is_waking;
        self.is_waking = true;
        is_needed
            .then_some(Effect::Wake(PREVIEW_AFTER))
            .into_iter()
            .collect()
    }

    /// Does what was put off.
    pub(super) fn woken(&mut self) -> Vec<Effect> {
        self.is_waking = false;
        let mut effects = self.open_preview();
        if std::mem::take(&mut self.list_due) {
            effects.extend(self.reload_sessions());
        }
        effects
    }

    /// Opens the conversation of the selected session, if its panel is visible.
    pub(super) fn open_preview(&mut self) -> Vec<Effect> {
        if !self.preview_due || self.focus != Panel::Sessions {
            return Vec::new();
        }
        let selected = self.sessions.selected().map(|entry| entry.id.clone());
        let open = self.reader.as_ref().map(|reader| reader.session.clone());
        if selected == open || !self.areas().is_visible(Panel::Conversation) {
            return Vec::new();
        }
        self.back.clear();
        match selected {
            Some(id) => self.open(&id, PageAt::End, None),
            None => {
                self.reader = None;
                Vec::new()
            }
        }
    }

    /// Reads the list of sessions again, now or after the answer that is on its way.
    pub(super) fn reload_sessions(&mut self) -> Option<Effect> {
        if self.sessions.is_loading {
            self.sessions.is_stale = true;
            return None;
        }
        self.sessions.is_loading = true;
        let request = Request::Sessions(self.sessions.scope, Freshness::Current);
        Some(Effect::Ask(request))
    }

    /// Reads everything that is shown again.
    pub(super) fn refresh(&mut self) -> Vec<Effect> {
        let mut effects = vec![Effect::Ask(Request::NextUndo)];
        effects.extend(self.reload_sessions());
        effects.extend(self.refresh_timeline());
        effects.extend(self.changes.again().map(Effect::Ask));
        effects.extend(self.diff.again().map(Effect::Ask));
        if self.view == View::Costs {
            let scope = self.sessions.scope;
            effects.push(Effect::Ask(self.costs.ask(scope)));
        }
        if let Some(reader) = &mut self.reader {
            let asked = [
                Request::Head(reader.session.clone()),
                Request::Page(reader.reload()),
            ];
            effects.extend(asked.map(Effect::Ask));
        }
        effects
    }

    /// A program that had the terminal ended.
    pub(super) fn returned(&mut self, error: Option<String>) -> Vec<Effect> {
        if let Some(error) = error {
            self.say(Tone::Wrong, error);
        }
        self.refresh()
    }
}
