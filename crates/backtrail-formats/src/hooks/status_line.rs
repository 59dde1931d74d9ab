//! What an agent passes to the command of its status line: Claude Code's `statusLine`.
//!
//! Every field may be missing or of another type; then it is absent. Numbers that cannot be (a
//! negative cost, more than a thousand percent) are absent, too.

use std::borrow::Cow;
use std::path::PathBuf;

use super::payload::Payload;

/// What an agent reports for its status line.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct StatusReport {
    /// The model, as the agent shows it.
    pub model: Option<String>,
    /// The agent's own id of the session.
    pub session: Option<String>,
    /// The session's file.
    pub transcript: Option<PathBuf>,
    /// The directory that the agent works in.
    pub directory: Option<PathBuf>,
    /// What the session cost, in dollars.
    pub cost_usd: Option<f64>,
    /// How much of the context is used, in percent.
    pub context_percent: Option<f64>,
    /// How many tokens the context is.
    pub context_tokens: Option<u64>,
    /// How many tokens the context may be.
    pub context_size: Option<u64>,
    /// The limits of the user's plan.
    pub limits: Vec<UsageLimit>,
    /// Whether a model answered in this session.
    pub has_answers: bool,
}

/// A limit of a plan.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct UsageLimit {
    /// The time that it is for: `5h` or `7d`.
    pub span: &'static str,
    /// How much of it is used, in percent.
    pub used_percent: f64,
    /// When it begins anew, in seconds since 1970.
    pub resets_at: Option<i64>,
}

const PATHS: &[&str] = &[
    "model/display_name",
    "model/id",
    "model",
    "session_id",
    "transcript_path",
    "workspace/current_dir",
    "cwd",
    "cost/total_cost_usd",
    "cost/total_api_duration_ms",
    "context_window/used_percentage",
    "context_window/context_window_size",
    "context_window/current_usage/input_tokens",
    "context_window/current_usage/cache_creation_input_tokens",
    "context_window/current_usage/cache_read_input_tokens",
    "rate_limits/five_hour/used_percentage",
    "rate_limits/five_hour/resets_at",
    "rate_limits/seven_day/used_percentage",
    "rate_limits/seven_day/resets_at",
];

/// The tokens that a call read.
const CONTEXT: [&str; 3] = [
    "context_window/current_usage/input_tokens",
    "context_window/current_usage/cache_creation_input_tokens",
    "context_window/current_usage/cache_read_input_tokens",
];

/// Reads what an agent passes to the command of its status line. What is not an object has
/// nothing in it.
pub fn status_report(bytes: &[u8]) -> StatusReport {
    let text = String::from_utf8_lossy(bytes);
    let replaced = matches!(text, Cow::Owned(_));
    let payload = Payload::parse(&text, replaced, PATHS);
    payload.map_or_else(|_| StatusReport::default(), |payload| read(&payload))
}

fn read(payload: &Payload<'_>) -> StatusReport {
    let cost_usd = payload.number("cost/total_cost_usd", 1e9);
    let tokens = CONTEXT.map(|path| payload.number(path, 1e12));
    let tokens = tokens.iter().flatten().map(|tokens| *tokens as u64);
    let tokens = tokens.reduce(|sum, tokens| sum + tokens);
    let size = payload.number("context_window/context_window_size", 1e12);
    let size = size.map(|size| size as u64).filter(|size| *size > 0);
    let percent = payload.number("context_window/used_percentage", 1_000.0);
    let share = || Some(tokens? as f64 * 100.0 / size? as f64);
    let worked = payload.number("cost/total_api_duration_ms", f64::MAX);
    StatusReport {
        model: payload.id(&["model/display_name", "model/id", "model"]),
        session: payload.id(&["session_id"]),
        transcript: payload.path(&["transcript_path"]),
        directory: payload.path(&["workspace/current_dir", "cwd"]),
        cost_usd,
        context_percent: percent.or_else(share),
        context_tokens: tokens,
        context_size: size,
        limits: limits(payload),
        has_answers: [cost_usd, worked].into_iter().flatten().any(|it| it > 0.0),
    }
}

fn limits(payload: &Payload<'_>) -> Vec<UsageLimit> {
    let limit = |(span, used, resets)| {
        Some(UsageLimit {
            span,
            used_percent: payload.number(used, 1_000.0)?,
            resets_at: payload.number(resets, 1e11).map(|at| at as i64),
        })
    };
    let known = [
        (
            "5h",
            "rate_limits/five_hour/used_percentage",
            "rate_limits/five_hour/resets_at",
        ),
        (
            "7d",
            "rate_limits/seven_day/used_percentage",
            "rate_limits/seven_day/resets_at",
        ),
    ];
    known.into_iter().filter_map(limit).collect()
}

