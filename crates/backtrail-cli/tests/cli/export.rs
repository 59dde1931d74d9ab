//! `export`: a page that nothing can be smuggled into, and secrets that do not leave.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::agents;
use crate::kit::{Cli, Dice, short};

/// What people try to break out of a page with. `PORT` is where somebody listens.
pub(crate) const HOSTILE: [&str; 26] = [
    "<script>document.title='owned'</script>",
    "</script><script>document.title='owned'</script>",
    "</title><script>document.title='owned'</script>",
    "</style><style>@import 'http://127.0.0.1:PORT/a';</style>",
    "</code></pre></details></main></body><script>document.title='owned'</script>",
    "\"><img src=x onerror=\"document.title='owned'\">",
    "' onmouseover='document.title=1' autofocus onfocus='document.title=2",
    "<img src=http://127.0.0.1:PORT/b>",
    "![x](http://127.0.0.1:PORT/c) ![y](data:text/html,<script>1</script>)",
    "[x](javascript:document.title='owned') [y](JaVaScRiPt:1) [z](vbscript:1) [w](data:text/html,1)",
    "[a\"b](https://a/\"onclick=\"x) <https://b/\"onclick=x> [c](https://d '\"><b>')",
    "<svg onload=document.title='owned'><use href=http://127.0.0.1:PORT/d></svg>",
    "<iframe srcdoc='<script>parent.document.title=1</script>'></iframe>",
    "<!-- --!><script>document.title='owned'</script> -->",
    "]]><script>document.title='owned'</script><![CDATA[",
    "<noscript><p title=\"</noscript><img src=x onerror=document.title='owned'>\">",
    "<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 onerror=document.title=1&gt;\">",
    "<link rel=stylesheet href=http://127.0.0.1:PORT/e><meta http-equiv=refresh content='0;url=http://127.0.0.1:PORT/f'>",
    "<base href=http://127.0.0.1:PORT/><form action=http://127.0.0.1:PORT/g><button autofocus>",
    "\u{2028}\u{2029}\u{0}\u{8}\u{1b}]0;x\u{7}\u{202e}\u{feff}<b>",
    "&lt;script&gt;&#60;script&#62;&#x3c;script>&amp;",
    "```html\"onclick=\"x\n<script>document.title='owned'</script>\n```",
    "```diff\n--- <b>\n+++ <b>\n@@ -1 +1 @@\n-<script>\n+</script>\n```",
    "|<b>|</table>|\n|-|-|\n|<script>|\"'|\n",
    "*** Begin Patch\n*** Update File: <script>\n-<b>\n+</pre>\n",
    "> > > <x:y z='<'>\n\n1. <a href=javascript:1>\n- [ ] <input onfocus=x autofocus>",
];

/// Records a session that has something hostile in every place; returns its id.
pub(crate) fn hostile_session(cli: &Cli, pieces: &[String]) -> String {
    let mut lines = Vec::new();
    for (n, piece) in pieces.iter().enumerate() {
        let id = format!("t{n}{piece}");
        // What is known of a record has no line breaks.
        let named = format!("x{}", piece.replace(char::is_control, " "));
        lines.push(json!({"role": "user", "text": piece}));
        lines.push(json!({"type": "message", "model": named, "response_id": named, "message": {"role": "assistant", "blocks": [
            {"type": "text", "text": piece},
            {"type": "thinking", "thinking": piece},
            {"type": "tool_use", "id": id, "name": piece, "input": {piece: piece, "list": [piece, {piece: 1}],
                "file_path": piece, "old_string": piece, "new_string": format!("{piece}\nmore")}},
            {"type": "tool_use", "id": format!("u{id}"), "name": "Write", "input": {"path": piece, "content": piece}},
            {"type": "tool_use", "id": format!("v{id}"), "name": "shell", "input": piece},
            {"type": "image", "media_type": piece, "data": "AAAA"},
            {"type": "image", "media_type": "image/svg+xml", "data": "PHN2Zy8+"},
            {"type": "image", "media_type": "image/png", "data": piece},
            {"type": piece, "data": piece},
        ], "usage": {"input_tokens": 1, "output_tokens": 2}}}));
        lines.push(json!({"type": "message", "message": {"role": "tool", "blocks": [
            {"type": "tool_result", "tool_use_id": id, "tool_name": piece, "output": piece, "is_error": n % 2 == 0},
            {"type": "tool_result", "tool_use_id": format!("u{id}"), "output": [{"type": "text", "text": piece},
                {"type": "image", "source": {"type": "base64", "media_type": "image/gif\" onerror=\"x", "data": piece}}, {piece: piece}]},
            {"type": "tool_result", "tool_use_id": piece, "tool_name": piece, "output": {piece: [piece]}},
        ]}}));
        lines.push(json!({"type": "message", "message": {"role": piece, "blocks": [{"type": "text", "text": piece}]}}));
        lines.push(json!({"type": "message", "message": {"role": "user", "meta": true, "blocks": [{"type": "text", "text": piece}]}}));
        if !piece.trim().is_empty() {
            lines.push(json!({"type": "compaction", "summary": piece}));
        }
    }
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let ran = cli.run_with(
        &[
            "record",
            "--durability",
            "os",
            "--title",
            &format!("x{}", pieces[0]),
        ],
        input.as_bytes(),
    );
    let refused: Vec<&str> = ran
        .stdout
        .lines()
        .filter(|line| !line.contains("\"ok\":true"))
        .collect();
    assert_eq!(ran.code, 0, "{refused:#?}");
    let id = ran.json_lines()[0]["session"].as_str().unwrap().to_owned();
    let tagged = cli.run(&["tag", &id, "a<b>'\""]);
    assert!(tagged.code == 0 || tagged.code == 2, "{tagged:#?}");
    id
}

