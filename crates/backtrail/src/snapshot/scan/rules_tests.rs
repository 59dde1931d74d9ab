//! Scans ignore what git ignores, honour `.ignore` and `.backtrailignore`, and apply
//! changed rules in the next scan.

#![expect(
    clippy::disallowed_methods,
    reason = "tests change a workspace as programs do"
)]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use super::super::entry::SkippedReason;
use super::testing::{TestWorkspace, Thing};

fn place() -> TestWorkspace {
    let mut place = TestWorkspace::new();
    place.later_millis = 3_600_000;
    place
}

/// Returns the small files that were captured although they are ignored.
fn ignored(place: &mut TestWorkspace) -> Vec<String> {
    let things = place.things();
    let found = things
        .iter()
        .filter(|(_, thing)| matches!(thing, Thing::File { ignored: true, .. }));
    found
        .map(|(path, _)| String::from_utf8_lossy(path).into_owned())
        .collect()
}

fn skipped(place: &mut TestWorkspace) -> Vec<String> {
    place.names(Some(SkippedReason::Ignored))
}

#[test]
fn ignored_directories_are_skipped_and_small_files_kept() {
    let mut place = place();
    place.options.small_ignored = 10;
    place.write(".gitignore", "target/\n*.log\n.env\n");
    place.write("target/debug/out", "x");
    place.write("src/target/out", "x");
    place.write("src/main.rs", "x");
    place.write("small.log", "0123456789");
    place.write("large.log", "0123456789a");
    place.write(".env", "KEY=1");
    assert_eq!(skipped(&mut place), ["large.log", "src/target", "target"]);
    assert_eq!(ignored(&mut place), [".env", "small.log"]);
    assert_eq!(
        place.names(None),
        [".env", ".gitignore", "small.log", "src/main.rs"]
    );
}

#[test]
fn the_deepest_rule_wins_and_may_include_again() {
    let mut place = place();
    place.write(".gitignore", "*.log\n/only-here\nbuild/\n");
    place.write("a/.gitignore", "!keep.log\n");
    place.write("a/keep.log", "x");
    place.write("a/other.log", "x");
    place.write("a/b/keep.log", "x");
    place.write("a/only-here", "x");
    place.write("only-here", "x");
    // Nothing in an ignored directory can be included again.
    place.write("build/.gitignore", "!*\n");
    place.write("build/keep", "x");
    assert_eq!(ignored(&mut place), ["a/other.log", "only-here"]);
    assert_eq!(skipped(&mut place), ["build"]);
}

#[test]
fn each_kind_of_rule_has_its_rank() {
    let mut place = place();
    let global = place.dir.path().join("global");
    fs::write(&global, "*.global\n*.x\n").unwrap();
    place.options.global_excludes = Some(global.clone());
    place.write(".git/info/exclude", "*.exclude\n!keep.x\n");
    place.write(".gitignore", "*.git\n!keep.exclude\n*.a\n");
    place.write(".ignore", "?*.ignore\n!keep.git\n");
    place.write(".backtrailignore", "*.backtrail\n!keep.ignore\n!*.a\n*.b\n");
    let names = [
        "1.global",
        "1.x",
        "keep.x",
        "1.exclude",
        "keep.exclude",
        "1.git",
        "keep.git",
        "1.ignore",
        "keep.ignore",
        "1.backtrail",
        "1.a",
        "1.b",
        "plain",
    ];
    names.iter().for_each(|name| place.write(name, "x"));
    assert_eq!(
        ignored(&mut place),
        ["1.exclude", "1.git", "1.global", "1.ignore", "1.x"]
    );
    assert_eq!(skipped(&mut place), ["1.b", "1.backtrail"]);
    fs::write(&global, "").unwrap();
    assert_eq!(ignored(&mut place), ["1.exclude", "1.git", "1.ignore"]);
    place.write(".git/info/exclude", "");
    assert_eq!(ignored(&mut place), ["1.git", "1.ignore"]);
}

#[test]
fn our_own_rules_include_what_git_ignores() {
    let mut place = place();
    place.write(".gitignore", "dist/\n");
    place.write("dist/out", "x");
    assert_eq!(skipped(&mut place), ["dist"]);
    place.write(".backtrailignore", "!dist/\n");
    assert_eq!(skipped(&mut place), [""; 0]);
    assert_eq!(
        place.names(None),
        [".backtrailignore", ".gitignore", "dist/out"]
    );
}

