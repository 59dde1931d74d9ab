//! What was really sent to the model, from the records that Claude Code keeps from 2.1.325 on.
//!
//! A request is a *shape* (the system prompt and the tools), *params*, and messages. A request
//! names its messages by their hashes: the first `keep` of those of its `base`, then `tail`.
//! The user's messages are *blobs*. The model's are not: they are the responses in the same
//! file. `cacheControl` says where the marks for the cache were. `requestDigest` is the hash of
//! all that.
//!
//! Every hash is the SHA-256 of JSON without blanks and with sorted keys.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use sha2::{Digest as _, Sha256};

use crate::error::{Error, Result};
use crate::json::{Object, elements, string};
use crate::json_lines::JsonLines;
use crate::source::Source;

/// The largest request, in bytes. The API accepts 32 MiB.
const MAX_REQUEST: usize = 64 << 20;
/// How long the lines with its messages may be.
const MAX_LINES: u64 = 1 << 30;
/// The deepest JSON that is hashed.
const MAX_DEPTH: usize = 100;
/// How many marks for the cache there may be. The API accepts 4.
const MAX_MARKS: usize = 64;
/// The longest path to one of them.
const MAX_PATH: usize = 16;

/// A request as it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentRequest {
    /// The body: the model, the messages, the system prompt, the tools and the other parameters.
    pub json: String,
    /// Whether it has the hash that the agent noted when it sent it.
    pub is_verified: bool,
}

/// Which request of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhichRequest<'a> {
    /// The last one.
    Last,
    /// The one that was answered by the response with this id.
    AnsweredBy(&'a str),
}

/// Rebuilds a request from a session file of Claude Code. `None` if the file has no record of
/// it.
///
/// # Errors
///
/// Fails if the file cannot be read, or if a part of the request is missing or contradictory.
pub fn sent_request(source: &Source, which: WhichRequest<'_>) -> Result<Option<SentRequest>> {
    let index = Index::read(source)?;
    let id = match which {
        WhichRequest::Last => index.last.as_deref(),
        WhichRequest::AnsweredBy(response) => {
            let response = index.responses.get(response);
            response.and_then(|response| response.request.as_deref())
        }
    };
    match id.filter(|id| index.requests.contains_key(*id)) {
        Some(id) => Rebuilder {
            source,
            index: &index,
        }
        .rebuild(id)
        .map(Some),
        None => Ok(None),
    }
}

/// Where the records are.
#[derive(Debug, Default)]
struct Index {
    shapes: HashMap<String, Range<u64>>,
    blobs: HashMap<String, Range<u64>>,
    requests: HashMap<String, Request>,
    last: Option<String>,
    responses: HashMap<String, Response>,
}

/// A request.
#[derive(Debug)]
struct Request {
    at: Range<u64>,
    base: Option<String>,
    keep: usize,
    /// How many messages follow, and the first of them.
    tail: usize,
    first: Option<String>,
}

/// A response.
#[derive(Debug, Default)]
struct Response {
    /// The request that it answers.
    request: Option<String>,
    lines: Vec<Range<u64>>,
}

impl Index {
    fn read(source: &Source) -> Result<Self> {
        let (mut lines, mut report) = JsonLines::new(source);
        let mut index = Self::default();
        while let Some(line) = lines.next(&mut report)? {
            index.add(&line.object(), line.range.clone());
        }
        Ok(index)
    }

    fn add(&mut self, record: &Object<'_>, at: Range<u64>) {
        let name = |field: &str| record.non_blank(field).map(|name| name.into_owned());
        match record.string("type").as_deref() {
            Some("api-request-shape") => {
                self.shapes.extend(name("shapeHash").map(|hash| (hash, at)));
            }
            Some("api-request-blob") => self.blobs.extend(name("hash").map(|hash| (hash, at))),
            Some("api-request") => {
                let tail = record.list("tail").unwrap_or_default();
                let request = Request {
                    at,
                    base: name("base"),
                    keep: whole(record.number("keep")),
                    tail: tail.len(),
                    first: tail.first().and_then(|hash| hash_of(hash)),
                };
                self.last = name("id").or(self.last.take());
                self.requests.extend(name("id").map(|id| (id, request)));
            }
            Some("assistant") => {
                let message = record.object("message");
                let id = message.and_then(|message| message.string("id"));
                if let Some(id) = id {
                    let response = self.responses.entry(id.into_owned()).or_default();
                    response.request = name("requestRef").or(response.request.take());
                    response.lines.push(at);
                }
            }
            _ => {}
        }
    }

