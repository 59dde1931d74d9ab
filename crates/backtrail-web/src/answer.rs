//! Questions of a page, and answers to them, without a server.

use backtrail_view::library::{Answer, Failure, Moment, Place, Scope};
use serde_json::{Value, json};

use crate::library::Site;

/// The parameters of a request, decoded.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn new(pairs: Vec<(String, String)>) -> Self {
        Self(pairs)
    }

    /// Returns a parameter; an empty one is as good as none.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key == name);
        found
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    /// Returns every value of a parameter that may be repeated.
    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        let values = self.0.iter().filter(|(key, _)| key == name);
        let values = values.map(|(_, value)| value.clone());
        values.filter(|value| !value.is_empty()).collect()
    }

    /// Returns a parameter that a page cannot do without.
    pub(crate) fn required(&self, name: &str) -> Answer<&str> {
        let missing = || Failure::new(format!("the request has no {name}"));
        self.text(name).ok_or_else(missing)
    }

    /// Returns a number.
    pub(crate) fn number<T: std::str::FromStr>(&self, name: &str) -> Answer<Option<T>> {
        let wrong = |text: &str| Failure::new(format!("{name} is not a number: {text}"));
        let parsed = self
            .text(name)
            .map(|text| text.parse().map_err(|_| wrong(text)));
        parsed.transpose()
    }

    /// Returns which sessions are meant: `workspace`, `project`, or everything.
    pub(crate) fn scope(&self) -> Answer<Scope> {
        match self.text("scope") {
            None | Some("everything") => Ok(Scope::Everything),
            Some("workspace") => Ok(Scope::Workspace),
            Some("project") => Ok(Scope::Project),
            Some(other) => Err(Failure::new(format!("no such scope: {other}"))),
        }
    }

    /// Returns a record: `session`, `seq` and perhaps `trail`.
    pub(crate) fn place(&self) -> Answer<Place> {
        let missing = || Failure::new("the request has no seq");
        Ok(Place {
            session: self.required("session")?.to_owned(),
            seq: self.number("seq")?.ok_or_else(missing)?,
            trail: self.number("trail")?,
        })
    }

    /// Returns a state of the files.
    pub(crate) fn moment(&self, name: &str) -> Answer<Moment> {
        parse_moment(self.required(name)?)
    }
}

/// Reads a moment: `now`, `c:CHECKPOINT`, or `r:SESSION:SEQ` with perhaps `:TRAIL`.
pub(crate) fn parse_moment(text: &str) -> Answer<Moment> {
    let wrong = || Failure::new(format!("not a moment: {text}"));
    if text == "now" {
        return Ok(Moment::Now);
    }
    let (kind, rest) = text.split_once(':').ok_or_else(wrong)?;
    match kind {
        "c" if !rest.is_empty() => Ok(Moment::Checkpoint(rest.to_owned())),
        "r" => {
            let mut parts = rest.split(':');
            let session = parts.next().filter(|id| !id.is_empty()).ok_or_else(wrong)?;
            let seq = parts.next().and_then(|seq| seq.parse().ok());
            let trail = parts.next().map(|trail| trail.parse().map_err(|_| wrong()));
            Ok(Moment::Record(Place {
                session: session.to_owned(),
                seq: seq.ok_or_else(wrong)?,
                trail: trail.transpose()?,
            }))
        }
        _ => Err(wrong()),
    }
}

/// Writes a moment as [`parse_moment`] reads it.
pub(crate) fn moment_text(moment: &Moment) -> String {
    match moment {
        Moment::Now => "now".to_owned(),
        Moment::Checkpoint(id) => format!("c:{id}"),
        Moment::Record(place) => match place.trail {
            Some(trail) => format!("r:{}:{}:{trail}", place.session, place.seq),
            None => format!("r:{}:{}", place.session, place.seq),
        },
    }
}

/// Answers a request for data, on a thread of its own. What it returns is sent as JSON; a failure
/// is sent as [`failure_json`].
pub(crate) type Handler = fn(&dyn Site, &Query) -> Answer<Value>;

/// A failure, as the pages read it.
pub(crate) fn failure_json(failure: &Failure) -> Value {
    json!({"error": failure.message, "hints": failure.hints})
}
