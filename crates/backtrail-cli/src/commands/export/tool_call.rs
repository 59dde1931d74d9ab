//! Calls of tools and their results, on a page.

use backtrail::conversation::{ToolCall, ToolOutcome};
use backtrail::{Block, Fields, Json, Media, Text};

use super::diff;
use super::markup::{Html, cut};
use super::text_of;
use crate::commands::show::tool_call::summary_of;
use crate::text::{count, grouped, medium, size};

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
    pub(super) words: String,
    pub(super) body: Html,
}

impl Call {
    /// `more` is the command that shows what a page has no room for.
    pub(super) fn new(call: &ToolCall, more: &str) -> Self {
        let mut body = Html::new();
        let changes = write_input(&mut body, &call.arguments, more);
        let with = summary_of(call.arguments.as_str());
        Self {
            changes,
            ..Self::named(&call.name, &with, body)
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
    /// `anchor` is the record of the result, if nothing else on the page links to it.
    pub(super) fn new(
        result: &ToolOutcome,
        success: bool,
        anchor: Option<u64>,
        more: &str,
    ) -> Self {
        let mut body = Html::new();
        body.raw("<div class=\"out\"");
        if let Some(seq) = anchor {
            body.id(seq);
        }
        body.raw(">");
        let words = write_output(&mut body, &result.output, more);
        body.raw("</div>");
        Self {
            failed: !success,
            words: match success {
                true => words,
                false => "failed".to_owned(),
            },
            body,
        }
    }

    /// Writes it apart from its call.
    pub(super) fn write_alone(&self, out: &mut Html, tool: &str) {
        let call = Call::named(tool, "result", Html::new());
        call.write(out, Some(self));
    }
}

/// Writes a text, as far as there is room for it.
pub(super) fn write_text(out: &mut Html, text: &str, more: &str) {
    let (shown, left) = cut(text, MOST);
    match diff::is_diff(shown) {
        true => diff::write_patch(out, shown),
        false => drop(out.wrap("<pre>", shown, "</pre>")),
    }
    write_left(out, left, more);
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

/// Writes the input of a tool; returns how many lines it adds and removes if it edits.
fn write_input(out: &mut Html, input: &Json, more: &str) -> Option<(u64, u64)> {
    if let Some(text) = text_of(input) {
        // Some agents write the input as a text of JSON.
        return match serde_json::from_str::<Fields>(&text) {
            Ok(fields) => write_fields(out, &fields, more),
            Err(_) => {
                write_text(out, &text, more);
                diff::is_diff(&text).then(|| diff::count_patch(&text))
            }
        };
    }
    match serde_json::from_str::<Fields>(input.as_str()) {
        Ok(fields) => write_fields(out, &fields, more),
        Err(_) => {
            write_text(out, &pretty(input.as_str()), more);
            None
        }
    }
}

/// The names that agents give to what an edit replaces, and to what it puts there.
const EDITS: [(&str, &str); 5] = [
    ("old_string", "new_string"),
    ("old_str", "new_str"),
    ("oldText", "newText"),
    ("old_text", "new_text"),
    ("oldString", "newString"),
];
/// The names of a file's whole content.
const CONTENTS: [&str; 3] = ["content", "file_text", "contents"];
/// The names of a file.
const PATHS: [&str; 5] = ["file_path", "path", "filePath", "filename", "notebook_path"];

fn write_fields(out: &mut Html, fields: &Fields, more: &str) -> Option<(u64, u64)> {
    let mut written: Vec<&str> = Vec::new();
    let mut edit = Html::new();
    let has_path = PATHS
        .iter()
        .any(|name| fields.get(name).and_then(text_of).is_some());
    let content = CONTENTS
        .iter()
        .find(|name| fields.get(name).and_then(text_of).is_some());
    let mut changes = write_edits(&mut edit, fields, more);
    if changes.is_some() {
        written.extend(EDITS.iter().flat_map(|(old, new)| [*old, *new]));
        written.push("edits");
    } else if let Some(name) = content.filter(|_| has_path) {
        let content = fields.get(name).and_then(text_of).unwrap_or_default();
        let (shown, left) = cut(&content, MOST);
        diff::write_change(&mut edit, "", shown);
        write_left(&mut edit, left, more);
        changes = Some((content.lines().count() as u64, 0));
        written.push(name);
    }
    let rest = fields.iter().filter(|(name, _)| !written.contains(name));
    let mut list = Html::new();
    for (name, value) in rest {
        let patch = write_field(&mut list, name, value, more);
        changes = changes.or(patch);
    }
    if !list.is_empty() {
        out.raw("<dl>").html(&list).raw("</dl>");
    }
    out.html(&edit);
    changes
}

/// Writes the edits of a call, where it is one that edits.
fn write_edits(out: &mut Html, fields: &Fields, more: &str) -> Option<(u64, u64)> {
    let mut edits = Vec::new();
    edits.extend(edit_of(fields));
    let list = fields
        .get("edits")
        .map(|json| serde_json::from_str::<Vec<Json>>(json.as_str()));
    for json in list.and_then(Result::ok).unwrap_or_default() {
        let fields = serde_json::from_str::<Fields>(json.as_str()).ok();
        edits.extend(fields.as_ref().and_then(edit_of));
    }
    if edits.is_empty() {
        return None;
    }
    let (mut added, mut removed) = (0, 0);
    for (old, new) in edits {
        let ((old, old_left), (new, new_left)) = (cut(&old, MOST), cut(&new, MOST));
        let (plus, minus) = diff::count_change(old, new);
        (added, removed) = (added + plus, removed + minus);
        // What a thousand edits hold is not kept in memory either.
        if out.len() < 4 * MOST {
            diff::write_change(out, old, new);
            write_left(out, old_left + new_left, more);
        }
    }
    Some((added, removed))
}

fn edit_of(fields: &Fields) -> Option<(Text, Text)> {
    let text = |name: &str| fields.get(name).and_then(text_of);
    EDITS
        .iter()
        .find_map(|(old, new)| Some((text(old)?, text(new)?)))
}

/// Writes a field; returns the lines that it adds and removes where it is a patch.
fn write_field(out: &mut Html, name: &str, value: &Json, more: &str) -> Option<(u64, u64)> {
    /// A value up to this length is beside its name.
    const SHORT: usize = 200;
    // No more than this is kept of one call.
    if out.len() > 4 * MOST {
        write_left(out, value.as_str().len(), more);
        return None;
    }
    out.wrap("<div><dt>", cut(name, 200).0, "</dt><dd>");
    let text = text_of(value);
    let shown = match &text {
        Some(text) => text.to_string(),
        None => value.as_str().to_owned(),
    };
    let is_patch = text.is_some() && diff::is_diff(&shown);
    match () {
        () if is_patch => write_text(out, &shown, more),
        () if shown.len() <= SHORT && !shown.contains('\n') => {
            out.wrap("<code>", &shown, "</code>");
        }
        () if text.is_some() => write_text(out, &shown, more),
        () => write_text(out, &pretty(&shown), more),
    }
    out.raw("</dd></div>");
    is_patch.then(|| diff::count_patch(&shown))
}

/// Writes the output of a tool, and returns it in a few words.
fn write_output(out: &mut Html, output: &Json, more: &str) -> String {
    if let Some(text) = text_of(output) {
        return match text.trim_end() {
            "" => "no output".to_owned(),
            text => {
                write_text(out, text, more);
                in_words(text)
            }
        };
    }
    let Ok(blocks) = serde_json::from_str::<Vec<Block>>(output.as_str()) else {
        write_text(out, &pretty(output.as_str()), more);
        return size(output.as_str().len() as u64);
    };
    let mut words = Vec::new();
    for block in &blocks {
        // What a thousand blocks hold is not kept in memory either.
        if out.len() > LARGEST_IMAGE + 4 * MOST {
            write_left(out, output.as_str().len(), more);
            break;
        }
        match block {
            Block::Text(block) if block.text.trim().is_empty() => {}
            Block::Text(block) => {
                words.push(in_words(&block.text));
                write_text(out, block.text.trim_end(), more);
            }
            Block::Media(media) => {
                words.push(media.kind.clone());
                write_media(out, media);
            }
            Block::Other(json) => match media_of(json) {
                Some(media) => {
                    words.push(media.kind.clone());
                    write_media(out, &media);
                }
                None => write_text(out, &pretty(json.as_str()), more),
            },
            other => {
                let json = serde_json::to_string(other).unwrap_or_default();
                write_text(out, &pretty(&json), more);
            }
        }
    }
    match words.as_slice() {
        [] => size(output.as_str().len() as u64),
        [word] => word.clone(),
        [first, rest @ ..] => format!(
            "{first} and {}",
            count(rest.len(), "more part").replace("more parts", "more")
        ),
    }
}

fn in_words(text: &str) -> String {
    count(text.trim_end().lines().count(), "line")
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

/// Writes JSON in lines. It reads it byte by byte, so that no depth is too deep.
fn pretty(json: &str) -> String {
    /// What is deeper is not indented further.
    const DEEPEST: usize = 12;
    let (mut out, mut depth, mut in_string, mut escaped) = (String::new(), 0usize, false, false);
    let mut opened = false;
    for c in json.chars() {
        if in_string {
            out.push(c);
            (in_string, escaped) = match c {
                _ if escaped => (true, false),
                '\\' => (true, true),
                '"' => (false, false),
                _ => (true, false),
            };
            continue;
        }
        let new_line = |depth: usize, out: &mut String| {
            out.push('\n');
            out.extend(std::iter::repeat_n("  ", depth.min(DEEPEST)));
        };
        match c {
            c if c.is_whitespace() => continue,
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                if !opened {
                    new_line(depth, &mut out);
                }
                opened = false;
                out.push(c);
                continue;
            }
            _ => {}
        }
        if std::mem::take(&mut opened) {
            new_line(depth, &mut out);
        }
        out.push(c);
        match c {
            '"' => in_string = true,
            '{' | '[' => {
                depth += 1;
                opened = true;
            }
            ',' => new_line(depth, &mut out),
            ':' => out.push(' '),
            _ => {}
        }
    }
    out
}

#[cfg(test)]
#[path = "tool_tests.rs"]
mod tests;
