//! What each command does.

use super::field::Field;
use super::moves::reference;
use super::overlay::{
    BlameBox, Choice, ChooseBox, FileAt, InputBox, Overlay, PlanBox, Purpose, SearchBox, TextBox,
};
use super::{App, Tone, View};
use crate::command::{Command, Panel, TABLE};
use crate::cursor::Cursor;
use crate::request::{Direction, Effect, Request, TextFor};
use backtrail_view::library::{Action, Fold, Moment, Scope};

/// How many columns a diff is scrolled at once.
const COLUMNS: usize = 8;

/// Does what a command says.
pub(super) fn perform(app: &mut App, command: Command) -> Vec<Effect> {
    use Direction::{Backwards, Forwards};
    match command {
        Command::Go(step) => app.go(step),
        Command::Left => app.step_panel(Backwards, false),
        Command::Right => app.step_panel(Forwards, false),
        Command::NextPanel => app.step_panel(Forwards, true),
        Command::PreviousPanel => app.step_panel(Backwards, true),
        Command::Open => app.enter(),
        Command::Back => app.go_back(),
        Command::Quit => vec![Effect::Quit],
        Command::ShowSessions => app.show(View::Sessions),
        Command::ShowTimeline => app.show(View::Timeline),
        Command::ShowCosts => app.show(View::Costs),
        Command::Search => app.start_search(),
        Command::NextMatch => app.step_match(Forwards),
        Command::PreviousMatch => app.step_match(Backwards),
        Command::Filter => app.ask_for(Purpose::Filter),
        Command::NextScope => app.next_scope(),
        Command::Wordless => app.toggle_wordless(),
        Command::NextPrompt => app.step_prompt(Forwards),
        Command::PreviousPrompt => app.step_prompt(Backwards),
        Command::NextPart => app.step_part(Forwards),
        Command::PreviousPart => app.step_part(Backwards),
        Command::Fold => app.next_fold(),
        Command::Diff => app.focus_on(Panel::Diff),
        Command::SideBySide => app.toggle_side_by_side(),
        Command::ScrollLeft => app.scroll_diff(Backwards),
        Command::ScrollRight => app.scroll_diff(Forwards),
        Command::Undo => app.plan(Action::Undo),
        Command::Redo => app.plan(Action::Redo),
        Command::Rewind => app.rewind(),
        Command::Restore => app.restore(),
        Command::Mark => app.toggle_mark(),
        Command::Compare => app.compare(),
        Command::Files => app.list_files(),
        Command::Fork => app.with_place(|app, place| app.ask_for(Purpose::Fork(place))),
        Command::Continue => app.choose_agent(),
        Command::Copy => app.copy(),
        Command::Export => app.choose_format(),
        Command::Title => app.with_session(|app, id| app.ask_for(Purpose::Title(id))),
        Command::Tag => app.with_session(|app, id| app.ask_for(Purpose::Tag(id))),
        Command::Pin => app.toggle_pin(),
        Command::Delete => app.with_session(|app, id| app.plan(Action::Delete(id))),
        Command::Undelete => app.undelete(),
        Command::Blame => app.blame_selected(),
        Command::OpenWhole => app.open_whole(),
        Command::OpenSession => app.open_row(),
        Command::NextGrouping => app.regroup(Forwards),
        Command::PreviousGrouping => app.regroup(Backwards),
        Command::Help => app.lay_over(Overlay::Help(Cursor::default())),
        Command::Palette => app.open_palette(),
        Command::Redraw => {
            let mut effects = app.refresh();
            effects.push(Effect::Redraw);
            effects
        }
        Command::Suspend => vec![Effect::Suspend],
    }
}

impl App {
    /// Puts something over the panels.
    pub(super) fn lay_over(&mut self, overlay: Overlay) -> Vec<Effect> {
        self.overlays.push(overlay);
        Vec::new()
    }

    fn lay_over_and_ask(&mut self, overlay: Overlay, request: Request) -> Vec<Effect> {
        self.overlays.push(overlay);
        vec![Effect::Ask(request)]
    }

    fn with_place(
        &mut self,
        then: impl FnOnce(&mut Self, backtrail_view::library::Place) -> Vec<Effect>,
    ) -> Vec<Effect> {
        match self.place() {
            Some(place) => then(self, place),
            None => self.say(Tone::Wrong, "no session is selected"),
        }
    }