    /// Returns the responses by their hashes, as far as their places tell: a response is the
    /// first new message of the request after it.
    fn responses_by_place(&self) -> HashMap<String, &Response> {
        let answers = self.responses.values();
        let answers = answers.filter_map(|response| Some((response.request.as_ref()?, response)));
        let answers: HashMap<&String, &Response> = answers.collect();
        let mut found = HashMap::new();
        for request in self.requests.values() {
            let base = request.base.as_ref().and_then(|base| {
                let before = self.requests.get(base)?;
                let is_next = before.keep.saturating_add(before.tail) == request.keep;
                answers.get(base).filter(|_| is_next)
            });
            found.extend(request.first.clone().zip(base.copied()));
        }
        found
    }
}

fn whole(number: Option<u64>) -> usize {
    usize::try_from(number.unwrap_or(0)).unwrap_or(usize::MAX)
}

fn hash_of(json: &str) -> Option<String> {
    string(json).map(|hash| hash.into_owned())
}

/// Rebuilds requests.
struct Rebuilder<'s> {
    source: &'s Source,
    index: &'s Index,
}

impl Rebuilder<'_> {
    fn rebuild(&self, id: &str) -> Result<SentRequest> {
        let hashes = self.messages_of(id)?;
        let Some(request) = self.index.requests.get(id) else {
            return Err(self.fail(format!("request {id} is missing")));
        };
        let line = self.source.line_at(request.at.clone())?;
        let record = Object::from_json(&line).unwrap_or_default();
        let messages = self.load_messages(&hashes)?;
        let shape = self.shape(&record)?;
        let shape = Object::from_json(&shape).unwrap_or_default();
        let params = record.object("params").unwrap_or_default();
        let body = body(&params, &shape, &messages);
        let json = self.mark(&record, &body)?;
        let digest = record.string("requestDigest");
        let is_verified = digest.is_some() && sha256(&json).as_deref() == digest.as_deref();
        Ok(SentRequest { json, is_verified })
    }

    fn fail(&self, message: impl Into<String>) -> Error {
        Error::invalid(message, self.source.path())
    }

    /// Returns the hashes of a request's messages.
    fn messages_of(&self, id: &str) -> Result<Vec<String>> {
        let mut chain = Vec::new();
        let mut seen = HashSet::new();
        let mut next = Some(id);
        while let Some(id) = next {
            if !seen.insert(id) {
                return Err(self.fail(format!("request {id} is based on itself")));
            }
            let Some(request) = self.index.requests.get(id) else {
                return Err(self.fail(format!(
                    "request {id}, which a later one is based on, is missing"
                )));
            };
            chain.push(request);
            next = request.base.as_deref().filter(|_| request.keep > 0);
        }
        let mut hashes = Vec::new();
        for request in chain.into_iter().rev() {
            if request.keep > hashes.len() {
                let what = format!(
                    "a request keeps {} of {} messages",
                    request.keep,
                    hashes.len()
                );
                return Err(self.fail(what));
            }
            hashes.truncate(request.keep);
            let line = self.source.line_at(request.at.clone())?;
            let record = Object::from_json(&line).unwrap_or_default();
            let tail = record.list("tail").unwrap_or_default();
            for hash in tail {
                let hash = hash_of(hash);
                hashes.push(hash.ok_or_else(|| self.fail("a message of a request has no hash"))?);
            }
        }
        Ok(hashes)
    }

    /// Returns the messages, joined by commas.
    fn load_messages(&self, hashes: &[String]) -> Result<String> {
        let (mut responses, mut read) = (None, 0);
        let mut joined = String::new();
        for (n, hash) in hashes.iter().enumerate() {
            let message = match self.index.blobs.get(hash) {
                Some(at) => {
                    read += at.end - at.start;
                    self.field(at, "message")?
                }
                None => self.response(hash, &mut responses)?,
            };
            let Some(message) = message else {
                let what = format!("message {} of the request is missing: {hash}", n + 1);
                return Err(self.fail(what));
            };
            if n > 0 {
                joined.push(',');
            }
            joined.push_str(&message);
            if joined.len() > MAX_REQUEST || read > MAX_LINES {
                return Err(self.fail("the request is larger than 64 MiB"));
            }
        }
        Ok(joined)
    }

    /// Returns the response with a hash. `by_hash` holds all of them once it is needed.
    fn response<'i>(
        &'i self,
        hash: &str,
        by_hash: &mut Option<HashMap<String, &'i Response>>,
    ) -> Result<Option<String>> {
        if by_hash.is_none() {
            // If the file was edited, the hashes are those of other texts.
            let mut all = self.index.responses_by_place();
            for response in self.index.responses.values() {
                all.extend(sha256(&self.join(response)?).map(|hash| (hash, response)));
            }
            *by_hash = Some(all);
        }
        let response = by_hash.as_ref().and_then(|all| all.get(hash).copied());
        response.map(|response| self.join(response)).transpose()
    }

    /// Returns a response as a message: each of its lines has some of its blocks.
    fn join(&self, response: &Response) -> Result<String> {
        let mut blocks = Vec::new();
        let mut len = 0;
        for at in &response.lines {
            let line = self.source.line_at(at.clone())?;
            let record = Object::from_json(&line).unwrap_or_default();
            let message = record.object("message").unwrap_or_default();
            let content = message.list("content").unwrap_or_default();
            len += line.len();
            if len > MAX_REQUEST {
                return Err(self.fail("a response is larger than 64 MiB"));
            }
            blocks.extend(content.into_iter().map(str::to_owned));
        }
        Ok(format!(
            "{{\"role\":\"assistant\",\"content\":[{}]}}",
            blocks.join(",")
        ))
    }

    fn shape(&self, record: &Object<'_>) -> Result<String> {
        let hash = record.string("shapeHash").unwrap_or_default();
        let shape = match self.index.shapes.get(hash.as_ref()) {
            Some(at) => self.field(at, "shape")?,
            None => None,
        };
        shape.ok_or_else(|| self.fail("the system prompt and the tools of the request are missing"))
    }

    fn field(&self, at: &Range<u64>, name: &str) -> Result<Option<String>> {
        let line = self.source.line_at(at.clone())?;
        let record = Object::from_json(&line).unwrap_or_default();
        Ok(record.get(name).map(str::to_owned))
    }

    /// Adds the marks for the cache.
    fn mark(&self, record: &Object<'_>, body: &str) -> Result<String> {
        let marks = record.list("cacheControl").unwrap_or_default();
        let few = Some(marks).filter(|marks| marks.len() <= MAX_MARKS);
        let marks: Option<Vec<Mark<'_>>> =
            few.and_then(|marks| marks.into_iter().map(Mark::read).collect());
        let marked = marks.and_then(|marks| {
            let marks: Vec<&Mark<'_>> = marks.iter().collect();
            with_marks(body, &marks, 0)
        });
        marked.ok_or_else(|| self.fail("a mark for the cache is not in the request"))
    }
}

