//! Files that are one JSON value: the older sessions, and chats that the person saved.

use backtrail::Json;

use super::super::pieces::{hash, hash_of, key_of, whole};
use super::says::{Kind, Teller, kind};
use super::{fields_have, project_root, read_about, thread};
use crate::format::ReadError;
use crate::json::{Object, list_of};
use crate::source::Source;
use crate::told::{About, DamagedLine, Damages, Sink, Told};

/// Returns whether a file is one of these, by its beginning.
pub(super) fn recognises(head: &[u8]) -> bool {
    let has = |names: &[&str]| fields_have(head, names);
    let beginning = String::from_utf8_lossy(&head[..head.len().min(4096)]);
    let of_content = beginning.contains("\"parts\"") && beginning.contains("\"role\"");
    (has(&["sessionId", "messages"]) && (has(&["projectHash"]) || has(&["startTime"])))
        || (has(&["history"]) && of_content)
        || (has(&["role", "parts"]) && crate::lines::trim(head).first() == Some(&b'['))
        || is_lone(head)
}

/// Returns whether a file is one message, not a session.
fn is_lone(head: &[u8]) -> bool {
    let has = |names: &[&str]| fields_have(head, names);
    has(&["id", "timestamp", "type", "content"])
        && ["toolCalls", "thoughts", "tokens"]
            .iter()
            .any(|name| has(&[name]))
        && !has(&["uuid"])
}

/// Returns whether the object on a file's first line is all that the file says.
pub(super) fn is_whole(first: &Object) -> bool {
    first.has("history") || (first.has("id") && first.has("type"))
}

/// Reads a file that is one value. Half of one, which its agent may be writing, says
/// nothing yet.
pub(super) fn read(source: &Source, sink: &mut dyn Sink) -> Result<Told, ReadError> {
    let text = whole(source)?;
    let read = Value::read(&text, source);
    let mut told = Told {
        session: key_of(source.stem()),
        read_to: source.len(),
        state: None,
        lines: text.lines().count() as u64,
        damage: Damages::default(),
        unknown: std::collections::BTreeMap::new(),
        unfinished: false,
    };
    let value = match read {
        Ok(value) => value,
        Err(reason) => {
            told.unfinished = true;
            told.damage.add(DamagedLine {
                line: 1,
                byte: 0,
                bytes: source.len(),
                reason,
            });
            return Ok(told);
        }
    };
    told.session.clone_from(&value.session);
    sink.session(&value.session)?;
    sink.thread(&thread(None))?;
    sink.about(value.about)?;
    let mut teller = Teller::new(&value.session, None, Vec::new());
    for (n, json) in value.messages.iter().enumerate() {
        let Some(record) = Object::of(json) else {
            told.damage.add(DamagedLine {
                line: 1,
                byte: 0,
                bytes: json.as_str().len() as u64,
                reason: format!("message {n} is no object"),
            });
            continue;
        };
        if let Kind::Unknown(kind) = kind(&record) {
            let kind: String = kind.chars().take(64).collect();
            *told.unknown.entry(format!("message: {kind}")).or_default() += 1;
        }
        teller.tell(&record, sink)?;
    }
    Ok(told)
}

struct Value {
    session: String,
    about: About,
    messages: Vec<Json>,
}

impl Value {
    fn read(text: &str, source: &Source) -> Result<Self, String> {
        if text.starts_with('[') {
            let list = Json::new(text).map_err(|error| error.to_string())?;
            let messages = list_of(&list).unwrap_or_default();
            return Ok(Self::saved(messages, About::default(), source));
        }
        let object = Object::parse(text)?;
        let mut about = About::default();
        read_about(&object, &mut about);
        about.began = about.began.or_else(|| object.time("start_time"));
        let meta = object.object("meta");
        let model = meta.as_ref().and_then(|meta| meta.string("model"));
        about.model = model.map(|model| model.into_owned());
        if let Some(history) = object.list("history") {
            return Ok(Self::saved(history, about, source));
        }
        let Some(messages) = object.list("messages") else {
            let json = Json::new(text).map_err(|error| error.to_string())?;
            return Ok(Self {
                session: format!("message-{}", hash_of(text, 16)),
                about,
                messages: vec![json],
            });
        };
        about.directory = about.directory.or_else(|| project_root(source));
        let session = object.string("sessionId").filter(|id| !id.is_empty());
        let session = session.as_deref().unwrap_or_else(|| source.stem());
        Ok(Self {
            session: key_of(session),
            about,
            messages,
        })
    }

    /// A chat that the person saved under a name. Saved again under it, it is the same one
    /// where it begins with the same.
    fn saved(messages: Vec<Json>, mut about: About, source: &Source) -> Self {
        let tag = source.stem();
        let tag = tag.strip_prefix("checkpoint-").unwrap_or(tag);
        let first = messages.first().map_or("", Json::as_str);
        let name = format!("{tag}\n{}", hash_of(first, 64));
        if about.title.is_none() && source.stem().starts_with("checkpoint-") {
            about.title = Some(tag.to_owned());
        }
        Self {
            session: format!("checkpoint-{}", hash(name.as_bytes(), 32)),
            about,
            messages,
        }
    }
}
