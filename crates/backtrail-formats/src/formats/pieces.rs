//! What several formats need to make messages of: keys, media, blocks of their own kind.

use backtrail::{Block, Fields, Json, Media, Message, Text};

use crate::json::Object;
use crate::source::Source;

/// The most that is read of a file that is one value and cannot be read in parts.
pub(crate) const MAX_WHOLE: u64 = 1 << 30;

/// Returns a name as a key: itself, where a key may be like that.
pub(crate) fn key_of(name: &str) -> String {
    let fits = !name.is_empty() && name.len() <= 200 && !name.chars().any(char::is_control);
    match fits {
        true => name.to_owned(),
        false => format!("h{}", hash(name.as_bytes(), 32)),
    }
}

/// Returns the first hexadecimal digits of a hash.
pub(crate) fn hash(bytes: &[u8], digits: usize) -> String {
    blake3::hash(bytes).to_hex()[..digits].to_owned()
}

/// Returns a hash of a JSON value that is the same however it is spaced out.
pub(crate) fn hash_of(json: &str, digits: usize) -> String {
    blake3::Hash::from(squeezed(json)).to_hex()[..digits].to_owned()
}

/// Returns the hash of a JSON value without the blanks between its tokens.
pub(crate) fn squeezed(json: &str) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    let bytes = json.as_bytes();
    let (mut from, mut at) = (0, 0);
    let mut within = false;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' if within => at += 1,
            b'"' => within = !within,
            b' ' | b'\t' | b'\n' | b'\r' if !within => {
                hasher.update(&bytes[from..at]);
                from = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    hasher.update(bytes.get(from..).unwrap_or_default());
    *hasher.finalize().as_bytes()
}

/// Marks a message as one that an agent said in the user's name.
pub(crate) fn mark_meta(message: &mut Message) {
    if !message.is_meta() {
        let yes = Json::from_value(&true).expect("a truth value is always JSON");
        message.extra.push("meta", yes);
    }
}

/// Returns a message as one that an agent said in the user's name.
pub(crate) fn meta(mut message: Message) -> Message {
    mark_meta(&mut message);
    message
}

/// Makes a message that an agent said in the user's name.
pub(crate) fn meta_text(text: impl Into<Text>) -> Message {
    meta(Message::user_text(text))
}

/// Returns a text as a JSON value.
pub(crate) fn literal(text: &Text) -> Json {
    Json::from_value(text).expect("a string is always JSON")
}

/// Makes a text block, with a field beside it where there is one.
pub(crate) fn text_with(text: Text, name: &str, beside: Option<Json>) -> Block {
    let mut block = backtrail::TextBlock {
        text,
        extra: Fields::default(),
    };
    if let Some(value) = beside {
        block.extra.push(name, value);
    }
    block.into()
}

/// Keeps a block of a kind that is not known. What has no `type` gets one.
pub(crate) fn other(kind: &str, json: &Json) -> Block {
    let named = Object::of(json).is_some_and(|object| object.string("type").is_some());
    if named {
        return Block::Other(json.clone());
    }
    let wrapped = format!("{{\"type\":\"{kind}\",\"value\":{}}}", json.as_str());
    Block::Other(Json::new(wrapped).unwrap_or_else(|_| json.clone()))
}

/// Makes a block of a medium in Base64.
pub(crate) fn media(media_type: Text, data: Json) -> Block {
    let kind = match media_type.split('/').next() {
        Some("image") => "image",
        Some("audio") => "audio",
        Some("video") => "video",
        _ if media_type.as_str() == "application/pdf" => "document",
        _ => "file",
    };
    Block::Media(Media {
        kind: kind.to_owned(),
        media_type,
        data,
        extra: Fields::default(),
    })
}

/// Returns blocks as the output of a tool: a lone text as a string.
pub(crate) fn output(blocks: &[Block]) -> Json {
    match blocks {
        [Block::Text(block)] => literal(&block.text),
        [] => literal(&Text::default()),
        blocks => Json::from_value(blocks).unwrap_or_else(|_| literal(&Text::default())),
    }
}