/// What a page is made of.
#[derive(Default)]
struct Seen {
    tags: BTreeMap<String, u64>,
    raw: BTreeMap<String, String>,
    ids: Vec<String>,
    targets: Vec<String>,
}

/// Reads a page as strictly as no browser does: every tag and every attribute must be one
/// that a page has, every one is closed, and whatever else has a `<` in it fails.
fn read_strictly(page: &str) -> Seen {
    const VOID: [&str; 5] = ["meta", "br", "hr", "img", "input"];
    const TAGS: &str = " html head meta title style body div a form input kbd output button main header h1 h3 h4 h5 h6 p time span \
        code article b details summary pre dl dt dd ul ol li blockquote em strong del table thead tbody tr th td br hr figure img \
        section nav h2 script ";
    const ATTRIBUTES: &str = " lang charset http-equiv content name id class href title aria-label role type placeholder autocomplete \
        spellcheck aria-pressed datetime alt loading src rel target data-language start \
        data-first data-last data-session ";
    let mut seen = Seen::default();
    let mut open: Vec<String> = Vec::new();
    let mut rest = page.strip_prefix("<!doctype html>").expect("a doctype");
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if let Some(end) = rest.strip_prefix('/') {
            let (name, after) = end.split_once('>').unwrap();
            assert_eq!(
                open.pop().as_deref(),
                Some(name),
                "closed before {}",
                &after[..after.len().min(80)]
            );
            rest = after;
            continue;
        }
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap();
        let name = rest[..end].to_owned();
        assert!(
            TAGS.contains(&format!(" {name} ")),
            "a tag {name:?}: {}",
            rest.chars().take(80).collect::<String>()
        );
        rest = &rest[end..];
        while let Some(more) = rest.strip_prefix(' ') {
            let (attribute, value) = more.split_once("=\"").unwrap();
            assert!(
                ATTRIBUTES.contains(&format!(" {attribute} ")),
                "an attribute {attribute:?}"
            );
            let (value, after) = value.split_once('"').unwrap();
            assert!(!value.contains(['<', '>', '\n']), "{value}");
            match attribute {
                "href" => seen.targets.push(value.to_owned()),
                "src" => {
                    let kinds = ["png", "jpeg", "gif", "webp"]
                        .map(|kind| format!("data:image/{kind};base64,"));
                    let data = kinds
                        .iter()
                        .find_map(|kind| value.strip_prefix(kind.as_str()))
                        .expect("a harmless image");
                    assert!(
                        data.bytes()
                            .all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte))
                    );
                }
                "id" => seen.ids.push(value.to_owned()),
                _ => {}
            }
            rest = after;
        }
        rest = rest
            .strip_prefix('>')
            .unwrap_or_else(|| panic!("{name} ends with {}", &rest[..20]));
        *seen.tags.entry(name.clone()).or_default() += 1;
        if name == "style" || name == "script" {
            let (text, _) = rest.split_once("</").unwrap();
            seen.raw.insert(name.clone(), text.to_owned());
            rest = &rest[text.len()..];
        }
        if !VOID.contains(&name.as_str()) {
            open.push(name);
        }
    }
    assert_eq!(open, Vec::<String>::new());
    assert!(rest.trim().is_empty());
    seen
}

