//! What a person wrote in a message, apart from what an agent added to it.
//!
//! Agents write in the user's name: reminders, the environment, the output of commands,
//! instructions from files. This module recognises such text when a message is read, so that
//! it never counts as a prompt, whenever and however the session was recorded. The message
//! itself stays as it is.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Block, Message, Role};

/// What a text is that an agent added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum InjectedKind {
    /// A reminder of the agent to the model.
    Reminder,
    /// The directory, the system, open files, git.
    Environment,
    /// Rules for the model, such as those in AGENTS.md.
    Instructions,
    /// A note that what follows is not for the model.
    Caveat,
    /// The output of a command that the user ran.
    CommandOutput,
    /// The text of a skill.
    Skill,
    /// A summary of what was said before.
    Summary,
    /// News from a task, a sub-agent or the settings.
    Notification,
    /// The user interrupted the agent.
    Interruption,
    /// What a hook added.
    Hook,
    /// The content of files that the prompt names.
    Files,
    /// An error of the agent or the provider, in the assistant's name.
    Error,
    /// A text in place of an answer that was not asked for.
    Filler,
    /// Anything else.
    Other,
}

impl InjectedKind {
    /// Returns the kind in a few words, to show it in place of the text.
    pub fn label(self) -> &'static str {
        match self {
            Self::Reminder => "reminder",
            Self::Environment => "environment",
            Self::Instructions => "instructions",
            Self::Caveat => "caveat",
            Self::CommandOutput => "output of a command",
            Self::Skill => "skill",
            Self::Summary => "summary of what came before",
            Self::Notification => "notification",
            Self::Interruption => "interrupted by the user",
            Self::Hook => "added by a hook",
            Self::Files => "contents of files",
            Self::Error => "error",
            Self::Filler => "no answer",
            Self::Other => "added by the agent",
        }
    }
}

/// A text that an agent added to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Injected<'a> {
    /// What it is.
    pub kind: InjectedKind,
    /// The text.
    pub text: &'a str,
}

/// A message, taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Said<'a> {
    /// What the person wrote. A slash command is as it was typed: `/review args`.
    pub text: Cow<'a, str>,
    /// What an agent added, in order.
    pub injected: Vec<Injected<'a>>,
}

impl Message {
    /// Takes the texts of a message apart: what was written by its author, and what an agent
    /// added to it.
    pub fn said(&self) -> Said<'_> {
        let mut said = Said::default();
        for block in &self.blocks {
            let Block::Text(block) = block else {
                continue;
            };
            let text = block.text.as_str();
            let part = match self.role {
                Role::User if self.is_meta() => Said::injected(kind_of(text), text),
                Role::User => split(text),
                _ => match added_kind(&self.role, text) {
                    Some(kind) => Said::injected(kind, text),
                    None => Said::all(text),
                },
            };
            said.add(part);
        }
        said
    }
}

impl<'a> Said<'a> {
    fn all(text: &'a str) -> Self {
        Self {
            text: Cow::Borrowed(text),
            injected: Vec::new(),
        }
    }

    fn injected(kind: InjectedKind, text: &'a str) -> Self {
        Self {
            text: Cow::Borrowed(""),
            injected: vec![Injected { kind, text }],
        }
    }

    /// Adds the next text of the message, on a line of its own.
    fn add(&mut self, other: Self) {
        let is_all_injected = other.text.is_empty() && !other.injected.is_empty();
        self.injected.extend(other.injected);
        if is_all_injected {
            return;
        }
        match self.text.is_empty() {
            true => self.text = other.text,
            false => self.text = Cow::Owned(format!("{}\n{}", self.text, other.text)),
        }
    }
}

/// Returns whether an agent added all of a user's text. Usually the first character shows
/// that it did not.
pub(super) fn is_all_injected(text: &str) -> bool {
    let start = text.trim_start();
    if start.is_empty() {
        return false;
    }
    match start.starts_with('<') {
        true => split(text).text.trim().is_empty(),
        false => whole_kind(start).is_some(),
    }
}

/// Returns whether an agent added a text of a tool's or the assistant's message.
pub(crate) fn is_added(role: &Role, text: &str) -> bool {
    added_kind(role, text).is_some()
}

fn added_kind(role: &Role, text: &str) -> Option<InjectedKind> {
    match role {
        Role::Tool => whole_kind(text),
        Role::Assistant => stand_in(text),
        _ => None,
    }
}

