//! Answers of the library. An answer that is no longer wanted is dropped.

use super::overlay::{Choice, Overlay, plain_lines};
use super::{App, Tone};
use crate::command::Panel;
use crate::request::{Effect, Reply, Request, TextFor};
use backtrail_view::library::{
    Action, Answer, Failure, Freshness, Page, PageAt, PageRequest, Place, Plan, Report, Scope,
    SessionList,
};

impl App {
    /// Takes the answer to a request.
    pub(super) fn reply(&mut self, request: Request, reply: Reply) -> Vec<Effect> {
        match (request, reply) {
            (Request::Sessions(scope, freshness), Reply::Sessions(answer)) => {
                return self.take_sessions(scope, freshness, answer);
            }
            (Request::Head(session), Reply::Head(Ok(head))) => {
                let reader = self.reader.as_mut().filter(|it| it.session == session);
                if let Some(reader) = reader {
                    reader.title = head.title;
                    reader.facts = head.facts;
                    reader.writer = head.writer;
                }
            }
            (Request::Page(request), Reply::Page(answer)) => {
                return self.take_page(&request, answer);
            }
            (Request::Text(place, TextFor::Copying), Reply::Text(answer)) => {
                return self.take_copy(&place, answer);
            }
            (Request::Text(_, TextFor::Reading), Reply::Text(answer)) => {
                let lines = answer.map(|text| plain_lines(&text));
                return self.take_text(lines);
            }
            (Request::File(..), Reply::File(answer)) => return self.take_text(answer),
            (Request::Prompt(..), Reply::Prompt(answer)) => return self.take_prompt(answer),
            (Request::Changes(of), Reply::Changes(answer))
                if self.changes.of.as_ref() == Some(&of) =>
            {
                let height = self.height(Panel::Changes);
                self.changes
                    .set(answer.map_err(|failure| failure.message), height);
            }
            (Request::Diff(request), Reply::Diff(answer))
                if self.diff.request.as_ref() == Some(&request) =>
            {
                let height = self.height(Panel::Diff);
                self.diff
                    .set(answer.map_err(|failure| failure.message), height);
            }
            (Request::Timeline(_), Reply::Timeline(answer)) => {
                let height = self.height(Panel::Timeline);
                let answer = answer.map_err(|failure| failure.message);
                let again = self.timeline.set(answer, height);
                return again.map(Effect::Ask).into_iter().collect();
            }
            (Request::Costs(by, scope), Reply::Costs(answer))
                if by == self.costs.by() && scope == self.sessions.scope =>
            {
                let height = self.height(Panel::Costs);
                self.costs
                    .set(answer.map_err(|failure| failure.message), height);
            }
            (Request::NextUndo, Reply::NextUndo(text)) => self.next_undo = text,
            (Request::Plan(action), Reply::Plan(answer)) => self.take_plan(&action, answer),
            (Request::Do(action), Reply::Applied(answer)) => {
                return self.take_report(Some(&action), answer);
            }
            (Request::Apply(..), Reply::Applied(answer)) => {
                let action = self.close_applied_plan();
                return self.take_report(action.as_ref(), answer);
            }
            (request, reply) => self.take_for_overlay(&request, reply),
        }
        Vec::new()
    }

    fn take_sessions(
        &mut self,
        scope: Scope,
        freshness: Freshness,
        answer: Answer<SessionList>,
    ) -> Vec<Effect> {
        let mut effects = self.after_known(scope, freshness);
        if scope != self.sessions.scope {
            return effects;
        }
        let height = self.height(Panel::Sessions);
        self.sessions.is_loading = false;
        match answer {
            Ok(list) => {
                let is_current = freshness == Freshness::Current;
                let is_elsewhere = is_current && list.entries.is_empty() && list.all > 0;
                self.sessions.error = None;
                // As long as the list was not current once, nothing in it is news.
                let is_first = self.current_scope != Some(scope);
                if is_current {
                    self.current_scope = Some(scope);
                }
                self.sessions.set(list, is_first, height);
                if is_elsewhere && !self.is_scope_chosen {
                    return self.set_scope(Scope::Everything);
                }
            }
            Err(failure) => self.sessions.error = Some(failure.message),
        }
        if std::mem::take(&mut self.sessions.is_stale) {
            effects.extend(self.reload_sessions());
        }
        self.preview_due = true;
        effects.extend(self.open_preview());
        effects
    }

    /// Returns what is asked once the first list is there: what only then is worth the time.
    fn after_known(&self, scope: Scope, freshness: Freshness) -> Vec<Effect> {
        if freshness == Freshness::Current {
            return Vec::new();
        }
        let current = Request::Sessions(scope, Freshness::Current);
        [current, Request::NextUndo].map(Effect::Ask).into()
    }

    fn take_page(&mut self, request: &PageRequest, answer: Answer<Page>) -> Vec<Effect> {
        let height = self.height(Panel::Conversation);
        let Some(reader) = self
            .reader
            .as_mut()
            .filter(|it| it.session == request.session)
        else {
            return Vec::new();
        };
        match answer {
            Ok(page) => {
                let is_end = !page.has_after;
                let end = page.end;
                if reader.take(request, page, height) && is_end {
                    self.sessions.mark_read(&request.session, end);
                }
                return self.unfold_match();
            }
            Err(failure) => reader.fail(request, failure.message),
        }
        Vec::new()
    }

