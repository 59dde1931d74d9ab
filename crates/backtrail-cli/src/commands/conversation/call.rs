//! A tool call as it is shown: in one line, and in parts. `show`, Markdown and HTML print the
//! same.

use backtrail::conversation::{
    Action, FilePatch, LineChange, PatchKind, PlainOutput, Question, ReadFile, RelativePaths, Todo,
    TodoState, ToolCall, ToolOutcome,
};

use super::compare::{changed_lines, count_lines};
use crate::text::{clean, count, one_line, visible};

/// A call.
#[derive(Debug)]
pub(in crate::commands) struct CallView {
    /// The tool.
    pub(in crate::commands) name: String,
    /// What it was called with, in one line.
    pub(in crate::commands) with: String,
    pub(in crate::commands) parts: Vec<Part>,
    /// How many lines it adds and removes, where it edits.
    pub(in crate::commands) changes: Option<(u64, u64)>,
    /// Whether the output says nothing that the call does not say.
    is_quiet: bool,
}

/// A part of a call.
#[derive(Debug)]
pub(in crate::commands) enum Part {
    /// A command, as it was run.
    Command(String),
    /// What happens to a file.
    Diff(FileDiff),
    /// A list of tasks.
    Todos(Vec<Todo>),
    /// A plan, in Markdown.
    Plan(String),
    /// A question, and the answer if it is known.
    Question(Question, Option<String>),
    /// What a sub-agent is asked to do.
    Prompt(String),
    /// Arguments by name.
    Fields(Vec<(String, String)>),
}

/// The change of a file.
#[derive(Debug)]
pub(in crate::commands) struct FileDiff {
    pub(in crate::commands) path: String,
    /// What happens to it besides the lines: `new file`, `deleted`.
    pub(in crate::commands) note: String,
    pub(in crate::commands) lines: Vec<(LineChange, String)>,
}

/// The result of a call.
#[derive(Debug)]
pub(in crate::commands) struct OutcomeView {
    pub(in crate::commands) failed: bool,
    /// In a few words; empty if there is nothing to say.
    pub(in crate::commands) words: String,
    /// All of it, for people.
    pub(in crate::commands) output: String,
}

/// More is not kept of one part of a line: no terminal is so wide.
const KEPT: usize = 300;

impl CallView {
    pub(in crate::commands) fn new(call: &ToolCall, paths: &RelativePaths) -> Self {
        let mut view = Self {
            name: one_line(&tool_name(&call.name), 60),
            with: String::new(),
            parts: Vec::new(),
            changes: None,
            is_quiet: false,
        };
        let output = call.result.as_ref().map(ToolOutcome::plain);
        view.read(call.action(), output.as_ref(), paths);
        view.with = one_line(&visible(&view.with), KEPT);
        view
    }

    /// Makes a call that runs a command.
    pub(in crate::commands) fn command(name: &str, command: &str) -> Self {
        Self {
            name: name.to_owned(),
            with: one_line(command, KEPT),
            parts: vec![Part::Command(command.to_owned())],
            changes: None,
            is_quiet: false,
        }
    }