    fn with_session(&mut self, then: impl FnOnce(&mut Self, String) -> Vec<Effect>) -> Vec<Effect> {
        match self.session() {
            Some(session) => then(self, session),
            None => self.say(Tone::Wrong, "no session is selected"),
        }
    }

    /// Shows what an action would do.
    pub(super) fn plan(&mut self, action: Action) -> Vec<Effect> {
        let plan = PlanBox {
            action: action.clone(),
            plan: None,
            choice: 0,
            top: 0,
            is_applying: false,
        };
        self.lay_over_and_ask(Overlay::Plan(plan), Request::Plan(action))
    }

    fn start_search(&mut self) -> Vec<Effect> {
        // The last search is there to be changed.
        let search = self.found.clone();
        let search = search.unwrap_or_else(|| SearchBox::new(Scope::Everything));
        self.lay_over(Overlay::Search(search))
    }

    /// Asks for a line of text.
    fn ask_for(&mut self, purpose: Purpose) -> Vec<Effect> {
        let entry = |id: &str| self.sessions.entry(id);
        let (label, text) = match &purpose {
            Purpose::Filter => (
                "filter: title, agent, project or #tag",
                self.sessions.filter.clone(),
            ),
            Purpose::Title(id) => {
                let title = entry(id).map(|entry| entry.title.clone());
                ("title (empty removes it)", title.unwrap_or_default())
            }
            Purpose::Tag(_) => ("tags to add, or -tag to remove", String::new()),
            Purpose::Fork(_) => ("directory for the fork", "../".to_owned()),
            Purpose::Export(..) => ("file", String::new()),
        };
        let field = Field::new(&text);
        self.lay_over(Overlay::Input(InputBox {
            purpose,
            label,
            field,
        }))
    }

    fn next_scope(&mut self) -> Vec<Effect> {
        let scope = match self.sessions.scope {
            Scope::Workspace => Scope::Project,
            Scope::Project => Scope::Everything,
            Scope::Everything => Scope::Workspace,
        };
        self.is_scope_chosen = true;
        self.set_scope(scope)
    }

    /// Lists the sessions of another scope.
    pub(super) fn set_scope(&mut self, scope: Scope) -> Vec<Effect> {
        self.sessions.scope = scope;
        self.sessions.is_loading = false;
        let mut effects: Vec<Effect> = self.reload_sessions().into_iter().collect();
        if self.view == View::Costs {
            effects.push(Effect::Ask(self.costs.ask(scope)));
        }
        effects
    }

    fn toggle_wordless(&mut self) -> Vec<Effect> {
        self.sessions.shows_wordless = !self.sessions.shows_wordless;
        self.rechoose()
    }

    fn next_fold(&mut self) -> Vec<Effect> {
        // A match may have unfolded the tools of this conversation alone.
        let shown = self.reader.as_ref().map_or(self.fold, |it| it.fold);
        self.fold = match shown {
            Fold::Hidden => Fold::Short,
            Fold::Short => Fold::Full,
            Fold::Full => Fold::Hidden,
        };
        let (name, fold) = match self.fold {
            Fold::Hidden => ("hidden", Fold::Hidden),
            Fold::Short => ("short", Fold::Short),
            Fold::Full => ("full", Fold::Full),
        };
        self.say(Tone::Done, format!("tool calls: {name}"));
        let Some(reader) = &mut self.reader else {
            return Vec::new();
        };
        reader.fold = fold;
        vec![Effect::Ask(Request::Page(reader.reload()))]
    }

    fn toggle_side_by_side(&mut self) -> Vec<Effect> {
        self.diff.is_side_by_side = !self.diff.is_side_by_side;
        Vec::new()
    }

    fn scroll_diff(&mut self, direction: Direction) -> Vec<Effect> {
        self.diff.skip = match direction {
            Direction::Forwards => self.diff.skip + COLUMNS,
            Direction::Backwards => self.diff.skip.saturating_sub(COLUMNS),
        };
        Vec::new()
    }

