use super::*;

fn of(tool: &str, arguments: &str) -> Action {
    Action::of(tool, arguments)
}

fn command(command: &str) -> Action {
    Action::Command {
        command: command.to_owned(),
        directory: None,
    }
}

fn edit(path: &str, changes: &[(&str, &str)]) -> Action {
    let change = |(old, new): &(&str, &str)| Replacement {
        old: (*old).to_owned(),
        new: (*new).to_owned(),
    };
    Action::Edit {
        path: path.to_owned(),
        changes: changes.iter().map(change).collect(),
    }
}

fn write(path: &str, content: &str) -> Action {
    Action::Write {
        path: path.to_owned(),
        content: Some(content.to_owned()),
    }
}

fn read(path: &str, from: Option<u64>, to: Option<u64>) -> Action {
    let path = path.to_owned();
    Action::Read(vec![ReadFile { path, from, to }])
}

#[test]
fn every_agent_runs_commands() {
    let line = "cargo test";
    for (tool, arguments) in [
        ("Bash", r#"{"command":"cargo test","description":"Test"}"#),
        ("shell", r#"{"command":["bash","-lc","cargo test"]}"#),
        ("shell", r#"{"command":["cargo","test"]}"#),
        ("exec_command", r#"{"cmd":"cargo test"}"#),
        ("functions.exec_command", r#"{"cmd":"cargo test"}"#),
        (
            "run_shell_command",
            r#"{"command":"cargo test","is_background":false}"#,
        ),
        ("developer__shell", r#"{"command":"cargo test"}"#),
        ("run_commands", r#"{"commands":["cargo test"]}"#),
        ("bash", r#""{\"command\":\"cargo test\"}""#),
        ("bash", r#""{}{\"command\":\"cargo test\"}""#),
        ("exec", r#""cargo test""#),
        ("something_new", r#"{"command":"cargo test"}"#),
    ] {
        assert_eq!(of(tool, arguments), command(line), "{tool} {arguments}");
    }
    let several = r#"{"commands":["a b","c d"]}"#;
    assert_eq!(of("run_commands", several), command("a b\nc d"));
    let there = of("shell", r#"{"command":["ls"],"workdir":"/w"}"#);
    assert!(matches!(there, Action::Command { directory: Some(d), .. } if d == "/w"));
}

#[test]
fn every_agent_edits_and_writes() {
    for (tool, arguments) in [
        (
            "Edit",
            r#"{"file_path":"a","old_string":"x","new_string":"y","replace_all":false}"#,
        ),
        (
            "edit",
            r#"{"filePath":"a","oldString":"x","newString":"y"}"#,
        ),
        ("edit", r#"{"path":"a","oldText":"x","newText":"y"}"#),
        ("edit", r#"{"path":"a","old_str":"x","new_str":"y"}"#),
        ("edit", r#"{"path":"a","before":"x","after":"y"}"#),
        ("editor", r#"{"path":"a","old_text":"x","new_text":"y"}"#),
        (
            "edit",
            r#"{"path":"a","edits":[{"oldText":"x","newText":"y"}]}"#,
        ),
        (
            "replace",
            r#"{"file_path":"a","instruction":"i","old_string":"x","new_string":"y"}"#,
        ),
        (
            "mcp__files__change",
            r#"{"path":"a","old_string":"x","new_string":"y"}"#,
        ),
    ] {
        assert_eq!(
            of(tool, arguments),
            edit("a", &[("x", "y")]),
            "{tool} {arguments}"
        );
    }
    let several = r#"{"file_path":"a","edits":[{"old_string":"1","new_string":"2"},{"old_string":"3","new_string":"4"}]}"#;
    assert_eq!(
        of("MultiEdit", several),
        edit("a", &[("1", "2"), ("3", "4")])
    );
    for (tool, arguments) in [
        ("Write", r#"{"file_path":"a","content":"new\n"}"#),
        ("create", r#"{"path":"a","file_text":"new\n"}"#),
        ("editor", r#"{"path":"a","new_text":"new\n"}"#),
        (
            "Edit",
            r#"{"file_path":"a","old_string":"","new_string":"new\n"}"#,
        ),
        ("edit_file", r#"{"path":"a","content":"new\n"}"#),
    ] {
        assert_eq!(
            of(tool, arguments),
            write("a", "new\n"),
            "{tool} {arguments}"
        );
    }
    let quoted = of(
        "write_file",
        r#"{"TargetFile":"\"/r/n.md\"","toolSummary":"\"x\""}"#,
    );
    let path = "/r/n.md".to_owned();
    assert_eq!(
        quoted,
        Action::Write {
            path,
            content: None
        }
    );
}

#[test]
fn patches_are_read_wherever_they_are() {
    let patch = "*** Begin Patch\\n*** Update File: a.rs\\n@@\\n-x\\n+y\\n*** End Patch";
    for (tool, arguments) in [
        ("apply_patch", format!("\"{patch}\"")),
        ("apply_patch", format!(r#"{{"input":"{patch}"}}"#)),
        (
            "shell",
            format!(r#"{{"command":["bash","-lc","apply_patch <<'PATCH'\n{patch}\nPATCH"]}}"#),
        ),
        (
            "shell",
            format!(r#"{{"command":["apply_patch","{patch}"]}}"#),
        ),
    ] {
        let Action::Patch(files) = of(tool, &arguments) else {
            panic!("{tool} {arguments}");
        };
        assert_eq!(
            (files.len(), files[0].path.as_str()),
            (1, "a.rs"),
            "{arguments}"
        );
    }
}

#[test]
fn reading_and_searching() {
    assert_eq!(of("Read", r#"{"file_path":"a"}"#), read("a", None, None));
    let part = r#"{"file_path":"a","offset":125,"limit":15}"#;
    assert_eq!(of("Read", part), read("a", Some(125), Some(139)));
    assert_eq!(
        of("read", r#"{"path":"a","limit":50}"#),
        read("a", Some(1), Some(50))
    );
    assert_eq!(
        of("view", r#"{"path":"a","view_range":[2,9]}"#),
        read("a", Some(2), Some(9))
    );
    assert_eq!(
        of("read_file", r#"{"absolute_path":"a"}"#),
        read("a", None, None)
    );
    let listed = r#"{"files":[{"path":"a","start_line":2,"end_line":3}]}"#;
    assert_eq!(of("read_files", listed), read("a", Some(2), Some(3)));
    let search = Action::Search {
        pattern: "fn main".to_owned(),
        path: Some("src".to_owned()),
        files: Some("*.rs".to_owned()),
    };
    let arguments = r#"{"pattern":"fn main","path":"src","glob":"*.rs","output_mode":"content"}"#;
    assert_eq!(of("Grep", arguments), search);
    assert_eq!(of("LS", r#"{"path":"/w"}"#), Action::List("/w".to_owned()));
    let url = "https://example.com".to_owned();
    assert_eq!(
        of("WebFetch", r#"{"url":"https://example.com","prompt":"?"}"#),
        Action::Fetch(url)
    );
    let query = Action::WebSearch("rust".to_owned());
    assert_eq!(of("google_web_search", r#"{"query":"rust"}"#), query);
    assert_eq!(of("WebSearch", r#"{"query":"rust"}"#), query);
}

#[test]
fn lists_plans_and_questions() {
    let todo = |text: &str, state| Todo {
        text: text.to_owned(),
        state,
    };
    let expected = Action::Todos(vec![
        todo("a", TodoState::Done),
        todo("b", TodoState::Active),
        todo("c", TodoState::Open),
    ]);
    let claude = r#"{"todos":[{"content":"a","status":"completed","activeForm":"A"},{"content":"b","status":"in_progress"},{"content":"c","status":"pending"}]}"#;
    let codex = r#"{"plan":[{"step":"a","status":"completed"},{"step":"b","status":"in_progress"},{"step":"c","status":"pending"}]}"#;
    let text = r#"{"todos":"- [x] a\n- [-] b\n- [ ] c"}"#;
    assert_eq!(of("TodoWrite", claude), expected);
    assert_eq!(of("update_plan", codex), expected);
    assert_eq!(of("update_todo_list", text), expected);
    let plan = Action::Plan("## Do it".to_owned());
    assert_eq!(of("ExitPlanMode", r###"{"plan":"## Do it"}"###), plan);
    let asked = r#"{"questions":[{"question":"Which?","header":"H","options":[{"label":"A","description":"first"},{"label":"B"}]}]}"#;
    let Action::Questions(questions) = of("AskUserQuestion", asked) else {
        panic!();
    };
    assert_eq!(questions[0].text, "Which?");
    let first = ("A".to_owned(), "first".to_owned());
    assert_eq!(
        questions[0].options,
        [first, ("B".to_owned(), String::new())]
    );
    let task = Action::Task {
        agent: Some("Plan".to_owned()),
        description: "look".to_owned(),
        prompt: "look around".to_owned(),
    };
    let arguments = r#"{"subagent_type":"Plan","description":"look","prompt":"look around"}"#;
    assert_eq!(of("Task", arguments), task);
}

#[test]
fn other_tools_keep_their_arguments() {
    let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let arguments = r#"{"a":3,"deep":{"b":[{"c":1}]},"list":[1,"x"],"none":null,"text":"t"}"#;
    let expected = Action::Other(vec![
        field("a", "3"),
        field("deep", "b: - c: 1"),
        field("list", "1, x"),
        field("text", "t"),
    ]);
    assert_eq!(of("mcp__x__y", arguments), expected);
    assert_eq!(
        of("mcp__x__search", r#"{"q":1}"#),
        Action::Other(vec![field("q", "1")])
    );
    assert_eq!(of("x", "{}"), Action::Other(Vec::new()));
    assert_eq!(of("x", "null"), Action::Other(Vec::new()));
    assert_eq!(
        of("x", "not JSON"),
        Action::Other(vec![field("", "not JSON")])
    );
}
