//! Every rule in every shape, byte by byte.
//!
//! `golden/<case>.input.json` is the input, `golden/<case>.<shape>.json` the output, and
//! `golden/<case>.mends.txt` the mends. To rewrite the files after an intended change:
//! `cargo test -p backtrail golden -- --ignored`.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde::Deserialize;

use super::{Context, ContextInput, ContextMessage, MendRule, Shape, render};
use crate::json::Json;
use crate::message::Message;

/// Cases that are not named after a rule.
const OTHERS: [&str; 6] = [
    "plain",
    "summary",
    "parallel_results",
    "media",
    "string_input",
    "signed_thinking",
];

fn cases() -> impl Iterator<Item = &'static str> {
    let rules = MendRule::ALL.iter().map(|rule| rule.as_str());
    rules.chain(OTHERS)
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("src/context/golden")
        .join(name)
}

#[expect(
    clippy::disallowed_methods,
    reason = "golden files are not the engine's"
)]
fn read(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[derive(Deserialize)]
struct Input {
    #[serde(default)]
    instructions: Vec<Line>,
    summary: Option<String>,
    messages: Vec<Line>,
}

#[derive(Deserialize)]
struct Line {
    model: Option<String>,
    message: Json,
}

/// Reads a case; its messages are records 1, 2, 3 and so on.
fn input(case: &str) -> ContextInput {
    let text = read(&format!("{case}.input.json"));
    let input: Input =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{case}: {error}"));
    let mut seq = 0;
    let mut said = |line: Line| {
        seq += 1;
        let message: Message = line.message.parse().unwrap();
        ContextMessage::new(seq, line.model, message)
    };
    ContextInput {
        instructions: input.instructions.into_iter().map(&mut said).collect(),
        summary: input.summary,
        messages: input.messages.into_iter().map(&mut said).collect(),
    }
}

/// Returns the expected files of a case.
fn rendered(case: &str) -> Vec<(String, String)> {
    let input = input(case);
    let mut files = Vec::new();
    let mut mends = String::new();
    for shape in Shape::ALL {
        let context = render(shape, &input);
        for mend in context.mends() {
            writeln!(mends, "{shape}: {} {}", mend.seq, mend.rule).unwrap();
        }
        let json = context.into_json();
        files.push((format!("{case}.{shape}.json"), json + "\n"));
    }
    files.push((format!("{case}.mends.txt"), mends));
    files
}

// F25 is `dangling_call`; A2 and A8 are `other_role` and `string_input`.
#[test]
fn every_rule_gives_the_golden_bytes_in_every_shape() {
    for case in cases() {
        for (name, text) in rendered(case) {
            assert_eq!(text, read(&name), "{name}");
        }
    }
}

#[test]
#[ignore = "writes the golden files anew"]
#[expect(
    clippy::disallowed_methods,
    reason = "golden files are not the engine's"
)]
fn write_the_golden_files() {
    for (name, text) in cases().flat_map(rendered) {
        std::fs::write(path(&name), text).unwrap();
    }
}

#[test]
fn every_rule_is_applied_in_the_case_that_has_its_name() {
    for rule in MendRule::ALL {
        let input = input(rule.as_str());
        let applied = |shape| {
            render(shape, &input)
                .mends()
                .iter()
                .any(|m| m.rule == *rule)
        };
        assert!(Shape::ALL.into_iter().any(applied), "{rule}");
    }
}

#[test]
fn every_rule_and_every_shape_is_in_the_manual() {
    let manual = read("../../../../../docs/context.md");
    let rules = MendRule::ALL.iter().map(|rule| rule.as_str());
    for name in rules.chain(Shape::ALL.map(Shape::as_str)) {
        assert!(
            manual.contains(&format!("`{name}`")),
            "docs/context.md lacks {name}"
        );
    }
    assert!(manual.contains(super::mender::INTERRUPTED));
}

#[test]
fn what_no_provider_refuses_is_not_mended() {
    for case in ["plain", "summary", "parallel_results", "string_input"] {
        for shape in Shape::ALL {
            let context = render(shape, &input(case));
            assert_eq!(context.mends(), [], "{case} {shape}");
            assert_eq!(context.shape(), shape);
        }
    }
}

/// F25: after a kill in the middle of a call, every provider still gets a result.
#[test]
fn a_call_that_was_interrupted_never_stops_a_resume() {
    let shows = |context: &Context| context.as_json().contains("was interrupted");
    for shape in Shape::ALL {
        let context = render(shape, &input("dangling_call"));
        assert!(shows(&context), "{shape}");
        let mends: Vec<_> = context.mends().iter().map(ToString::to_string).collect();
        assert_eq!(mends.len(), 1, "{shape}: {mends:?}");
        assert!(mends[0].starts_with("record 2: a tool call without a result"));
    }
}
