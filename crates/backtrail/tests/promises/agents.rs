//! Agents at work: the turns and tool calls of sessions that other programs keep.
//!
//! Checkpoints come first, with the agent's own ids; the session is imported later, and bound to
//! them. F33: each prompt and each tool call can be undone. F34: what an agent said and what it
//! did is one session.

#![expect(
    clippy::disallowed_methods,
    reason = "a workspace belongs to the user, who changes it as he likes"
)]

use std::fs;
use std::process::{Child, Command, Stdio};

use backtrail::plumbing::ImportWriterOptions;
use backtrail::rewind::{Program, Stage};
use backtrail::trash::DeleteScope;
use backtrail::workspace::{
    AgentPlace, AgentTurn, CheckpointReason, LeftProcess, LogKind, Process,
};
use backtrail::{
    Block, Checkpoint, CheckpointOptions, Draft, Message, Outcome, Point, Rewind, SessionId,
    SessionOptions, StepKind, StoreOptions, Timestamp, ToolResult, ToolUse,
};
use backtrail_testkit::ManualClock;

use crate::snapshots::desk::Desk;
use crate::snapshots::tree::{Tree, read_tree, same};

/// An agent with one session.
struct Agent<'d> {
    desk: &'d Desk,
    place: AgentPlace,
    /// The run that it is in.
    run: Option<Checkpoint>,
}

impl<'d> Agent<'d> {
    fn new(desk: &'d Desk, session: &str) -> Self {
        Self {
            desk,
            place: AgentPlace::new("toy", session),
            run: None,
        }
    }

    fn id(&self) -> SessionId {
        self.place.session.parse().unwrap()
    }

    fn begin(&self, prompt: &str, process: Option<Process>) -> AgentTurn {
        let mut options = CheckpointOptions::new().agent_prompt(prompt);
        if let Some(run) = &self.run {
            options = options.begun_by(run.id());
        }
        let workspace = &self.desk.workspace;
        workspace
            .begin_agent_turn(&self.place, options, process)
            .unwrap()
    }

    fn call(&self, turn: &AgentTurn, id: &str, act: impl FnOnce()) {
        let place = self.place.clone().call(id).tool("bash");
        turn.begin_tool(&place, CheckpointOptions::new()).unwrap();
        act();
        turn.end_tool(&place, CheckpointOptions::new()).unwrap();
    }

    fn end(&self, turn: AgentTurn) {
        turn.end(&self.place, CheckpointOptions::new()).unwrap();
    }

    /// A turn with one call that writes a file.
    fn writes(&self, prompt: &str, call: &str, name: &str, text: &str) {
        let turn = self.begin(prompt, None);
        self.call(&turn, call, || self.desk.write(name, text));
        self.end(turn);
    }

    /// Imports messages, as the agent would have written them.
    fn imports(&self, messages: &[Message]) {
        let store = &self.desk.store;
        let mut writer = match store.read_session(&self.id()) {
            Ok(_) => store.resume_import(&self.id()).unwrap(),
            Err(_) => {
                let options = SessionOptions::new().workspace_root(self.desk.root());
                let options = ImportWriterOptions::new("toy", options);
                let options = options.began(Timestamp::from_millis(0).unwrap());
                store.begin_import(&self.id(), options).unwrap()
            }
        };
        for message in messages {
            writer.message(&Draft::from(message.clone())).unwrap();
        }
        writer.close().unwrap();
    }

    fn last_seq(&self) -> u64 {
        let reader = self.desk.store.read_session(&self.id()).unwrap();
        reader.info().unwrap().last_seq
    }

    fn binds(&self) -> usize {
        let workspace = &self.desk.workspace;
        workspace.bind_session(&self.place, &self.id()).unwrap()
    }
}

fn prompt(text: &str) -> Message {
    Message::user_text(text)
}

fn calls(ids: &[&str]) -> Message {
    let calls = ids.iter().map(|id| {
        let call = ToolUse::new(*id, "bash", "make").unwrap();
        Block::from(call)
    });
    Message::assistant(calls)
}

fn result(id: &str) -> Message {
    Message::tool_result(ToolResult::ok("done").answers(id, "bash"))
}

fn answer(text: &str) -> Message {
    Message::assistant([Block::text(text)])
}

/// The messages of a turn with one call: four records.
fn turn(text: &str, call: &str) -> Vec<Message> {
    vec![prompt(text), calls(&[call]), result(call), answer("done")]
}

fn content(desk: &Desk, name: &str) -> Option<String> {
    fs::read_to_string(desk.path(name)).ok()
}

fn undo(desk: &Desk) -> Outcome {
    let outcome = desk.workspace.undo(Rewind::files_and_chat()).unwrap();
    outcome.expect("there is a step")
}

/// F33, F34.
#[test]
fn every_prompt_and_every_call_of_an_agent_is_a_point_of_its_session() {
    let desk = Desk::new();
    desk.write("a", "0");
    let agent = Agent::new(&desk, "toy-session-number-one");
    agent.writes("first", "c1", "a", "1");
    agent.writes("second", "c2", "a", "2");
    let third = agent.begin("third", None);
    agent.call(&third, "c3", || desk.write("a", "3"));
    agent.call(&third, "c4", || desk.write("b", "4"));
    agent.end(third);

    agent.imports(&turn("first", "c1"));
    agent.imports(&turn("second", "c2"));
    agent.imports(&[prompt("third"), calls(&["c3"]), result("c3")]);
    agent.imports(&[calls(&["c4"]), result("c4"), answer("done")]);
    assert_eq!(agent.binds(), 4 + 4 + 6);
    assert_eq!(agent.binds(), 0, "nothing is bound twice");
    assert_eq!(desk.workspace.sessions().unwrap(), [agent.id()]);

    let state = |seq: u64, name: &str| {
        let point = Point::record(&agent.id(), seq);
        let snapshot = desk.workspace.snapshot(&point).unwrap();
        let bytes = snapshot.read(name).ok().flatten();
        bytes.map(|bytes| String::from_utf8(bytes).unwrap())
    };
    // Each record: the prompt, the call, the result, the answer.
    let expected = [
        "0", "0", "1", "1", "1", "1", "2", "2", "2", "2", "3", "3", "3", "3",
    ];
    for (n, expected) in expected.iter().enumerate() {
        let seq = n as u64 + 1;
        assert_eq!(state(seq, "a").as_deref(), Some(*expected), "record {seq}");
    }
    assert_eq!(state(12, "b"), None, "before the call");
    assert_eq!(state(13, "b").as_deref(), Some("4"), "after it");

    let log = desk.workspace.log().unwrap();
    let about = |entry: &backtrail::workspace::LogEntry| {
        let about = entry.before().and_then(Checkpoint::about);
        about.map(|about| about.to_string()).unwrap_or_default()
    };
    let turns: Vec<String> = log.iter().map(about).collect();
    assert_eq!(turns, ["first", "second", "third"]);

    let outcome = undo(&desk);
    let step = outcome.step.unwrap();
    let kind = StepKind::Turn {
        about: Some("third".to_owned()),
    };
    assert_eq!(step.kind, kind);
    assert_eq!((step.prompt, step.agent.as_deref()), (Some(9), Some("toy")));
    assert_eq!(content(&desk, "a").as_deref(), Some("2"));
    assert_eq!(content(&desk, "b"), None);
    undo(&desk);
    assert_eq!(content(&desk, "a").as_deref(), Some("1"));
    let redo = |()| desk.workspace.redo(Rewind::files_and_chat()).unwrap();
    redo(()).unwrap();
    assert_eq!(content(&desk, "a").as_deref(), Some("2"));
}

