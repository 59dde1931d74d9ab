//! ATIF, the Agent Trajectory Interchange Format: one JSON value with the steps of a run.
//!
//! A step is of the user, the agent or the system. A step of the agent has its calls, and their
//! results in an `observation`. Versions 1.0 to 1.8 only add fields: copied steps (1.5), images
//! (1.6), sub-agents within the file and the number of model calls of a step (1.7), audio (1.8).

mod steps;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use backtrail::{Timestamp, Usage};

use super::keys::{hash_json, valid_key};
use super::value::open_derived;
use crate::environment::Environment;
use crate::error::Result;
use crate::event::{
    Details, Event, EventSink, Origin, ReadReport, Thread, ThreadId, UsageEvent, sub_agent_name,
};
use crate::format::{Agent, Format, OpenFile};
use crate::json::{Object, field_names};
use crate::source::{Source, file_name};

use steps::Steps;

/// ATIF, the Agent Trajectory Interchange Format: one JSON value with the steps of a run.
#[derive(Debug, Clone, Copy)]
pub struct Atif;

/// How deep sub-agents may be within each other.
const MAX_DEPTH: usize = 16;

impl Format for Atif {
    fn agent(&self) -> Agent {
        Agent {
            sub_agents: true,
            usage: true,
            ..Agent::new("atif", "ATIF", "1.0 to 1.8")
        }
    }

    /// The files have no usual directory.
    fn directories(&self, _environment: &Environment) -> Vec<PathBuf> {
        Vec::new()
    }

    fn is_session_file(&self, _path: &Path) -> bool {
        false
    }

    fn recognises(&self, source: &Source) -> bool {
        let head = source.head();
        if crate::source::trim(&head).first() != Some(&b'{') {
            return false;
        }
        let fields = field_names(&head);
        let has = |name: &str| fields.iter().any(|field| field == name);
        let contains = |text: &str| memchr::memmem::find(&head, text.as_bytes()).is_some();
        has("agent") && has("steps") && (contains("\"ATIF-v") || contains("\"step_id\""))
    }

    fn open<'s>(&self, source: &'s Source) -> Result<OpenFile<'s>> {
        open_derived(
            source,
            |text| {
                let trajectory = Object::parse(text)?;
                Ok((name(&trajectory, text), continued(source)))
            },
            |text, report, sink| {
                let trajectory = Object::from_json(text).unwrap_or_default();
                let session = name(&trajectory, text);
                read(&trajectory, &session, report, sink)?;
                read_agents(&trajectory, &session, report, sink)
            },
        )
    }
}

/// Returns the name of a run. Sub-agents share the session's id, so its own comes first.
fn name(trajectory: &Object<'_>, text: &str) -> String {
    let id = trajectory.non_blank("trajectory_id");
    let id = id.or_else(|| trajectory.non_blank("session_id"));
    match id {
        Some(id) => valid_key(id),
        None => {
            let first = trajectory.list("steps").unwrap_or_default();
            let first = first.first().copied().unwrap_or(text);
            format!("trajectory-{}", hash_json(first, 32))
        }
    }
}

/// Returns where a run comes from that another file is continued in: `run.cont-2.json` after
/// `run.cont-1.json` after `run.json`.
fn continued(source: &Source) -> Origin {
    let parent = || {
        let own = file_name(source.path());
        let (base, number) = source.stem().rsplit_once(".cont-")?;
        let number: u32 = number.parse().ok()?;
        let before = match number.checked_sub(1)? {
            0 => format!("{base}.json"),
            number => format!("{base}.cont-{number}.json"),
        };
        let text = source.read_beside(Path::new(&before))?;
        let text = String::from_utf8_lossy(&text);
        let parent = Object::parse(&text).ok()?;
        let next = parent.string("continued_trajectory_ref")?;
        let is_it = next.rsplit('/').next() == Some(own);
        is_it.then(|| Origin::Copy {
            session: name(&parent, &text),
        })
    };
    parent().unwrap_or(Origin::Start)
}