fn export_html(cli: &Cli, id: &str) -> String {
    let ran = cli.run(&["export", id, "--to", "html"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.stdout
}

fn assert_harmless(page: &str) {
    let seen = read_strictly(page);
    let own = |name: &str| {
        let crates = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        std::fs::read_to_string(format!("{crates}/{name}")).unwrap()
    };
    let export = "backtrail-cli/src/commands/export";
    // The pages of `web` have the first part, too.
    let style = own("backtrail-view/src/conversation.css") + &own(&format!("{export}/page.css"));
    let script = own(&format!("{export}/page.js"));
    assert_eq!((seen.tags["script"], seen.tags["style"]), (1, 1));
    assert!(seen.raw["script"] == script && seen.raw["style"] == style);
    for target in &seen.targets {
        let is_place = target
            .strip_prefix("#")
            .is_some_and(|id| seen.ids.iter().any(|known| known == id));
        let is_harmless = ["https://", "http://", "mailto:"]
            .iter()
            .any(|scheme| target.starts_with(scheme));
        assert!(is_place || is_harmless, "a link to {target}");
    }
    let mut ids = seen.ids.clone();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), seen.ids.len(), "each place has one name");
}

#[test]
fn nothing_in_a_session_is_markup_on_its_page() {
    let cli = Cli::new();
    let pieces = HOSTILE.map(str::to_owned);
    let page = export_html(&cli, &hostile_session(&cli, &pieces));
    assert_harmless(&page);
    assert!(
        page.contains("&lt;script&gt;document.title"),
        "and all of it is there"
    );
}

#[test]
fn nothing_is_markup_however_it_is_put_together() {
    let cli = Cli::new();
    let mut dice = Dice(11);
    let mut pieces = Vec::new();
    for _ in 0..60 {
        let mut text = String::new();
        for _ in 0..1 + dice.below(5) {
            let piece = HOSTILE[dice.below(HOSTILE.len() as u64) as usize];
            let letters: Vec<char> = piece.chars().collect();
            let from = dice.below(letters.len() as u64) as usize;
            let length = 1 + dice.below(20) as usize;
            text.extend(letters.iter().skip(from).take(length));
            text.push_str(["", " ", "\n", "\n\n", "`", "*", "> ", "["][dice.below(8) as usize]);
        }
        pieces.push(text);
    }
    assert_harmless(&export_html(&cli, &hostile_session(&cli, &pieces)));
}