/// An agent writes its session a little later than it reports what it does.
#[test]
fn points_are_exact_wherever_the_session_was_cut_when_it_was_read() {
    let first = turn("first", "c1");
    let quiet = [prompt("second"), answer("done")];
    let third = [
        prompt("third"),
        calls(&["c3"]),
        result("c3"),
        answer("done"),
    ];
    let messages: Vec<Message> = first.into_iter().chain(quiet).chain(third).collect();
    let expected = ["0", "0", "1", "1", "1", "1", "1", "1", "3", "3"];
    for cut in 0..=messages.len() {
        let desk = Desk::new();
        desk.write("a", "0");
        let agent = Agent::new(&desk, "toy-session-number-one");
        agent.writes("first", "c1", "a", "1");
        agent.end(agent.begin("second", None));
        agent.writes("third", "c3", "a", "3");
        for part in [&messages[..cut], &messages[cut..]] {
            agent.imports(part);
            agent.binds();
        }
        for (n, expected) in expected.iter().enumerate() {
            // The first import and the second may add records of their own.
            let reader = desk.store.read_session(&agent.id()).unwrap();
            let mut records = reader.records().unwrap();
            let mut seqs = Vec::new();
            while let Some(record) = records.next().unwrap() {
                if let Ok(Some(_)) = record.message() {
                    seqs.push(record.seq());
                }
            }
            let point = Point::record(&agent.id(), seqs[n]);
            let snapshot = desk.workspace.snapshot(&point).unwrap();
            let text = snapshot.read("a").unwrap().unwrap();
            let text = String::from_utf8(text).unwrap();
            assert_eq!(text, *expected, "message {n}, cut at {cut}");
        }
        let ends = desk.workspace.log().unwrap();
        let ends: Vec<u64> = ends
            .iter()
            .map(|it| it.after().session().unwrap().seq)
            .collect();
        assert!(
            ends.is_sorted() && ends[0] < ends[1],
            "{ends:?}, cut at {cut}"
        );
    }
}

/// F33.
#[test]
fn a_single_call_is_undone_and_redone_and_then_the_one_before_it() {
    let desk = Desk::new();
    desk.write("a", "0");
    let agent = Agent::new(&desk, "toy-session-number-one");
    let turn = agent.begin("go", None);
    agent.call(&turn, "c1", || desk.write("a", "1"));
    agent.call(&turn, "c2", || desk.write("b", "2"));
    agent.call(&turn, "c3", || {});
    agent.end(turn);
    let files = || (content(&desk, "a"), content(&desk, "b"));
    let after = files();
    let undo_call = || desk.workspace.undo(Rewind::files().last_call()).unwrap();

    let outcome = undo_call().unwrap();
    assert!(matches!(outcome.step.unwrap().kind, StepKind::Call { tool, .. } if tool == "bash"));
    assert_eq!(
        files(),
        (Some("1".to_owned()), None),
        "the third did nothing"
    );
    desk.workspace.redo(Rewind::files()).unwrap().unwrap();
    assert_eq!(files(), after);
    undo_call().unwrap();
    undo_call().unwrap();
    assert_eq!(files(), (Some("0".to_owned()), None));
    assert!(undo_call().is_none());
    desk.workspace.redo(Rewind::files()).unwrap().unwrap();
    desk.workspace.redo(Rewind::files()).unwrap().unwrap();
    assert_eq!(files(), after);
    undo(&desk);
    assert_eq!(files(), (Some("0".to_owned()), None), "the whole turn");
}

#[test]
fn what_the_user_changed_between_turns_stops_an_undo_and_survives_a_merge() {
    let desk = Desk::new();
    desk.write("a", "one\ntwo\nthree\n");
    let agent = Agent::new(&desk, "toy-session-number-one");
    agent.writes("first", "c1", "a", "ONE\ntwo\nthree\n");
    desk.write("a", "ONE\ntwo\nTHREE\n");
    agent.writes("second", "c2", "b", "b");
    let kinds: Vec<LogKind> = desk
        .workspace
        .log()
        .unwrap()
        .iter()
        .map(|it| it.kind())
        .collect();
    assert_eq!(kinds, [LogKind::Turn, LogKind::Person, LogKind::Turn]);
    undo(&desk);
    let outcome = undo(&desk);
    assert_eq!(outcome.stage, Stage::Stopped);
    let merged = desk.workspace.undo(Rewind::files_and_chat().merge());
    assert_eq!(merged.unwrap().unwrap().stage, Stage::Done);
    assert_eq!(content(&desk, "a").unwrap(), "one\ntwo\nTHREE\n");
}

#[test]
fn a_turn_without_changes_is_no_step_but_a_point() {
    let desk = Desk::new();
    desk.write("a", "0");
    let agent = Agent::new(&desk, "toy-session-number-one");
    agent.writes("first", "c1", "a", "1");
    agent.end(agent.begin("only a question", None));
    agent.imports(&turn("first", "c1"));
    agent.imports(&[prompt("only a question"), answer("an answer")]);
    agent.binds();
    undo(&desk);
    assert_eq!(content(&desk, "a").as_deref(), Some("0"));
    let point = Point::record(&agent.id(), 5);
    assert!(desk.workspace.resolve(&point).is_ok());
}