/// Returns what a text is that stands in for an answer.
pub(super) fn stand_in(text: &str) -> Option<InjectedKind> {
    match text.trim() {
        "No response requested." => Some(InjectedKind::Filler),
        text if text.starts_with("API Error") => Some(InjectedKind::Error),
        _ => None,
    }
}

/// Returns what an injected text is.
fn kind_of(text: &str) -> InjectedKind {
    let split = split(text);
    let first = split.injected.first().map(|part| part.kind);
    first.unwrap_or(InjectedKind::Other)
}

/// What an agent writes when the user interrupts it.
const INTERRUPTIONS: [&str; 2] = [
    "[Request interrupted by user]",
    "[Request interrupted by user for tool use]",
];

/// How texts begin that are injected to their end.
const WHOLE: &[(&str, InjectedKind)] = &[
    (
        "Caveat: The messages below were generated by the user while running local commands",
        InjectedKind::Caveat,
    ),
    ("# AGENTS.md instructions", InjectedKind::Instructions),
    (
        "This session is being continued from a previous conversation",
        InjectedKind::Summary,
    ),
    (
        "Another language model started to solve this problem",
        InjectedKind::Summary,
    ),
    ("Base directory for this skill:", InjectedKind::Skill),
    ("Stop hook feedback:", InjectedKind::Hook),
    (
        "The following is a <SYSTEM_MESSAGE> not actually sent by the user",
        InjectedKind::Reminder,
    ),
    (
        "Warning: apply_patch was requested via exec_command",
        InjectedKind::Reminder,
    ),
    (
        "Warning: The maximum number of unified exec processes",
        InjectedKind::Reminder,
    ),
    ("[Image: source: ", InjectedKind::Files),
    ("[Image: original ", InjectedKind::Files),
];

/// The elements that agents add, by the beginning of their tags.
const ELEMENTS: &[(&str, InjectedKind)] = &[
    ("system-reminder", InjectedKind::Reminder),
    ("system_reminder", InjectedKind::Reminder),
    ("SYSTEM_NOTICE", InjectedKind::Reminder),
    ("SYSTEM_MESSAGE", InjectedKind::Reminder),
    ("token_budget", InjectedKind::Reminder),
    ("local-command-caveat", InjectedKind::Caveat),
    ("local-command-stdout", InjectedKind::CommandOutput),
    ("local-command-stderr", InjectedKind::CommandOutput),
    ("bash-stdout", InjectedKind::CommandOutput),
    ("bash-stderr", InjectedKind::CommandOutput),
    ("user_shell_command", InjectedKind::CommandOutput),
    ("task-notification", InjectedKind::Notification),
    ("subagent_notification", InjectedKind::Notification),
    ("USER_SETTINGS_CHANGE", InjectedKind::Notification),
    ("model_switch", InjectedKind::Notification),
    ("user_action", InjectedKind::Notification),
    ("recommended_plugins", InjectedKind::Notification),
    ("turn_aborted", InjectedKind::Interruption),
    ("environment_context", InjectedKind::Environment),
    ("environment_details", InjectedKind::Environment),
    ("environment_notice", InjectedKind::Environment),
    ("mode_notice", InjectedKind::Environment),
    ("session_context", InjectedKind::Environment),
    ("git-context", InjectedKind::Environment),
    ("user_info", InjectedKind::Environment),
    ("git_status", InjectedKind::Environment),
    ("project_layout", InjectedKind::Environment),
    ("open_files", InjectedKind::Environment),
    ("open_and_recently_viewed_files", InjectedKind::Environment),
    ("attached_files", InjectedKind::Files),
    ("ide_opened_file", InjectedKind::Environment),
    ("ide_selection", InjectedKind::Environment),
    ("ide_diagnostics", InjectedKind::Environment),
    ("additional_data", InjectedKind::Environment),
    ("external_context", InjectedKind::Environment),
    ("goal_context", InjectedKind::Environment),
    ("codex_internal_context", InjectedKind::Environment),
    ("environments_instructions", InjectedKind::Instructions),
    ("user_instructions", InjectedKind::Instructions),
    ("INSTRUCTIONS", InjectedKind::Instructions),
    ("permissions instructions", InjectedKind::Instructions),
    ("collaboration_mode", InjectedKind::Instructions),
    ("personality_spec", InjectedKind::Instructions),
    ("realtime_conversation", InjectedKind::Instructions),
    ("skills_instructions", InjectedKind::Instructions),
    ("plugins_instructions", InjectedKind::Instructions),
    ("apps_instructions", InjectedKind::Instructions),
    ("skill", InjectedKind::Skill),
    ("hook_prompt", InjectedKind::Hook),
    ("hook_context", InjectedKind::Hook),
    ("user-prompt-submit-hook", InjectedKind::Hook),
    ("qwen:user-prompt-submit-context", InjectedKind::Hook),
];

