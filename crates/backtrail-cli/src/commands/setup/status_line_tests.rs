//! The status line in settings: everything else stays, and removing it is exact.

use std::path::Path;

use super::*;

fn program(path: &str) -> HookProgram {
    HookProgram::new(Path::new(path), None).unwrap()
}

fn with_line(text: &str) -> String {
    let created = created_for(Some(text), 0).unwrap();
    install(text, &program("/bin/backtrail"), &created).unwrap()
}

#[test]
fn a_status_line_is_added_once_and_removed_to_the_byte() {
    for text in [
        "{}",
        "{ }\n",
        "{\"a\":1}",
        "\u{feff}{\r\n\t\"a\": 1, // mine\r\n}\r\n",
        "{\n  \"hooks\": {}\n}\n",
    ] {
        let new = with_line(text);
        let line = installed_in(&new).unwrap().unwrap();
        assert!(!line.wraps() && line.is_of(&program("/bin/backtrail")));
        assert_eq!(with_line(&new), new, "{text}");
        assert_eq!(remove(&new).unwrap().as_deref(), Some(text), "{new}");
    }
}

#[test]
fn a_command_that_is_there_is_wrapped_and_restored_to_the_byte() {
    for json in [
        r#""~/.claude/line.sh""#,
        r#""jq -r '.model.display_name' | sed \"s/a/b/\"""#,
        r#""\u0065cho \/tmp # it's mine""#,
        "\"printf 'a\\nb\\tc'\\nexit 3\"",
    ] {
        let text = format!(
            "{{ \"statusLine\" : {{\"type\":\"command\",\"command\" :{json} ,\"padding\":0}}}}"
        );
        let new = with_line(&text);
        let line = installed_in(&new).unwrap().unwrap();
        assert!(line.wraps(), "{new}");
        let original: String = serde_json::from_str(json).unwrap();
        assert_eq!(line.before.unwrap().command, original);
        assert_eq!(with_line(&new), new, "{text}");
        // Another program in the same place.
        let other = install(&new, &program("/other/backtrail"), &Created::default()).unwrap();
        assert!(other.contains("/other/backtrail") && !other.contains("/bin/backtrail"));
        assert_eq!(remove(&other).unwrap().as_deref(), Some(&*text), "{other}");
    }
}

#[test]
fn what_cannot_be_wrapped_stays_as_it_is() {
    for line in [
        r#"{"type":"static","command":"a"}"#,
        r#"{"command":"a"}"#,
        r#"{"type":"command","command":7}"#,
        r#"{"type":"command","command":"  "}"#,
        r#"{"type":"command","command":"backtrail statusline"}"#,
        "null",
        "[]",
    ] {
        let text = format!("{{\"statusLine\":{line}}}");
        assert_eq!(with_line(&text), text);
        assert_eq!(remove(&text).unwrap().as_deref(), Some(&*text));
    }
    let twice = r#"{"statusLine":{},"statusLine":{}}"#;
    let refused = install(twice, &program("/bin/backtrail"), &Created::default());
    assert!(matches!(refused, Err(Refused::Shape(_))), "{refused:?}");
}

#[test]
fn a_file_that_was_created_for_it_goes() {
    let created = created_for(None, 2).unwrap();
    let new = install("{\n}\n", &program("/bin/backtrail"), &created).unwrap();
    assert_eq!(installed_in(&new).unwrap().unwrap().directories(), 2);
    assert_eq!(remove(&new).unwrap(), None);
    let kept = new.replace("{\n  \"statusLine\"", "{\n  \"a\": 1,\n  \"statusLine\"");
    assert_eq!(remove(&kept).unwrap().unwrap(), "{\n  \"a\": 1\n}\n");
}
