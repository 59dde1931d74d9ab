//! `backtrail record`: messages in, acknowledgements out.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use backtrail::plumbing::{InputLine, Unknown};
use backtrail::{
    Block, CheckpointId, CheckpointOptions, Draft, Durability, ErrorKind, Message, Note, Role,
    Session, SessionId, SessionOptions, Store, Turn,
};
use serde_json::json;

use super::workspace::{joined_session, too_wide};
use super::{
    Answer, locked_hint, open_or_create_store, open_to_write, require_files_store, resolve, short,
};
use crate::error::{CommandError, Result, full_text};
use crate::home;
use crate::input::{LineReader, RawLine};
use crate::text::{count, harmless, size};
use crate::ui::Ui;

/// Record messages from stdin, one JSON object per line
///
/// A line is {"role":"user","text":"…"} or a native record,
/// {"type":"message","message":{"role":…,"blocks":[…]}}. Both may have id, at, model,
/// response_id, cost_usd, duration_ms and expect. {"type":"compaction","summary":"…","keep":4}
/// replaces earlier messages with a summary; {"type":"checkpoint","label":"…"} saves the
/// files. A turn of the session that was cut off continues, unless the first line is a prompt. Each
/// line is answered on stdout once it is durable:
/// {"ok":true,"line":1,"session":"…","seq":1}, or a checkpoint's id in place of seq. Fields and
/// roles that it does not know are kept, and named in the answer: "unknown":["usage"].
#[derive(Debug, clap::Args)]
pub(crate) struct RecordArgs {
    /// Continue this session instead of a new one [default: $BACKTRAIL_SESSION, if set]
    #[arg(long, value_name = "REF")]
    session: Option<String>,

    /// Give the session a title
    #[arg(long)]
    title: Option<String>,

    /// Start a sub-agent's session; REF is the session whose tool call started it
    #[arg(
        long,
        value_name = "REF",
        requires = "tool_use",
        conflicts_with = "session"
    )]
    spawned_by: Option<String>,

    /// The id of that tool call
    #[arg(long, value_name = "ID", requires = "spawned_by")]
    tool_use: Option<String>,

    /// When to answer a line: after its own sync, after a sync shared with other lines, or
    /// once the OS has it
    #[arg(long, value_name = "MODE", value_parser = ["record", "batch", "os"])]
    durability: Option<String>,

    /// Record one user message instead of reading stdin
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
}

pub(crate) fn run(args: &RecordArgs, ui: &Ui) -> Result<Answer> {
    let durability = args.durability.as_deref().map(str::parse).transpose()?;
    let store = match args.session.as_ref().or(args.spawned_by.as_ref()) {
        Some(_) => require_files_store(ui)?,
        None => open_or_create_store(ui)?,
    };
    let mut recorder = Recorder::new(store, args, durability, ui)?;
    match &args.text {
        Some(text) => recorder.record_text(text)?,
        None => recorder.record_stdin()?,
    }
    recorder.finish()
}

/// Records messages and answers each.
struct Recorder<'a> {
    ui: &'a Ui,
    store: Store,
    durability: Option<Durability>,
    title: Option<String>,
    /// The session and the tool call that started this one.
    spawned_by: Option<(SessionId, String)>,
    /// The session, once there is one.
    id: Option<SessionId>,
    session: Option<Session>,
    turn: CutOffTurn,
    answers: Answers,
    recorded: u64,
    refused: u64,
    /// The highest seq that was acknowledged: the trail may not end before it.
    acknowledged: u64,
}

impl<'a> Recorder<'a> {
    fn new(
        store: Store,
        args: &RecordArgs,
        durability: Option<Durability>,
        ui: &'a Ui,
    ) -> Result<Self> {
        let mut recorder = Self {
            ui,
            durability,
            title: args.title.clone(),
            spawned_by: None,
            id: None,
            session: None,
            turn: CutOffTurn::default(),
            answers: Answers::default(),
            recorded: 0,
            refused: 0,
            acknowledged: 0,
            store,
        };
        if let (Some(reference), Some(call)) = (&args.spawned_by, &args.tool_use) {
            let parent = resolve(&recorder.store, reference)?;
            recorder.spawned_by = Some((parent, call.clone()));
        }
        let joined = match (&args.session, &args.spawned_by) {
            (Some(reference), _) => Some(resolve(&recorder.store, reference)?),
            (None, None) => joined_session(&recorder.store)?,
            (None, Some(_)) => None,
        };
        if let Some(id) = joined {
            recorder.id = Some(id.clone());
            recorder.turn.may_continue = true;
            // Another agent's session continues in a fork, which is made with the first
            // message.
            let info = recorder.store.read_session(&id)?.info()?;
            if info.belongs_to.is_none() || args.title.is_some() {
                let session = recorder.open().map_err(|error| locked_hint(error, &id))?;
                if let Some(title) = &args.title {
                    session.note(&Note::new().title(title.as_str()))?;
                }
            }
        }
        Ok(recorder)
    }