#[test]
fn rules_that_change_take_effect_at_once() {
    let mut place = place();
    place.write("a/b/file.log", "x");
    place.write("a/b/file.txt", "x");
    assert_eq!(ignored(&mut place), [""; 0]);
    let before = place.scan();
    place.write(".gitignore", "*.log\n");
    assert_eq!(ignored(&mut place), ["a/b/file.log"]);
    // The same length, immediately afterwards.
    place.write(".gitignore", "*.txt\n");
    assert_eq!(ignored(&mut place), ["a/b/file.txt"]);
    place.write(".gitignore", "a/\n");
    assert_eq!(skipped(&mut place), ["a"]);
    fs::remove_file(place.at(".gitignore")).unwrap();
    assert_eq!(ignored(&mut place), [""; 0]);
    assert_eq!(place.scan().id, before.id);
}

#[test]
fn rules_that_move_to_another_directory_take_effect_at_once() {
    let mut place = place();
    place.write("a/b/c/out/f", "x");
    place.write("a/b/c/x", "x");
    place.write("a/.gitignore", "/b/c/out/\n");
    assert_eq!(skipped(&mut place), ["a/b/c/out"]);
    fs::rename(place.at("a/.gitignore"), place.at("a/b/.gitignore")).unwrap();
    assert_eq!(skipped(&mut place), [""; 0]);
    fs::rename(place.at("a/b/.gitignore"), place.at("a/.gitignore")).unwrap();
    assert_eq!(skipped(&mut place), ["a/b/c/out"]);
}

#[test]
fn new_rules_read_no_file_again_that_is_known() {
    let mut place = place();
    for n in 0..20 {
        place.write(&format!("d{n}/f.log"), "x");
    }
    place.scan();
    place.write(".gitignore", "*.log\n");
    let scanned = place.scan();
    // Only the rule file itself.
    assert_eq!(scanned.counts.files, 1);
    assert_eq!(ignored(&mut place).len(), 20);
}

/// F30: nested repositories and worktrees are directories without their `.git`.
#[test]
fn a_repository_inside_has_its_own_rules() {
    let mut place = place();
    place.write(".git/info/exclude", "*.e\n");
    place.write(".gitignore", "*.log\nvendored/\n");
    place.write(".ignore", "*.i\n");
    place.write("inner/.git/info/exclude", "*.f\n");
    place.write("inner/.gitignore", "*.tmp\n");
    for name in ["a.log", "a.e", "a.f", "a.i", "a.tmp"] {
        place.write(&format!("inner/{name}"), "x");
        place.write(&format!("outer/{name}"), "x");
    }
    place.write("vendored/.git/HEAD", "x");
    place.write("vendored/file", "x");
    let names = [
        "inner/a.f",
        "inner/a.i",
        "inner/a.tmp",
        "outer/a.e",
        "outer/a.i",
        "outer/a.log",
    ];
    assert_eq!(ignored(&mut place), names);
    assert_eq!(skipped(&mut place), ["vendored"]);
    assert_eq!(
        place.names(Some(SkippedReason::Git)),
        [".git", "inner/.git"]
    );
    // `.git` is not counted among the skipped entries.
    assert_eq!(place.scan().root.totals.skipped, 1);
    assert_eq!(place.scan().skipped.len(), 1);
}

#[test]
fn a_worktree_finds_the_rules_of_its_repository() {
    let mut place = place();
    let main = place.dir.path().join("main/.git");
    fs::create_dir_all(main.join("worktrees/w")).unwrap();
    fs::create_dir_all(main.join("info")).unwrap();
    fs::write(main.join("info/exclude"), "*.e\n").unwrap();
    fs::write(main.join("worktrees/w/commondir"), "../..\n").unwrap();
    let pointer = format!("gitdir: {}\n", main.join("worktrees/w").display());
    place.write(".git", pointer);
    place.write("a.e", "x");
    assert_eq!(ignored(&mut place), ["a.e"]);
    assert_eq!(place.names(Some(SkippedReason::Git)), [".git"]);
    // A submodule names a path relative to itself.
    place.write("sub/.git", "gitdir: ../../main/.git\n");
    place.write("sub/b.e", "x");
    assert_eq!(ignored(&mut place), ["a.e", "sub/b.e"]);
    place.write("sub/.git", "no pointer at all");
    assert_eq!(ignored(&mut place), ["a.e"]);
}

