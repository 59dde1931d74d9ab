//! What changes something: an action is planned, shown, and then done as it was planned.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use backtrail_view::library::{
    Action, Answer, Between, Failure, Line, OnConflict, Place, Plan, Report,
};
use backtrail_view::style_classes::style_classes;
use http_body_util::{BodyExt, Limited};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::answer::{moment_text, parse_moment};
use crate::library::Site;
use crate::work::{Threads, failed};

/// No larger body is read.
const LARGEST_BODY: usize = 64 << 10;

/// A question or an order about files and history.
pub(crate) type Act = fn(&dyn Site, Value) -> Answer<Value>;

/// The addresses of actions.
pub(crate) const ACTS: [(&str, Act); 2] = [("/api/plan", plan), ("/api/apply", apply)];

/// Whether actions are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writes {
    Refused,
    Allowed,
}

impl Writes {
    pub(crate) fn of(allowed: bool) -> Self {
        match allowed {
            true => Self::Allowed,
            false => Self::Refused,
        }
    }
}

/// Where actions are done: one after another.
#[derive(Clone)]
pub(crate) struct Actions {
    pub(crate) site: Arc<dyn Site>,
    pub(crate) writes: Writes,
    pub(crate) one: Threads,
    pub(crate) body_time: Duration,
}

impl Actions {
    /// Plans or applies an action.
    pub(crate) async fn answer(self, act: Act, request: Request) -> Response {
        if self.writes == Writes::Refused {
            return refused();
        }
        if !is_json(request.headers()) {
            let message = "the body must be application/json";
            return failed(StatusCode::UNSUPPORTED_MEDIA_TYPE, message);
        }
        match read(request.into_body(), self.body_time).await {
            Ok(body) => {
                self.one
                    .answer(move || act_in(&*self.site, act, body))
                    .await
            }
            Err(response) => response,
        }
    }
}

fn refused() -> Response {
    let failure = Failure {
        message: "these pages only read".to_owned(),
        hints: vec!["start them with: backtrail web --write".to_owned()],
    };
    crate::work::json(
        StatusCode::FORBIDDEN,
        &crate::answer::failure_json(&failure),
    )
}

/// Returns whether a body is JSON. A form of another page cannot say so.
fn is_json(headers: &HeaderMap) -> bool {
    let given = headers.get(header::CONTENT_TYPE);
    let text = given.and_then(|given| given.to_str().ok()).unwrap_or("");
    let media_type = text.split(';').next().unwrap_or("").trim();
    media_type.eq_ignore_ascii_case("application/json")
}

