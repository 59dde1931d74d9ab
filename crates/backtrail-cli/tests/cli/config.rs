//! `config`: settings are shown, changed and documented; wrong ones are refused.

use std::fs;
use std::path::PathBuf;

use crate::kit::{Cli, finish};

fn file(cli: &Cli) -> PathBuf {
    cli.store().join("config.toml")
}

fn ok(cli: &Cli, args: &[&str]) -> String {
    let ran = cli.run(args);
    assert_eq!(ran.code, 0, "{args:?}: {ran:#?}");
    ran.stdout
}

#[test]
fn a_setting_is_changed_and_the_rest_of_the_file_stays() {
    let cli = Cli::new();
    let path = ok(&cli, &["config", "path"]);
    assert_eq!(path.trim_end(), file(&cli).to_str().unwrap());
    ok(&cli, &["config", "set", "rotation", "2", "MiB"]);
    assert_eq!(
        fs::read_to_string(file(&cli)).unwrap(),
        "rotation = \"2 MiB\"\n"
    );
    let text = "# mine\nrotation   = \"1 MiB\"   # small\n\n[prices.x]\ninput = 1\noutput=2\n";
    fs::write(file(&cli), text).unwrap();
    ok(&cli, &["config", "set", "rotation", "3 MiB"]);
    ok(&cli, &["config", "set", "auto_import", "off"]);
    let expected = text
        .replace("1 MiB", "3 MiB")
        .replace("\n[prices.x]", "\nauto_import = false\n[prices.x]");
    assert_eq!(fs::read_to_string(file(&cli)).unwrap(), expected);
    let rows = cli.run(&["config", "--json"]).json();
    let row = |name: &str| {
        let mut rows = rows.as_array().unwrap().iter();
        rows.find(|row| row["name"] == name).unwrap().clone()
    };
    assert_eq!(row("rotation")["value"], 3 << 20);
    assert_eq!(row("auto_import")["value"], false);
    assert_eq!(row("auto_import")["default"], "true");
    ok(&cli, &["config", "unset", "auto_import"]);
    assert_eq!(
        fs::read_to_string(file(&cli)).unwrap(),
        text.replace("1 MiB", "3 MiB")
    );
    // A link stays one.
    let real = cli.work().join("real.toml");
    fs::rename(file(&cli), &real).unwrap();
    std::os::unix::fs::symlink(&real, file(&cli)).unwrap();
    ok(&cli, &["config", "set", "keep_trails", "5"]);
    assert!(file(&cli).is_symlink());
    assert!(
        fs::read_to_string(&real)
            .unwrap()
            .contains("keep_trails = 5")
    );
}

#[test]
fn wrong_names_and_values_are_refused_and_nothing_is_written() {
    let cli = Cli::new();
    for (args, message, hint) in [
        (
            &["rotatoin", "1 MiB"][..],
            "unknown setting \"rotatoin\"",
            "did you mean rotation?",
        ),
        (
            &["xyz", "1"],
            "unknown setting",
            "known settings: durability",
        ),
        (
            &["rotation", "soon"],
            "rotation must be a size like \"64 MiB\"",
            "",
        ),
        (
            &["auto_import", "perhaps"],
            "auto_import must be true or false",
            "",
        ),
        (
            &["keep_trails", "0"],
            "keep_trails must be a whole number, 1 or more",
            "",
        ),
        (&["hook_wait", "9h"], "hook_wait must be a time", ""),
        (&["prices", "1"], "prices are a table", "config edit"),
    ] {
        let ran = cli.run(&[&["config", "set"], args].concat());
        assert_eq!(ran.code, 2, "{ran:#?}");
        assert!(ran.stderr.contains(message), "{ran:#?}");
        assert!(ran.stderr.contains(hint), "{ran:#?}");
        assert!(!file(&cli).exists());
    }
    assert_eq!(cli.run(&["config", "unset", "xyz"]).code, 2);
    assert_eq!(cli.run(&["config", "set", "rotation"]).code, 2);
    // A wrong setting can be made right.
    fs::create_dir_all(cli.store()).unwrap();
    fs::write(file(&cli), "rotation = 5\n").unwrap();
    assert_eq!(cli.run(&["list"]).code, 2);
    ok(&cli, &["config", "set", "rotation", "2 KiB"]);
    ok(&cli, &["list"]);
    fs::write(file(&cli), "rotation = [\n").unwrap();
    let ran = cli.run(&["config", "set", "rotation", "2 KiB"]);
    assert!(ran.stderr.contains("not valid TOML at line"), "{ran:#?}");
    assert_eq!(fs::read_to_string(file(&cli)).unwrap(), "rotation = [\n");
}

#[test]
fn an_editor_gets_a_copy_which_replaces_the_settings_only_if_it_is_valid() {
    let cli = Cli::new();
    let edit = |script: &str| {
        let mut command = cli.command(&["config", "edit"]);
        finish(command.env("EDITOR", script).env_remove("VISUAL"), b"")
    };
    let ran = edit("true");
    assert!(ran.stderr.contains("nothing was changed"), "{ran:#?}");
    assert!(!file(&cli).exists());
    // The first time, every setting is there as a comment.
    let ran = edit("sed -i 's/^# keep_trails = .*/keep_trails = 3/'");
    assert_eq!(ran.code, 0, "{ran:#?}");
    let text = fs::read_to_string(file(&cli)).unwrap();
    assert!(text.contains("\nkeep_trails = 3\n"), "{text}");
    assert!(text.contains("# auto_import = true"), "{text}");
    let ran = edit("sed -i 's/^keep_trails = 3/keep_trails = 0/'");
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("keep_trails must be"), "{ran:#?}");
    let ran = edit("false");
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(
        ran.stderr.contains("the editor \"false\" failed"),
        "{ran:#?}"
    );
    assert_eq!(fs::read_to_string(file(&cli)).unwrap(), text);
    // What is broken can be edited, too.
    fs::write(file(&cli), "rotation = [").unwrap();
    let ran = edit("sh -c 'echo > \"$0\"'");
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(fs::read_to_string(file(&cli)).unwrap(), "\n");
}

#[test]
fn every_setting_is_shown_and_documented_with_its_default_and_meaning() {
    let cli = Cli::new();
    let rows = cli.run(&["config", "--json"]).json();
    let shown = ok(&cli, &["config"]);
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
    let docs = fs::read_to_string(docs).unwrap();
    let rows: Vec<_> = rows.as_array().unwrap().iter().skip(1).cloned().collect();
    assert_eq!(rows.len(), 15);
    for row in rows {
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        let (name, default, meaning) = (text("name"), text("default"), text("meaning"));
        assert_eq!(row["source"], "default");
        // The table and the code that reads settings agree.
        let line = format!("{name} = {default}  (default)");
        assert!(shown.contains(&line), "{line}\n{shown}");
        assert!(shown.contains(&meaning), "{shown}");
        let line = format!("| `{name}` | `{default}` | {meaning} |");
        assert!(docs.contains(&line), "docs/cli.md needs: {line}");
        if !["prices", "remotes"].contains(&&*name) {
            ok(&cli, &["config", "set", &name, &default]);
        }
    }
    ok(&cli, &["list"]);
}
