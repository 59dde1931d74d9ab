//! Moving: within panels, between them, and between conversations.

use super::overlay::words_of;
use super::{App, Tone, View};
use crate::command::Panel;
use crate::cursor::Step;
use crate::request::{Direction, Effect, Request};
use backtrail_view::library::{PageAt, Place};

impl App {
    /// Moves the cursor of the panel with the focus.
    pub(super) fn go(&mut self, step: Step) -> Vec<Effect> {
        let height = self.height(self.focus);
        match self.focus {
            Panel::Sessions => {
                let len = self.sessions.shown.len();
                self.sessions.cursor.go(step, len, height);
                return self.preview();
            }
            Panel::Conversation => return self.go_in_reader(step, height),
            Panel::Changes => {
                let len = self.changes.changes.files.len();
                self.changes.cursor.go(step, len, height);
            }
            Panel::Diff => {
                let len = self.diff.shown.rows.len();
                self.diff.cursor.go(step, len, height);
            }
            Panel::Timeline => {
                let len = self.timeline.timeline.rows.len();
                self.timeline.cursor.go(step, len, height);
                return self
                    .timeline
                    .needed()
                    .map(Effect::Ask)
                    .into_iter()
                    .collect();
            }
            Panel::Costs => {
                let len = self.costs.costs.rows.len();
                self.costs.cursor.go(step, len, height);
            }
        }
        Vec::new()
    }

    fn go_in_reader(&mut self, step: Step, height: usize) -> Vec<Effect> {
        let Some(reader) = &mut self.reader else {
            return Vec::new();
        };
        let page = match step {
            Step::First if reader.has_before() => Some(reader.open(PageAt::Start)),
            Step::Last if reader.has_after() => Some(reader.open(PageAt::End)),
            _ => {
                let len = reader.len();
                reader.cursor.go(step, len, height);
                None
            }
        };
        page.map(|page| Effect::Ask(Request::Page(page)))
            .into_iter()
            .collect()
    }

    /// Goes to the next or the previous part, prompt or hunk.
    pub(super) fn step_part(&mut self, direction: Direction) -> Vec<Effect> {
        let height = self.height(self.focus);
        let forwards = direction == Direction::Forwards;
        match (self.focus, &mut self.reader) {
            (Panel::Diff, _) => self.diff.step_hunk(forwards, height),
            (Panel::Conversation, Some(reader)) => {
                reader.step_part(forwards, height);
            }
            _ => {}
        }
        Vec::new()
    }

    /// Goes to the next or the previous prompt, which may be on another page.
    pub(super) fn step_prompt(&mut self, direction: Direction) -> Vec<Effect> {
        let height = self.height(Panel::Conversation);
        let forwards = direction == Direction::Forwards;
        let Some(reader) = &mut self.reader else {
            return Vec::new();
        };
        if reader.step_prompt(forwards, height) {
            return Vec::new();
        }
        let is_more = match forwards {
            true => reader.has_after(),
            false => reader.has_before(),
        };
        match reader.place().filter(|_| is_more) {
            Some(place) => vec![Effect::Ask(Request::Prompt(place, direction))],
            None if forwards => self.say(Tone::Done, "this is the last prompt"),
            None => self.say(Tone::Done, "this is the first prompt"),
        }
    }