/// The tokens that a call of a transcript read.
const CALL: [&str; 3] = [
    "message/usage/input_tokens",
    "message/usage/cache_creation_input_tokens",
    "message/usage/cache_read_input_tokens",
];

/// Returns how many tokens the context was at the last call of the main conversation, from the
/// end of the session's file; `None` if no call is there.
pub fn context_at_end(tail: &[u8]) -> Option<u64> {
    let paths = [&CALL[..], &["isSidechain"]].concat();
    let lines = tail.rsplit(|byte| *byte == b'\n');
    let tokens = lines.filter_map(|line| {
        let line = std::str::from_utf8(line).ok()?;
        let call = line.contains("\"usage\"").then_some(line)?;
        let call = Payload::parse(call, false, &paths).ok()?;
        let read = CALL.iter().filter_map(|path| call.number(path, 1e12));
        let is_main = call.boolean("isSidechain") != Some(true);
        is_main.then(|| read.map(|tokens| tokens as u64).sum())
    });
    tokens.into_iter().find(|tokens| *tokens > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_report_is_read() {
        let report = status_report(
            br#"{"session_id":"s-1","transcript_path":"/t.jsonl","cwd":"/a","unknown":[{}],
                "workspace":{"current_dir":"/b"},"model":{"id":"m-1","display_name":"Model 1"},
                "cost":{"total_cost_usd":1.5,"total_api_duration_ms":20},
                "context_window":{"context_window_size":200000,"used_percentage":8.5,
                    "current_usage":{"input_tokens":10,"cache_read_input_tokens":90}},
                "rate_limits":{"five_hour":{"used_percentage":23.5,"resets_at":1738425600},
                    "seven_day":{"used_percentage":41}}}"#,
        );
        let limit = |span, used_percent, resets_at| UsageLimit {
            span,
            used_percent,
            resets_at,
        };
        let expected = StatusReport {
            model: Some("Model 1".to_owned()),
            session: Some("s-1".to_owned()),
            transcript: Some("/t.jsonl".into()),
            directory: Some("/b".into()),
            cost_usd: Some(1.5),
            context_percent: Some(8.5),
            context_tokens: Some(100),
            context_size: Some(200_000),
            limits: vec![
                limit("5h", 23.5, Some(1_738_425_600)),
                limit("7d", 41.0, None),
            ],
            has_answers: true,
        };
        assert_eq!(report, expected);
    }

    #[test]
    fn what_is_missing_or_cannot_be_is_absent() {
        let nothing = StatusReport::default();
        for bytes in [
            &b""[..],
            b"null",
            b"[1]",
            b"{\"model\":",
            b"\xff\xfe",
            b"{}",
            br#"{"model":{"display_name":7},"session_id":null,"cwd":"","cost":{"total_cost_usd":-1},
                "context_window":{"used_percentage":"8","context_window_size":0,"current_usage":null},
                "rate_limits":{"five_hour":{"used_percentage":1e9,"resets_at":1}}}"#,
        ] {
            assert_eq!(status_report(bytes), nothing, "{bytes:?}");
        }
        let report = status_report(
            br#"{"model":"m-1","context_window":{"context_window_size":1000,
            "current_usage":{"input_tokens":250}},"cost":{"total_cost_usd":0}}"#,
        );
        assert_eq!(report.model.as_deref(), Some("m-1"));
        assert_eq!(report.context_percent, Some(25.0), "worked out");
        assert_eq!((report.cost_usd, report.has_answers), (Some(0.0), false));
    }

    #[test]
    fn the_context_is_that_of_the_last_call_of_the_main_conversation() {
        let call = |tokens: u32, side: bool| {
            format!(
                "{{\"isSidechain\":{side},\"message\":{{\"usage\":{{\"input_tokens\":{tokens},\
                 \"cache_read_input_tokens\":1000,\"output_tokens\":5}}}}}}\n"
            )
        };
        let tail = [
            "sage\":{}}\n",
            &call(10, false),
            &call(30, true),
            "{\"type\":\"user\"}\n",
        ];
        assert_eq!(context_at_end(tail.concat().as_bytes()), Some(1_010));
        assert_eq!(context_at_end(b"{}\n\xff\n"), None);
    }
}