/// Reads a body, up to its limits.
async fn read(body: Body, time: Duration) -> Result<Value, Response> {
    let late = || failed(StatusCode::REQUEST_TIMEOUT, "the body came too slowly");
    let large = || failed(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large");
    let wrong = || failed(StatusCode::BAD_REQUEST, "the body is not JSON");
    if body.size_hint().lower() > LARGEST_BODY as u64 {
        return Err(large());
    }
    let whole = timeout(time, Limited::new(body, LARGEST_BODY).collect()).await;
    let bytes = whole.map_err(|_| late())?.map_err(|_| large())?.to_bytes();
    serde_json::from_slice(&bytes).map_err(|_| wrong())
}

/// Does something in the workspace that a body names as `w`.
fn act_in(site: &dyn Site, act: Act, mut body: Value) -> Answer<Value> {
    let workspace = body.as_object_mut().and_then(|body| body.remove("w"));
    match workspace.as_ref().map(|workspace| workspace.as_str()) {
        None | Some(Some("")) => act(site, body),
        Some(Some(workspace)) => act(&*site.in_workspace(workspace)?, body),
        Some(None) => Err(Failure::new("w is not text")),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanBody {
    action: ActionBody,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApplyBody {
    token: String,
    #[serde(default)]
    on_conflict: Choice,
}

fn plan(site: &dyn Site, body: Value) -> Answer<Value> {
    let body: PlanBody = parsed(body)?;
    site.plan(&body.action.action()?)
        .map(|plan| plan_json(&plan))
}

fn apply(site: &dyn Site, body: Value) -> Answer<Value> {
    let body: ApplyBody = parsed(body)?;
    let wrong = |_| Failure::new(format!("not the token of a plan: {}", body.token));
    let token = body.token.parse().map_err(wrong)?;
    let report = site.apply(token, body.on_conflict.into())?;
    Ok(report_json(&report))
}

fn parsed<T: DeserializeOwned>(body: Value) -> Answer<T> {
    let wrong = |error| Failure::new(format!("the body is not as expected: {error}"));
    serde_json::from_value(body).map_err(wrong)
}

/// The token is text: a number of JavaScript has only 53 bits.
fn plan_json(plan: &Plan) -> Value {
    let choices = plan.choices.iter().map(
        |(on_conflict, text)| json!({"on_conflict": Choice::from(*on_conflict), "text": text}),
    );
    json!({
        "token": plan.token.to_string(),
        "title": plan.title,
        "lines": plan.lines.iter().map(line_json).collect::<Vec<_>>(),
        "possible": plan.is_possible,
        "choices": choices.collect::<Vec<_>>(),
    })
}

fn line_json(line: &Line) -> Value {
    let spans = line.iter();
    let spans = spans.map(|span| json!({"text": span.text, "class": style_classes(span.style)}));
    spans.collect()
}

fn report_json(report: &Report) -> Value {
    let reverse = report.reverse.as_ref().and_then(ActionBody::of);
    json!({"message": report.message, "reverse": reverse})
}

/// What to do with files that have other changes.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Choice {
    #[default]
    Stop,
    Keep,
    Merge,
    Overwrite,
}

impl From<Choice> for OnConflict {
    fn from(choice: Choice) -> Self {
        match choice {
            Choice::Stop => Self::Stop,
            Choice::Keep => Self::Keep,
            Choice::Merge => Self::Merge,
            Choice::Overwrite => Self::Overwrite,
        }
    }
}

impl From<OnConflict> for Choice {
    fn from(choice: OnConflict) -> Self {
        match choice {
            OnConflict::Stop => Self::Stop,
            OnConflict::Keep => Self::Keep,
            OnConflict::Merge => Self::Merge,
            OnConflict::Overwrite => Self::Overwrite,
        }
    }
}

/// An action as the pages write it: `{"do": "rewind", "workspace": …, "to": MOMENT}`. Exports are
/// not among them: the browser saves those.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
enum ActionBody {
    Undo {},
    Redo {},
    Rewind {
        workspace: String,
        to: String,
    },
    Restore {
        workspace: String,
        from: String,
        paths: Vec<String>,
    },
    RestoreHunks {
        workspace: String,
        from: String,
        to: String,
        path: String,
        hunks: Vec<usize>,
    },
    Fork {
        session: String,
        seq: u64,
        #[serde(default)]
        trail: Option<u32>,
        directory: String,
    },
    Delete {
        session: String,
    },
    Undelete {
        session: String,
    },
    Title {
        session: String,
        title: String,
    },
    Tag {
        session: String,
        changes: String,
    },
    Pin {
        session: String,
        pinned: bool,
    },
}

impl ActionBody {
    fn action(self) -> Answer<Action> {
        Ok(match self {
            Self::Undo {} => Action::Undo,
            Self::Redo {} => Action::Redo,
            Self::Rewind { workspace, to } => Action::Rewind(workspace, parse_moment(&to)?),
            Self::Restore {
                workspace,
                from,
                paths,
            } => Action::Restore(workspace, parse_moment(&from)?, paths),
            Self::RestoreHunks {
                workspace,
                from,
                to,
                path,
                hunks,
            } => {
                let (from, to) = (parse_moment(&from)?, parse_moment(&to)?);
                let between = Between {
                    workspace,
                    from,
                    to,
                };
                Action::RestoreHunks(between, path, hunks)
            }
            Self::Fork {
                session,
                seq,
                trail,
                directory,
            } => {
                let place = Place {
                    session,
                    seq,
                    trail,
                };
                Action::Fork(place, directory)
            }
            Self::Delete { session } => Action::Delete(session),
            Self::Undelete { session } => Action::Undelete(session),
            Self::Title { session, title } => Action::Title(session, title),
            Self::Tag { session, changes } => Action::Tag(session, changes),
            Self::Pin { session, pinned } => Action::Pin(session, pinned),
        })
    }

    /// Returns an action as the pages write it.
    fn of(action: &Action) -> Option<Self> {
        Some(match action.clone() {
            Action::Undo => Self::Undo {},
            Action::Redo => Self::Redo {},
            Action::Rewind(workspace, to) => Self::Rewind {
                workspace,
                to: moment_text(&to),
            },
            Action::Restore(workspace, from, paths) => Self::Restore {
                workspace,
                from: moment_text(&from),
                paths,
            },
            Action::RestoreHunks(between, path, hunks) => Self::RestoreHunks {
                from: moment_text(&between.from),
                to: moment_text(&between.to),
                workspace: between.workspace,
                path,
                hunks,
            },
            Action::Fork(place, directory) => Self::Fork {
                session: place.session,
                seq: place.seq,
                trail: place.trail,
                directory,
            },
            Action::Delete(session) => Self::Delete { session },
            Action::Undelete(session) => Self::Undelete { session },
            Action::Title(session, title) => Self::Title { session, title },
            Action::Tag(session, changes) => Self::Tag { session, changes },
            Action::Pin(session, pinned) => Self::Pin { session, pinned },
            Action::Export(..) => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use backtrail_view::library::Moment;

    use super::*;

    fn all() -> Vec<Action> {
        let place = |trail| Place {
            session: "s".to_owned(),
            seq: u64::MAX,
            trail,
        };
        let text = str::to_owned;
        let between = Between {
            workspace: text("w"),
            from: Moment::Checkpoint(text("c1")),
            to: Moment::Record(place(Some(2))),
        };
        vec![
            Action::Undo,
            Action::Redo,
            Action::Rewind(text("w"), Moment::Record(place(None))),
            Action::Restore(text("w"), Moment::Now, vec![text("a"), text("b \"<c>")]),
            Action::RestoreHunks(between, text("a"), vec![0, 7]),
            Action::Fork(place(Some(1)), text("/d")),
            Action::Fork(place(None), text("/d")),
            Action::Delete(text("s")),
            Action::Undelete(text("s")),
            Action::Title(text("s"), String::new()),
            Action::Tag(text("s"), text("+a -b")),
            Action::Pin(text("s"), true),
            Action::Pin(text("s"), false),
        ]
    }

    #[test]
    fn an_action_that_a_page_gets_is_the_one_that_it_sends() {
        for action in all() {
            let sent = json!({"action": ActionBody::of(&action)}).to_string();
            let body: PlanBody = serde_json::from_str(&sent).unwrap();
            assert_eq!(body.action.action(), Ok(action), "{sent}");
        }
    }

    #[test]
    fn a_page_cannot_write_an_export_to_a_file() {
        let text = str::to_owned;
        let export = Action::Export(text("s"), text("md"), text("/x"));
        assert_eq!(ActionBody::of(&export), None);
    }
}