    fn record_text(&mut self, text: &str) -> Result<()> {
        let draft = Draft::from(Message::user_text(text));
        self.record_group(vec![(1, Ok(InputLine::Message(draft)))])
    }

    fn record_stdin(&mut self) -> Result<()> {
        if io::stdin().is_terminal() {
            self.ui.remark(
                "reading messages from the terminal, one JSON object per line; Ctrl-D ends",
            );
        }
        let mut lines = LineReader::new(io::stdin().lock());
        loop {
            let mut group = Vec::new();
            while group.len() < self.group_limit()
                && let Some(line) = lines.next_ready()
            {
                group.push((line.number, read_line(&line)));
            }
            if !group.is_empty() {
                self.record_group(group)?;
                continue;
            }
            // Everything so far is answered: wait for more.
            let more = lines
                .fill()
                .map_err(|error| CommandError::io("cannot read standard input", None, &error))?;
            if !more {
                return Ok(());
            }
        }
    }

    /// Returns how many lines may share a sync.
    fn group_limit(&self) -> usize {
        match self.durability.unwrap_or(self.store.durability()) {
            Durability::Batch | Durability::Os | Durability::Remote => 4096,
            _ => 1,
        }
    }

    /// Records a group of lines and answers each of them.
    fn record_group(&mut self, group: Vec<(u64, Result<InputLine, Refusal>)>) -> Result<()> {
        let mut lines = Vec::with_capacity(group.len());
        let mut all = Vec::with_capacity(group.len());
        for (number, line) in group {
            let read = line.as_ref().map(InputLine::unknown);
            lines.push((number, read.map_err(Clone::clone)));
            all.extend(line);
        }
        let mut results = self.append(all)?.into_iter();
        for (number, read) in lines {
            let result = read.and_then(|unknown| {
                let result = results.next();
                let done = result.expect("every line that is not refused has a result")?;
                Ok((done, unknown))
            });
            match result {
                Ok((done, unknown)) => self.acknowledge(number, done, &unknown),
                Err(refusal) => self.refuse(number, &refusal),
            }
        }
        self.answers.flush();
        Ok(())
    }

    /// Appends lines, opening the session first if needed. An I/O failure refuses each line
    /// and is tried again with the next; a failure that would repeat is an error.
    fn append(&mut self, all: Vec<InputLine>) -> Result<Vec<Result<Done, Refusal>>> {
        if all.is_empty() {
            return Ok(Vec::new());
        }
        if self.id.is_none() && all.iter().all(|line| line.expected() > Some(0)) {
            // They continue a session that does not exist: none is created.
            let refusal = Refusal {
                text: "a new session has no records yet".to_owned(),
                kind: ErrorKind::Conflict,
                head: Some(0),
            };
            return Ok(all.iter().map(|_| Err(refusal.clone())).collect());
        }
        let session = match self.session() {
            Ok(session) => session,
            Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::DiskFull) => {
                let refusal = Refusal::from(error);
                return Ok(all.iter().map(|_| Err(refusal.clone())).collect());
            }
            Err(error) => return Err(error.into()),
        };
        if session.last_seq() < self.acknowledged {
            let what = format!(
                "record {} was acknowledged, but the trail ends at record {}",
                self.acknowledged,
                session.last_seq()
            );
            let hint = format!("backtrail verify {}", short(session.id()));
            return Err(CommandError::new(ErrorKind::Corrupt, what).hint(hint));
        }
        if all
            .iter()
            .any(|line| matches!(line, InputLine::Checkpoint(_)))
        {
            self.find_moved();
        }
        self.turn.before(&session, &all);
        let results = append_in_order(&self.store, &session, all);
        if session.stopped().is_some() {
            // A sync failed. Nothing more is acknowledged through this handle; the next line
            // reopens the session.
            self.session = None;
            self.turn = CutOffTurn::default();
        }
        Ok(results)
    }

    /// Tells the store where the workspace around us is now, if it has moved.
    fn find_moved(&self) {
        if let Some(root) = home::workspace_root(&self.store)
            && let Ok(Some(known)) = self.store.find_workspace(&root)
        {
            // If that fails, the checkpoint reports it.
            self.store.workspace(known.root()).ok();
        }
    }

    /// Returns the session, opened or created if needed.
    fn session(&mut self) -> backtrail::Result<Session> {
        match &self.session {
            Some(session) => Ok(session.clone()),
            None => self.open(),
        }
    }

    fn open(&mut self) -> backtrail::Result<Session> {
        let session = match &self.id {
            Some(id) => open_to_write(&self.store, id, self.durability, self.ui)?,
            None => self.create()?,
        };
        for aside in session.set_aside() {
            let what = if aside.never_acknowledged {
                "an unfinished last line (never acknowledged"
            } else {
                "an unreadable end of the trail (perhaps acknowledged"
            };
            let text = format!(
                "{what}, {}) was set aside in {}",
                size(aside.bytes),
                aside.file.display()
            );
            self.ui.warning(&text, None);
        }
        self.id = Some(session.id().clone());
        self.session = Some(session.clone());
        Ok(session)
    }

    fn create(&self) -> backtrail::Result<Session> {
        let mut options = SessionOptions::new();
        if let Some(title) = &self.title {
            options = options.title(title.as_str());
        }
        if let Some(root) = home::workspace_root(&self.store) {
            options = options.workspace_root(&root);
        }
        if let Some(durability) = self.durability {
            options = options.durability(durability);
        }
        match &self.spawned_by {
            Some((parent, call)) => self.store.spawn_session(parent, call, options),
            None => self.store.create_session(options),
        }
    }

    fn acknowledge(&mut self, line: u64, done: Done, unknown: &Unknown) {
        if let Done::Record(seq) = done {
            self.recorded += 1;
            self.acknowledged = self.acknowledged.max(seq);
        }
        let session = self.id.as_ref().map_or("", SessionId::as_str);
        self.answers.acknowledge(line, session, done, unknown);
    }

    fn refuse(&mut self, line: u64, refusal: &Refusal) {
        self.refused += 1;
        self.answers.refuse(line, refusal);
    }

    fn finish(mut self) -> Result<Answer> {
        let answer = Answer::no_if(self.refused > 0);
        self.turn.finish()?;
        if let Some(session) = self.session.take() {
            session.close()?;
        }
        match &self.id {
            Some(id) => {
                let id = short(id);
                let messages = count(self.recorded, "message");
                self.ui.remark(&format!(
                    "recorded {messages} in session {id}; to read it: backtrail show {id}"
                ));
            }
            None => self.ui.status("nothing recorded; no session created"),
        }
        if self.refused > 0 {
            let lines = count(self.refused, "line");
            self.ui
                .status(&format!("{lines} refused; see the answers for the reasons"));
        }
        if let Some(error) = self.answers.failure() {
            return Err(error);
        }
        Ok(answer)
    }
}