/// Returns a body without marks, in the order in which it is sent.
fn body(params: &Object<'_>, shape: &Object<'_>, messages: &str) -> String {
    let mut fields = Vec::new();
    let mut add = |name: &str, value: &str| {
        let name = serde_json::Value::from(name);
        fields.push(format!("{name}:{value}"));
    };
    if let Some(model) = params.get("model") {
        add("model", model);
    }
    add("messages", &format!("[{messages}]"));
    shape.fields().for_each(|(name, value)| add(name, value));
    let others = params.fields().filter(|(name, _)| *name != "model");
    others.for_each(|(name, value)| add(name, value));
    format!("{{{}}}", fields.join(","))
}

/// A mark for the cache.
struct Mark<'a> {
    /// The names and numbers that lead to an object.
    path: Vec<String>,
    value: &'a str,
}

impl<'a> Mark<'a> {
    fn read(json: &'a str) -> Option<Self> {
        let mark = Object::from_json(json)?;
        let path = mark.list("path")?;
        let step = |json: &str| string(json).map_or_else(|| json.to_owned(), |it| it.into_owned());
        let path: Vec<String> = path.into_iter().take(MAX_PATH + 1).map(step).collect();
        let value = mark.get("value")?;
        (path.len() <= MAX_PATH).then_some(Self { path, value })
    }
}

