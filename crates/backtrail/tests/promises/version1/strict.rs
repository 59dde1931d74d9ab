//! A reader of version 1 as strict as the original: whole numbers only, no
//! surrogate escapes, every field there, known roles and blocks alone. It shares
//! no code with the engine, its JSON parser included.

use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Number(i64),
    String(String),
    Array(Vec<Value>),
    Object(BTreeMap<String, Value>),
}

#[derive(Debug, PartialEq)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) created_at_ms: u64,
    pub(crate) updated_at_ms: u64,
    pub(crate) parent: Option<String>,
    pub(crate) summary: Option<String>,
    pub(crate) messages: Vec<(String, Vec<Block>)>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Block {
    Text(String),
    Use(String, String, String),
    Result(String, String, String, bool),
}

/// Reads lines, each of which must be as it should and have its keys in order.
pub(crate) fn read(text: &str) -> Result<Session, String> {
    let mut session = None;
    let mut summary = None;
    let mut messages = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let failed = |what: String| format!("line {}: {what}: {line}", n + 1);
        let record = parse(line).map_err(failed)?;
        match string(&record, "type").map_err(failed)?.as_str() {
            "session_meta" => session = Some(meta(&record).map_err(failed)?),
            "compaction" => {
                u32_of(&record, "count").map_err(failed)?;
                u32_of(&record, "removed_message_count").map_err(failed)?;
                summary = Some(string(&record, "summary").map_err(failed)?);
            }
            "message" => {
                let inner = field(&record, "message").map_err(failed)?;
                messages.push(message(inner).map_err(failed)?);
            }
            other => return Err(failed(format!("unsupported type {other}"))),
        }
    }
    let mut session = session.ok_or("no meta")?;
    session.summary = summary;
    session.messages = messages;
    Ok(session)
}

fn meta(record: &Value) -> Result<Session, String> {
    if number(record, "version")? != 1 {
        return Err("another version".to_owned());
    }
    let parent = match field(record, "fork") {
        Ok(fork) => {
            if field(fork, "branch_name").is_ok() {
                string(fork, "branch_name")?;
            }
            Some(string(fork, "parent_session_id")?)
        }
        Err(_) => None,
    };
    Ok(Session {
        id: string(record, "session_id")?,
        created_at_ms: number(record, "created_at_ms")?,
        updated_at_ms: number(record, "updated_at_ms")?,
        parent,
        summary: None,
        messages: Vec::new(),
    })
}

fn message(value: &Value) -> Result<(String, Vec<Block>), String> {
    let role = string(value, "role")?;
    if !["system", "user", "assistant", "tool"].contains(&role.as_str()) {
        return Err(format!("unsupported role {role}"));
    }
    let Value::Array(blocks) = field(value, "blocks")? else {
        return Err("blocks are no array".to_owned());
    };
    if let Ok(usage) = field(value, "usage") {
        for name in [
            "input_tokens",
            "output_tokens",
            "cache_creation_input_tokens",
            "cache_read_input_tokens",
        ] {
            u32_of(usage, name)?;
        }
    }
    let blocks: Result<_, _> = blocks.iter().map(block).collect();
    Ok((role, blocks?))
}

fn block(value: &Value) -> Result<Block, String> {
    Ok(match string(value, "type")?.as_str() {
        "text" => Block::Text(string(value, "text")?),
        "tool_use" => Block::Use(
            string(value, "id")?,
            string(value, "name")?,
            string(value, "input")?,
        ),
        "tool_result" => {
            let Value::Bool(is_error) = field(value, "is_error")? else {
                return Err("is_error is no flag".to_owned());
            };
            Block::Result(
                string(value, "tool_use_id")?,
                string(value, "tool_name")?,
                string(value, "output")?,
                *is_error,
            )
        }
        other => return Err(format!("unsupported block {other}")),
    })
}

fn field<'a>(value: &'a Value, name: &str) -> Result<&'a Value, String> {
    match value {
        Value::Object(fields) => fields.get(name).ok_or(format!("{name} is missing")),
        _ => Err(format!("not an object, so no {name}")),
    }
}

