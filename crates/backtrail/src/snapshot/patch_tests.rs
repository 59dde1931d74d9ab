//! Patches are exact: applied to one side, they give the other.

#![expect(
    clippy::disallowed_methods,
    reason = "the test looks at the disk, not through the seam"
)]

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use proptest::prelude::*;

use super::change::Change;
use super::diff::Diff;
use super::hunks::Bounds;
use super::name::os_str;
use super::patch::TextDiff;
use super::testing::{Item, Items, Memory, dir, file, flatten, named, snapshot, some_tree};
use super::text::{Hunks, compare, compare_within};

fn diff(before: &Items, after: &Items) -> Diff {
    let memory = Arc::new(Memory::default());
    let [before, after] = [before, after].map(|items| snapshot(&memory, items));
    before.diff(&after).unwrap()
}

fn patch(diff: &Diff) -> Vec<u8> {
    let mut out = Vec::new();
    diff.write_unified(&mut out, 3).unwrap();
    out
}

/// Applies hunks to a text, checking every line they name.
fn apply(before: &[u8], hunks: &Hunks) -> Vec<u8> {
    let old: Vec<&[u8]> = before.split_inclusive(|byte| *byte == b'\n').collect();
    let mut lines = hunks
        .bytes
        .split_inclusive(|byte| *byte == b'\n')
        .peekable();
    let (mut at, mut out) = (0, Vec::new());
    let (mut added, mut removed) = (0, 0);
    while let Some(line) = lines.next() {
        if line.starts_with(b"@@") {
            let text = std::str::from_utf8(line).unwrap();
            let range = text.split(' ').nth(1).unwrap().trim_start_matches('-');
            let (start, len) = range.split_once(',').unwrap_or((range, "1"));
            let skip: usize = if len == "0" { 0 } else { 1 };
            let start = start.parse::<usize>().unwrap() - skip;
            out.extend(old[at..start].concat());
            at = start;
            continue;
        }
        let mut text = line[1..].to_vec();
        if lines.peek().is_some_and(|next| next.starts_with(b"\\")) {
            lines.next();
            text.pop();
        }
        if line[0] != b'+' {
            assert_eq!(text, old[at]);
            at += 1;
        }
        match line[0] {
            b'-' => removed += 1,
            sign => {
                added += u64::from(sign == b'+');
                out.extend(text);
            }
        }
    }
    out.extend(old[at..].concat());
    assert_eq!((added, removed), (hunks.added, hunks.removed));
    out
}

fn some_text() -> impl Strategy<Value = Vec<u8>> {
    let line = proptest::sample::select(vec![
        &b"\n"[..],
        b"a\n",
        b"  a\n",
        b"\ta\n",
        b"}\n",
        b"\xff\r\n",
        b"b\n",
    ]);
    let last = proptest::sample::select(vec![&b""[..], b"", b"a", b"}"]);
    (proptest::collection::vec(line, 0..30), last)
        .prop_map(|(lines, last)| [lines.concat(), last.to_vec()].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn hunks_turn_one_text_into_the_other(
        before in some_text(),
        after in some_text(),
        context in prop_oneof![0_usize..4, Just(usize::MAX)],
    ) {
        let hunks = compare(&before, &after, context);
        prop_assert_eq!(apply(&before, &hunks), after);
        prop_assert_eq!(hunks.bytes.is_empty(), apply(&before, &hunks) == before);
    }

    #[test]
    fn long_texts_are_compared_in_parts_and_as_exactly(
        before in some_text(),
        after in some_text(),
        lines in proptest::collection::vec((0_usize..40, 0_usize..40), 0..8),
        in_parts in prop_oneof![Just(0), 0_u64..200, Just(u64::MAX)],
    ) {
        // Some lines that occur once on each side.
        let [mut old, mut new] = [&before, &after].map(|text| {
            text.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>()
        });
        for (n, (from, to)) in lines.into_iter().enumerate() {
            let line = format!("only {n}\n").into_bytes();
            old.insert(from % (old.len() + 1), line.clone());
            new.insert(to % (new.len() + 1), line);
        }
        let [before, after] = [old.concat(), new.concat()];
        let bounds = Bounds { at_once: 0, in_parts };
        let hunks = compare_within(bounds, &before, &after, 1);
        prop_assert_eq!(apply(&before, &hunks), after);
    }
}

/// Returns whether git is installed, and prints a note if it is not.
fn git_is_there() -> bool {
    let found = Command::new("git").arg("--version").output().is_ok();
    if !found {
        eprintln!("SKIPPED: needs git; `git apply` was not tried");
    }
    found
}

fn put_on_disk(root: &Path, items: &Items) {
    for (name, item) in items {
        let path = root.join(os_str(name));
        match item {
            Item::File { mode, content, .. } => {
                fs::write(&path, content).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).unwrap();
            }
            Item::Link(target) => symlink(os_str(target), &path).unwrap(),
            Item::Dir(_, items) => {
                fs::create_dir(&path).unwrap();
                put_on_disk(&path, items);
            }
            Item::Skipped(..) => {}
        }
    }
}