/// The lines around the files that a prompt names.
const FILES: [&str; 2] = [
    "--- Content from referenced files ---",
    "--- End of content ---",
];

/// The headings of what an editor adds before a request, and of the request.
const IDE: [&str; 2] = ["# Context from my IDE setup:", "## My request for Codex:"];

/// Returns what a text is that an agent added as a whole.
fn whole_kind(text: &str) -> Option<InjectedKind> {
    let text = text.trim_start();
    if let Some(kind) = known_whole(text) {
        return Some(kind);
    }
    let (_, kind, end) = element(text, &mut BTreeSet::new())?;
    text[end..].trim().is_empty().then_some(kind)
}

/// Returns what a text is, by how it begins.
fn known_whole(text: &str) -> Option<InjectedKind> {
    if INTERRUPTIONS.contains(&text.trim_end()) {
        return Some(InjectedKind::Interruption);
    }
    let found = WHOLE.iter().find(|(start, _)| text.starts_with(start));
    found.map(|(_, kind)| *kind)
}

/// Takes a user's text apart.
fn split(text: &str) -> Said<'_> {
    if let Some(typed) = typed_command(text) {
        return Said {
            text: Cow::Owned(typed),
            injected: Vec::new(),
        };
    }
    let start = text.trim_start();
    if let Some(kind) = known_whole(start) {
        return Said::injected(kind, text);
    }
    if start.starts_with(IDE[0])
        && let Some((context, request)) = text.split_once(IDE[1])
    {
        let mut said = Said::injected(InjectedKind::Environment, context.trim_end());
        said.add(split_elements(request.trim_start()));
        return said;
    }
    if let Some(request) = start.strip_prefix(IDE[1]) {
        return split_elements(request.trim_start());
    }
    if !text.contains('<') && !text.contains(FILES[0]) {
        return Said::all(text);
    }
    split_elements(text)
}

fn split_elements(text: &str) -> Said<'_> {
    let mut said = Said::default();
    let mut kept = Vec::new();
    // Where what is kept begins, and where the next line does.
    let (mut from, mut at) = (0, 0);
    let mut unclosed = BTreeSet::new();
    let mut is_start = true;
    while at < text.len() {
        let line = &text[at..];
        let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
        if let Some((kind, end)) = injected_at(&line[indent..], is_start, &mut unclosed) {
            kept.push(&text[from..at]);
            let end = at + indent + end;
            let part = text[at..end].trim();
            said.injected.push(Injected { kind, text: part });
            (from, at) = (end, end);
            continue;
        }
        let end = line.find('\n').map_or(line.len(), |end| end + 1);
        is_start &= line[..end].trim().is_empty();
        at += end;
    }
    if said.injected.is_empty() {
        return Said::all(text);
    }
    kept.push(&text[from..]);
    let kept = kept.iter().map(|part| part.trim());
    let kept: Vec<&str> = kept.filter(|part| !part.is_empty()).collect();
    said.text = Cow::Owned(kept.join("\n\n"));
    said
}

/// Returns what an agent added at the beginning of this text, and where that ends.
fn injected_at<'t>(
    text: &'t str,
    is_start: bool,
    unclosed: &mut BTreeSet<&'t str>,
) -> Option<(InjectedKind, usize)> {
    if text.starts_with(FILES[0]) {
        let end = text
            .find(FILES[1])
            .map_or(text.len(), |at| at + FILES[1].len());
        return Some((InjectedKind::Files, end));
    }
    if let Some((_, kind, end)) = element(text, unclosed) {
        return Some((kind, end));
    }
    // An element that was cut off.
    let kind = is_start.then(|| open_tag(text)).flatten()?.1;
    Some((kind, text.len()))
}

/// Returns the injected element at the beginning of a text, and where it ends.
fn element<'t>(
    text: &'t str,
    unclosed: &mut BTreeSet<&'t str>,
) -> Option<(&'t str, InjectedKind, usize)> {
    let (name, kind) = open_tag(text)?;
    if unclosed.contains(name) {
        return None;
    }
    let close = format!("</{name}>");
    match text.find(&close) {
        Some(at) => Some((name, kind, at + close.len())),
        None => {
            unclosed.insert(name);
            None
        }
    }
}