    fn read(&mut self, action: Action, output: Option<&PlainOutput>, paths: &RelativePaths) {
        match action {
            Action::Command { command, directory } => self.run(&command, directory, paths),
            Action::Read(files) => self.with = read_words(&files, paths),
            Action::Edit { path, changes } => {
                let mut lines = Vec::new();
                for change in &changes {
                    if !lines.is_empty() {
                        lines.push((LineChange::Hunk, "…".to_owned()));
                    }
                    lines.extend(changed_lines(&change.old, &change.new));
                }
                self.diff(&paths.path(&path), "", lines);
            }
            Action::Write { path, content } => {
                let lines = changed_lines("", content.as_deref().unwrap_or_default());
                let note = content.map_or("", |_| "whole file");
                self.diff(&paths.path(&path), note, lines);
            }
            Action::Patch(files) => files.into_iter().for_each(|file| self.patch(file, paths)),
            Action::Search {
                pattern,
                path,
                files,
            } => {
                let place = path.map(|path| format!(" in {}", paths.path(&path)));
                let files = files.map(|files| format!(" ({files})"));
                self.with = [Some(pattern), place, files]
                    .into_iter()
                    .flatten()
                    .collect();
            }
            Action::List(path) => self.with = paths.path(&path).into_owned(),
            Action::Fetch(text) | Action::WebSearch(text) => self.with = text,
            Action::Todos(todos) => self.todos(todos),
            Action::Plan(plan) => {
                self.is_quiet = true;
                self.with = plan_title(&plan);
                let plan = paths.prose(&plan).into_owned();
                self.parts
                    .extend((!plan.is_empty()).then_some(Part::Plan(plan)));
            }
            Action::Questions(questions) => self.questions(questions, output),
            Action::Task {
                agent,
                description,
                prompt,
            } => {
                let agent = agent.map_or_else(String::new, |agent| format!(" ({agent})"));
                let words = if description.is_empty() {
                    &prompt
                } else {
                    &description
                };
                self.with = format!("{}{agent}", one_line(words, 120));
                self.parts
                    .push(Part::Prompt(paths.prose(&prompt).into_owned()));
            }
            Action::Skill { name, arguments } => {
                self.with = format!("{name} {arguments}").trim_end().to_owned();
            }
            Action::Other(fields) => self.fields(fields, paths),
            _ => {}
        }
    }

    fn run(&mut self, command: &str, directory: Option<String>, paths: &RelativePaths) {
        let command = paths.code(command).trim().to_owned();
        let directory = directory.map(|path| paths.path(&path).into_owned());
        let place = directory.filter(|path| path != "." && !path.is_empty());
        let place = place.map_or_else(String::new, |path| format!(" (in {path})"));
        self.with = format!("{command}{place}");
        self.parts.push(Part::Command(command));
    }

    fn diff(&mut self, path: &str, note: &str, lines: Vec<(LineChange, String)>) {
        self.is_quiet = true;
        // Of some calls only the path is known.
        if !lines.is_empty() {
            let (added, removed) = count_lines(&lines);
            let (plus, minus) = self.changes.unwrap_or_default();
            self.changes = Some((plus + added, minus + removed));
        }
        self.with = match self.with.as_str() {
            "" => path.to_owned(),
            with => format!("{with}, {path}"),
        };
        let (path, note) = (path.to_owned(), note.to_owned());
        self.parts.push(Part::Diff(FileDiff { path, note, lines }));
    }

    fn patch(&mut self, file: FilePatch, paths: &RelativePaths) {
        let moved = file.moved_to.as_deref().map(|path| paths.path(path));
        let note = match (file.kind, moved) {
            (_, Some(path)) => format!("renamed to {path}"),
            (PatchKind::Add, _) => "new file".to_owned(),
            (PatchKind::Delete, _) => "deleted".to_owned(),
            _ => String::new(),
        };
        self.diff(&paths.path(&file.path), &note, file.lines);
    }

    fn todos(&mut self, todos: Vec<Todo>) {
        let done = todos.iter().filter(|todo| todo.state == TodoState::Done);
        self.with = match todos.len() {
            0 => "no tasks".to_owned(),
            all => format!("{} of {all} done", done.count()),
        };
        self.is_quiet = true;
        self.parts.push(Part::Todos(todos));
    }

    fn questions(&mut self, questions: Vec<Question>, output: Option<&PlainOutput>) {
        let first = questions.first().map(|question| question.text.clone());
        self.with = first.unwrap_or_default();
        for question in questions {
            let answer = output.and_then(|output| answer_to(&question.text, &output.text));
            self.is_quiet |= answer.is_some();
            self.parts.push(Part::Question(question, answer));
        }
    }