#[test]
fn turns_within_a_run_are_the_steps_and_the_run_is_one_for_the_rest() {
    let desk = Desk::new();
    desk.write("a", "0");
    let run = CheckpointOptions::new()
        .reason(CheckpointReason::RunStart)
        .about("toy --fast");
    let run = desk.workspace.checkpoint(run).unwrap();
    let active = desk.workspace.activate(&run).unwrap();
    desk.write("cache", "made at the start");
    let mut agent = Agent::new(&desk, "toy-session-number-one");
    agent.run = Some(run.clone());
    agent.writes("first", "c1", "a", "1");
    desk.write("mine", "an edit between the turns");
    agent.writes("second", "c2", "a", "2");
    desk.write("log", "made at the end");
    let end = CheckpointOptions::new()
        .reason(CheckpointReason::RunEnd)
        .begun_by(run.id());
    desk.workspace.checkpoint(end).unwrap();
    drop(active);

    let kinds: Vec<LogKind> = desk
        .workspace
        .log()
        .unwrap()
        .iter()
        .map(|it| it.kind())
        .collect();
    use LogKind::{Person, Run, Turn};
    assert_eq!(kinds, [Run, Turn, Person, Turn, Run]);
    let steps = [
        ("log", None),
        ("a", Some("1")),
        ("a", Some("0")),
        ("cache", None),
    ];
    for (name, expected) in steps {
        assert_eq!(undo(&desk).stage, Stage::Done);
        assert_eq!(content(&desk, name).as_deref(), expected, "{name}");
    }
    assert!(desk.workspace.undo(Rewind::files()).unwrap().is_none());
    assert_eq!(
        content(&desk, "mine").as_deref(),
        Some("an edit between the turns")
    );
    for _ in 0..4 {
        desk.workspace.redo(Rewind::files()).unwrap().unwrap();
    }
    assert_eq!(content(&desk, "a").as_deref(), Some("2"));
    assert_eq!(content(&desk, "log").as_deref(), Some("made at the end"));
}

#[test]
fn an_undo_within_a_run_is_not_the_runs_work() {
    let desk = Desk::new();
    desk.write("a", "0");
    let run = CheckpointOptions::new().reason(CheckpointReason::RunStart);
    let run = desk.workspace.checkpoint(run).unwrap();
    let mut agent = Agent::new(&desk, "toy-session-number-one");
    agent.run = Some(run.clone());
    agent.writes("first", "c1", "a", "1");
    undo(&desk);
    let end = CheckpointOptions::new()
        .reason(CheckpointReason::RunEnd)
        .begun_by(run.id());
    desk.workspace.checkpoint(end).unwrap();
    assert!(desk.workspace.undo(Rewind::files()).unwrap().is_none());
    desk.workspace.redo(Rewind::files()).unwrap().unwrap();
    assert_eq!(content(&desk, "a").as_deref(), Some("1"));
}

fn process() -> (Child, Process) {
    let child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let process = Process::running(child.id()).unwrap();
    (child, process)
}

#[test]
fn a_turn_lives_as_long_as_its_agent_and_was_interrupted_without_an_end() {
    let desk = Desk::new();
    desk.write("a", "0");
    let agent = Agent::new(&desk, "toy-session-number-one");
    let (mut child, process) = process();
    let turn = agent.begin("first", Some(process));
    agent.call(&turn, "c1", || desk.write("a", "1"));
    let is_running = || desk.workspace.agent_turn(&agent.place).unwrap().is_some();
    assert!(is_running());
    assert_eq!(desk.workspace.active().unwrap().len(), 1);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!is_running());
    desk.keep();
    let reasons: Vec<CheckpointReason> = desk
        .workspace
        .checkpoints()
        .unwrap()
        .map(|it| it.unwrap().reason().clone())
        .collect();
    assert!(
        reasons.contains(&CheckpointReason::Interrupted),
        "{reasons:?}"
    );
    agent.imports(&[prompt("first"), calls(&["c1"]), result("c1")]);
    assert_eq!(agent.binds(), 4, "the end of an interrupted turn, too");
}