/// Reads back files and links, with whether they are executable.
fn read_from_disk(root: &Path, parent: &Path, found: &mut Vec<(PathBuf, Vec<u8>, bool)>) {
    for entry in fs::read_dir(root.join(parent)).unwrap() {
        let path = parent.join(entry.unwrap().file_name());
        let full = root.join(&path);
        let stat = fs::symlink_metadata(&full).unwrap();
        if stat.is_dir() {
            read_from_disk(root, &path, found);
        } else if stat.is_symlink() {
            let target = fs::read_link(&full).unwrap();
            found.push((path, target.into_os_string().into_encoded_bytes(), false));
        } else {
            let runs = stat.permissions().mode() & 0o100 != 0;
            found.push((path, fs::read(&full).unwrap(), runs));
        }
    }
}

fn expected_on_disk(items: &Items) -> Vec<(PathBuf, Vec<u8>, bool)> {
    let found = flatten(items)
        .into_iter()
        .filter_map(|(path, item)| match item {
            Item::File { mode, content, .. } => Some((path, content, mode & 0o100 != 0)),
            Item::Link(target) => Some((path, target, false)),
            Item::Dir(..) | Item::Skipped(..) => None,
        });
    found.collect()
}

fn git_apply(before: &Items, patch: &[u8]) -> Result<Vec<(PathBuf, Vec<u8>, bool)>, String> {
    let dir = tempfile::tempdir().unwrap();
    put_on_disk(dir.path(), before);
    let mut git = Command::new("git")
        .args(["apply", "--whitespace=nowarn", "--unidiff-zero", "-"])
        .current_dir(dir.path())
        .env("GIT_CEILING_DIRECTORIES", dir.path().parent().unwrap())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    git.stdin.take().unwrap().write_all(patch).unwrap();
    let output = git.wait_with_output().unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let mut found = Vec::new();
    read_from_disk(dir.path(), Path::new(""), &mut found);
    found.sort();
    Ok(found)
}

/// Removes what a patch cannot express: skipped entries and empty directories.
fn for_a_patch(items: Items) -> Items {
    let keep = |(name, item)| match item {
        Item::Dir(mode, items) => {
            let items = for_a_patch(items);
            (!items.is_empty()).then_some((name, Item::Dir(mode, items)))
        }
        Item::Skipped(..) => None,
        item => Some((name, item)),
    };
    items.into_iter().filter_map(keep).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn git_applies_the_patch_of_any_two_trees(before in some_tree(), after in some_tree()) {
        let (before, after) = (for_a_patch(before), for_a_patch(after));
        let patch = patch(&diff(&before, &after));
        if git_is_there() && patch.windows(11).any(|bytes| bytes == b"diff --git ") {
            let text = String::from_utf8_lossy(&patch);
            match git_apply(&before, &patch) {
                Ok(found) => prop_assert_eq!(found, expected_on_disk(&after), "{}", text),
                Err(error) => prop_assert!(false, "{}\n{}", error, text),
            }
        }
    }
}

#[test]
fn a_patch_tells_contents_names_modes_and_links() {
    let run = |content: &str| Item::File {
        mode: 0o755,
        content: content.into(),
        ignored: false,
    };
    let before = named([
        ("a b", file("1\n2\n3\n4\n5\n6\n7\n8\n9\n")),
        ("kind", file("x\n")),
        ("link", Item::Link(b"old".into())),
        ("old name", file("moved\n")),
        ("script", file("same\n")),
        ("gone", file("no newline")),
        ("void", dir([])),
    ]);
    let after = named([
        ("a b", run("1\n2\n3\n4\nfive\n6\n7\n8\n9\n")),
        ("kind", Item::Link(b"y".into())),
        ("link", Item::Link(b"new".into())),
        ("new\tname", run("moved\n")),
        ("script", run("same\n")),
        ("empty", file("")),
    ]);
    let expected = "\
diff --git a/a b b/a b
old mode 100644
new mode 100755
--- a/a b\t
+++ b/a b\t
@@ -2,7 +2,7 @@
 2
 3
 4
-5
+five
 6
 7
 8
diff --git a/empty b/empty
new file mode 100644
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-no newline
\\ No newline at end of file
diff --git a/kind b/kind
deleted file mode 100644
--- a/kind
+++ /dev/null
@@ -1 +0,0 @@
-x
diff --git a/kind b/kind
new file mode 120000
--- /dev/null
+++ b/kind
@@ -0,0 +1 @@
+y
\\ No newline at end of file
diff --git a/link b/link
--- a/link
+++ b/link
@@ -1 +1 @@
-old
\\ No newline at end of file
+new
\\ No newline at end of file
diff --git a/old name \"b/new\\tname\"
old mode 100644
new mode 100755
similarity index 100%
rename from old name
rename to \"new\\tname\"
diff --git a/script b/script
old mode 100644
new mode 100755
deleted directory void
";
    let patch = patch(&diff(&before, &after));
    assert_eq!(String::from_utf8(patch.clone()).unwrap(), expected);
    if git_is_there() {
        let mut expected = expected_on_disk(&after);
        expected.sort();
        assert_eq!(git_apply(&before, &patch).unwrap(), expected);
    }
}