/// Markdown is read by programs that draw HTML, load images and follow links.
#[test]
fn markdown_of_a_session_has_no_html_no_images_and_no_harmful_links() {
    use pulldown_cmark::{Event, Options, Parser, Tag};
    let mut pieces: Vec<String> = HOSTILE.iter().map(ToString::to_string).collect();
    pieces.extend(
        [
            "```\nnever closed <b>",
            "~~~~\n```\nnever closed",
            "<div>\n```\n\n<script>1</script>\n```\n<i>",
            "[x]: javascript:1\n\n[y]: http://127.0.0.1/z",
            "[x] ![y] ![x][y]",
            "`` ` <b> ` `` <c>`<d>`",
            "\\<b> \\\\<b> \\![a](http://127.0.0.1/q)",
            "<pre>\n\n    <script>\n\n</pre>",
        ]
        .map(str::to_owned),
    );
    let cli = Cli::new();
    let id = hostile_session(&cli, &pieces);
    let ran = cli.run(&["export", &id, "--to", "markdown"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut headings = 0;
    for (event, range) in Parser::new_ext(&ran.stdout, options).into_offset_iter() {
        let source = &ran.stdout[range];
        match event {
            // The only HTML is what folds a call or a thought.
            Event::Html(html) => {
                let tags = ["details", "summary", "b", "code"];
                let tags = tags
                    .iter()
                    .flat_map(|tag| [format!("<{tag}>"), format!("</{tag}>")]);
                let text = tags.fold(html.to_string(), |text, tag| text.replace(&tag, ""));
                assert!(!text.contains(['<', '>']), "HTML: {source}");
            }
            Event::InlineHtml(_) => panic!("HTML: {source}"),
            Event::Start(Tag::Image { .. }) => panic!("an image: {source}"),
            Event::Start(Tag::Link { dest_url, .. }) => {
                let is_web = dest_url.starts_with("http://") || dest_url.starts_with("https://");
                assert!(is_web || !dest_url.contains(':'), "a link: {source}");
            }
            Event::Start(Tag::Heading { .. }) if source.starts_with("## ") => headings += 1,
            _ => {}
        }
    }
    // No message swallows the ones after it.
    assert_eq!(headings, pieces.len());
    assert!(
        ran.stdout
            .contains("\\<script>document.title='owned'\\</script>")
    );
}

#[test]
fn a_page_holds_the_conversation() {
    let cli = Cli::new();
    let id = cli.talk();
    std::fs::write(cli.work().join("summary"), "They *looked*.").unwrap();
    cli.run(&["compact", &id, "--summary-file", "summary"]);
    let page = export_html(&cli, &id);
    read_strictly(&page);
    for part in [
        "<title>a talk</title>",
        "<h1>a talk</h1>",
        "<div class=\"typed\">what is here?</div>",
        "<p>Let me look.</p>",
        "<b>bash</b> <code>ls</code></span><span class=\"end\">src</span>",
        "<div class=\"out\" id=\"r4\"><pre>src</pre></div>",
        "1.5 k tokens · $0.01",
        "replaces 4 messages in the model",
        "<em>looked</em>",
        "<a href=\"#r2\"><span>what is here?</span></a>",
        "default-src &#39;none&#39;",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    // The same session is the same page.
    assert_eq!(page, export_html(&cli, &id));
}

#[test]
fn what_is_too_long_for_a_page_is_named() {
    let cli = Cli::new();
    let output = "0123456789\n".repeat(100_000);
    let lines = [
        json!({"role": "user", "text": "go"}),
        json!({"type": "message", "message": {"role": "tool", "blocks": [{"type": "tool_result", "tool_use_id": "t", "output": output}]}}),
    ];
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    assert_eq!(cli.run_with(&["record"], input.as_bytes()).code, 0);
    let page = export_html(&cli, "latest");
    assert!(page.len() < 300 << 10, "{}", page.len());
    assert!(
        page.contains(" more bytes: <code>backtrail show "),
        "it says so"
    );
}

fn secret() -> String {
    format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8")
}

/// Records a session with a secret in every place; returns its id.
fn secretive(cli: &Cli) -> String {
    let key = secret();
    let lines = [
        json!({"role": "user", "text": format!("use {key}")}),
        json!({"type": "message", "message": {"role": "assistant", "blocks": [
            {"type": "text", "text": format!("I use {key}.")},
            {"type": "thinking", "thinking": key},
            {"type": "tool_use", "id": "t1", "name": "bash", "input": {"command": format!("curl -H 'Authorization: token {key}'"), "password": "Zx9-kLm2_Qw7rT"}},
        ]}}),
        json!({"type": "message", "message": {"role": "tool", "blocks": [{"type": "tool_result", "tool_use_id": "t1", "tool_name": "bash", "output": format!("{{\"k\":\"{key}\"}}")}]}}),
        json!({"type": "compaction", "keep": 3, "summary": format!("They used {key}.")}),
    ];
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let ran = cli.run_with(
        &["record", "--title", &format!("a {key}")],
        input.as_bytes(),
    );
    assert_eq!(ran.code, 0, "{ran:#?}");
    ran.json_lines()[0]["session"].as_str().unwrap().to_owned()
}

#[test]
fn secrets_do_not_leave_and_the_log_keeps_them() {
    let cli = Cli::new();
    let id = secretive(&cli);
    let before = std::fs::read(cli.trail(&id, 0)).unwrap();
    for format in ["html", "markdown", "json", "v1"] {
        let plain = cli.run(&["export", &id, "--to", format]);
        assert!(plain.stdout.contains(&secret()), "{format}");
        assert!(!plain.stderr.contains("removed:"), "{format}");
        let ran = cli.run(&["export", &id, "--to", format, "--redact"]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        for secret in [secret().as_str(), "Zx9-kLm2"] {
            assert!(!ran.stdout.contains(secret), "{format}: {}", ran.stdout);
            assert!(!ran.stderr.contains(secret), "{format}: {}", ran.stderr);
        }
        assert!(ran.stdout.contains("[removed: github token]"), "{format}");
        assert!(
            ran.stderr.contains("removed: 1 password ("),
            "{format}: {}",
            ran.stderr
        );
        assert!(
            ran.stderr.contains("github tokens ("),
            "{format}: {}",
            ran.stderr
        );
    }
    assert_eq!(std::fs::read(cli.trail(&id, 0)).unwrap(), before);
    let ran = cli.run(&["export", &id, "--to", "json", "--redact"]);
    let _: Value = ran.json();
    assert!(
        ran.stderr.contains("removed: 1 password (record 2)"),
        "{}",
        ran.stderr
    );
}

#[test]
fn what_was_removed_is_listed_with_its_places() {
    let cli = Cli::new();
    let id = secretive(&cli);
    for (format, unit) in [
        ("html", "records"),
        ("markdown", "records"),
        ("json", "records"),
        ("v1", "lines"),
    ] {
        let ran = cli.run(&[
            "export", &id, "--to", format, "--redact", "--json", "-o", format,
        ]);
        let removed = &ran.json()["removed"];
        let tokens = removed
            .as_array()
            .unwrap()
            .iter()
            .find(|kind| kind["kind"] == "github token")
            .unwrap();
        assert!(tokens["count"].as_u64().unwrap() >= 4, "{removed}");
        let places: Vec<u64> = serde_json::from_value(tokens[unit].clone()).unwrap();
        assert!(places.len() >= 3, "{format}: {removed}");
        if unit == "records" {
            assert!(places.starts_with(&[0, 1, 2, 3]), "{format}: {removed}");
        }
    }
    let plain = cli.new_session("nothing here");
    let ran = cli.run(&["export", &plain, "--to", "html", "--redact", "-o", "plain"]);
    assert!(ran.stderr.contains("no secrets found"), "{}", ran.stderr);
    let ran = cli.run(&["export", &plain, "--to", "html", "--json", "-o", "plain2"]);
    assert_eq!(ran.json().get("removed"), None);
}

/// F39: in every format, however the secret is written.
#[test]
fn secrets_are_removed_from_text_as_it_is_shown() {
    let cli = Cli::new();
    let key = secret();
    let (left, right) = key.split_at(20);
    let encoded: String = key.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let lines = [
        json!({"role": "user", "text": format!("\u{1b}[31m{key}\u{1b}[0m {encoded}")}),
        json!({"type": "message", "message": {"role": "assistant", "blocks": [
            {"type": "text", "text": format!("it is {left}\n{right}")},
            {"type": "tool_use", "id": "t1", "name": "bash", "input": {"argv": ["curl", "-u", "me:Zx9-kLm2", "x"],
                "headers": [["Authorization", format!("Bearer {left}zz")]]}},
        ]}}),
        json!({"type": "message", "message": {"role": "tool", "blocks": [{"type": "tool_result", "tool_use_id": "t1",
            "output": format!("<password>swordfish</password>\n- name: API_TOKEN\n  value: {left}")}]}}),
    ];
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    assert_eq!(cli.run_with(&["record"], input.as_bytes()).code, 0);
    for format in ["html", "markdown", "json", "v1"] {
        let ran = cli.run(&["export", "latest", "--to", format, "--redact"]);
        for part in [left, right, &encoded, "Zx9-kLm2", "swordfish"] {
            assert!(
                !ran.stdout.contains(part),
                "{format}: {part} in {}",
                ran.stdout
            );
        }
        let as_json = cli.run(&["export", "latest", "--to", format, "--redact", "--json"]);
        assert_eq!(as_json.stdout, ran.stdout, "{format}");
        let removed: Value = serde_json::from_str(as_json.stderr.trim_end()).unwrap();
        assert!(
            removed["removed"].as_array().unwrap().len() >= 3,
            "{removed}"
        );
    }
}

#[test]
fn secrets_are_removed_from_the_file_of_another_agent() {
    let cli = Cli::new();
    let key = secret();
    let said = agents::claude_user(
        "u1",
        None,
        &format!("\u{1b}[31m{key}\u{1b}[0m in /home/erika/x"),
    );
    let damaged = format!("{{\"broken {key}\n");
    agents::write(
        &agents::claude_file(&cli),
        agents::lines(&[said]) + &damaged,
    );
    agents::import(&cli, "claude-code");
    for what in ["--redact", "--redact=people"] {
        let args = ["export", agents::CLAUDE, "--to", "claude-code", what];
        let ran = agents::run(&cli, &args);
        assert_eq!(ran.code, 0, "{ran:#?}");
        let first: Value = serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
        let text = first["message"]["content"].as_str().unwrap();
        let place = match what {
            "--redact" => "/home/erika",
            _ => "[removed: home path]",
        };
        assert_eq!(
            text,
            format!("\u{1b}[31m[removed: github token]\u{1b}[0m in {place}/x")
        );
        assert!(!ran.stdout.contains(&key), "{}", ran.stdout);
    }
}

#[test]
fn people_are_removed_on_request() {
    let cli = Cli::new();
    let text = "see /home/erika/a, /home/of/nobody/b and erika@mail.test";
    cli.new_session(text);
    for format in ["html", "markdown", "json", "v1"] {
        let plain = cli.run(&["export", "latest", "--to", format, "--redact"]);
        assert!(plain.stdout.contains("erika@mail.test"), "{format}");
        let ran = cli.run(&["export", "latest", "--to", format, "--redact=people"]);
        let expected = "see [removed: home path]/a, [removed: home path]/b and [removed: e-mail]";
        // In Markdown, a bracket must not be a link.
        let text = ran.stdout.replace("\\[", "[");
        assert!(text.contains(expected), "{format}: {}", ran.stdout);
        assert!(!ran.stdout.contains("erika"), "{format}: {}", ran.stdout);
        assert!(ran.stderr.contains("home paths ("), "{}", ran.stderr);
    }
    let wrong = cli.run(&["export", "latest", "--to", "json", "--redact=all"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("people"), "{}", wrong.stderr);
}

/// What was said is nobody else's business, whatever the umask.
#[test]
#[cfg(unix)]
fn files_that_are_written_for_the_user_are_private() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let cli = Cli::new();
    cli.new_session("hello");
    let work = cli.work();
    let mode = |name: &str| {
        let found = std::fs::symlink_metadata(work.join(name)).unwrap();
        found.permissions().mode() & 0o777
    };
    for format in ["html", "markdown", "json", "v1"] {
        let ran = cli.run(&["export", "latest", "--to", format, "-o", format]);
        assert_eq!((ran.code, mode(format)), (0, 0o600), "{ran:#?}");
    }
    let report = |name: &str| cli.run(&["run", "--report", name, "--", "true"]);
    assert_eq!(report("new.json").code, 0);
    assert_eq!(mode("new.json"), 0o600);
    // A file that is there keeps its permissions.
    std::fs::write(work.join("old.json"), "a".repeat(100_000)).unwrap();
    let shared = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(work.join("old.json"), shared).unwrap();
    assert_eq!(report("old.json").code, 0);
    assert_eq!(mode("old.json"), 0o644);
    let text = std::fs::read_to_string(work.join("old.json")).unwrap();
    let _: Value = serde_json::from_str(&text).unwrap();
    // Nothing is created through a link.
    let elsewhere = cli.store().parent().unwrap().join("elsewhere");
    symlink(&elsewhere, work.join("link")).unwrap();
    let ran = cli.run(&["export", "latest", "--to", "json", "-o", "link"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    report("link");
    assert!(!elsewhere.exists());
}

#[test]
fn not_every_agent_can_be_written_for() {
    let cli = Cli::new();
    let id = cli.talk();
    for (agent, title) in [("Droid", "Droid"), ("claw-code", "claw-code")] {
        let ran = cli.run(&["export", &id, "--to", agent, "-o", "x"]);
        assert_eq!(ran.code, 2, "{ran:#?}");
        let expected = format!(
            "error: session {} was not imported from {title}, and none can be written for it",
            short(&id)
        );
        assert!(ran.stderr.starts_with(&expected), "{}", ran.stderr);
        assert!(!cli.work().join("x").exists());
    }
}
