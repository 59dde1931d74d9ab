//! Calls of tools and their results, on a page.

use backtrail::conversation::{
    LineChange, Question, RelativePaths, Todo, TodoState, ToolCall, ToolOutcome, is_patch,
};
use backtrail::{Block, Fields, Json, Media};

use super::markup::{Html, cut};
use super::prose;
use super::text_of;
use crate::commands::conversation::call::{CallView, FileDiff, OutcomeView, Part};
use crate::commands::conversation::compare::sign;
use crate::text::{grouped, medium};

/// More of one text does not go into a page.
pub(super) const MOST: usize = 200 << 10;
/// No larger image is shown.
const LARGEST_IMAGE: usize = 12 << 20;

/// A call as it is written: its line, and what is folded below it.
pub(super) struct Call {
    /// The name and what it was called with.
    line: Html,
    body: Html,
    /// How many lines it adds and removes, where it edits.
    changes: Option<(u64, u64)>,
}

/// The result of a call.
pub(super) struct Outcome {
    pub(super) failed: bool,
    /// Empty if there is nothing to say.
    pub(super) words: String,
    pub(super) body: Html,
}

impl Call {
    /// `more` is the command that shows what a page has no room for.
    pub(super) fn new(view: &CallView, more: &str) -> Self {
        let mut body = Html::new();
        for part in &view.parts {
            // What a thousand edits hold is not kept in memory.
            match body.len() < 4 * MOST {
                true => write_part(&mut body, part, more),
                false => break,
            }
        }
        Self {
            changes: view.changes,
            ..Self::named(&view.name, &view.with, body)
        }
    }

    /// Makes a call that edits nothing.
    pub(super) fn named(name: &str, with: &str, body: Html) -> Self {
        let mut line = Html::new();
        line.wrap("<b>", name, "</b> ")
            .wrap("<code>", with, "</code>");
        Self {
            line,
            body,
            changes: None,
        }
    }

    /// Writes the call with its result, folded.
    pub(super) fn write(&self, out: &mut Html, outcome: Option<&Outcome>) {
        let failed = outcome.is_some_and(|outcome| outcome.failed);
        out.raw(match failed {
            true => "<details class=\"tool failed\">",
            false => "<details class=\"tool\">",
        });
        out.raw("<summary><span class=\"what\">")
            .html(&self.line)
            .raw("</span>");
        match (outcome, self.changes) {
            (Some(outcome), _) if outcome.failed => {
                out.wrap("<span class=\"end\">✗ ", &outcome.words, "</span>");
            }
            (_, Some((added, removed))) => {
                out.raw("<span class=\"end\"><span class=\"plus\">+")
                    .number(added);
                out.raw("</span> <span class=\"minus\">−")
                    .number(removed)
                    .raw("</span></span>");
            }
            (Some(outcome), None) => {
                out.wrap("<span class=\"end\">", &outcome.words, "</span>");
            }
            (None, None) => {
                out.raw("<span class=\"end\">no result</span>");
            }
        }
        out.raw("</summary><div class=\"body\">").html(&self.body);
        if let Some(outcome) = outcome {
            out.html(&outcome.body);
        }
        out.raw("</div></details>\n");
    }
}

impl Outcome {
    /// Returns the result of a call.
    pub(super) fn of_call(
        call: &ToolCall,
        view: &CallView,
        paths: &RelativePaths,
        anchor: Option<u64>,
        more: &str,
    ) -> Option<Self> {
        let outcome = view.outcome(call, paths)?;
        let result = call.result.as_ref()?;
        let hides = view.hides_output(&outcome);
        Some(Self::new(result, outcome, anchor, hides, more))
    }

    /// Returns a result that is apart from its call.
    pub(super) fn alone(
        result: &ToolOutcome,
        success: bool,
        paths: &RelativePaths,
        anchor: Option<u64>,
        more: &str,
    ) -> Self {
        let outcome = OutcomeView::new(result, success, paths);
        Self::new(result, outcome, anchor, false, more)
    }