#[test]
fn every_second_line_of_a_long_text_is_a_hunk_of_its_own() {
    let text = |word: &str| -> Vec<u8> {
        let line = |n| match n % 2 {
            0 => format!("same {n}\n"),
            _ => format!("{word} {n}\n"),
        };
        (0..200_000).map(line).collect::<String>().into_bytes()
    };
    let hunks = compare(&text("old"), &text("new"), 0);
    assert_eq!((hunks.added, hunks.removed), (100_000, 100_000));
}

#[test]
fn the_longest_lists_of_equal_lines_are_compared() {
    let (before, after) = (vec![b'\n'; 16 << 20], vec![b'\n'; 15 << 20]);
    let hunks = compare(&before, &after, 3);
    assert_eq!((hunks.added, hunks.removed), (0, 1 << 20));
    let (mut before, after) = (vec![b'\n'; 1 << 20], vec![b'\n'; 1 << 19]);
    (0..before.len())
        .step_by(3)
        .for_each(|at| before[at] = b'x');
    assert_eq!(apply(&before, &compare(&before, &after, 3)), after);
}

fn only_change(diff: &Diff) -> &Change {
    assert_eq!(diff.changes().len(), 1);
    &diff.changes()[0]
}

#[test]
fn binary_files_are_only_named_and_git_refuses_to_guess() {
    let before = named([("f", file("text\n"))]);
    let after = named([("f", file(b"\x00\x01"))]);
    let diff = diff(&before, &after);
    match diff.text(only_change(&diff), 3).unwrap() {
        TextDiff::Binary {
            unified,
            before,
            after,
        } => {
            assert!(unified.ends_with(b"Binary files a/f and b/f differ\n"));
            assert_eq!((before, after), (Some(5), Some(2)));
        }
        other => panic!("{other:?}"),
    }
    if git_is_there() {
        assert!(git_apply(&before, &patch(&diff)).is_err());
    }
}

#[test]
fn files_that_are_too_large_are_only_named_and_git_refuses_to_guess() {
    let before = named([("f", file("text\n"))]);
    let after = named([("f", file(vec![b'\n'; 16 * 1024 * 1024 + 1]))]);
    let diff = diff(&before, &after);
    match diff.text(only_change(&diff), 3).unwrap() {
        TextDiff::TooLarge { unified, after, .. } => {
            let words = "Files a/f and b/f differ\n(over 16 MiB: not compared line by line)\n";
            assert!(unified.ends_with(words.as_bytes()));
            assert_eq!(after, Some(16 * 1024 * 1024 + 1));
        }
        other => panic!("{other:?}"),
    }
    if git_is_there() {
        assert!(git_apply(&before, &patch(&diff)).is_err());
    }
}

/// Git knows two file modes; other modes must not make it reject the patch.
#[test]
fn modes_that_git_does_not_know_are_described_in_words() {
    let with = |mode, text: &str| match file(text) {
        Item::File { content, .. } => Item::File {
            mode,
            content,
            ignored: false,
        },
        other => other,
    };
    let before = named([
        ("only mode", with(0o644, "same\n")),
        ("shared", with(0o664, "same\n")),
        ("tool", with(0o755, "1\n")),
    ]);
    let after = named([
        ("new", with(0o600, "")),
        ("only mode", with(0o600, "same\n")),
        ("root", with(0o4755, "")),
        ("shared", with(0o775, "same\n")),
        ("tool", with(0o4755, "2\n")),
    ]);
    let expected = "\
diff --git a/new b/new
new file mode 100644
mode of only mode 644 → 600
mode of root 4755
diff --git a/root b/root
new file mode 100755
mode of shared 664 → 775
diff --git a/shared b/shared
old mode 100644
new mode 100755
mode of tool 755 → 4755
diff --git a/tool b/tool
--- a/tool
+++ b/tool
@@ -1 +1 @@
-1
+2
";
    let patch = patch(&diff(&before, &after));
    assert_eq!(String::from_utf8(patch.clone()).unwrap(), expected);
    if git_is_there() {
        let mut expected = expected_on_disk(&after);
        expected.sort();
        assert_eq!(git_apply(&before, &patch).unwrap(), expected);
    }
}
