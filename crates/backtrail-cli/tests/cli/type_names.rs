//! Go-to-symbol works: few types share a name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The most types of one name in a crate.
const MOST: usize = 3;

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            sources(&path, found);
        } else if name.ends_with(".rs") && !name.ends_with("_tests.rs") {
            found.push(path);
        }
    }
}

/// Returns the names of the structs and enums in a file, without its tests.
fn types(text: &str) -> impl Iterator<Item = &str> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    code.lines().filter_map(|line| {
        let line = line.trim_start();
        let line = match line.strip_prefix("pub") {
            Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
            Some(rest) => rest.trim_start(),
            None => line,
        };
        let rest = line
            .strip_prefix("struct ")
            .or_else(|| line.strip_prefix("enum "))?;
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
        Some(&rest[..end.unwrap_or(rest.len())])
    })
}

#[test]
fn at_most_three_types_of_a_crate_share_a_name() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(root).unwrap() {
        let dir = entry.unwrap().path();
        let mut files = Vec::new();
        sources(&dir.join("src"), &mut files);
        let mut named: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            let path = file.strip_prefix(&dir).unwrap().display().to_string();
            for name in types(&text) {
                named.entry(name.to_owned()).or_default().push(path.clone());
            }
        }
        named.retain(|_, files| files.len() > MOST);
        for (name, files) in named {
            wrong.push(format!("{name}: {}", files.join(", ")));
        }
    }
    assert!(
        wrong.is_empty(),
        "too many types of one name:\n{}",
        wrong.join("\n")
    );
}