/// Returns the tag at the beginning of a text, if it is one that agents add.
fn open_tag(text: &str) -> Option<(&str, InjectedKind)> {
    let tag = text.strip_prefix('<')?;
    let (name, kind) = ELEMENTS.iter().find(|(name, _)| {
        tag.strip_prefix(name)
            .is_some_and(|rest| rest.starts_with(['>', ' ', '\n']))
    })?;
    Some((&tag[..name.len()], *kind))
}

/// Returns an injected text without the tags around it. In an environment, the elements of a
/// line are facts: `<cwd>/w</cwd>` is `cwd: /w`.
pub(crate) fn without_tags(text: &str, kind: InjectedKind) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut bare = without_known_tags(line);
        if kind == InjectedKind::Environment {
            bare = facts(bare);
        }
        let is_only_tags = bare.trim().is_empty() && !line.trim().is_empty();
        if !is_only_tags {
            lines.push(bare);
        }
    }
    lines.join("\n").trim_matches('\n').trim_end().to_owned()
}

/// Returns a line without the tags at its beginning and end that agents add.
fn without_known_tags(line: &str) -> Cow<'_, str> {
    let mut bare = line;
    while let Some(end) = known_tag(bare.trim_start()) {
        bare = &bare.trim_start()[end..];
    }
    while let Some(at) = bare.trim_end().rfind('<') {
        let tag = &bare.trim_end()[at..];
        if known_tag(tag) != Some(tag.len()) {
            break;
        }
        bare = &bare[..at];
    }
    Cow::Borrowed(bare)
}

/// Returns where the tag at the beginning of a text ends, if it is one that agents add.
fn known_tag(text: &str) -> Option<usize> {
    let is_known = match text.strip_prefix("</") {
        Some(tag) => ELEMENTS.iter().any(|(name, _)| {
            tag.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('>'))
        }),
        None => open_tag(text).is_some(),
    };
    is_known.then(|| text.find('>').map(|at| at + 1)).flatten()
}

