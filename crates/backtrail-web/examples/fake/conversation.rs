//! A conversation as the HTML export writes it, made up record by record.

use std::fmt::Write as _;
use std::ops::RangeInclusive;

/// Text that would run if it were taken for markup.
pub(crate) const HOSTILE: &str = "<img src=x onerror=alert(1)>\"'&<script>alert(2)</script>";

/// Records of a turn.
pub(crate) const TURN: u64 = 10;

/// Returns the prompt of a turn.
pub(crate) fn prompt(turn: u64) -> String {
    match turn % 7 {
        3 => format!("Why does {HOSTILE} fail in the parser?"),
        5 => {
            "Now add tests for the tokenizer, and make sure that the error messages name the file \
              and the line. Keep the public interface as it is."
                .to_owned()
        }
        _ => format!("Port part {turn} of the parser to the new tokenizer"),
    }
}

/// Returns records as HTML: a turn of ten has a prompt, thinking, calls and an answer.
pub(crate) fn records(session: &str, range: RangeInclusive<u64>) -> String {
    let mut html = String::new();
    for seq in range {
        record(&mut html, session, seq);
    }
    html
}

fn record(html: &mut String, session: &str, seq: u64) {
    let turn = seq / TURN;
    match seq % TURN {
        0 => write_prompt(html, seq, turn),
        1 => anchored(
            html,
            seq,
            "<details class=\"tool thinking\"><summary><span class=\"what\">thinking</span></summary><div class=\"body\"><p>First the tokens, then the tree.</p></div></details>",
        ),
        2 | 5 => write_command(html, seq),
        3 | 6 => {}
        4 => write_edit(html, seq),
        7 if turn % 5 == 4 => write_sub_agent(html, seq),
        7 => write_failure(html, seq),
        8 if turn % 9 == 8 => write_compaction(html, seq),
        8 => write_answer(html, seq),
        _ => write_turn_end(html, session, seq),
    }
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

fn anchored(html: &mut String, seq: u64, inner: &str) {
    add(
        html,
        format!("<div class=\"anchor\" id=\"r{seq}\"></div>\n{inner}\n"),
    );
}

fn add(html: &mut String, text: impl AsRef<str>) {
    html.push_str(text.as_ref());
}

fn write_prompt(html: &mut String, seq: u64, turn: u64) {
    let text = escaped(&prompt(turn));
    add(
        html,
        format!(
            "<article class=\"prompt\" id=\"r{seq}\"><header><b>User</b> <time datetime=\"2026-11-18T14:02:00Z\">\
             2026-11-18 14:02</time> <a class=\"link\" href=\"#r{seq}\" aria-label=\"Link to record {seq}\">#{seq}</a>\
             </header><p>{text}</p></article>\n"
        ),
    );
}

fn write_command(html: &mut String, seq: u64) {
    anchored(
        html,
        seq,
        "<details class=\"tool\"><summary><span class=\"what\"><b>Bash</b> <code>cargo test -p parser</code></span>\
         <span class=\"end\">2 lines</span></summary><div class=\"body\"><pre>running 12 tests\n\
         test result: ok. 12 passed; 0 failed</pre></div></details>",
    );
}

fn write_edit(html: &mut String, seq: u64) {
    anchored(
        html,
        seq,
        "<details class=\"tool\"><summary><span class=\"what\"><b>Edit</b> <code>src/parser.rs</code></span>\
         <span class=\"end\"><span class=\"plus\">+2</span> <span class=\"minus\">−1</span></span></summary>\
         <div class=\"body\"><pre class=\"diff\"><span class=\"minus\">-    let token = next();</span>\n\
         <span class=\"plus\">+    let token = self.next()?;</span>\n<span class=\"plus\">+    self.check(&amp;token);</span></pre></div></details>",
    );
}

fn write_failure(html: &mut String, seq: u64) {
    anchored(
        html,
        seq,
        "<details class=\"tool failed\"><summary><span class=\"what\"><b>Bash</b> <code>cargo clippy</code></span>\
         <span class=\"end\">✗ exit code 101</span></summary><div class=\"body\"><pre>error: unused variable</pre></div></details>",
    );
}

fn write_sub_agent(html: &mut String, seq: u64) {
    let id = super::session_id(1);
    anchored(
        html,
        seq,
        &format!(
            "<p class=\"note sub-agent\" data-session=\"{id}\">sub-agent <code>explore</code>: find every use of the old tokenizer</p>"
        ),
    );
}

fn write_compaction(html: &mut String, seq: u64) {
    anchored(
        html,
        seq,
        "<details class=\"note compaction\"><summary>compacted: 48,000 tokens became 2,100</summary>\
         <div class=\"body\"><p>The parser was ported up to statements.</p></div></details>",
    );
}

fn write_answer(html: &mut String, seq: u64) {
    add(
        html,
        format!(
            "<article class=\"answer\" id=\"r{seq}\"><a class=\"link\" href=\"#r{seq}\">#{seq}</a><p>The parser uses the new \
             tokenizer now. <strong>Two</strong> tests changed:</p><ul><li><code>empty_input</code></li>\
             <li><code>nested_blocks</code></li></ul><pre><code>fn main() {{\n    println!(\"{{}}\", parse(\"1 + 2\"));\n}}</code></pre></article>\n"
        ),
    );
}

fn write_turn_end(html: &mut String, session: &str, seq: u64) {
    let first = seq - seq % TURN;
    writeln!(
        html,
        "<p class=\"used turn-end\" data-session-of=\"{session}\" data-first=\"{first}\" data-last=\"{seq}\">\
         <span>3 files changed: +48 −12</span><span>12.4 k tokens · $0.18 · 41 s</span></p>"
    )
    .ok();
}