/// A turn of the session that was cut off and continues.
#[derive(Default)]
struct CutOffTurn {
    /// Whether nothing was recorded yet in a session that existed.
    may_continue: bool,
    turn: Option<Turn>,
    /// Whether the last message is an answer without tool calls.
    is_answered: bool,
}

impl CutOffTurn {
    /// Continues the turn before the first message, unless that is a new prompt.
    fn before(&mut self, session: &Session, lines: &[InputLine]) {
        let messages = lines.iter().filter_map(|line| match line {
            InputLine::Message(draft) => draft.message(),
            _ => None,
        });
        for message in messages {
            if std::mem::take(&mut self.may_continue) && !is_prompt(&message) {
                // The messages matter more than the files.
                self.turn = session.resume_turn().ok().flatten();
            }
            self.is_answered = message.role == Role::Assistant && !calls_tools(&message);
        }
    }

    /// Ends the turn if it was answered; otherwise it stays interrupted.
    fn finish(&mut self) -> Result<()> {
        if let Some(turn) = self.turn.take().filter(|_| self.is_answered) {
            turn.end()?;
        }
        Ok(())
    }
}

fn is_prompt(message: &Message) -> bool {
    let is_result = |block: &Block| matches!(block, Block::ToolResult(_));
    message.role == Role::User && !message.blocks.iter().any(is_result)
}

fn calls_tools(message: &Message) -> bool {
    let mut blocks = message.blocks.iter();
    blocks.any(|block| matches!(block, Block::ToolUse(_)))
}

/// The result of a line.
#[derive(Debug, Clone, Copy)]
enum Done {
    Record(u64),
    Checkpoint(CheckpointId),
}

/// Appends messages in groups, and everything else between them, in order.
fn append_in_order(
    store: &Store,
    session: &Session,
    all: Vec<InputLine>,
) -> Vec<Result<Done, Refusal>> {
    let mut results = Vec::with_capacity(all.len());
    let mut drafts = Vec::new();
    let batch = |drafts: Vec<Draft>| {
        let seqs = session.append_batch(drafts).into_iter();
        seqs.map(|seq| seq.map(Done::Record).map_err(Refusal::from))
    };
    for line in all {
        match line {
            InputLine::Message(draft) => drafts.push(draft),
            InputLine::Compaction(compaction) => {
                results.extend(batch(std::mem::take(&mut drafts)));
                let done = session.compact(&compaction);
                let done = done.map(|done| Done::Record(done.seq));
                results.push(done.map_err(Refusal::from));
            }
            InputLine::Checkpoint(options) => {
                results.extend(batch(std::mem::take(&mut drafts)));
                results.push(save_files(store, session, options));
            }
        }
    }
    results.extend(batch(drafts));
    results
}

