//! `backtrail export`: a session for people and for other programs.

mod converted;
mod frame;
mod html;
mod losses;
mod markup;
mod memory;
pub(super) mod prose;
mod removed;
mod source;
mod tool_call;

use std::borrow::Cow;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use backtrail::context::HandOverExtent;
use backtrail::conversation::NoteChange;
use backtrail::conversation::{Item, RelativePaths, ToolOutcome};
use backtrail::{Block, Json, Message, Role, SessionId, SessionInfo, SessionReader, Store, Text};
use backtrail_formats::{JsonRedactor, Redactor, agent_names, formats, target, targets};
use backtrail_index::Index;
use clap::ValueEnum;
use clap::builder::PossibleValue;
use serde_json::json;

pub(super) use self::frame::header;
pub(super) use self::html::{MOST_PROMPTS, Page, prompt_words};
pub(super) use self::losses::ExportLoss;
use self::markup::Html;
use self::memory::Memory;
use self::removed::Removed;
pub(super) use self::source::KeptFile;
use super::conversation::sub_agents::SubAgents;
use super::conversation::{NO_TITLE, Survey};
use super::markdown;
use super::{Answer, find_session, short};
use crate::derived;
use crate::error::{CommandError, Result};
use crate::progress::while_waiting;
use crate::shell::{argument, quote};
use crate::text::{Filtered, harmless, path_json, size, visible};
use crate::ui::Ui;
use crate::{files, home};

/// Export a session for people or for other programs
///
/// html is one self-contained page, markdown is for reading, json is one object with all
/// messages. An agent's name writes the file that the session was imported from, byte for byte; of
/// a database, its rows as JSON lines. A session of another origin is written in the form of that
/// agent, with its tool calls as calls; what has no place there is listed. `resume --agent` also
/// puts it where the agent finds it. openai-chat is one message per line, as in requests to OpenAI.
/// v1 is the JSON lines format that older programs read; what does not fit becomes text or is
/// omitted, and is listed.
#[derive(Debug, clap::Args)]
pub(crate) struct ExportArgs {
    /// A session: its id, a prefix of 4+ characters, or latest
    #[arg(value_name = "REF")]
    reference: String,

    /// The format
    #[arg(long, value_name = "FORMAT", ignore_case = true)]
    to: Format,

    /// Write to a new file instead of stdout (-)
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Replace the file if it exists
    #[arg(long, requires = "output")]
    force: bool,

    /// For another agent, write all messages, not only those since the last summary
    #[arg(long)]
    whole: bool,

    /// Remove keys, tokens, passwords and private keys, and list what was removed; the
    /// session itself is not changed. `people` also removes home directories and e-mail
    /// addresses
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "secrets")]
    redact: Option<Redact>,
}

/// What is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Redact {
    Secrets,
    People,
}