/// Returns a value with marks. `None` if one of them leads nowhere.
fn with_marks(json: &str, marks: &[&Mark<'_>], depth: usize) -> Option<String> {
    if marks.is_empty() {
        return Some(json.to_owned());
    }
    let here = marks.iter().find(|mark| mark.path.len() == depth);
    let mut found = 0;
    let mut inside = |step: &str, value: &str| {
        let below = |mark: &&&Mark<'_>| mark.path.get(depth).is_some_and(|next| next == step);
        let below: Vec<&Mark<'_>> = marks.iter().filter(below).copied().collect();
        found += below.len();
        with_marks(value, &below, depth + 1)
    };
    let marked = if let Some(object) = Object::from_json(json) {
        let mut fields = Vec::new();
        for (name, value) in object.fields() {
            if here.is_none() || name != "cache_control" {
                let value = inside(name, value)?;
                fields.push(format!("{}:{value}", serde_json::Value::from(name)));
            }
        }
        fields.extend(here.map(|mark| format!("\"cache_control\":{}", mark.value)));
        format!("{{{}}}", fields.join(","))
    } else {
        let values = elements(json).filter(|_| here.is_none())?;
        let mut marked = Vec::new();
        for (n, value) in values.into_iter().enumerate() {
            marked.push(inside(&n.to_string(), value)?);
        }
        format!("[{}]", marked.join(","))
    };
    let ends_here = marks.iter().filter(|mark| mark.path.len() == depth).count();
    (found + ends_here == marks.len()).then_some(marked)
}

/// Returns the hash of a value. `None` if it is nested too deeply.
pub(super) fn sha256(json: &str) -> Option<String> {
    let mut hasher = Sha256::new();
    hash_sorted(json, &mut hasher, 0)?;
    Some(
        hasher
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect(),
    )
}

/// Hashes a value without blanks and with sorted keys.
fn hash_sorted(json: &str, hasher: &mut Sha256, depth: usize) -> Option<()> {
    if depth > MAX_DEPTH {
        return None;
    }
    if let Some(object) = Object::from_json(json) {
        let mut fields: Vec<(&str, &str)> = object.fields().collect();
        // As JavaScript sorts them.
        fields.sort_by(|a, b| a.0.encode_utf16().cmp(b.0.encode_utf16()));
        for (n, (name, value)) in fields.into_iter().enumerate() {
            hasher.update(if n == 0 { "{" } else { "," });
            hasher.update(serde_json::Value::from(name).to_string());
            hasher.update(":");
            hash_sorted(value, hasher, depth + 1)?;
        }
        hasher.update(if object.len() == 0 { "{}" } else { "}" });
    } else if let Some(values) = elements(json) {
        hasher.update("[");
        for (n, value) in values.into_iter().enumerate() {
            if n > 0 {
                hasher.update(",");
            }
            hash_sorted(value, hasher, depth + 1)?;
        }
        hasher.update("]");
    } else {
        hasher.update(json);
    }
    Some(())
}