#[test]
fn a_workspace_inside_a_repository_obeys_the_rules_above() {
    let mut place = place();
    let above = place.dir.path().to_owned();
    fs::create_dir_all(above.join(".git/info")).unwrap();
    fs::write(above.join(".git/info/exclude"), "*.e\n").unwrap();
    fs::write(above.join(".gitignore"), "*.log\n/w/anchored\n/elsewhere\n").unwrap();
    for name in ["a.e", "a.log", "anchored", "elsewhere", "d/anchored"] {
        place.write(name, "x");
    }
    assert_eq!(ignored(&mut place), ["a.e", "a.log", "anchored"]);
    // A repository of its own ignores the rules above.
    place.write(".git/HEAD", "x");
    assert_eq!(ignored(&mut place), [""; 0]);
}

#[test]
fn rules_that_cannot_be_read_are_no_rules() {
    let mut place = place();
    place.write("d/.gitignore/oops", "a directory");
    place.write("e/.gitignore", "# ".repeat(600_000) + "\n*.log\n");
    place.write("f/rules", "*.log\n");
    std::os::unix::fs::symlink("rules", place.at("f/.gitignore")).unwrap();
    place.write("g/.gitignore", b"[\n\xff\xfe\n*.log\r\n{unclosed\n");
    for dir in ["d", "e", "f", "g"] {
        place.write(&format!("{dir}/a.log"), "x");
    }
    assert_eq!(ignored(&mut place), ["g/a.log"]);
}

#[test]
fn an_ignored_link_is_captured_unless_backtrailignore_excludes_it() {
    let mut place = place();
    place.write(".gitignore", "link\n");
    std::os::unix::fs::symlink("nowhere", place.at("link")).unwrap();
    assert_eq!(place.names(None), [".gitignore", "link"]);
    place.write(".backtrailignore", "link\n");
    assert_eq!(skipped(&mut place), ["link"]);
}

#[test]
fn one_rule_too_many_costs_no_other_rule() {
    let many: String = (0..30_000)
        .map(|n| format!("x{n:05}/**/foo*bar?[a-z]0\n"))
        .collect();
    for much in [many, "?".repeat(900_000)] {
        let mut place = place();
        place.write(".gitignore", format!("target/\n{much}\n*.log\n"));
        place.write("target/out", "x");
        place.write("a.log", "x");
        assert_eq!(skipped(&mut place), ["target"]);
        assert_eq!(ignored(&mut place), ["a.log"]);
    }
}

/// Rules that other programs interpret differently from git, each compared with git
/// itself.
#[test]
fn git_agrees_about_odd_rules() {
    if Command::new("git").arg("--version").output().is_err() {
        eprintln!("SKIPPED: needs git; nothing to compare with");
        return;
    }
    let names: [&[u8]; 24] = [
        b"src/f",
        b"{src,lib}/f",
        b"a.log",
        b"a.{log,tmp}",
        b"tab/f",
        b"tab\t/f",
        b"\xff\xfe",
        b"\xffx/f",
        b"b]",
        b"b-",
        b"b!",
        b"b\\",
        b"b/b",
        b"b1",
        b"bz",
        b"bA",
        b"c /f",
        b"c/f",
        b"deep/b1/bz",
        b"deep/er/b1",
        b"b\xc3\xa9",
        b"end\r",
        b"end",
        b"a,b",
    ];
    let rules: [&[u8]; 42] = [
        b"deep/***/b1",
        b"b***",
        b"{src,lib}/",
        b"*.{log,tmp}",
        b"tab/\t",
        b"tab\t/",
        b"\xff*",
        b"\xff\xfe",
        b"\xffx/",
        b"!\xff*",
        b"b[]]",
        b"b[!]]",
        b"b[^a-z]",
        b"b[-z]",
        b"b[z-]",
        b"b[!a]b",
        b"b[[:digit:]]",
        b"b[[:alpha:][:digit:]]",
        b"b[\\]]",
        b"b[\\\\]",
        b"b[+-9]b",
        b"b[1",
        b"c\\ /",
        b"c /",
        b"c\\ ",
        b"c ",
        b"end\r",
        b"end\r\r",
        b"deep/**/b[!a]",
        b"**/b[!a-y]",
        b"deep/b[!x]/**",
        b"[b]?",
        b"b[[:nope:]]",
        b"b\\",
        b"a[,]b",
        b"/b[!x]",
        b"deep/***/b[!z]",
        b"b[\xc3]\xa9",
        b"b[z-a]",
        b"{",
        b"\\{src,lib}",
        b"[!b]*/",
    ];
    let mut differ = Vec::new();
    for rule in rules {
        let mut place = place();
        git(&place, &["init", "-q"]);
        for name in names {
            let path = place.root().join(OsStr::from_bytes(name));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            // Some names are directories in one place and files in another.
            fs::write(path, "x").unwrap_or_default();
        }
        place.write(".gitignore", rule);
        let (found, expected) = (plain(&mut place), not_ignored(&place));
        if found != expected {
            differ.push((rule.escape_ascii().to_string(), found, expected));
        }
    }
    assert!(differ.is_empty(), "rule, found, expected: {differ:#?}");
}