/// Returns a line of elements as names and values; any other stays as it is.
fn facts(line: Cow<'_, str>) -> Cow<'_, str> {
    let text = line.trim();
    if !text.starts_with('<') || !text.ends_with('>') {
        return line;
    }
    let mut facts = Vec::new();
    let mut name = "";
    for part in text.split('<') {
        let (tag, value) = part.split_once('>').unwrap_or(("", part));
        if !tag.is_empty() {
            let is_open = !tag.starts_with('/') && !tag.ends_with('/');
            let word = tag.split_whitespace().next().unwrap_or_default();
            name = if is_open { word } else { "" };
        }
        match (name, value.trim()) {
            (_, "") => {}
            ("", value) => facts.push(value.to_owned()),
            (name, value) => facts.push(format!("{name}: {value}")),
        }
    }
    Cow::Owned(facts.join(", "))
}

/// Returns a slash command, or a command of the shell, as it was typed.
fn typed_command(text: &str) -> Option<String> {
    let text = text.trim();
    if text.starts_with("<bash-input>") {
        return inner(text, "bash-input").map(|command| format!("!{}", command.trim()));
    }
    if !text.starts_with("<command-") {
        return None;
    }
    let name = inner(text, "command-name")?.trim();
    let arguments = inner(text, "command-args").unwrap_or_default().trim();
    let slash = if name.starts_with('/') { "" } else { "/" };
    Some(format!("{slash}{name} {arguments}").trim_end().to_owned())
}

/// Returns the text in an element.
fn inner<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    Some(rest.split_once(&format!("</{name}>"))?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> (String, Vec<InjectedKind>, bool) {
        let message = Message::user_text(text);
        let said = message.said();
        let kinds = said.injected.iter().map(|part| part.kind).collect();
        (said.text.into_owned(), kinds, message.is_prompt())
    }

    #[test]
    fn what_an_agent_added_is_not_what_the_user_said() {
        let whole = [
            (
                "[Request interrupted by user for tool use]",
                InjectedKind::Interruption,
            ),
            (
                "<environment_context>\n<cwd>/w</cwd>\n</environment_context>",
                InjectedKind::Environment,
            ),
            (
                "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>x</INSTRUCTIONS>",
                InjectedKind::Instructions,
            ),
            (
                "<local-command-stdout></local-command-stdout>",
                InjectedKind::CommandOutput,
            ),
            ("  <system-reminder>\ncut off", InjectedKind::Reminder),
            (
                "This session is being continued from a previous conversation that ran out",
                InjectedKind::Summary,
            ),
            ("<hook_prompt id=\"1\">x</hook_prompt>", InjectedKind::Hook),
        ];
        for (text, kind) in whole {
            assert_eq!(user(text), (String::new(), vec![kind], false), "{text}");
        }
    }

    #[test]
    fn the_words_around_it_stay() {
        let mixed = "fix a\n<system-reminder>\nnot this\n</system-reminder>\nand b";
        let kinds = vec![InjectedKind::Reminder];
        assert_eq!(user(mixed), ("fix a\n\nand b".to_owned(), kinds, true));
        let files = "see @a\n--- Content from referenced files ---\nx\n--- End of content ---";
        let kinds = vec![InjectedKind::Files];
        assert_eq!(user(files), ("see @a".to_owned(), kinds, true));
        let ide = "# Context from my IDE setup:\n\n## Open tabs:\n- a\n\n## My request for Codex:\nfix a\n";
        let kinds = vec![InjectedKind::Environment];
        assert_eq!(user(ide), ("fix a\n".to_owned(), kinds, true));
        let request = "## My request for Codex:\nfix a\n";
        assert_eq!(user(request), ("fix a\n".to_owned(), vec![], true));
        for plain in [
            "[Request interrupted by user], why?",
            "what does <system-reminder> mean?",
            "<div>\n  <skills>\n</div>",
            "ask <b>\n<user_info",
            "",
            "a\n\n  b ",
        ] {
            assert_eq!(user(plain), (plain.to_owned(), vec![], true), "{plain}");
        }
    }

    #[test]
    fn an_injected_text_is_shown_without_its_tags() {
        for (text, kind, expected) in [
            (
                "<local-command-stdout></local-command-stdout>",
                InjectedKind::CommandOutput,
                "",
            ),
            (
                "<bash-stdout>a <b>\n  c</bash-stdout><bash-stderr></bash-stderr>",
                InjectedKind::CommandOutput,
                "a <b>\n  c",
            ),
            (
                "<hook_prompt id=\"1\">\n\nUse <skill> well.\n</hook_prompt>",
                InjectedKind::Hook,
                "Use <skill> well.",
            ),
            (
                "<permissions instructions>\nask\n</permissions instructions>",
                InjectedKind::Instructions,
                "ask",
            ),
            (
                "<environment_context>\n  <cwd>/w</cwd>\n  <fs><roots><root>/w</root></roots><p type=\"x\" /></fs>\n  tree: <empty>\n</environment_context>",
                InjectedKind::Environment,
                "cwd: /w\nroot: /w\n  tree: <empty>",
            ),
            ("a < b\n", InjectedKind::Environment, "a < b"),
        ] {
            assert_eq!(without_tags(text, kind), expected, "{text}");
        }
    }

    #[test]
    fn commands_are_as_they_were_typed() {
        let typed = [
            (
                "<command-name>/clear</command-name>\n  <command-message>clear</command-message>\n  <command-args></command-args>",
                "/clear",
            ),
            (
                "<command-message>review is running…</command-message>\n<command-name>/review</command-name>\n<command-args>the \"last\" commit</command-args>",
                "/review the \"last\" commit",
            ),
            ("<command-name>review</command-name>", "/review"),
            ("<bash-input> ls -l</bash-input>", "!ls -l"),
        ];
        for (text, expected) in typed {
            assert_eq!(user(text), (expected.to_owned(), vec![], true), "{text}");
        }
    }

    #[test]
    fn a_marked_message_has_a_kind_too() {
        let json = r#"{"role":"user","blocks":[{"type":"text","text":"Base directory for this skill: /s"}],"meta":true}"#;
        let message: Message = serde_json::from_str(json).unwrap();
        assert_eq!(message.said().injected[0].kind, InjectedKind::Skill);
        let json = json.replace("Base directory for this skill: /s", "whatever");
        let message: Message = serde_json::from_str(&json).unwrap();
        assert_eq!(message.said().injected[0].kind, InjectedKind::Other);
        assert_eq!(message.said().text, "");
    }

    #[test]
    fn many_tags_take_linear_time() {
        let text = "<system-reminder>\n<skill>\n".repeat(200_000);
        assert!(is_all_injected(&text));
        let line = text.replace('\n', "");
        assert_eq!(without_tags(&line, InjectedKind::Reminder), "");
        let text = format!("x\n{text}");
        assert!(!user(&text).0.is_empty());
    }
}