    fn fields(&mut self, fields: Vec<(String, String)>, paths: &RelativePaths) {
        let field = |(name, value): (String, String)| (name, paths.code(&value).into_owned());
        let fields: Vec<_> = fields.into_iter().map(field).collect();
        let words = fields.iter().map(|(name, value)| match name.as_str() {
            "" => value.clone(),
            name => format!("{name}: {value}"),
        });
        self.with = words.collect::<Vec<_>>().join(", ");
        self.parts
            .extend((!fields.is_empty()).then_some(Part::Fields(fields)));
    }

    /// Returns the result of the call, if it has one.
    pub(in crate::commands) fn outcome(
        &self,
        call: &ToolCall,
        paths: &RelativePaths,
    ) -> Option<OutcomeView> {
        let result = call.result.as_ref()?;
        let mut view = OutcomeView::new(result, call.success != Some(false), paths);
        if self.is_quiet && !view.failed {
            view.words.clear();
        }
        Some(view)
    }

    /// Returns whether the output says nothing that the call does not say.
    pub(in crate::commands) fn hides_output(&self, outcome: &OutcomeView) -> bool {
        self.is_quiet && !outcome.failed
    }
}

impl OutcomeView {
    /// Makes one without output.
    pub(in crate::commands) fn ended(failed: bool, words: String) -> Self {
        let output = String::new();
        Self {
            failed,
            words,
            output,
        }
    }

    pub(in crate::commands) fn new(
        result: &ToolOutcome,
        success: bool,
        paths: &RelativePaths,
    ) -> Self {
        let plain = result.plain();
        let output = paths.code(plain.text.trim_end()).into_owned();
        let mut lines = output.lines().filter(|line| !line.trim().is_empty());
        let first = one_line(&clean(lines.next().unwrap_or_default()), KEPT);
        let more = lines.next().is_some();
        let code = plain.exit_code.filter(|code| *code != 0);
        let words = match (first.as_str(), success, code) {
            ("", _, Some(code)) => format!("exit {code}"),
            ("", ..) => "no output".to_owned(),
            (first, false, Some(code)) => format!("exit {code}: {first}"),
            (first, false, None) => first.to_owned(),
            (_, true, Some(code)) => format!("exit {code}"),
            (first, true, None) if !more && first.chars().count() <= 40 => first.to_owned(),
            _ => count(output.lines().count(), "line"),
        };
        Self {
            failed: !success,
            words,
            output,
        }
    }
}

/// Returns a tool's name: `mcp__server__tool` is `server: tool`.
fn tool_name(name: &str) -> String {
    let rest = name
        .strip_prefix("mcp__")
        .and_then(|rest| rest.split_once("__"));
    match rest {
        Some((server, tool)) => format!("{server}: {tool}"),
        None => name.strip_prefix("functions.").unwrap_or(name).to_owned(),
    }
}

fn read_words(files: &[ReadFile], paths: &RelativePaths) -> String {
    let word = |file: &ReadFile| {
        let path = paths.path(&file.path);
        match (file.from, file.to) {
            (Some(from), Some(to)) => format!("{path}:{from}-{to}"),
            (Some(from), None) => format!("{path}:{from}"),
            _ => path.into_owned(),
        }
    };
    files.iter().map(word).collect::<Vec<_>>().join(", ")
}

/// Returns the first heading of a plan.
fn plan_title(plan: &str) -> String {
    let line = plan.lines().find(|line| !line.trim().is_empty());
    line.unwrap_or_default()
        .trim_start_matches(['#', ' '])
        .to_owned()
}

/// Finds the answer to a question in what the agent reports: `"question"="answer"`.
fn answer_to(question: &str, output: &str) -> Option<String> {
    let (_, rest) = output.split_once(&format!("\"{question}\"=\""))?;
    let ends = ["\", \"", "\". ", "\".", "\" "];
    let end = ends.iter().filter_map(|end| rest.find(end)).min();
    let answer = &rest[..end.unwrap_or_else(|| rest.trim_end_matches('"').len())];
    Some(answer.to_owned())
}