    /// Unfolds what the match of a search is in, or says where it is.
    fn unfold_match(&mut self) -> Vec<Effect> {
        let Some(reader) = &mut self.reader else {
            return Vec::new();
        };
        if !reader.take_missed() {
            return Vec::new();
        }
        match reader.unfold() {
            Some(page) => vec![Effect::Ask(Request::Page(page))],
            None => self.say(Tone::Done, "the match is further down: o shows all of it"),
        }
    }

    fn take_copy(&mut self, place: &Place, answer: Answer<String>) -> Vec<Effect> {
        if self.place().as_ref() != Some(place) {
            return Vec::new();
        }
        match answer {
            Ok(text) => self.put_on_clipboard(text),
            Err(failure) => self.say(Tone::Wrong, failure.message),
        }
    }

    fn take_text(&mut self, answer: Answer<Vec<backtrail_view::library::Line>>) -> Vec<Effect> {
        let Some(Overlay::Text(text)) = self.overlays.last_mut() else {
            return Vec::new();
        };
        match answer {
            Ok(lines) => text.set(lines),
            Err(failure) => self.replace_by_failure(failure),
        }
        Vec::new()
    }

    fn take_prompt(&mut self, answer: Answer<Option<u64>>) -> Vec<Effect> {
        let Some(reader) = &mut self.reader else {
            return Vec::new();
        };
        match answer {
            Ok(Some(seq)) => {
                let page = reader.open(PageAt::Around(seq));
                vec![Effect::Ask(Request::Page(page))]
            }
            Ok(None) => self.say(Tone::Done, "there is no further prompt"),
            Err(failure) => self.say(Tone::Wrong, failure.message),
        }
    }

    fn take_plan(&mut self, action: &Action, answer: Answer<Plan>) {
        let Some(Overlay::Plan(shown)) = self.overlays.last_mut() else {
            return;
        };
        if shown.action != *action || shown.plan.is_some() {
            return;
        }
        match answer {
            Ok(plan) => shown.plan = Some(plan),
            Err(failure) => self.replace_by_failure(failure),
        }
    }

    /// Closes the plan that was applied; returns its action.
    fn close_applied_plan(&mut self) -> Option<Action> {
        let is_applied =
            |overlay: &Overlay| matches!(overlay, Overlay::Plan(plan) if plan.is_applying);
        let at = self.overlays.iter().rposition(is_applied)?;
        match self.overlays.remove(at) {
            Overlay::Plan(plan) => Some(plan.action),
            _ => None,
        }
    }

    /// Reports what was done, and reads everything again.
    fn take_report(&mut self, action: Option<&Action>, answer: Answer<Report>) -> Vec<Effect> {
        match answer {
            Ok(report) => {
                match action {
                    Some(Action::Delete(id)) => self.last_deleted = Some(id.clone()),
                    Some(Action::Undelete(_)) => self.last_deleted = None,
                    _ => {}
                }
                let reverse = report.reverse.as_ref().and_then(key_of);
                let message = match reverse {
                    Some(key) => format!("{}  (to reverse: {key})", report.message),
                    None => report.message,
                };
                self.say(Tone::Done, message);
            }
            Err(failure) => self.overlays.push(Overlay::Failure(failure)),
        }
        let mut effects = self.refresh();
        if self.leaves_when_done {
            effects.push(Effect::Quit);
        }
        effects
    }

    fn replace_by_failure(&mut self, failure: Failure) {
        self.overlays.pop();
        self.overlays.push(Overlay::Failure(failure));
    }

    /// Answers that only something over the panels waits for.
    fn take_for_overlay(&mut self, request: &Request, reply: Reply) {
        let Some(overlay) = self.overlays.last_mut() else {
            return;
        };
        match (overlay, request, reply) {
            (Overlay::Search(search), Request::Search(words, scope), Reply::Search(answer))
                if search.words() == words && search.scope == *scope =>
            {
                search.set(answer.map_err(|failure| failure.message));
            }
            (Overlay::Choose(choose), Request::Files(workspace, moment), Reply::Files(answer))
                if choose.choice == Choice::File(workspace.clone(), moment.clone()) =>
            {
                match answer {
                    Ok(paths) => {
                        choose.set(paths.into_iter().map(|path| (path.clone(), path)).collect());
                    }
                    Err(failure) => self.replace_by_failure(failure),
                }
            }
            (Overlay::Choose(choose), Request::Agents(place), Reply::Choices(items))
                if choose.choice == Choice::Agent(place.clone()) =>
            {
                choose.set(items);
            }
            (Overlay::Choose(choose), Request::Exports(session), Reply::Choices(items))
                if choose.choice == Choice::Format(session.clone()) =>
            {
                choose.set(items);
            }
            (Overlay::Blame(blame), Request::Blame(_, _, path), Reply::Blame(answer))
                if blame.file.path == *path =>
            {
                match answer {
                    Ok(lines) => {
                        blame.lines = lines;
                        blame.is_loading = false;
                    }
                    Err(failure) => self.replace_by_failure(failure),
                }
            }
            _ => {}
        }
    }
}

/// Returns the key of an action, if it has one.
fn key_of(action: &Action) -> Option<&'static str> {
    match action {
        Action::Undo => Some("u"),
        Action::Redo => Some("U"),
        Action::Undelete(_) => Some("X"),
        Action::Pin(..) => Some("p"),
        _ => None,
    }
}