    /// `anchor` is the record of the result, if nothing else on the page links to it.
    fn new(
        result: &ToolOutcome,
        outcome: OutcomeView,
        anchor: Option<u64>,
        hides_output: bool,
        more: &str,
    ) -> Self {
        let mut body = Html::new();
        body.raw("<div class=\"out\"");
        if let Some(seq) = anchor {
            body.id(seq);
        }
        body.raw(">");
        if !hides_output {
            if !outcome.output.is_empty() {
                write_text(&mut body, &outcome.output, more);
            }
            write_images(&mut body, &result.output, more);
        }
        body.raw("</div>");
        Self {
            failed: outcome.failed,
            words: outcome.words,
            body,
        }
    }

    /// Writes it apart from its call.
    pub(super) fn write_alone(&self, out: &mut Html, tool: &str) {
        let call = Call::named(tool, "result", Html::new());
        call.write(out, Some(self));
    }
}

fn write_part(out: &mut Html, part: &Part, more: &str) {
    match part {
        Part::Command(command) => write_text(out, command, more),
        Part::Diff(diff) => write_diff(out, diff, more),
        Part::Todos(todos) => write_todos(out, todos),
        Part::Plan(text) | Part::Prompt(text) => {
            let (shown, left) = cut(text, MOST);
            prose::write(out, shown);
            write_left(out, left, more);
        }
        Part::Question(question, answer) => write_question(out, question, answer.as_deref()),
        Part::Fields(fields) => write_fields(out, fields, more),
    }
}

fn write_diff(out: &mut Html, diff: &FileDiff, more: &str) {
    out.wrap("<p class=\"path\"><code>", &diff.path, "</code>");
    if !diff.note.is_empty() {
        out.wrap(" <span>", &diff.note, "</span>");
    }
    out.raw("</p>");
    if diff.lines.is_empty() {
        return;
    }
    let start = out.len();
    let mut left = 0;
    out.raw("<pre class=\"diff\">");
    for (change, line) in &diff.lines {
        if out.len() - start > MOST {
            left += line.len() + 1;
            continue;
        }
        let markup = match change {
            LineChange::Kept => "<span>",
            LineChange::Removed => "<span class=\"del\">",
            LineChange::Added => "<span class=\"add\">",
            LineChange::Hunk => "<span class=\"hunk\">",
        };
        out.line(markup, sign(*change), cut(line, MOST).0);
    }
    out.raw("</pre>");
    write_left(out, left, more);
}

fn write_todos(out: &mut Html, todos: &[Todo]) {
    out.raw("<ul class=\"todos\">");
    for todo in todos {
        let item = match todo.state {
            TodoState::Open => "<li class=\"open\">",
            TodoState::Active => "<li class=\"active\">",
            TodoState::Done => "<li class=\"done\">",
            TodoState::Cancelled => "<li class=\"dropped\">",
        };
        out.wrap(item, &todo.text, "</li>");
    }
    out.raw("</ul>");
}

fn write_question(out: &mut Html, question: &Question, answer: Option<&str>) {
    out.wrap("<p><b>", &question.text, "</b></p>");
    if !question.options.is_empty() {
        out.raw("<ul>");
        for (label, meaning) in &question.options {
            out.wrap("<li>", label, "");
            if !meaning.is_empty() {
                out.wrap("<span class=\"faint\">: ", meaning, "</span>");
            }
            out.raw("</li>");
        }
        out.raw("</ul>");
    }
    if let Some(answer) = answer {
        out.wrap("<p>→ ", answer, "</p>");
    }
}

fn write_fields(out: &mut Html, fields: &[(String, String)], more: &str) {
    /// A value up to this length is beside its name.
    const SHORT: usize = 200;
    out.raw("<dl>");
    for (name, value) in fields {
        // No more than this is kept of one call.
        if out.len() > 4 * MOST {
            write_left(out, value.len(), more);
            continue;
        }
        out.wrap("<div><dt>", cut(name, 200).0, "</dt><dd>");
        match value.len() <= SHORT && !value.contains('\n') {
            true => drop(out.wrap("<code>", value, "</code>")),
            false => write_text(out, value, more),
        }
        out.raw("</dd></div>");
    }
    out.raw("</dl>");
}

