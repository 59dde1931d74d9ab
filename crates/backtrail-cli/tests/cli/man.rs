//! `man`: the manual pages.

use std::fs;
use std::process::{Command, Stdio};

use crate::kit::{Cli, finish};

#[test]
fn the_manual_has_every_verb_and_every_option() {
    let cli = Cli::new();
    let page = cli.run(&["man"]);
    assert_eq!((page.code, &*page.stderr), (0, ""), "{page:#?}");
    let page = page.stdout.replace("\\-", "-");
    let verbs = cli.run(&["__complete", "--", ""]).stdout;
    assert!(verbs.lines().count() > 30);
    for line in verbs.lines() {
        let verb = line.split('\t').next().unwrap();
        assert!(page.contains(&format!("backtrail {verb}")), "{verb}");
        let options = cli.run(&["__complete", "--", verb, "--"]).stdout;
        for line in options.lines() {
            let option = line.split('\t').next().unwrap();
            assert!(page.contains(option), "{verb} {option}");
        }
        let own = cli.run(&["man", verb]);
        assert_eq!(own.code, 0, "{own:#?}");
        let title = format!(".TH BACKTRAIL-{} 1", verb.to_uppercase());
        assert!(own.stdout.contains(&title), "{}", own.stdout);
    }
    let inner = cli.run(&["man", "trash", "empty"]).stdout;
    assert!(inner.contains(".TH BACKTRAIL-TRASH-EMPTY 1"), "{inner}");
}

#[test]
fn an_unknown_verb_brings_up_the_nearest() {
    let cli = Cli::new();
    for (wrong, hint) in [
        (&["man", "shwo"][..], "did you mean 'show'?"),
        (&["man", "trash", "emtpy"], "did you mean 'empty'?"),
        (&["man", "zzz"], "backtrail help --all"),
        (&["man", "__complete"], "hint"),
    ] {
        let ran = cli.run(wrong);
        assert_eq!((ran.code, &*ran.stdout), (2, ""), "{ran:#?}");
        assert!(ran.stderr.contains(hint), "{wrong:?}: {}", ran.stderr);
    }
}

#[test]
fn man_renders_the_pages_without_a_warning() {
    let there = Command::new("man")
        .arg("--version")
        .stdin(Stdio::null())
        .output();
    if !there.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: needs man; the pages were not rendered");
        return;
    }
    let cli = Cli::new();
    for verb in [&[][..], &["show"], &["run"], &["trash", "empty"]] {
        let page = cli.run(&[&["man"], verb].concat()).stdout;
        let file = cli.work().join("page.1");
        fs::write(&file, page).unwrap();
        let mut man = Command::new("man");
        man.args(["--warnings", "-E", "UTF-8", "-l"])
            .arg(&file)
            .env("MANWIDTH", "80")
            .env("LC_ALL", "C.UTF-8")
            .env_remove("MAN_KEEP_FORMATTING");
        let ran = finish(&mut man, b"");
        assert_eq!((ran.code, &*ran.stderr), (0, ""), "{verb:?}");
        assert!(ran.stdout.contains("BACKTRAIL"), "{verb:?}");
        assert!(ran.stdout.contains("--store"), "{verb:?}");
    }
}