fn string(value: &Value, name: &str) -> Result<String, String> {
    match field(value, name)? {
        Value::String(text) => Ok(text.clone()),
        other => Err(format!("{name} is no string: {other:?}")),
    }
}

fn number(value: &Value, name: &str) -> Result<u64, String> {
    match field(value, name)? {
        Value::Number(n) => u64::try_from(*n).map_err(|_| format!("{name} is negative")),
        other => Err(format!("{name} is no number: {other:?}")),
    }
}

fn u32_of(value: &Value, name: &str) -> Result<u32, String> {
    u32::try_from(number(value, name)?).map_err(|_| format!("{name} is out of range"))
}

pub(crate) fn parse(text: &str) -> Result<Value, String> {
    let mut parser = Parser {
        chars: text.chars().collect(),
        at: 0,
    };
    let value = parser.value()?;
    match parser.peek() {
        None => Ok(value),
        Some(c) => Err(format!("trailing {c:?}")),
    }
}

struct Parser {
    chars: Vec<char>,
    at: usize,
}

/// White space is refused as well: what we write is compact.
impl Parser {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Result<char, String> {
        self.at += 1;
        self.chars
            .get(self.at - 1)
            .copied()
            .ok_or("it breaks off".to_owned())
    }

    fn expect(&mut self, text: &str) -> Result<(), String> {
        for expected in text.chars() {
            let c = self.next()?;
            if c != expected {
                return Err(format!("{c:?} in place of {expected:?}"));
            }
        }
        Ok(())
    }

    fn value(&mut self) -> Result<Value, String> {
        match self.peek().ok_or("it breaks off")? {
            'n' => self.expect("null").map(|()| Value::Null),
            't' => self.expect("true").map(|()| Value::Bool(true)),
            'f' => self.expect("false").map(|()| Value::Bool(false)),
            '"' => self.string().map(Value::String),
            '[' => self.array(),
            '{' => self.object(),
            _ => self.number(),
        }
    }

    fn number(&mut self) -> Result<Value, String> {
        let from = self.at;
        while matches!(self.peek(), Some('0'..='9' | '-')) {
            self.at += 1;
        }
        let digits: String = self.chars[from..self.at].iter().collect();
        let n = digits.parse().map_err(|_| format!("no number: {digits:?}"));
        n.map(Value::Number)
    }

    fn string(&mut self) -> Result<String, String> {
        self.expect("\"")?;
        let mut text = String::new();
        loop {
            match self.next()? {
                '"' => return Ok(text),
                '\\' => text.push(self.escape()?),
                c if c < ' ' => return Err(format!("a raw {c:?}")),
                c => text.push(c),
            }
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        Ok(match self.next()? {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            c @ ('"' | '\\' | '/') => c,
            'u' => {
                let hex: String = (0..4).map(|_| self.next()).collect::<Result<_, _>>()?;
                let code = u32::from_str_radix(&hex, 16).map_err(|e| e.to_string())?;
                char::from_u32(code).ok_or(format!("half a character: {hex}"))?
            }
            c => return Err(format!("unknown escape {c:?}")),
        })
    }

    fn array(&mut self) -> Result<Value, String> {
        self.expect("[")?;
        let mut values = Vec::new();
        if self.peek() == Some(']') {
            self.at += 1;
            return Ok(Value::Array(values));
        }
        loop {
            values.push(self.value()?);
            match self.next()? {
                ',' => {}
                ']' => return Ok(Value::Array(values)),
                c => return Err(format!("{c:?} in an array")),
            }
        }
    }

    fn object(&mut self) -> Result<Value, String> {
        self.expect("{")?;
        let mut fields = BTreeMap::new();
        if self.peek() == Some('}') {
            self.at += 1;
            return Ok(Value::Object(fields));
        }
        loop {
            let key = self.string()?;
            if fields
                .last_key_value()
                .is_some_and(|(last, _)| *last >= key)
            {
                return Err(format!("{key} out of order"));
            }
            self.expect(":")?;
            let value = self.value()?;
            fields.insert(key, value);
            match self.next()? {
                ',' => {}
                '}' => return Ok(Value::Object(fields)),
                c => return Err(format!("{c:?} in an object")),
            }
        }
    }
}