    /// Returns the workspace of the selected row; empty for a record, whose session names it.
    fn workspace(&self) -> String {
        match self.view {
            View::Timeline => self.timeline.timeline.workspace.clone(),
            _ => String::new(),
        }
    }

    /// Returns the moment that is selected.
    fn moment(&self) -> Option<Moment> {
        match self.view {
            View::Timeline => self.timeline.moment(),
            _ => self.place().map(Moment::Record),
        }
    }

    fn rewind(&mut self) -> Vec<Effect> {
        match self.moment() {
            Some(moment) => self.plan(Action::Rewind(self.workspace(), moment)),
            None => self.say(Tone::Wrong, "nothing is selected to go back to"),
        }
    }

    /// Restores the chosen files, or the chosen hunks of one, as they were before.
    fn restore(&mut self) -> Vec<Effect> {
        let is_loading = self.changes.is_loading || self.diff.is_loading;
        if is_loading {
            // What is shown may belong to what was selected before.
            return self.say(
                Tone::Wrong,
                "what changed is still being read; press R again",
            );
        }
        let Some(between) = self.changes.changes.between.clone() else {
            return self.say(
                Tone::Wrong,
                "no checkpoint has these files, so they cannot be restored",
            );
        };
        let path = self.changes.selected().map(|file| file.path.clone());
        match (self.focus, path) {
            (Panel::Diff, Some(path)) if !self.diff.chosen().is_empty() => {
                let hunks = self.diff.chosen();
                self.plan(Action::RestoreHunks(between, path, hunks))
            }
            (_, Some(_)) => {
                let paths = self.changes.chosen();
                self.plan(Action::Restore(between.workspace, between.from, paths))
            }
            (_, None) => self.say(Tone::Wrong, "no file is selected"),
        }
    }

    fn toggle_mark(&mut self) -> Vec<Effect> {
        match self.focus {
            Panel::Diff => self.diff.toggle_mark(),
            _ => {
                self.changes.toggle_mark();
                return self.go(crate::cursor::Step::Down);
            }
        }
        Vec::new()
    }

    fn compare(&mut self) -> Vec<Effect> {
        self.timeline.toggle_mark();
        match self.timeline.mark {
            Some(_) => self.say(
                Tone::Done,
                "marked: select another moment to compare, or m to stop",
            ),
            None => Vec::new(),
        }
    }

    fn list_files(&mut self) -> Vec<Effect> {
        let Some(moment) = self.moment() else {
            return self.say(Tone::Wrong, "no moment is selected");
        };
        let workspace = self.workspace();
        let choice = Choice::File(workspace.clone(), moment.clone());
        let files = ChooseBox::new(choice, "files as they were".to_owned());
        self.lay_over_and_ask(Overlay::Choose(files), Request::Files(workspace, moment))
    }

    fn choose_agent(&mut self) -> Vec<Effect> {
        self.with_place(|app, place| {
            let choice = Choice::Agent(place.clone());
            let agents = ChooseBox::new(choice, "continue in".to_owned());
            app.lay_over_and_ask(Overlay::Choose(agents), Request::Agents(place))
        })
    }

    fn choose_format(&mut self) -> Vec<Effect> {
        self.with_session(|app, session| {
            let choice = Choice::Format(session.clone());
            let formats = ChooseBox::new(choice, "export to".to_owned());
            app.lay_over_and_ask(Overlay::Choose(formats), Request::Exports(session))
        })
    }

    /// Asks for the file of an export.
    pub(super) fn ask_for_export_file(
        &mut self,
        session: String,
        format: String,
        extension: &str,
    ) -> Vec<Effect> {
        let short = self.short(&session);
        self.lay_over(Overlay::Input(InputBox {
            purpose: Purpose::Export(session, format),
            label: "file",
            field: Field::new(&format!("{short}.{extension}")),
        }))
    }

    /// Returns the short id of a session, if it is listed.
    fn short(&self, id: &str) -> String {
        let entry = self.sessions.entry(id);
        entry.map_or_else(|| id.to_owned(), |entry| entry.short.clone())
    }

    fn toggle_pin(&mut self) -> Vec<Effect> {
        self.with_session(|app, id| {
            let is_pinned = app.sessions.entry(&id).is_some_and(|entry| entry.is_pinned);
            vec![Effect::Ask(Request::Do(Action::Pin(id, !is_pinned)))]
        })
    }

