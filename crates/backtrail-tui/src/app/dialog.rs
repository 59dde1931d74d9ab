//! Keys while something lies over the panels.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::overlay::{
    BlameBox, Choice, ChooseBox, FileAt, InputBox, Overlay, PlanBox, Purpose, SearchBox, TextBox,
    words_of,
};
use super::{App, Tone};
use crate::command::Command;
use crate::cursor::{Cursor, Step};
use crate::request::{Effect, Request};
use backtrail_view::library::{Action, Scope};

/// How many columns a text is scrolled at once.
const COLUMNS: usize = 8;

/// What happens to an overlay after a key.
enum Next {
    Stay(Vec<Effect>),
    Close(Vec<Effect>),
}

impl App {
    /// Gives a key to what lies on top.
    pub(super) fn overlay_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        if is_control(key, 'c') {
            return self.cancel();
        }
        let Some(mut overlay) = self.overlays.pop() else {
            return Vec::new();
        };
        let depth = self.overlays.len();
        let next = match &mut overlay {
            Overlay::Search(search) => self.search_key(search, key),
            Overlay::Input(input) => self.input_key(input, key),
            Overlay::Choose(choose) => self.choose_key(choose, key),
            Overlay::Plan(plan) => self.plan_key(plan, key),
            Overlay::Text(text) => self.text_key(text, key),
            Overlay::Blame(blame) => self.blame_key(blame, key),
            Overlay::Help(cursor) => self.help_key(cursor, key),
            Overlay::Failure(_) => Next::Close(Vec::new()),
        };
        match next {
            Next::Stay(effects) => {
                // What it opened lies above it.
                self.overlays.insert(depth, overlay);
                effects
            }
            Next::Close(effects) => effects,
        }
    }

    /// Closes what lies on top. What is being done is done to its end first.
    fn cancel(&mut self) -> Vec<Effect> {
        if matches!(self.overlays.last(), Some(Overlay::Plan(plan)) if plan.is_applying) {
            self.leaves_when_done = true;
            return self.say(Tone::Done, "leaving when this is done");
        }
        self.overlays.pop();
        Vec::new()
    }

    pub(super) fn paste(&mut self, text: &str) -> Vec<Effect> {
        let asked = match self.overlays.last_mut() {
            Some(Overlay::Search(search)) => {
                search.field.paste(text);
                search.ask()
            }
            Some(Overlay::Input(input)) => {
                input.field.paste(text);
                None
            }
            Some(Overlay::Choose(choose)) => {
                choose.field.paste(text);
                choose.narrow();
                None
            }
            _ => None,
        };
        asked.map(Effect::Ask).into_iter().collect()
    }

    /// Returns how many rows an overlay of a list can show.
    fn list_height(&self) -> usize {
        self.areas().body.height.saturating_sub(4).into()
    }

    fn search_key(&mut self, search: &mut SearchBox, key: KeyEvent) -> Next {
        let len = search.results.hits.len();
        if let Some(step) = list_step(key) {
            search.cursor.go(step, len, self.list_height());
            return Next::Stay(Vec::new());
        }
        match key.code {
            KeyCode::Esc => Next::Close(Vec::new()),
            KeyCode::Enter => self.open_hit(search),
            KeyCode::Tab => {
                search.scope = match search.scope {
                    Scope::Workspace => Scope::Project,
                    Scope::Project => Scope::Everything,
                    Scope::Everything => Scope::Workspace,
                };
                Next::Stay(search.ask().map(Effect::Ask).into_iter().collect())
            }
            _ if search.field.key(key) => {
                Next::Stay(search.ask().map(Effect::Ask).into_iter().collect())
            }
            _ => Next::Stay(Vec::new()),
        }
    }

    fn open_hit(&mut self, search: &SearchBox) -> Next {
        let Some(hit) = search.selected() else {
            return Next::Stay(Vec::new());
        };
        self.found = Some(search.clone());
        self.back.clear();
        Next::Close(self.jump_to_words(&hit.place, words_of(hit)))
    }

    fn input_key(&mut self, input: &mut InputBox, key: KeyEvent) -> Next {
        let is_filter = input.purpose == Purpose::Filter;
        match key.code {
            KeyCode::Esc if is_filter => {
                self.sessions.filter.clear();
                Next::Close(self.rechoose())
            }
            KeyCode::Esc => Next::Close(Vec::new()),
            KeyCode::Enter => Next::Close(self.answer_input(&input.purpose, input.field.text())),
            KeyCode::Up | KeyCode::Down if is_filter => {
                let step = if key.code == KeyCode::Up {
                    Step::Up
                } else {
                    Step::Down
                };
                Next::Stay(self.go(step))
            }
            _ => {
                let is_changed = input.field.key(key);
                if !is_filter || !is_changed {
                    return Next::Stay(Vec::new());
                }
                input.field.text().clone_into(&mut self.sessions.filter);
                self.sessions.cursor = Cursor::default();
                let height = self.height(crate::command::Panel::Sessions);
                self.sessions.choose(height);
                Next::Stay(self.preview())
            }
        }
    }

    /// Does what a line of text was asked for.
    fn answer_input(&mut self, purpose: &Purpose, text: &str) -> Vec<Effect> {
        let text = text.trim().to_owned();
        let action = match purpose.clone() {
            Purpose::Filter => return Vec::new(),
            Purpose::Title(session) => Action::Title(session, text),
            Purpose::Tag(_) | Purpose::Fork(_) | Purpose::Export(..) if text.is_empty() => {
                return self.say(Tone::Wrong, "nothing was typed, so nothing was done");
            }
            Purpose::Tag(session) => Action::Tag(session, text),
            Purpose::Fork(place) => return self.plan(Action::Fork(place, text)),
            Purpose::Export(session, format) => Action::Export(session, format, text),
        };
        vec![Effect::Ask(Request::Do(action))]
    }

    fn choose_key(&mut self, choose: &mut ChooseBox, key: KeyEvent) -> Next {
        if let Some(step) = list_step(key) {
            choose
                .cursor
                .go(step, choose.shown.len(), self.list_height());
            return Next::Stay(Vec::new());
        }
        match key.code {
            KeyCode::Esc => Next::Close(Vec::new()),
            KeyCode::Enter => self.chosen(choose),
            _ => {
                if choose.field.key(key) {
                    choose.narrow();
                }
                Next::Stay(Vec::new())
            }
        }
    }

    fn chosen(&mut self, choose: &ChooseBox) -> Next {
        let Some(index) = choose.selected() else {
            return Next::Stay(Vec::new());
        };
        let (name, text) = choose.items[index].clone();
        match choose.choice.clone() {
            Choice::Agent(place) => Next::Close(vec![Effect::Continue(place, name)]),
            Choice::Format(session) => Next::Close(self.ask_for_export_file(session, name, &text)),
            Choice::Palette => Next::Close(self.perform(choose.commands[index])),
            Choice::File(workspace, moment) => Next::Stay(self.open_file(FileAt {
                workspace,
                moment,
                path: name,
            })),
        }
    }

    fn plan_key(&mut self, shown: &mut PlanBox, key: KeyEvent) -> Next {
        if shown.is_applying {
            return Next::Stay(Vec::new());
        }
        let Some(plan) = &shown.plan else {
            return match is_back(key) {
                true => Next::Close(Vec::new()),
                false => Next::Stay(Vec::new()),
            };
        };
        let choices = plan.choices.len();
        match key.code {
            _ if is_back(key) => return Next::Close(Vec::new()),
            KeyCode::Enter if !plan.is_possible => return Next::Close(Vec::new()),
            KeyCode::Enter => {
                shown.is_applying = true;
                let request = Request::Apply(plan.token, shown.on_conflict());
                return Next::Stay(vec![Effect::Ask(request)]);
            }
            KeyCode::Down | KeyCode::Char('j') if choices > 0 => {
                shown.choice = (shown.choice + 1).min(choices - 1);
            }
            KeyCode::Up | KeyCode::Char('k') if choices > 0 => {
                shown.choice = shown.choice.saturating_sub(1);
            }
            KeyCode::Down | KeyCode::Char('j') => {
                shown.top = (shown.top + 1).min(plan.lines.len().saturating_sub(1));
            }
            KeyCode::Up | KeyCode::Char('k') => shown.top = shown.top.saturating_sub(1),
            KeyCode::PageDown => {
                shown.top = (shown.top + 10).min(plan.lines.len().saturating_sub(1));
            }
            KeyCode::PageUp => shown.top = shown.top.saturating_sub(10),
            _ => {}
        }
        Next::Stay(Vec::new())
    }

    fn text_key(&mut self, text: &mut TextBox, key: KeyEvent) -> Next {
        if is_back(key) {
            return Next::Close(Vec::new());
        }
        let height = self.list_height();
        if let Some(step) = list_step(key).or_else(|| letter_step(key)) {
            // Only the first visible line moves.
            let last = text.lines.len().saturating_sub(height);
            let mut cursor = Cursor {
                selected: text.top,
                top: text.top,
            };
            cursor.go(step, last + 1, height);
            text.top = cursor.selected;
            return Next::Stay(Vec::new());
        }
        match (key.code, text.file.clone()) {
            (KeyCode::Char('h') | KeyCode::Left, _) => {
                text.skip = text.skip.saturating_sub(COLUMNS)
            }
            (KeyCode::Char('l') | KeyCode::Right, _) => text.skip += COLUMNS,
            (KeyCode::Char('y'), _) => {
                let whole: String = text
                    .lines
                    .iter()
                    .map(|line| super::changes::text_of(line) + "\n")
                    .collect();
                return Next::Stay(self.put_on_clipboard(whole));
            }
            (KeyCode::Char('b'), Some(file)) => return Next::Stay(self.blame(file)),
            (KeyCode::Char('R'), Some(file)) => {
                let action = Action::Restore(file.workspace, file.moment, vec![file.path]);
                return Next::Stay(self.plan(action));
            }
            _ => {}
        }
        Next::Stay(Vec::new())
    }

    fn blame_key(&mut self, blame: &mut BlameBox, key: KeyEvent) -> Next {
        if is_back(key) {
            return Next::Close(Vec::new());
        }
        if let Some(step) = list_step(key).or_else(|| letter_step(key)) {
            blame.cursor.go(step, blame.lines.len(), self.list_height());
            return Next::Stay(Vec::new());
        }
        let line = blame.lines.get(blame.cursor.selected);
        match (key.code, line.and_then(|line| line.place.clone())) {
            (KeyCode::Enter, Some(place)) => {
                self.overlays.clear();
                self.back.clear();
                Next::Close(self.jump(&place))
            }
            (KeyCode::Enter, None) => {
                Next::Stay(self.say(Tone::Wrong, "no session wrote this line"))
            }
            _ => Next::Stay(Vec::new()),
        }
    }

    fn help_key(&mut self, cursor: &mut Cursor, key: KeyEvent) -> Next {
        let height = self.list_height();
        match list_step(key).or_else(|| letter_step(key)) {
            Some(step) => {
                let len = crate::command::help_rows(self.focus).len();
                let mut shown = Cursor {
                    selected: cursor.top,
                    top: cursor.top,
                };
                shown.go(step, len.saturating_sub(height) + 1, height);
                cursor.top = shown.selected;
                Next::Stay(Vec::new())
            }
            None => Next::Close(Vec::new()),
        }
    }
}

fn is_control(key: KeyEvent, c: char) -> bool {
    key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char(c)
}

/// Returns whether a key closes something that is not typed into.
fn is_back(key: KeyEvent) -> bool {
    matches!(key.code, KeyCode::Esc | KeyCode::Char('q'))
}

/// Keys that move in a list while letters are typed.
fn list_step(key: KeyEvent) -> Option<Step> {
    Some(match key.code {
        KeyCode::Up => Step::Up,
        KeyCode::Down => Step::Down,
        KeyCode::PageUp => Step::PageUp,
        KeyCode::PageDown => Step::PageDown,
        _ if is_control(key, 'n') => Step::Down,
        _ if is_control(key, 'p') => Step::Up,
        _ => return None,
    })
}

/// Letters that move where nothing is typed.
fn letter_step(key: KeyEvent) -> Option<Step> {
    match crate::command::movement(key) {
        Some(Command::Go(step)) => Some(step),
        _ => None,
    }
}