/// Makes a checkpoint of a session's workspace. The home directory or / is refused, unless
/// it has a checkpoint already.
fn save_files(
    store: &Store,
    session: &Session,
    options: CheckpointOptions,
) -> Result<Done, Refusal> {
    let root = match session.workspace()? {
        Some(workspace) => Some(workspace.root().to_owned()),
        None => session.reader().info()?.workspace_root,
    };
    if let Some(root) = root
        && let Some(what) = too_wide(&root)
        && !has_checkpoint(store, &root)?
    {
        let way = "to allow it: backtrail checkpoint --yes";
        return Err(Refusal::invalid(format!("{what}; {way}")));
    }
    Ok(Done::Checkpoint(session.checkpoint(options)?.id()))
}

fn has_checkpoint(store: &Store, root: &Path) -> backtrail::Result<bool> {
    match store.find_workspace(root)? {
        Some(workspace) => Ok(workspace.last_checkpoint()?.is_some()),
        None => Ok(false),
    }
}

fn read_line(line: &RawLine<'_>) -> Result<InputLine, Refusal> {
    let bytes = line.bytes.map_err(|limit| {
        Refusal::invalid(format!(
            "the line has {}; the limit is {}",
            size(line.len),
            size(limit)
        ))
    })?;
    let text = std::str::from_utf8(bytes).map_err(|error| {
        Refusal::invalid(format!(
            "the line is not UTF-8 at byte {}",
            error.valid_up_to()
        ))
    })?;
    if text.trim().is_empty() {
        return Err(Refusal::invalid("the line is empty".to_owned()));
    }
    InputLine::from_json(text).map_err(Refusal::from)
}

/// The reason that a line was not recorded.
#[derive(Debug, Clone)]
struct Refusal {
    text: String,
    kind: ErrorKind,
    /// The last seq, if the line expected another.
    head: Option<u64>,
}

impl Refusal {
    fn invalid(text: String) -> Self {
        Self {
            text,
            kind: ErrorKind::Invalid,
            head: None,
        }
    }
}

impl From<backtrail::Error> for Refusal {
    fn from(error: backtrail::Error) -> Self {
        Self {
            text: full_text(&error),
            kind: error.kind(),
            head: error.head(),
        }
    }
}

/// Returns what was not used, as further fields of an answer.
fn unknown_json(unknown: &Unknown) -> String {
    let mut json = String::new();
    if !unknown.fields.is_empty() {
        json += &format!(
            r#","unknown":{}"#,
            harmless(&json!(unknown.fields).to_string())
        );
    }
    if let Some(role) = &unknown.role {
        json += &format!(r#","unknown_role":{}"#, harmless(&json!(role).to_string()));
    }
    json
}

/// The answers on stdout. If nobody reads them any more, recording continues: the messages
/// matter more than the answers.
#[derive(Default)]
struct Answers {
    buffer: Vec<u8>,
    /// The error that stopped them.
    unread: Option<io::Error>,
}

impl Answers {
    fn acknowledge(&mut self, line: u64, session: &str, done: Done, unknown: &Unknown) {
        let done = match done {
            Done::Record(seq) => format!(r#""seq":{seq}"#),
            Done::Checkpoint(id) => format!(r#""checkpoint":"{id}""#),
        };
        // An id has no character that JSON would have to escape.
        writeln!(
            self.buffer,
            r#"{{"ok":true,"line":{line},"session":"{session}",{done}{}}}"#,
            unknown_json(unknown)
        )
        .expect("a Vec takes every write");
    }

    fn refuse(&mut self, line: u64, refusal: &Refusal) {
        let mut answer = json!({
            "ok": false,
            "line": line,
            "error": refusal.text,
            "kind": refusal.kind.as_str(),
        });
        if let Some(head) = refusal.head {
            answer["head"] = head.into();
        }
        writeln!(self.buffer, "{answer}").expect("a Vec takes every write");
    }

    /// Sends the answers, if they are still read.
    fn flush(&mut self) {
        if self.unread.is_none() {
            let mut out = io::stdout().lock();
            let answers = String::from_utf8_lossy(&self.buffer);
            let answers = harmless(&answers);
            let sent = out.write_all(answers.as_bytes()).and_then(|()| out.flush());
            self.unread = sent.err();
        }
        self.buffer.clear();
    }

    /// Returns the error that stopped the answers, unless the reader closed the pipe.
    fn failure(&self) -> Option<CommandError> {
        let error = self.unread.as_ref()?;
        let wanted = error.kind() != io::ErrorKind::BrokenPipe;
        wanted.then(|| CommandError::io("cannot write the answers", None, error))
    }
}