impl Redact {
    pub(super) fn redactor(self) -> Redactor {
        match self {
            Self::Secrets => Redactor::new(),
            Self::People => Redactor::new().people(home::home_dir().as_deref()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Html,
    Markdown,
    Json,
    /// The file of the agent with this name, or a form that other programs read.
    Agent(&'static str),
    V1,
}

impl Format {
    /// Returns the name on the command line.
    fn name(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Markdown => "markdown",
            Self::Json => "json",
            Self::Agent(name) => name,
            Self::V1 => "v1",
        }
    }
}

impl ValueEnum for Format {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<Format>> = LazyLock::new(|| {
            let agents = formats().map(|format| Format::Agent(format.name()));
            let first = [Format::Html, Format::Markdown, Format::Json].into_iter();
            let is_agent = |name: &str| formats().any(|format| format.name() == name);
            let others = targets().filter(|target| !is_agent(target.name()));
            let others = others.map(|target| Format::Agent(target.name()));
            first
                .chain(agents)
                .chain(others)
                .chain([Format::V1])
                .collect()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let agent = formats().find(|format| *self == Self::Agent(format.name()));
        let aliases = agent
            .into_iter()
            .flat_map(|agent| agent_names(agent).skip(1));
        Some(PossibleValue::new(self.name()).aliases(aliases))
    }
}

/// A session that is being exported.
pub(super) struct Export<'a> {
    pub(super) store: &'a Store,
    pub(super) reader: &'a SessionReader,
    ui: &'a Ui,
    /// How much is written for another agent.
    extent: HandOverExtent,
    /// Set if secrets are to be removed.
    redactor: Option<Redactor>,
}

impl<'a> Export<'a> {
    /// Begins an export of what a model is sent, with all that it says.
    pub(super) fn new(store: &'a Store, reader: &'a SessionReader, ui: &'a Ui) -> Self {
        Self {
            store,
            reader,
            ui,
            extent: HandOverExtent::Context,
            redactor: None,
        }
    }
}

impl Export<'_> {
    /// Reads the numbers of the session.
    pub(super) fn survey(&self) -> Result<Survey> {
        let row = derived::row(self.store, self.reader.id(), self.ui);
        let spending = row.as_ref().map(|row| row.spending);
        let survey = Survey::of(self.reader, spending.unwrap_or_default())?;
        Ok(survey.with_row(row.as_ref()))
    }

    /// Finds the sub-agents that only their own sessions name.
    fn sub_agents(&self) -> SubAgents {
        let (store, reader) = (self.store, self.reader);
        let find = |index: &Index| Ok(SubAgents::find(index, store, reader));
        derived::ask(store, self.ui, "reading sessions:", find).unwrap_or_default()
    }

    /// Returns the title of the session, without secrets if that is wanted.
    pub(super) fn title(&mut self) -> Result<String> {
        let title = self.reader.title()?;
        Ok(self.text(title.as_deref().unwrap_or(NO_TITLE)))
    }

    /// Removes the secrets from an item, if that is wanted.
    pub(super) fn redacted(&mut self, mut item: Item) -> Item {
        if let Some(redactor) = &mut self.redactor {
            redactor.at(item.seq());
            redact_item(redactor, &mut item);
        }
        item
    }

    /// Returns a text, without its secrets if that is wanted.
    pub(super) fn text(&mut self, text: &str) -> String {
        match &mut self.redactor {
            Some(redactor) => redactor.redact(text).into_owned(),
            None => text.to_owned(),
        }
    }

    /// Returns how paths are shown.
    pub(super) fn relative_paths(&self, info: &SessionInfo) -> Result<RelativePaths> {
        Ok(self.reader.relative_paths(info.workspace_root.as_deref())?)
    }

    /// Reads what is known of the session, without secrets if that is wanted.
    pub(super) fn info(&mut self) -> Result<SessionInfo> {
        let mut info = self.reader.info()?;
        let Some(redactor) = &mut self.redactor else {
            return Ok(info);
        };
        redactor.at(0);
        let mut root = info
            .workspace_root
            .as_ref()
            .map(|root| root.to_string_lossy().into_owned());
        for text in [
            &mut info.title,
            &mut info.begins,
            &mut info.agent,
            &mut info.model,
            &mut root,
        ] {
            redact_strings(redactor, text);
        }
        info.workspace_root = root.map(PathBuf::from);
        redact_strings(redactor, &mut info.tags);
        Ok(info)
    }
}

/// Removes the secrets from all texts of an item.
fn redact_item(redactor: &mut Redactor, item: &mut Item) {
    match item {
        Item::Prompt(item) => {
            redact_string(redactor, &mut item.text);
            redact_blocks(redactor, &mut item.attachments);
        }
        Item::Injected(item) => {
            redact_string(redactor, &mut item.text);
            redact_blocks(redactor, &mut item.attachments);
        }
        Item::Reply(item) => redact_strings(redactor, &mut item.model),
        Item::Answer(item) => redact_string(redactor, &mut item.text),
        Item::Thinking(item) => redact_string(redactor, &mut item.text),
        Item::ToolCall(item) => {
            redact_text(redactor, &mut item.name);
            redact_json(redactor, &mut item.arguments);
            if let Some(result) = &mut item.result {
                redact_result(redactor, result);
            }
        }
        Item::ToolResult(item) => {
            if let Some(name) = &mut item.name {
                redact_text(redactor, name);
            }
            redact_result(redactor, &mut item.result);
        }
        Item::Attachment(item) => redact_blocks(redactor, std::slice::from_mut(&mut item.block)),
        Item::Compaction(item) => {
            if let Some(stored) = &mut item.stored {
                redact_text(redactor, &mut stored.summary);
            }
        }
        Item::Note(item) => {
            for change in &mut item.changes {
                match change {
                    NoteChange::Title(text) | NoteChange::Agent(text) | NoteChange::Model(text) => {
                        redact_strings(redactor, text);
                    }
                    NoteChange::Tags(tags) => redact_strings(redactor, tags),
                    _ => {}
                }
            }
        }
        Item::Other(item) => redact_string(redactor, &mut item.kind),
        _ => {}
    }
}

fn redact_string(redactor: &mut Redactor, text: &mut String) {
    if let Cow::Owned(redacted) = redactor.redact(text) {
        *text = redacted;
    }
}

fn redact_strings<'t>(redactor: &mut Redactor, texts: impl IntoIterator<Item = &'t mut String>) {
    texts
        .into_iter()
        .for_each(|text| redact_string(redactor, text));
}

fn redact_text(redactor: &mut Redactor, text: &mut Text) {
    if let Cow::Owned(redacted) = redactor.redact(text) {
        *text = redacted.into();
    }
}

fn redact_json(redactor: &mut Redactor, json: &mut Json) {
    if let Some(redacted) = redactor.redact_json(json) {
        *json = redacted;
    }
}

/// Removes the secrets from a result, whose record is another one than its call's.
fn redact_result(redactor: &mut Redactor, result: &mut ToolOutcome) {
    redactor.at(result.seq);
    redact_json(redactor, &mut result.output);
}

fn redact_blocks(redactor: &mut Redactor, blocks: &mut [Block]) {
    for block in blocks {
        let mut message = Message::new(Role::User, [block.clone()]);
        redactor.redact_message(&mut message);
        if let Some(redacted) = message.blocks.pop() {
            *block = redacted;
        }
    }
}

/// Returns a text as HTML.
pub(super) fn escaped(text: &str) -> String {
    Html::new().text(text).as_str().to_owned()
}

/// Returns the text of a JSON value that is a string.
fn text_of(json: &Json) -> Option<Text> {
    serde_json::from_str(json.as_str()).ok()
}

pub(crate) fn run(args: &ExportArgs, ui: &Ui) -> Result<Answer> {
    let (store, id) = find_session(&args.reference, ui)?;
    let reader = store.read_session(&id)?;
    let mut export = Export::new(&store, &reader, ui);
    if args.whole {
        export.extent = HandOverExtent::Whole;
    }
    export.redactor = args.redact.map(Redact::redactor);
    let file = args.output.as_ref().filter(|path| *path != Path::new("-"));
    let Some(path) = file else {
        let losses = print(args.to, &mut export, ui)?;
        ExportLoss::report(&losses, ui);
        if let Some(removed) = removed(args.to, &export)? {
            removed.report(ui);
        }
        return Ok(Answer::Done);
    };
    let written = while_waiting(ui, "exporting", || {
        write_file(args.to, args.force, &mut export, path)
    });
    let (losses, bytes, replaced) = written?;
    let removed = removed(args.to, &export)?;
    if ui.json() {
        let mut report = json!({
            "session": id,
            "to": args.to.name(),
            "file": path_json(path),
            "bytes": bytes,
            "replaced": replaced,
            "losses": losses,
        });
        if let Some(removed) = removed {
            report["removed"] = removed.to_json();
        }
        return ui.answer_json(&report);
    }
    let shown = path.to_string_lossy();
    ui.print_line(&exported(&id, path, bytes))?;
    ExportLoss::report(&losses, ui);
    if let Some(removed) = removed {
        removed.report(ui);
    }
    if !replaced {
        ui.status(&format!("to reverse: rm {}", argument(&shown)));
    }
    Ok(Answer::Done)
}

/// Writes the session to stdout. The file of another agent is written byte for byte, but not to
/// a terminal, which would obey what is in it.
fn print(format: Format, export: &mut Export<'_>, ui: &Ui) -> Result<Vec<ExportLoss>> {
    let mut out = BufWriter::new(io::stdout().lock());
    if !io::stdout().is_terminal() {
        let losses = write(format, export, &mut out)?;
        out.flush()?;
        return Ok(losses);
    }
    let mut shown = Filtered::new(out, visible);
    let losses = write(format, export, &mut shown)?;
    shown.flush()?;
    if shown.changed() {
        let text =
            "control characters are shown as ^[ and the like; for the exact bytes use -o FILE";
        ui.status(&format!("note: {text}"));
    }
    Ok(losses)
}

/// Returns what was removed; `None` without `--redact`.
fn removed(format: Format, export: &Export<'_>) -> Result<Option<Removed>> {
    let Some(redactor) = &export.redactor else {
        return Ok(None);
    };
    Ok(Some(match format {
        Format::Html | Format::Markdown => Removed::new(redactor, "record"),
        Format::Json => Removed::in_messages(redactor, export.reader)?,
        _ => Removed::new(redactor, "line"),
    }))
}

/// Writes the session, and returns what was lost on the way.
fn write(format: Format, export: &mut Export<'_>, out: &mut dyn Write) -> Result<Vec<ExportLoss>> {
    match format {
        Format::Html => html::write(export, out),
        Format::Markdown => markdown::write(export, out),
        Format::Json | Format::V1 => {
            let mut harmless = Filtered::new(out, harmless);
            let losses = write_redacted(format, export, &mut harmless)?;
            harmless.flush()?;
            Ok(losses)
        }
        _ => write_redacted(format, export, out),
    }
}

/// Writes a session for other programs, without its secrets if that is wanted.
fn write_redacted(
    format: Format,
    export: &mut Export<'_>,
    out: &mut dyn Write,
) -> Result<Vec<ExportLoss>> {
    let Some(mut redactor) = export.redactor.take() else {
        return write_data(format, export, false, out);
    };
    let mut redacted = match format {
        Format::Json => JsonRedactor::elements(out, &mut redactor, "messages"),
        _ => JsonRedactor::lines(out, &mut redactor),
    };
    let losses = write_data(format, export, true, &mut redacted)?;
    redacted.finish()?;
    export.redactor = Some(redactor);
    Ok(losses)
}

/// Writes a session for other programs, and returns what was lost on the way.
fn write_data(
    format: Format,
    export: &Export<'_>,
    redacting: bool,
    out: &mut dyn Write,
) -> Result<Vec<ExportLoss>> {
    let (store, reader) = (export.store, export.reader);
    match format {
        Format::Json => Ok(ExportLoss::unreadable(reader.write_json(out)?)),
        Format::V1 => {
            let losses = reader.write_v1(out)?;
            Ok(losses.iter().map(ExportLoss::from).collect())
        }
        agent => match KeptFile::find(store, reader, agent.name())? {
            Some(file) => source::write(&file, reader, redacting, out),
            None => converted::write(export, agent.name(), out),
        },
    }
}

/// Says what was exported.
fn exported(id: &SessionId, path: &Path, bytes: u64) -> String {
    let (id, shown, bytes) = (short(id), path.to_string_lossy(), size(bytes));
    format!("exported {id} to {shown} ({bytes})")
}

/// Returns the formats that a session can be exported to, each with a file name extension.
pub(super) fn formats_of(reader: &SessionReader) -> Result<Vec<(&'static str, String)>> {
    let sources = reader.sources()?;
    let extension = |format: &Format| {
        let source = sources.iter().find(|source| source.agent == format.name());
        let own = source.and_then(|source| source.path.extension()?.to_str());
        // The rows of a database are JSON lines.
        let own = source.map(|_| own.filter(|own| *own == "json").unwrap_or("jsonl"));
        match (format, own) {
            (Format::Html, _) => Some("html".to_owned()),
            (Format::Markdown, _) => Some("md".to_owned()),
            (Format::Json, _) => Some("json".to_owned()),
            (Format::V1, _) => Some("jsonl".to_owned()),
            (Format::Agent(_), Some(own)) => Some(own.to_owned()),
            (Format::Agent(name), None) => {
                target(name).map(|_| match ONE_DOCUMENT.contains(name) {
                    true => "json".to_owned(),
                    false => "jsonl".to_owned(),
                })
            }
        }
    };
    let all = Format::value_variants().iter();
    Ok(all
        .filter_map(|it| Some((it.name(), extension(it)?)))
        .collect())
}

/// Forms that are one JSON document, and not a line for each message.
const ONE_DOCUMENT: [&str; 4] = ["opencode", "cline", "goose", "atif"];

/// Exports a session to a new file; returns what to report, and what was lost on the way.
pub(super) fn to_new_file(
    store: &Store,
    id: &SessionId,
    format: &str,
    path: &Path,
    ui: &Ui,
) -> Result<(String, Vec<String>)> {
    let format = format_named(format)?;
    let reader = store.read_session(id)?;
    let mut export = Export::new(store, &reader, ui);
    let (losses, bytes, _) = write_file(format, false, &mut export, path)?;
    let losses = losses.into_iter().map(ExportLoss::into_text);
    Ok((exported(id, path, bytes), losses.collect()))
}

/// Exports a session as bytes; returns them, and what was lost or removed, a line each.
pub(super) fn to_memory(
    store: &Store,
    id: &SessionId,
    format: &str,
    redact: Option<Redact>,
    ui: &Ui,
) -> Result<(Vec<u8>, Vec<String>)> {
    let format = format_named(format)?;
    let reader = store.read_session(id)?;
    let mut export = Export::new(store, &reader, ui);
    export.redactor = redact.map(Redact::redactor);
    let mut out = Memory::default();
    let written = write(format, &mut export, &mut out);
    let bytes = out.finish(id, format.name())?;
    let mut notes: Vec<String> = written?.into_iter().map(ExportLoss::into_text).collect();
    if let Some(removed) = removed(format, &export)? {
        notes.extend(removed.lines());
    }
    Ok((bytes, notes))
}

/// Returns the format with a name.
pub(super) fn format_named(name: &str) -> Result<Format> {
    Format::from_str(name, true)
        .map_err(|_| CommandError::invalid(format!("{} is not a format", quote(name))))
}

/// Writes a file, whole or not at all; returns its length and whether it replaced another.
fn write_file(
    format: Format,
    force: bool,
    export: &mut Export<'_>,
    path: &Path,
) -> Result<(Vec<ExportLoss>, u64, bool)> {
    let failed = |error: &io::Error| CommandError::io("cannot write the export", Some(path), error);
    let old = match force {
        true => files::regular(path).map_err(|error| failed(&error))?,
        false => None,
    };
    let staged = old.as_ref().map(|old| files::beside(&old.path));
    let target = staged.as_deref().unwrap_or(path);
    let file = files::create_private(target).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => CommandError::invalid("the file already exists")
            .at_path(path)
            .hint("to replace it: --force"),
        _ => failed(&error),
    })?;
    let mut out = BufWriter::new(file);
    let written = write(format, export, &mut out).and_then(|losses| {
        let file = out.into_inner().map_err(|error| failed(error.error()))?;
        file.sync_all().map_err(|error| failed(&error))?;
        let bytes = file.metadata().map_err(|error| failed(&error))?.len();
        if let Some(old) = &old {
            old.replace_with(target).map_err(|error| failed(&error))?;
        }
        Ok((losses, bytes, old.is_some()))
    });
    if written.is_err() {
        // A part of an export that this command made itself.
        files::remove(target).ok();
    }
    written
}