#[test]
fn the_next_prompt_ends_a_turn_that_was_interrupted() {
    let desk = Desk::new();
    desk.write("a", "0");
    let agent = Agent::new(&desk, "toy-session-number-one");
    let (mut child, process) = process();
    let turn = agent.begin("first", Some(process.clone()));
    agent.call(&turn, "c1", || desk.write("a", "1"));
    let second = agent.begin("second", Some(process));
    agent.call(&second, "c2", || desk.write("b", "2"));
    agent.end(second);
    assert!(desk.workspace.active().unwrap().is_empty());
    undo(&desk);
    assert_eq!(content(&desk, "b"), None);
    assert_eq!(content(&desk, "a").as_deref(), Some("1"));
    undo(&desk);
    assert_eq!(content(&desk, "a").as_deref(), Some("0"));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_turn_can_be_undone_after_its_last_call_was() {
    let desk = Desk::new();
    desk.write("a", "0");
    let agent = Agent::new(&desk, "toy-session-number-one");
    let turn = agent.begin("twice", None);
    agent.call(&turn, "c1", || desk.write("a", "1"));
    agent.call(&turn, "c2", || desk.write("a", "2"));
    agent.end(turn);
    desk.write("mine", "an edit");
    let call = desk.workspace.undo(Rewind::files_and_chat().last_call());
    assert_eq!(call.unwrap().unwrap().stage, Stage::Done);
    assert_eq!(content(&desk, "a").as_deref(), Some("1"));
    assert_eq!(undo(&desk).stage, Stage::Done);
    assert_eq!(content(&desk, "a").as_deref(), Some("0"));
    assert!(content(&desk, "mine").is_some());
    for expected in ["1", "2"] {
        desk.workspace.redo(Rewind::files()).unwrap().unwrap();
        assert_eq!(content(&desk, "a").as_deref(), Some(expected));
    }
}

/// A sub-agent's calls come within the call that started it.
#[test]
fn a_call_within_another_is_undone_with_it() {
    let desk = Desk::new();
    desk.write("a", "0");
    let agent = Agent::new(&desk, "toy-session-number-one");
    let turn = agent.begin("delegate", None);
    agent.call(&turn, "outer", || {
        agent.call(&turn, "inner", || desk.write("a", "1"))
    });
    agent.end(turn);
    let undo_call = || desk.workspace.undo(Rewind::files_and_chat().last_call());
    assert!(undo_call().unwrap().is_some());
    assert_eq!(content(&desk, "a").as_deref(), Some("0"));
    assert!(undo_call().unwrap().is_none(), "nothing of it is left");
    desk.workspace.redo(Rewind::files()).unwrap().unwrap();
    assert_eq!(content(&desk, "a").as_deref(), Some("1"));
}

/// Agents do not report that the user interrupted them, so the turn still seems to run.
#[test]
fn an_edit_of_the_user_after_an_interrupt_stops_the_undo_of_the_turn() {
    for saved in [false, true] {
        let desk = Desk::new();
        desk.write("a", "0");
        let agent = Agent::new(&desk, "toy-session-number-one");
        let turn = agent.begin("first", None);
        agent.call(&turn, "c1", || desk.write("a", "1"));
        desk.write("mine", "an edit after the interrupt");
        if saved {
            desk.keep();
        }
        assert_eq!(undo(&desk).stage, Stage::Stopped, "saved: {saved}");
        let kept = desk.workspace.undo(Rewind::files_and_chat().keep());
        assert_eq!(kept.unwrap().unwrap().stage, Stage::Done);
        assert_eq!(content(&desk, "a").as_deref(), Some("0"));
        assert!(content(&desk, "mine").is_some());
    }
}

/// The next prompt shows that the turn was over, not that it continued.
#[test]
fn a_turn_that_was_interrupted_and_undone_is_no_step_again() {
    let desk = Desk::new();
    desk.write("a", "0");
    let agent = Agent::new(&desk, "toy-session-number-one");
    agent.writes("first", "c1", "a", "1");
    let turn = agent.begin("second", None);
    agent.call(&turn, "c2", || desk.write("a", "2"));
    assert_eq!(undo(&desk).stage, Stage::Done);
    desk.write("mine", "an edit");
    agent.writes("third", "c3", "a", "3");
    for expected in ["1", "0"] {
        assert_eq!(undo(&desk).stage, Stage::Done);
        assert_eq!(content(&desk, "a").as_deref(), Some(expected));
    }
    assert!(content(&desk, "mine").is_some());
}

#[test]
fn a_turn_that_was_interrupted_undone_and_redone_can_be_undone_again() {
    let desk = Desk::new();
    desk.write("a", "0");
    let agent = Agent::new(&desk, "toy-session-number-one");
    let turn = agent.begin("first", None);
    agent.call(&turn, "c1", || desk.write("a", "1"));
    undo(&desk);
    agent.end(agent.begin("only a question", None));
    desk.workspace.redo(Rewind::files()).unwrap().unwrap();
    assert_eq!(content(&desk, "a").as_deref(), Some("1"));
    undo(&desk);
    assert_eq!(content(&desk, "a").as_deref(), Some("0"));
}

/// What an open call changes is its turn's, also if it is undone before the call ends.
#[test]
fn a_turn_is_undone_in_the_middle_of_a_call() {
    let desk = Desk::new();
    desk.write("a", "0");
    let agent = Agent::new(&desk, "toy-session-number-one");
    let turn = agent.begin("first", None);
    let place = agent.place.clone().call("c1").tool("bash");
    turn.begin_tool(&place, CheckpointOptions::new()).unwrap();
    desk.write("a", "1");
    assert_eq!(undo(&desk).stage, Stage::Done);
    assert_eq!(content(&desk, "a").as_deref(), Some("0"));
}

#[test]
fn of_two_agents_at_once_the_one_with_the_open_call_did_it() {
    let desk = Desk::new();
    let one = Agent::new(&desk, "toy-session-number-one");
    let two = Agent::new(&desk, "toy-session-number-two");
    let first = one.begin("first", None);
    let second = two.begin("second", None);
    one.call(&first, "c1", || desk.write("by-one", "1"));
    two.call(&second, "c2", || desk.write("by-two", "2"));
    one.end(first);
    two.end(second);
    one.imports(&turn("first", "c1"));
    two.imports(&turn("second", "c2"));
    one.binds();
    two.binds();
    let options = Rewind::files_and_chat().session(&one.id());
    let outcome = desk.workspace.undo(options).unwrap().unwrap();
    assert_eq!(outcome.stage, Stage::Done);
    assert_eq!(content(&desk, "by-one"), None);
    assert_eq!(content(&desk, "by-two").as_deref(), Some("2"));
}

/// The same before anything of them is imported.
#[test]
fn two_agents_without_sessions_here_are_told_apart() {
    let desk = Desk::new();
    let one = Agent::new(&desk, "toy-session-number-one");
    let two = Agent::new(&desk, "toy-session-number-two");
    let first = one.begin("first", None);
    let second = two.begin("second", None);
    one.call(&first, "c1", || desk.write("by-one", "1"));
    two.call(&second, "c2", || desk.write("by-two", "2"));
    one.end(first);
    two.end(second);
    assert_eq!(undo(&desk).stage, Stage::Done);
    assert_eq!(content(&desk, "by-one").as_deref(), Some("1"));
    assert_eq!(content(&desk, "by-two"), None);
}

#[test]
fn a_late_point_is_not_the_state_of_its_record() {
    let desk = Desk::new();
    desk.write("a", "0");
    let agent = Agent::new(&desk, "toy-session-number-one");
    agent.writes("first", "c1", "a", "1");
    agent.imports(&turn("first", "c1"));
    // The model answers with a call, and the call runs, before the snapshot is complete.
    agent.imports(&[prompt("second"), calls(&["c2"])]);
    desk.write("a", "2");
    let turn = agent.begin("second", None);
    agent.end(turn);
    agent.binds();
    let late = desk.workspace.checkpoints().unwrap().map(Result::unwrap);
    let late: Vec<bool> = late.map(|it| it.is_late()).collect();
    assert_eq!(late, [false, false, false, false, true, false]);
    let point = Point::record(&agent.id(), 5);
    let found = desk.workspace.resolve(&point).unwrap();
    assert_eq!(found.snapshot().unwrap().read("a").unwrap().unwrap(), b"1");
}

/// A headless agent answers at once: its run began with the files before the prompt.
#[test]
fn a_late_first_turn_of_a_run_begins_with_the_run() {
    let desk = Desk::new();
    desk.write("a", "0");
    let run = CheckpointOptions::new().reason(CheckpointReason::RunStart);
    let run = desk.workspace.checkpoint(run).unwrap();
    let mut agent = Agent::new(&desk, "toy-session-number-one");
    agent.run = Some(run.clone());
    agent.imports(&[prompt("go"), calls(&["c1"])]);
    desk.write("a", "1");
    let turn = agent.begin("go", None);
    desk.write("a", "2");
    agent.imports(&[result("c1"), answer("done")]);
    agent.end(turn);
    agent.binds();
    let end = CheckpointOptions::new()
        .reason(CheckpointReason::RunEnd)
        .begun_by(run.id());
    desk.workspace.checkpoint(end).unwrap();
    let log = desk.workspace.log().unwrap();
    assert_eq!(log.len(), 1, "{log:#?}");
    assert_eq!(
        (log[0].kind(), log[0].not_protected()),
        (LogKind::Turn, None)
    );
    let point = Point::record(&agent.id(), 1);
    let before = desk.workspace.snapshot(&point).unwrap();
    assert_eq!(before.read("a").unwrap().unwrap(), b"0");
    assert_eq!(undo(&desk).stage, Stage::Done);
    assert_eq!(content(&desk, "a").as_deref(), Some("0"));
    desk.workspace.redo(Rewind::files()).unwrap().unwrap();
    assert_eq!(content(&desk, "a").as_deref(), Some("2"));
}

/// Between turns, what changed before a late snapshot may be the user's.
#[test]
fn a_late_turn_stops_at_what_may_be_the_users() {
    let desk = Desk::new();
    desk.write("a", "0");
    let agent = Agent::new(&desk, "toy-session-number-one");
    agent.writes("first", "c1", "b", "1");
    agent.imports(&turn("first", "c1"));
    agent.imports(&[prompt("second"), calls(&["c2"])]);
    desk.write("a", "2");
    agent.end(agent.begin("second", None));
    agent.binds();
    assert_eq!(undo(&desk).stage, Stage::Stopped);
    let outcome = desk.workspace.undo(Rewind::files_and_chat().overwrite());
    assert_eq!(outcome.unwrap().unwrap().stage, Stage::Done);
    assert_eq!(content(&desk, "a").as_deref(), Some("0"));
}

/// Of some agents the end of a turn can only be guessed.
#[test]
fn a_turn_that_seemed_to_end_goes_on() {
    let desk = Desk::new();
    desk.write("a", "0");
    let agent = Agent::new(&desk, "toy-session-number-one");
    let turn = agent.begin("go", None);
    agent.end(turn.clone());
    desk.write("a", "1");
    agent.end(turn.clone());
    desk.write("b", "2");
    agent.end(turn);
    assert_eq!(desk.workspace.log().unwrap().len(), 1);
    assert_eq!(undo(&desk).stage, Stage::Done);
    assert_eq!(
        (content(&desk, "a").as_deref(), content(&desk, "b")),
        (Some("0"), None)
    );
}

/// A snapshot that took too long may be complete all the same when the late one is made.
#[test]
fn a_late_turn_right_after_another_start_hides_neither() {
    let desk = Desk::new();
    desk.write("a", "0");
    let agent = Agent::new(&desk, "toy-session-number-one");
    agent.writes("first", "c1", "a", "1");
    let start = CheckpointOptions::new()
        .reason(CheckpointReason::TurnStart)
        .agent(agent.place.clone());
    desk.workspace.checkpoint(start).unwrap();
    let late = CheckpointOptions::new().late();
    let turn = desk.workspace.begin_agent_turn(&agent.place, late, None);
    let turn = turn.unwrap();
    agent.call(&turn, "c2", || desk.write("a", "2"));
    agent.end(turn);
    agent.writes("third", "c3", "a", "3");
    let log = desk.workspace.log().unwrap();
    let marks: Vec<bool> = log.iter().map(|it| it.not_protected().is_some()).collect();
    assert_eq!(marks, [false, false, true, false], "{log:#?}");
    for expected in ["2", "1", "0"] {
        assert_eq!(undo(&desk).stage, Stage::Done);
        assert_eq!(content(&desk, "a").as_deref(), Some(expected));
    }
}

#[test]
fn calls_without_ids_are_told_by_their_tool_and_order() {
    let desk = Desk::new();
    desk.write("a", "0");
    let agent = Agent::new(&desk, "toy-session-number-one");
    let turn = agent.begin("go", None);
    for state in ["1", "2"] {
        let place = agent.place.clone().tool("bash");
        turn.begin_tool(&place, CheckpointOptions::new()).unwrap();
        desk.write("a", state);
        turn.end_tool(&place, CheckpointOptions::new()).unwrap();
    }
    agent.end(turn);
    agent.imports(&[
        prompt("go"),
        calls(&["x"]),
        result("x"),
        calls(&["y"]),
        result("y"),
    ]);
    assert_eq!(agent.binds(), 6);
    let state = |seq| {
        let point = Point::record(&agent.id(), seq);
        let snapshot = desk.workspace.snapshot(&point).unwrap();
        snapshot.read("a").unwrap().unwrap()
    };
    let states: Vec<Vec<u8>> = (1..=5).map(state).collect();
    assert_eq!(states, [b"0", b"0", b"1", b"1", b"2"]);
}

/// Calls of one message: its state is that before the first.
#[test]
fn a_message_with_several_calls_has_the_files_before_all_of_them() {
    let desk = Desk::new();
    desk.write("a", "0");
    let agent = Agent::new(&desk, "toy-session-number-one");
    let turn = agent.begin("go", None);
    let place = |id: &str| agent.place.clone().call(id);
    turn.begin_tool(&place("c1"), CheckpointOptions::new())
        .unwrap();
    desk.write("a", "1");
    turn.begin_tool(&place("c2"), CheckpointOptions::new())
        .unwrap();
    desk.write("a", "2");
    turn.end_tool(&place("c1"), CheckpointOptions::new())
        .unwrap();
    turn.end_tool(&place("c2"), CheckpointOptions::new())
        .unwrap();
    agent.end(turn);
    agent.imports(&[
        prompt("go"),
        calls(&["c1", "c2"]),
        result("c2"),
        result("c1"),
    ]);
    agent.binds();
    let point = Point::record(&agent.id(), 2);
    let snapshot = desk.workspace.snapshot(&point).unwrap();
    assert_eq!(snapshot.read("a").unwrap().unwrap(), b"0");
}

/// A prompt that never reached the agent's file takes no other's place.
#[test]
fn a_turn_is_bound_to_its_own_prompt() {
    let desk = Desk::new();
    let agent = Agent::new(&desk, "toy-session-number-one");
    agent.end(agent.begin("refused", None));
    agent.writes("second", "c1", "a", "1");
    agent.imports(&turn("second", "c1"));
    agent.binds();
    let bound = desk.workspace.checkpoints().unwrap().map(Result::unwrap);
    let bound: Vec<bool> = bound.map(|it| it.session().is_some()).collect();
    assert_eq!(bound, [false, false, true, true, true, true]);
}

/// F33: two hours of work, imported now and then. Each prompt's state is restored exactly.
#[test]
fn f33_a_session_of_two_hours_and_500_calls_keeps_every_prompts_point() {
    const PROMPTS: u64 = 50;
    const CALLS: u64 = 10;
    /// How much time each call takes: two hours in all.
    const CALL_MS: i64 = 14_400;
    let clock = ManualClock::new(1_794_729_600_000);
    let desk = Desk::with(StoreOptions::new().clock(clock.clone()));
    let agent = Agent::new(&desk, "toy-session-number-one");
    let mut seen: Vec<(u64, Tree)> = Vec::new();
    let mut records = 0;
    for n in 0..PROMPTS {
        let text = format!("prompt {}", n / 2);
        seen.push((records + 1, read_tree(desk.root())));
        let turn = agent.begin(&text, None);
        let mut messages = vec![prompt(&text)];
        for call in 0..CALLS {
            let id = format!("call-{n}-{call}");
            agent.call(&turn, &id, || {
                clock.advance(CALL_MS);
                desk.write("file", &id);
                desk.write(&format!("dir-{call}/new-{n}"), &id);
                if n >= 2 {
                    fs::remove_file(desk.path(&format!("dir-{call}/new-{}", n - 2))).unwrap();
                }
            });
            messages.extend([calls(&[&id]), result(&id)]);
        }
        agent.end(turn);
        messages.push(answer("done"));
        records += messages.len() as u64;
        agent.imports(&messages);
        if n % 7 == 0 {
            agent.binds();
            // The first binding adds the workspace to the session.
            records = agent.last_seq();
        }
    }
    agent.binds();
    let times = desk.workspace.checkpoints().unwrap();
    let times: Vec<i64> = times.map(|it| it.unwrap().at().as_millis()).collect();
    let hours = (times.iter().max().unwrap() - times.iter().min().unwrap()) / 3_600_000;
    assert_eq!(hours, 2);
    for n in (0..PROMPTS).rev().take(3) {
        let step = undo(&desk).step.unwrap();
        assert_eq!(step.prompt_number, Some(n + 1));
    }
    // Back and forth, so that each move has something to do.
    let (early, late) = seen.split_at(seen.len() / 2);
    for (seq, expected) in early.iter().zip(late).flat_map(|(a, b)| [b, a]) {
        let point = Point::record(&agent.id(), *seq);
        let outcome = desk.workspace.rewind(&point, Rewind::files()).unwrap();
        assert_eq!(outcome.stage, Stage::Done, "record {seq}: {outcome:#?}");
        same(&read_tree(desk.root()), expected).unwrap_or_else(|wrong| panic!("{seq}: {wrong}"));
    }
    desk.verify();
}

#[test]
fn a_purge_drops_the_files_of_bound_checkpoints_and_their_paths() {
    let desk = Desk::new();
    let mut agent = Agent::new(&desk, "toy-session-number-one");
    agent.place = agent.place.source("/home/u/.toy/one.jsonl");
    agent.writes("first", "c1", "a", "1");
    agent.imports(&turn("first", "c1"));
    agent.binds();
    let plan = desk
        .store
        .purge_plan(&[agent.id()], DeleteScope::Named)
        .unwrap();
    plan.apply().unwrap();
    for checkpoint in desk.workspace.checkpoints().unwrap() {
        let checkpoint = checkpoint.unwrap();
        assert!(checkpoint.dropped().unwrap().is_some());
        let agent = checkpoint.agent().unwrap();
        assert_eq!((&agent.source, &agent.prompt), (&None, &None));
    }
    assert!(desk.workspace.unbound().unwrap().is_empty());
}

fn kinds(desk: &Desk) -> Vec<LogKind> {
    let log = desk.workspace.log().unwrap();
    log.iter().map(|it| it.kind()).collect()
}

/// A run whose command writes a file and leaves a process behind.
fn run_that_leaves(desk: &Desk, process: &Process) {
    let start = CheckpointOptions::new().reason(CheckpointReason::RunStart);
    let start = desk.workspace.checkpoint(start.about("make")).unwrap();
    desk.write("a", "by the run");
    let end = CheckpointOptions::new()
        .reason(CheckpointReason::RunEnd)
        .begun_by(start.id())
        .left_running(vec![LeftProcess::new("make --watch", process.clone())]);
    desk.workspace.checkpoint(end).unwrap();
}

#[test]
fn what_changes_while_a_process_outlives_its_run_may_be_its() {
    let desk = Desk::new();
    desk.write("a", "0");
    let (mut child, process) = process();
    run_that_leaves(&desk, &process);
    desk.write("a", "by either");
    let or = |outcome: &Outcome| outcome.conflicts[0].or.clone();
    let its = Some(Program::Process("make --watch".to_owned()));
    let outcome = undo(&desk);
    assert_eq!((outcome.stage, or(&outcome)), (Stage::Stopped, its.clone()));
    desk.keep();
    desk.write("a", "by either, again");
    child.kill().unwrap();
    child.wait().unwrap();
    let outcome = undo(&desk);
    assert_eq!((outcome.stage, or(&outcome)), (Stage::Stopped, its.clone()));
    desk.keep();
    desk.write("a", "mine");
    desk.keep();
    let log = desk.workspace.log().unwrap();
    let seen: Vec<_> = log.iter().map(|it| (it.kind(), it.or().cloned())).collect();
    assert_eq!(seen[0], (LogKind::Run, None));
    let changed: Vec<bool> = log[1..].iter().map(|it| it.or().is_some()).collect();
    assert!(!changed.contains(&true), "checkpoints of yours are yours");
    let outcome = undo(&desk);
    assert_eq!((outcome.stage, or(&outcome)), (Stage::Stopped, None));
}

#[test]
fn the_log_names_the_process_that_outlived_its_run_until_it_ends() {
    let desk = Desk::new();
    desk.write("a", "0");
    let (mut child, process) = process();
    run_that_leaves(&desk, &process);
    let agent = Agent::new(&desk, "toy-session-number-one");
    desk.write("x", "by either");
    agent.writes("first", "c1", "b", "1");
    desk.write("y", "by either");
    undo(&desk);
    child.kill().unwrap();
    child.wait().unwrap();
    agent.writes("second", "c2", "b", "2");
    desk.write("z", "mine");
    agent.writes("third", "c3", "b", "3");
    use LogKind::{Person, PersonOrRun, Run, Turn, Undo};
    let expected = [
        Run,
        PersonOrRun,
        Turn,
        PersonOrRun,
        Undo,
        Turn,
        Person,
        Turn,
    ];
    assert_eq!(kinds(&desk), expected);
}

#[test]
fn a_purge_removes_the_command_of_a_process_that_outlived_its_run() {
    let desk = Desk::new();
    let (mut child, process) = process();
    let session = desk.store.create_session(SessionOptions::new()).unwrap();
    let left = vec![LeftProcess::new("make --secret", process)];
    let end = CheckpointOptions::new()
        .session(session.id())
        .left_running(left);
    desk.workspace.checkpoint(end).unwrap();
    desk.keep();
    let id = session.id().clone();
    drop(session);
    let plan = desk.store.purge_plan(&[id], DeleteScope::Named).unwrap();
    plan.apply().unwrap();
    for checkpoint in desk.workspace.checkpoints().unwrap() {
        let checkpoint = checkpoint.unwrap();
        let left = checkpoint.left_running();
        assert!(left.len() == 1 && left[0].name.is_none(), "{left:?}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Turns of two agents overlap. What changed in an open call is that agent's, whatever the
/// other one reports meanwhile.
#[test]
fn turns_that_overlap_are_undone_where_calls_say_whose_each_file_is() {
    let desk = Desk::new();
    let one = Agent::new(&desk, "toy-session-number-one");
    let two = Agent::new(&desk, "toy-session-number-two");
    let first = one.begin("first", None);
    one.call(&first, "c1", || desk.write("by-one", "1"));
    desk.write("between", "in the first turn, without a call");
    let second = two.begin("second", None);
    two.call(&second, "c2", || desk.write("by-two", "2"));
    one.call(&first, "c3", || desk.write("by-one-too", "3"));
    two.end(second);
    one.end(first);
    assert_eq!(undo(&desk).stage, Stage::Done);
    assert_eq!(content(&desk, "by-two"), None);
    assert_eq!(content(&desk, "by-one").as_deref(), Some("1"));
    let outcome = undo(&desk);
    assert_eq!(outcome.stage, Stage::Done, "{outcome:#?}");
    let left = ["by-one", "by-one-too", "between"].map(|name| content(&desk, name));
    assert_eq!(left, [None, None, None]);
}

/// An agent that is followed reports only the ends of its calls.
#[test]
fn a_call_without_a_beginning_may_have_been_open() {
    let desk = Desk::new();
    let one = Agent::new(&desk, "toy-session-number-one");
    let two = Agent::new(&desk, "toy-session-number-two");
    let first = one.begin("first", None);
    let second = two.begin("second", None);
    two.call(&second, "c2", || desk.write("by-either", "2"));
    let place = one.place.clone().call("c1").tool("bash");
    first.end_tool(&place, CheckpointOptions::new()).unwrap();
    one.end(first);
    two.end(second);
    let outcome = undo(&desk);
    assert_eq!(outcome.stage, Stage::Stopped);
    assert!(outcome.conflicts[0].overlapped);
}

#[test]
fn parallel_calls_are_undone_one_by_one_as_far_as_they_can_be_told_apart() {
    let desk = Desk::new();
    for name in ["one", "both", "two"] {
        desk.write(name, "0");
    }
    let agent = Agent::new(&desk, "toy-session-number-one");
    let turn = agent.begin("go", None);
    let place = |id: &str, tool: &str| agent.place.clone().call(id).tool(tool);
    let options = CheckpointOptions::new;
    turn.begin_tool(&place("c1", "Bash"), options()).unwrap();
    desk.write("one", "1");
    desk.write("both", "1");
    turn.begin_tool(&place("c2", "Edit"), options()).unwrap();
    desk.write("both", "2");
    turn.end_tool(&place("c1", "Bash"), options()).unwrap();
    desk.write("two", "2");
    turn.end_tool(&place("c2", "Edit"), options()).unwrap();
    agent.end(turn);
    let files = || ["one", "both", "two"].map(|name| content(&desk, name).unwrap());
    let undo_call = || desk.workspace.undo(Rewind::files().last_call()).unwrap();

    let outcome = undo_call().unwrap();
    assert_eq!(
        (outcome.stage, outcome.beside),
        (Stage::Done, vec!["Bash".to_owned()])
    );
    assert_eq!(files(), ["1", "1", "0"]);
    let outcome = undo_call().unwrap();
    assert_eq!(outcome.stage, Stage::Done, "{outcome:#?}");
    assert_eq!(files(), ["0", "0", "0"]);
    assert!(undo_call().is_none());
    for expected in [["1", "1", "0"], ["1", "2", "2"]] {
        desk.workspace.redo(Rewind::files()).unwrap().unwrap();
        assert_eq!(files(), expected);
    }
}

/// Of calls at the same time, one may have nothing left once the other is undone.
#[test]
fn a_parallel_call_that_is_undone_with_another_is_not_undone_again() {
    let desk = Desk::new();
    desk.write("a", "0");
    let agent = Agent::new(&desk, "toy-session-number-one");
    let turn = agent.begin("go", None);
    let place = |id: &str| agent.place.clone().call(id).tool("bash");
    let options = CheckpointOptions::new;
    turn.begin_tool(&place("c1"), options()).unwrap();
    turn.begin_tool(&place("c2"), options()).unwrap();
    desk.write("a", "1");
    turn.end_tool(&place("c1"), options()).unwrap();
    turn.end_tool(&place("c2"), options()).unwrap();
    agent.end(turn);
    let undo_call = || desk.workspace.undo(Rewind::files().last_call()).unwrap();
    assert_eq!(undo_call().unwrap().stage, Stage::Done);
    assert_eq!(content(&desk, "a").as_deref(), Some("0"));
    assert!(undo_call().is_none());
}

/// Goes back in an agent's session before its next prompt, as a rewind of its own does.
fn go_back(agent: &Agent<'_>, seq: u64) {
    let mut writer = agent.desk.store.resume_import(&agent.id()).unwrap();
    writer.back_to(seq).unwrap();
    writer.close().unwrap();
}

#[test]
fn what_an_agents_own_rewind_restores_is_the_agents() {
    let desk = Desk::new();
    desk.write("a", "0");
    let agent = Agent::new(&desk, "toy-session-number-one");
    agent.writes("first", "c1", "a", "1");
    agent.imports(&turn("first", "c1"));
    agent.binds();
    let before = agent.last_seq();
    agent.writes("second", "c2", "a", "2");
    agent.imports(&turn("second", "c2"));
    agent.binds();
    // The agent's own rewind, with the files.
    desk.write("a", "1");
    go_back(&agent, before);
    agent.writes("second, better", "c3", "b", "3");
    agent.imports(&turn("second, better", "c3"));
    assert_eq!(agent.binds(), 4);

    let log = desk.workspace.log().unwrap();
    use LogKind::{AgentRewind, Turn};
    assert_eq!(kinds(&desk), [Turn, Turn, AgentRewind, Turn]);
    assert_eq!(log[2].or(), Some(&Program::Agent("toy".to_owned())));
    assert_eq!(undo(&desk).step.unwrap().prompt, Some(before + 1));
    assert_eq!(content(&desk, "b"), None);
    undo(&desk);
    let outcome = undo(&desk);
    assert_eq!(outcome.stage, Stage::Done, "{outcome:#?}");
    assert_eq!(content(&desk, "a").as_deref(), Some("0"));
}

/// What is not as it was at the prompt that the agent went back to may be the user's.
#[test]
fn what_changed_beside_an_agents_own_rewind_may_be_the_users() {
    let desk = Desk::new();
    desk.write("a", "0");
    let agent = Agent::new(&desk, "toy-session-number-one");
    agent.writes("first", "c1", "a", "1");
    agent.imports(&turn("first", "c1"));
    agent.binds();
    let before = agent.last_seq();
    agent.writes("second", "c2", "b", "2");
    agent.imports(&turn("second", "c2"));
    agent.binds();
    fs::remove_file(desk.path("b")).unwrap();
    desk.write("a", "by either");
    go_back(&agent, before);
    agent.writes("third", "c3", "c", "3");
    agent.imports(&turn("third", "c3"));
    agent.binds();
    let log = desk.workspace.log().unwrap();
    assert_eq!(log[2].kind(), LogKind::PersonOrRun);
    undo(&desk);
    undo(&desk);
    let outcome = undo(&desk);
    assert_eq!(outcome.stage, Stage::Stopped);
    let or = outcome.conflicts[0].or.clone();
    assert_eq!(or, Some(Program::Agent("toy".to_owned())));
}

/// The store could not be written when the second prompt came, so nothing says that it did but
/// the agent's own session.
#[test]
fn a_prompt_without_any_checkpoint_is_shown_as_not_protected() {
    let desk = Desk::new();
    desk.write("a", "0");
    let agent = Agent::new(&desk, "toy-session-number-one");
    agent.imports(&turn("before we watched", "c0"));
    agent.writes("first", "c1", "a", "1");
    desk.write("a", "2");
    agent.writes("third", "c3", "b", "3");
    agent.imports(&turn("first", "c1"));
    agent.imports(&turn("second", "c2"));
    agent.imports(&[prompt("only a question"), answer("done")]);
    agent.imports(&turn("third", "c3"));
    assert_eq!(agent.binds(), 8);
    let log = desk.workspace.log().unwrap();
    let marks: Vec<_> = log
        .iter()
        .map(|it| (it.kind(), it.not_protected().is_some()))
        .collect();
    use LogKind::{PersonOrRun, Turn};
    let expected = [
        (Turn, false),
        (PersonOrRun, false),
        (Turn, true),
        (Turn, false),
    ];
    assert_eq!(marks, expected);
    let about = log[2].begun().and_then(Checkpoint::about).unwrap();
    assert_eq!(about.text(), Some("second"));
    undo(&desk);
    let outcome = undo(&desk);
    assert_eq!(outcome.stage, Stage::Stopped);
    let or = outcome.conflicts[0].or.clone();
    assert_eq!(or, Some(Program::Agent("toy".to_owned())));
}

/// An importer reads the session, another prompt comes, and then the importer binds what it read.
#[test]
fn a_prompt_that_comes_while_an_earlier_one_is_bound_is_still_looked_for() {
    let desk = Desk::new();
    desk.write("a", "0");
    let (agent, other) = (
        Agent::new(&desk, "toy-session-number-one"),
        Agent::new(&desk, "toy-session-number-two"),
    );
    agent.writes("first", "c1", "a", "1");
    agent.imports(&turn("first", "c1"));
    let elsewhere = other.begin("elsewhere", None);
    let second = agent.begin("second", None);
    assert_eq!(agent.binds(), 4, "the first turn");
    let waiting = || {
        let unbound = desk.workspace.recently_unbound().unwrap().into_iter();
        let ids = unbound.map(|it| it.id());
        ids.collect::<Vec<_>>()
    };
    let both = [elsewhere.start(), second.start()];
    assert_eq!(waiting(), both, "neither has its place");
    agent.imports(&[prompt("second")]);
    assert_eq!(agent.binds(), 1);
    assert_eq!(waiting(), both[..1]);
    other.imports(&[prompt("elsewhere")]);
    assert_eq!(other.binds(), 1);
    assert_eq!(waiting(), []);
}