    /// The panels of the view, in the order of Tab.
    fn panels(&self) -> &'static [Panel] {
        match self.view {
            View::Sessions => &[
                Panel::Sessions,
                Panel::Conversation,
                Panel::Changes,
                Panel::Diff,
            ],
            View::Timeline => &[Panel::Timeline, Panel::Changes, Panel::Diff],
            View::Costs => &[Panel::Costs],
        }
    }

    /// Gives the focus to the next or the previous panel.
    pub(super) fn step_panel(&mut self, direction: Direction, wraps: bool) -> Vec<Effect> {
        let panels = self.panels();
        let here = panels
            .iter()
            .position(|panel| *panel == self.focus)
            .unwrap_or(0);
        let last = panels.len() - 1;
        let next = match direction {
            Direction::Forwards if here == last => {
                if wraps {
                    0
                } else {
                    last
                }
            }
            Direction::Forwards => here + 1,
            Direction::Backwards if here == 0 => {
                if wraps {
                    last
                } else {
                    0
                }
            }
            Direction::Backwards => here - 1,
        };
        self.focus_on(panels[next])
    }

    /// Gives the focus to a panel.
    pub(super) fn focus_on(&mut self, panel: Panel) -> Vec<Effect> {
        if panel == Panel::Sessions || self.focus != Panel::Sessions {
            self.focus = panel;
            return Vec::new();
        }
        self.focus = panel;
        // The conversation that is shown belongs to the selected session.
        let selected = self.sessions.selected().map(|entry| entry.id.clone());
        let open = self.reader.as_ref().map(|reader| reader.session.clone());
        match selected {
            Some(id) if Some(&id) != open.as_ref() => self.open(&id, PageAt::End, None),
            _ => Vec::new(),
        }
    }

    /// Shows another view.
    pub(super) fn show(&mut self, view: View) -> Vec<Effect> {
        self.view = view;
        let (panel, asked) = match view {
            View::Sessions => (Panel::Sessions, None),
            // Files that nobody watches may have changed since.
            View::Timeline => {
                self.changes.of = None;
                self.diff.request = None;
                (Panel::Timeline, self.timeline.ask())
            }
            View::Costs => (Panel::Costs, Some(self.costs.ask(self.sessions.scope))),
        };
        self.focus = panel;
        asked.map(Effect::Ask).into_iter().collect()
    }

    /// Opens what is selected.
    pub(super) fn enter(&mut self) -> Vec<Effect> {
        match self.focus {
            Panel::Sessions => self.focus_on(Panel::Conversation),
            Panel::Conversation => self.enter_part(),
            Panel::Changes => self.focus_on(Panel::Diff),
            Panel::Timeline => self.focus_on(Panel::Changes),
            Panel::Costs => self.drill_down(),
            Panel::Diff => Vec::new(),
        }
    }

    /// A call that started a sub-agent opens that agent's conversation.
    fn enter_part(&mut self) -> Vec<Effect> {
        let part = self.reader.as_ref().and_then(|reader| reader.selected());
        let Some(sub_agent) = part.and_then(|part| part.sub_agent.clone()) else {
            return self.focus_on(Panel::Changes);
        };
        self.back
            .extend(self.reader.as_ref().and_then(|reader| reader.place()));
        self.open(&sub_agent, PageAt::Start, None)
    }

    /// Lists the sessions of the selected group.
    fn drill_down(&mut self) -> Vec<Effect> {
        let Some(row) = self.costs.selected() else {
            return Vec::new();
        };
        if row.sessions.is_empty() {
            return self.say(Tone::Wrong, "no sessions in this group");
        }
        self.sessions.only = Some((row.name.clone(), row.sessions.clone()));
        self.sessions.filter.clear();
        self.sessions.cursor = crate::cursor::Cursor::default();
        let mut effects = self.show(View::Sessions);
        let height = self.height(Panel::Sessions);
        self.sessions.choose(height);
        effects.extend(self.preview());
        effects
    }

    /// Goes back one step; from the start, leaves.
    pub(super) fn go_back(&mut self) -> Vec<Effect> {
        match (self.view, self.focus) {
            (_, Panel::Diff) => self.focus = Panel::Changes,
            (View::Timeline, Panel::Changes) => self.focus = Panel::Timeline,
            (_, Panel::Changes) => self.focus = Panel::Conversation,
            (_, Panel::Conversation) => return self.leave_conversation(),
            (View::Timeline | View::Costs, _) => return self.show(View::Sessions),
            _ => return self.leave_filter(),
        }
        Vec::new()
    }

    fn leave_conversation(&mut self) -> Vec<Effect> {
        if let Some(place) = self.back.pop() {
            return self.jump(&place);
        }
        self.focus = Panel::Sessions;
        // Another session may be selected by now.
        self.preview()
    }

    fn leave_filter(&mut self) -> Vec<Effect> {
        if self.is_at_start() {
            return vec![Effect::Quit];
        }
        self.sessions.filter.clear();
        let came_from_costs = self.sessions.only.take().is_some();
        let mut effects = self.rechoose();
        if came_from_costs {
            effects.extend(self.show(View::Costs));
        }
        effects
    }

    /// Decides again which sessions are shown; the selected one stays selected.
    pub(super) fn rechoose(&mut self) -> Vec<Effect> {
        let height = self.height(Panel::Sessions);
        let selected = self.sessions.selected().map(|entry| entry.id.clone());
        self.sessions.choose(height);
        if let Some(id) = selected {
            self.sessions.select(&id, height);
        }
        self.preview()
    }

    /// Jumps to the next or the previous match of the last search.
    pub(super) fn step_match(&mut self, direction: Direction) -> Vec<Effect> {
        let Some(found) = self
            .found
            .as_mut()
            .filter(|found| !found.results.hits.is_empty())
        else {
            return self.say(Tone::Wrong, "nothing was searched yet: press /");
        };
        let len = found.results.hits.len();
        let steps = match direction {
            Direction::Forwards => 1,
            Direction::Backwards => len - 1,
        };
        found.cursor.selected = (found.cursor.selected + steps) % len;
        let at = found.cursor.selected + 1;
        let hit = &found.results.hits[at - 1];
        let (place, words) = (hit.place.clone(), words_of(hit));
        self.say(Tone::Done, format!("match {at} of {len}"));
        self.jump_to_words(&place, words)
    }

    /// Returns the record of the turn that the timeline's row belongs to, and opens it.
    pub(super) fn open_row(&mut self) -> Vec<Effect> {
        let place = self.timeline.selected().and_then(|row| row.session.clone());
        match place {
            Some(place) => self.jump(&place),
            None => self.say(Tone::Wrong, "this row belongs to no session"),
        }
    }
}

/// Returns a place as the command line names it.
pub(super) fn reference(short: &str, place: &Place) -> String {
    format!("{short}:{}", place.seq)
}