/// Random rules in random places, compared with git itself.
#[test]
fn git_agrees_about_random_rules() {
    if Command::new("git").arg("--version").output().is_err() {
        eprintln!("SKIPPED: needs git; nothing to compare with");
        return;
    }
    let lines = [
        "*.log",
        "!keep.log",
        "/a",
        "a/",
        "b",
        "a/b",
        "**/c",
        "a/**",
        "!a/b",
        "/*/c",
        "d*",
        "?",
        "[ab]",
        "!b",
        "x y",
        "# comment",
        "",
        "\\!bang",
        "c/*",
        "!c/a",
        "*",
        "!*/",
        "a/**/b",
    ];
    let mut seed = 88_172_645_463_325_252_u64;
    let mut roll = |sides: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % sides as u64) as usize
    };
    for round in 0..25 {
        let mut place = place();
        git(&place, &["init", "-q"]);
        let names = ["a", "b", "c", "d1", "keep.log", "e.log", "x y", "!bang"];
        for _ in 0..25 {
            let depth = 1 + roll(4);
            let path: Vec<_> = (0..depth).map(|_| names[roll(names.len())]).collect();
            let path = place.at(&path.join("/"));
            fs::create_dir_all(path.parent().unwrap()).unwrap_or_default();
            fs::write(path, "x").unwrap_or_default();
        }
        for dir in ["", "a/", "b/", "a/b/", "c/"] {
            if roll(2) == 0 && place.at(dir).is_dir() {
                let rules: Vec<_> = (0..1 + roll(4)).map(|_| lines[roll(lines.len())]).collect();
                place.write(&format!("{dir}.gitignore"), rules.join("\n"));
            }
        }
        let found = plain(&mut place);
        assert_eq!(found, not_ignored(&place), "round {round}");
    }
}

/// Returns the files that no rule matches.
fn plain(place: &mut TestWorkspace) -> Vec<String> {
    let things = place.things();
    let plain = |(path, thing): (&Vec<u8>, &Thing)| {
        let plain = matches!(thing, Thing::File { ignored: false, .. });
        plain.then(|| path.escape_ascii().to_string())
    };
    let mut found: Vec<_> = things.iter().filter_map(plain).collect();
    found.sort_unstable();
    found
}

/// Returns the files that git does not ignore.
fn not_ignored(place: &TestWorkspace) -> Vec<String> {
    let args = ["ls-files", "-z", "--others", "--exclude-standard"];
    let output = git(place, &args);
    let names = output
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty());
    let mut names: Vec<_> = names.map(|name| name.escape_ascii().to_string()).collect();
    names.sort_unstable();
    names
}

fn git(place: &TestWorkspace, args: &[&str]) -> Vec<u8> {
    let mut command = Command::new("git");
    command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command
        .current_dir(place.root())
        .args(args)
        .output()
        .unwrap();
    assert!(output.status.success());
    output.stdout
}