    fn undelete(&mut self) -> Vec<Effect> {
        match self.last_deleted.clone() {
            Some(id) => self.plan(Action::Undelete(id)),
            None => self.say(
                Tone::Wrong,
                "nothing was deleted here; see: backtrail trash",
            ),
        }
    }

    /// Copies what is selected: a reference, a text, a path, a hunk.
    fn copy(&mut self) -> Vec<Effect> {
        let text = match self.focus {
            Panel::Conversation => {
                return self.with_place(|_, place| {
                    vec![Effect::Ask(Request::Text(place, TextFor::Copying))]
                });
            }
            Panel::Sessions => self.sessions.selected().map(|entry| entry.short.clone()),
            Panel::Changes => self.changes.selected().map(|file| file.path.clone()),
            Panel::Diff => Some(self.diff.text()).filter(|text| !text.is_empty()),
            Panel::Timeline => self.timeline.selected().map(|row| match &row.session {
                Some(place) => reference(&row.short, place),
                None => row.id.clone(),
            }),
            Panel::Costs => None,
        };
        match text {
            Some(text) => self.put_on_clipboard(text),
            None => self.say(Tone::Wrong, "nothing is selected to copy"),
        }
    }

    /// Puts a text on the clipboard and says so.
    pub(super) fn put_on_clipboard(&mut self, text: String) -> Vec<Effect> {
        let copied = match text.lines().count() {
            0 | 1 if text.chars().count() <= 40 => format!("copied {}", text.trim()),
            0 | 1 => "copied 1 line".to_owned(),
            lines => format!("copied {lines} lines"),
        };
        self.say(Tone::Done, copied);
        vec![Effect::Copy(text)]
    }

    fn blame_selected(&mut self) -> Vec<Effect> {
        let Some(file) = self.changes.selected() else {
            return self.say(Tone::Wrong, "no file is selected");
        };
        let path = file.path.clone();
        let (workspace, moment) = match &self.changes.changes.between {
            Some(between) => (between.workspace.clone(), between.to.clone()),
            None => (self.workspace(), self.moment().unwrap_or(Moment::Now)),
        };
        self.blame(FileAt {
            workspace,
            moment,
            path,
        })
    }

    /// Shows who wrote each line of a file.
    pub(super) fn blame(&mut self, file: FileAt) -> Vec<Effect> {
        let FileAt {
            workspace,
            moment,
            path,
        } = file.clone();
        let blame = BlameBox {
            file,
            lines: Vec::new(),
            cursor: Cursor::default(),
            is_loading: true,
        };
        self.lay_over_and_ask(
            Overlay::Blame(blame),
            Request::Blame(workspace, moment, path),
        )
    }

    /// Shows a file as it was.
    pub(super) fn open_file(&mut self, file: FileAt) -> Vec<Effect> {
        let FileAt {
            workspace,
            moment,
            path,
        } = file.clone();
        let text = TextBox::loading(path.clone(), Some(file));
        self.lay_over_and_ask(Overlay::Text(text), Request::File(workspace, moment, path))
    }

    fn open_whole(&mut self) -> Vec<Effect> {
        self.with_place(|app, place| {
            let title = reference(&app.short(&place.session), &place);
            let text = TextBox::loading(title, None);
            let request = Request::Text(place, TextFor::Reading);
            app.lay_over_and_ask(Overlay::Text(text), request)
        })
    }

    fn regroup(&mut self, direction: Direction) -> Vec<Effect> {
        self.costs.regroup(direction == Direction::Forwards);
        vec![Effect::Ask(self.costs.ask(self.sessions.scope))]
    }

    fn open_palette(&mut self) -> Vec<Effect> {
        let possible = TABLE.iter().filter(|entry| entry.is_possible(self.focus));
        let possible = possible.filter(|entry| entry.command != Command::Palette);
        let mut palette = ChooseBox::new(Choice::Palette, "command".to_owned());
        let mut items = Vec::new();
        for entry in possible {
            palette.commands.push(entry.command);
            items.push((entry.keys.to_owned(), entry.about.to_owned()));
        }
        palette.set(items);
        self.lay_over(Overlay::Choose(palette))
    }
}