/// Reads a run without its sub-agents.
fn read(
    trajectory: &Object<'_>,
    session: &str,
    report: &mut ReadReport,
    sink: &mut dyn EventSink,
) -> Result<()> {
    let agent = trajectory.object("agent").unwrap_or_default();
    let extra = trajectory.object("extra").unwrap_or_default();
    let model = agent.trimmed("model_name");
    sink.details(Details {
        title: extra.trimmed("title"),
        model: model.clone(),
        directory: extra
            .path("cwd")
            .or_else(|| extra.path("working_directory")),
        tags: agent.trimmed("name").map(|name| vec![valid_key(name)]),
        ..Details::default()
    })?;
    let mut steps = Steps::new(sink, session, model.clone());
    for (n, json) in trajectory
        .list("steps")
        .unwrap_or_default()
        .iter()
        .enumerate()
    {
        let Some(step) = Object::from_json(json) else {
            let reason = format!("step {n} is not an object");
            report.add_damage(1, &(0..json.len() as u64), reason);
            continue;
        };
        if !steps.emit(&step, n)? {
            let source = step.string("source").unwrap_or_default();
            report.add_unknown(&format!("step: {source}"));
        }
    }
    if steps.has_usage {
        return Ok(());
    }
    match trajectory.object("final_metrics") {
        Some(totals) => emit_totals(&totals, session, model, sink),
        None => Ok(()),
    }
}

/// Sends what a run used in total, if no step tells what it used.
fn emit_totals(
    totals: &Object<'_>,
    session: &str,
    model: Option<String>,
    sink: &mut dyn EventSink,
) -> Result<()> {
    let count = |name: &str| totals.number(name).unwrap_or(0);
    let cached = count("total_cached_tokens");
    let input = count("total_prompt_tokens").saturating_sub(cached);
    let usage = Usage::new(input, count("total_completion_tokens")).cache_read(cached);
    let cost_usd = totals.float("total_cost_usd");
    if usage.total() == 0 && cost_usd.is_none_or(|cost| cost <= 0.0) {
        return Ok(());
    }
    sink.event(Event::Usage(UsageEvent {
        key: format!("totals-{}", usage.total()),
        at: None,
        response_id: format!("{session}#totals"),
        model,
        usage,
        duration_ms: None,
        cost_usd,
    }))
}

/// Reads the sub-agents of a run that are in its file, and theirs.
fn read_agents(
    trajectory: &Object<'_>,
    session: &str,
    report: &mut ReadReport,
    sink: &mut dyn EventSink,
) -> Result<()> {
    // The runs whose sub-agents are left to read: with their names, if they are not the main one.
    let mut left = vec![(trajectory.clone(), None::<String>, 0)];
    let mut used: HashMap<String, u32> = HashMap::new();
    while let Some((run, parent, depth)) = left.pop() {
        let agents = run.list("subagent_trajectories").unwrap_or_default();
        let calls = calls(&run);
        for json in agents {
            let Some(agent) = Object::from_json(json) else {
                report.add_unknown("sub-agent that is not an object");
                continue;
            };
            if depth >= MAX_DEPTH {
                report.add_unknown("sub-agents more than 16 levels deep");
                continue;
            }
            let id = name(&agent, json);
            let count = used.entry(id.clone()).or_default();
            *count += 1;
            let own = match *count {
                1 => id.clone(),
                again => format!("{id}~{again}"),
            };
            let origin = Origin::Spawned {
                session: parent
                    .clone()
                    .map(|parent| sub_agent_name(session, &parent)),
                tool_use_id: calls.get(&id).cloned(),
            };
            sink.thread(&Thread {
                id: ThreadId::SubAgent(own.clone()),
                origin,
            })?;
            read(&agent, &sub_agent_name(session, &own), report, sink)?;
            left.push((agent, Some(own), depth + 1));
        }
    }
    Ok(())
}

/// Returns the calls that started sub-agents, by the names of those.
fn calls(run: &Object<'_>) -> HashMap<String, String> {
    let mut calls = HashMap::new();
    let steps = run.list("steps").unwrap_or_default().into_iter();
    let observations = steps.filter_map(|step| Object::from_json(step)?.object("observation"));
    for observation in observations {
        for result in observation.list("results").unwrap_or_default() {
            let Some(result) = Object::from_json(result) else {
                continue;
            };
            let call = result.non_blank("source_call_id");
            let agents = result.list("subagent_trajectory_ref").unwrap_or_default();
            for agent in agents.into_iter().filter_map(Object::from_json) {
                let id = agent
                    .non_blank("trajectory_id")
                    .or_else(|| agent.non_blank("session_id"));
                if let (Some(id), Some(call)) = (id, &call) {
                    calls.insert(valid_key(id), call.clone().into_owned());
                }
            }
        }
    }
    calls
}

/// Returns the time of a step, which may be without a zone.
fn time(step: &Object<'_>) -> Option<Timestamp> {
    step.time("timestamp").or_else(|| {
        let text = step.string("timestamp")?;
        let text = text.trim().replacen(' ', "T", 1);
        format!("{text}Z").parse().ok()
    })
}

#[cfg(test)]
#[path = "atif_tests.rs"]
mod tests;
