//! Answers requests, on a thread of a lane.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};

use crate::diff_rows;
use crate::look::Look;
use crate::request::{DiffRequest, DiffRows, Direction, Reply, Request};
use backtrail_view::highlight;
use backtrail_view::library::{Action, Answer, Failure, Library, OnConflict, PageRequest, Report};

/// Answers a request. A panic of the library is a failure of this request, and of nothing else.
pub(crate) fn answer(library: &dyn Library, request: &Request, look: Look) -> Reply {
    let answered = panic::catch_unwind(AssertUnwindSafe(|| ask(library, request, look)));
    answered.unwrap_or_else(|panicked| {
        let message = format!("internal error: {}", message_of(panicked.as_ref()));
        failed(request, Failure::new(message))
    })
}

fn ask(library: &dyn Library, request: &Request, look: Look) -> Reply {
    match request {
        Request::Sessions(scope, fresh) => Reply::Sessions(library.sessions(*scope, *fresh)),
        Request::Head(session) => Reply::Head(library.head(session)),
        Request::Page(page) => Reply::Page(library.page(&PageRequest {
            palette: look.palette(),
            ..page.clone()
        })),
        Request::Text(place, _) => Reply::Text(library.text(place)),
        Request::Prompt(place, direction) => {
            Reply::Prompt(library.prompt_from(place, *direction == Direction::Forwards))
        }
        Request::Changes(of) => Reply::Changes(library.changes(of)),
        Request::Diff(diff) => Reply::Diff(lay_out(library, diff, look)),
        Request::Files(workspace, moment) => Reply::Files(library.files(workspace, moment)),
        Request::File(workspace, moment, path) => {
            let text = library.file(workspace, moment, path);
            Reply::File(text.map(|text| highlight::file(path, &text, look.palette())))
        }
        Request::Blame(workspace, moment, path) => {
            Reply::Blame(library.blame(workspace, moment, path))
        }
        Request::Timeline(limit) => Reply::Timeline(library.timeline(*limit)),
        Request::Search(words, scope) => Reply::Search(library.search(words, *scope)),
        Request::Costs(by, scope) => Reply::Costs(library.costs(*by, *scope)),
        Request::NextUndo => Reply::NextUndo(library.next_undo()),
        Request::Plan(action) => Reply::Plan(library.plan(action)),
        Request::Do(action) => Reply::Applied(plan_and_apply(library, action)),
        Request::Apply(token, choice) => Reply::Applied(library.apply(*token, *choice)),
        Request::Agents(place) => Reply::Choices(library.agents(&place.session)),
        Request::Exports(session) => Reply::Choices(library.exports(session)),
    }
}

fn lay_out(library: &dyn Library, request: &DiffRequest, look: Look) -> Answer<DiffRows> {
    let diff = library.diff(&request.of, request.between.as_ref(), &request.path)?;
    Ok(diff_rows::lay_out(&diff, request, look))
}

fn plan_and_apply(library: &dyn Library, action: &Action) -> Answer<Report> {
    let plan = library.plan(action)?;
    if !plan.is_possible {
        let lines = plan.lines.iter().map(|line| {
            let texts = line.iter().map(|span| span.text.as_str());
            texts.collect::<String>()
        });
        return Err(Failure {
            message: format!("cannot do this: {}", plan.title),
            hints: lines.collect(),
        });
    }
    library.apply(plan.token, OnConflict::Stop)
}

fn message_of(panicked: &(dyn Any + Send)) -> &str {
    let text = panicked.downcast_ref::<&str>().copied();
    let owned = || panicked.downcast_ref::<String>().map(String::as_str);
    text.or_else(owned).unwrap_or("unknown")
}

/// Returns the reply to a request that could not be answered.
fn failed(request: &Request, failure: Failure) -> Reply {
    match request {
        Request::Sessions(..) => Reply::Sessions(Err(failure)),
        Request::Head(_) => Reply::Head(Err(failure)),
        Request::Page(_) => Reply::Page(Err(failure)),
        Request::Text(..) => Reply::Text(Err(failure)),
        Request::Prompt(..) => Reply::Prompt(Err(failure)),
        Request::Changes(_) => Reply::Changes(Err(failure)),
        Request::Diff(_) => Reply::Diff(Err(failure)),
        Request::Files(..) => Reply::Files(Err(failure)),
        Request::File(..) => Reply::File(Err(failure)),
        Request::Blame(..) => Reply::Blame(Err(failure)),
        Request::Timeline(_) => Reply::Timeline(Err(failure)),
        Request::Search(..) => Reply::Search(Err(failure)),
        Request::Costs(..) => Reply::Costs(Err(failure)),
        Request::NextUndo => Reply::NextUndo(failure.message),
        Request::Plan(_) => Reply::Plan(Err(failure)),
        Request::Do(_) | Request::Apply(..) => Reply::Applied(Err(failure)),
        Request::Agents(_) | Request::Exports(_) => Reply::Choices(Vec::new()),
    }
}