/// Writes a text, as far as there is room for it.
pub(super) fn write_text(out: &mut Html, text: &str, more: &str) {
    let (shown, left) = cut(text, MOST);
    match is_patch(shown) {
        true => write_patch(out, shown),
        false => drop(out.wrap("<pre>", shown, "</pre>")),
    }
    write_left(out, left, more);
}

/// Writes a patch, with everything around it.
pub(super) fn write_patch(out: &mut Html, text: &str) {
    out.raw("<pre class=\"diff\">");
    for line in text.lines() {
        let is_file = ["diff --git ", "--- ", "+++ ", "*** ", "index "];
        let markup = match line.as_bytes().first() {
            _ if is_file.iter().any(|begin| line.starts_with(begin)) => "<span class=\"file\">",
            Some(b'@') => "<span class=\"hunk\">",
            Some(b'+') => "<span class=\"add\">",
            Some(b'-') => "<span class=\"del\">",
            _ => "<span>",
        };
        // An empty line takes its room, too.
        let line = if line.is_empty() { " " } else { line };
        out.line(markup, "", line);
    }
    out.raw("</pre>");
}

/// Says how much of a text is not on the page.
pub(super) fn write_left(out: &mut Html, left: usize, more: &str) {
    if left > 0 {
        out.wrap(
            "<p class=\"left\">",
            &grouped(left as u64),
            " more bytes: <code>",
        );
        out.text(more).raw("</code></p>");
    }
}

/// Writes the images in an output.
fn write_images(out: &mut Html, output: &Json, more: &str) {
    if !output.as_str().starts_with('[') {
        return;
    }
    let blocks = serde_json::from_str::<Vec<Block>>(output.as_str());
    for block in blocks.unwrap_or_default() {
        // What a thousand blocks hold is not kept in memory either.
        if out.len() > LARGEST_IMAGE + 4 * MOST {
            write_left(out, output.as_str().len(), more);
            break;
        }
        match block {
            Block::Media(media) => write_media(out, &media),
            Block::Other(json) => {
                if let Some(media) = media_of(&json) {
                    write_media(out, &media);
                }
            }
            _ => {}
        }
    }
}

/// Reads an image as Anthropic writes it: its data is in a `source`.
pub(super) fn media_of(json: &Json) -> Option<Media> {
    let mut fields = serde_json::from_str::<Fields>(json.as_str()).ok()?;
    let kind = fields.get("type").and_then(text_of)?;
    let source = fields.take("source")?;
    let mut source = serde_json::from_str::<Fields>(source.as_str()).ok()?;
    Some(Media {
        kind: (kind == *"image").then(|| kind.to_string())?,
        media_type: source.get("media_type").and_then(text_of)?,
        data: source.take("data")?,
        extra: Fields::default(),
    })
}

/// Writes an image whose kind is harmless; anything else by its name.
pub(super) fn write_media(out: &mut Html, media: &Media) {
    let is_image = matches!(
        media.media_type.as_str(),
        "image/png" | "image/jpeg" | "image/gif" | "image/webp"
    );
    let data = text_of(&media.data).unwrap_or_default();
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let is_shown = !data.is_empty() && data.len() <= LARGEST_IMAGE && data.bytes().all(is_base64);
    match is_image && is_shown {
        true => {
            out.raw("<figure><img alt=\"an image\" loading=\"lazy\" src=\"data:");
            out.text(&media.media_type);
            // Base64 has nothing that would have to be escaped.
            out.wrap(";base64,", &data, "\"></figure>");
        }
        false => drop(out.wrap("<p class=\"left\">", &medium(media), "</p>")),
    }
}

#[cfg(test)]
#[path = "tool_tests.rs"]
mod tests;
