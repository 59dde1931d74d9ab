//! One long rollout of Codex, whose import must not need more memory than a short one.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use super::figure;
use super::home::Home;
use crate::Result;
use crate::args::Args;
use crate::command;
use crate::find::corpus::Words;
use crate::parts::{Shared, settle};
use crate::report::{Entry, Goal, Quantity, Unit};
use crate::store::process::run;

/// How much more memory the long one may need than one of a tenth of its length, which
/// fills all buffers except in quick mode.
const MORE: f64 = 1.5;

pub(super) fn measure(args: &Args, dir: &Path, _shared: &Shared) -> Result<Vec<Entry>> {
    let bin = match command::find(args) {
        Ok(bin) => bin,
        Err(why) => return Ok(vec![Entry::skipped("rollout", &why)]),
    };
    let bytes = args.pick(3_000_000_000, 100_000_000);
    let small = take_in(&bin, &dir.join("small"), bytes / 10)?;
    let large = take_in(&bin, &dir.join("large"), bytes)?;
    let name = format!("a rollout of {:.1} GB", bytes as f64 / 1e9);
    let peak = |ran: &Taken| Quantity::single(ran.peak as f64, Unit::Bytes);
    let rate = |ran: &Taken| Quantity::single(ran.rate, Unit::BytesPerSecond);
    Ok(vec![
        figure(
            format!("{name}, peak memory"),
            peak(&large),
            Some(("a tenth of it", peak(&small))),
            args.pick(Goal::CostAtMost(MORE), Goal::Open),
        ),
        figure(
            name,
            rate(&large),
            Some(("a tenth of it", rate(&small))),
            Goal::Open,
        ),
    ])
}

/// The cost of an import.
struct Taken {
    peak: u64,
    /// In bytes per second.
    rate: f64,
}

/// Generates a rollout, imports it, and removes both.
fn take_in(bin: &Path, dir: &Path, bytes: u64) -> Result<Taken> {
    let agents = dir.join("agents");
    let place = agents.join("sessions/2026/10/01");
    fs::create_dir_all(&place)?;
    let file = place.join(format!("rollout-2026-10-01T10-00-00-{THREAD}.jsonl"));
    let started = Instant::now();
    let lines = write(&file, bytes)?;
    eprintln!("made:      {lines} lines in {:.0?}", started.elapsed());
    settle(dir)?;
    let home = Home::new(&agents, dir.join("home"))?;
    let ran = run(&mut home.ours(bin, &["import", "--from", "codex"]))?;
    let agent = &ran.told["agents"]["codex"];
    if agent["new"] != 1 || agent["damaged_lines"] != 0 || agent["unknown_records"] != 0 {
        return Err(format!("{agent} where one rollout is").into());
    }
    fs::remove_dir_all(dir)?;
    Ok(Taken {
        peak: ran.peak,
        rate: bytes as f64 / ran.took.as_secs_f64(),
    })
}

const THREAD: &str = "0199a000-0000-7000-8000-000000000001";

/// Writes a rollout of about this many bytes and returns its number of lines.
fn write(path: &Path, bytes: u64) -> Result<u64> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create_new(path)?);
    let texts = Texts::new();
    let (mut written, mut lines) = (0, 0);
    let mut tell = |kind: &str, payload: Value| -> Result<u64> {
        let second = lines / 4;
        let at = format!(
            "2026-10-{:02}T{:02}:{:02}:{:02}.{:03}Z",
            1 + second / 86_400 % 28,
            second / 3_600 % 24,
            second / 60 % 60,
            second % 60,
            lines % 4 * 250
        );
        let line = json!({"timestamp": at, "type": kind, "payload": payload}).to_string();
        writeln!(out, "{line}")?;
        lines += 1;
        written += line.len() as u64 + 1;
        Ok(written)
    };
    tell(
        "session_meta",
        json!({"id": THREAD, "timestamp": "2026-10-01T10:00:00.000Z", "cwd": "/home/me/project",
            "originator": "codex_cli_rs", "cli_version": "0.150.0", "source": "cli"}),
    )?;
    for n in 0_u64.. {
        if turn(n, &texts, &mut tell)? >= bytes {
            break;
        }
    }
    out.flush()?;
    Ok(lines)
}

/// So many different texts that one is repeated only long after any compressor has
/// forgotten it.
struct Texts {
    prose: Vec<String>,
    outputs: Vec<String>,
}

impl Texts {
    fn new() -> Self {
        let mut words = Words::new();
        let prose = (0..4_000).map(|_| words.prose(800)).collect();
        let outputs = (0..4_000).map(|_| words.output(3_000)).collect();
        Self { prose, outputs }
    }

    fn prose(&self, n: u64) -> &str {
        &self.prose[n as usize % self.prose.len()]
    }

    fn output(&self, n: u64) -> &str {
        &self.outputs[n as usize % self.outputs.len()]
    }
}

/// Writes one turn: a prompt, three calls with output, an answer, its usage.
fn turn(n: u64, texts: &Texts, tell: &mut dyn FnMut(&str, Value) -> Result<u64>) -> Result<u64> {
    tell(
        "turn_context",
        json!({"cwd": "/home/me/project", "approval_policy": "never", "model": "gpt-5",
            "summary": "auto"}),
    )?;
    let said = |role: &str, kind: &str, text: &str| {
        let content = json!([{"type": kind, "text": text}]);
        json!({"type": "message", "role": role, "content": content})
    };
    tell(
        "response_item",
        said("user", "input_text", texts.prose(2 * n)),
    )?;
    for m in 0..3 {
        let call = format!("call_{n:08}_{m}");
        let arguments = json!({"command": ["cat", format!("src/part_{n}_{m}.rs")]}).to_string();
        tell(
            "response_item",
            json!({"type": "function_call", "name": "shell", "arguments": arguments,
                "call_id": call}),
        )?;
        let output = texts.output(3 * n + m);
        tell(
            "response_item",
            json!({"type": "function_call_output", "call_id": call, "output": output}),
        )?;
    }
    tell(
        "response_item",
        said("assistant", "output_text", texts.prose(2 * n + 1)),
    )?;
    let used = |times: u64| {
        json!({"input_tokens": 9_000 * times, "cached_input_tokens": 8_000 * times,
            "output_tokens": 300 * times, "reasoning_output_tokens": 50 * times,
            "total_tokens": 9_300 * times})
    };
    let info = json!({"total_token_usage": used(n + 1), "last_token_usage": used(1),
        "model_context_window": 272_000});
    tell(
        "event_msg",
        json!({"type": "token_count", "info": info, "rate_limits": null}),
    )
}