/// Returns an object that stands at a place in a file of lines.
pub(crate) fn object_at(source: &Source, place: std::ops::Range<u64>) -> Option<Object> {
    let bytes = source.read_range(place).ok()?;
    let text = String::from_utf8_lossy(crate::lines::trim(&bytes));
    Object::parse(&text).ok()
}

/// Reads a file that is one value.
pub(crate) fn whole(source: &Source) -> crate::Result<String> {
    if source.len() > MAX_WHOLE {
        let what = "this file is one JSON value of more than 1 GiB, too large to be read";
        return Err(crate::Error::invalid(what, source.path()));
    }
    let bytes = source.read_range(0..source.len())?;
    let trimmed = crate::lines::trim(&bytes);
    Ok(String::from_utf8_lossy(trimmed).into_owned())
}

/// Returns the names of the fields of the object at the beginning of a text, or of the
/// first object of a list there, as far as the text goes.
pub(crate) fn top_fields(head: &[u8]) -> Vec<String> {
    let head = crate::lines::trim(head);
    let head = match head.first() {
        Some(b'[') => crate::lines::trim(&head[1..]),
        _ => head,
    };
    if head.first() != Some(&b'{') {
        return Vec::new();
    }
    let mut names = Vec::new();
    let (mut at, mut depth) = (0, 0usize);
    let mut name_next = false;
    while let Some(byte) = head.get(at) {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                name_next = depth == 1;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    break;
                }
            }
            b',' => name_next = depth == 1,
            b'"' => {
                let end = end_of_string(head, at);
                if name_next && let Some(name) = head.get(at + 1..end) {
                    names.push(String::from_utf8_lossy(name).into_owned());
                }
                name_next = false;
                at = end;
            }
            _ => {}
        }
        at += 1;
        if names.len() > 256 {
            break;
        }
    }
    names
}

/// Returns where the string that begins at a quote ends.
fn end_of_string(text: &[u8], quote: usize) -> usize {
    let mut at = quote + 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', text.get(at..).unwrap_or_default()) {
        at += found;
        if text[at] == b'"' {
            return at;
        }
        at += 2;
    }
    text.len()
}

/// Returns the first line of a file, where it is an object.
pub(crate) fn first_object(head: &[u8]) -> Option<Object> {
    let mut lines = head.split(|byte| *byte == b'\n').map(crate::lines::trim);
    let line = lines.find(|line| !line.is_empty())?;
    Object::parse(&String::from_utf8_lossy(line)).ok()
}

/// The ids that were seen, cut short: enough to tell that one is new.
///
/// It is a part of the state with which reading goes on, so it does not grow for ever.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen(String);

impl Seen {
    /// How many ids it keeps.
    const MAX: usize = 512;
    const DIGITS: usize = 6;

    /// Takes up what [`as_str`](Self::as_str) gave.
    pub(crate) fn from_state(text: &str) -> Self {
        let len = text.len() - text.len() % Self::DIGITS;
        let fits = text.is_ascii() && len <= Self::MAX * Self::DIGITS;
        Self(if fits {
            text[..len].to_owned()
        } else {
            String::new()
        })
    }

    /// Returns it as a text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether it keeps no more.
    pub(crate) fn is_full(&self) -> bool {
        self.0.len() >= Self::MAX * Self::DIGITS
    }

    /// Returns whether an id may have been seen.
    pub(crate) fn may_have(&self, id: &str) -> bool {
        let short = hash(id.as_bytes(), Self::DIGITS);
        let all = self.0.as_bytes().chunks_exact(Self::DIGITS);
        all.into_iter().any(|seen| seen == short.as_bytes())
    }

    /// Adds an id.
    pub(crate) fn add(&mut self, id: &str) {
        if !self.is_full() {
            self.0.push_str(&hash(id.as_bytes(), Self::DIGITS));
        }
    }
}

/// Writes down what is needed to go on. What a file has blown up is not kept: it is read
/// from the beginning then.
pub(crate) fn state_of<T: serde::Serialize>(state: &T) -> Option<Json> {
    const MAX: usize = 6 << 10;
    let json = Json::from_value(state).ok()?;
    (json.as_str().len() <= MAX).then_some(json)
}
