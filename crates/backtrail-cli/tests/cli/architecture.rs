//! ARCHITECTURE.md is true: its tables list the crates and modules that there are, and no
//! module imports or touches anything that its row does not allow. And names can be told
//! apart: at most three types of a crate share one.

mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use source::Module;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn document() -> String {
    std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap()
}

/// Returns the rows of the table below a heading, cell by cell.
fn table(document: &str, heading: &str) -> Vec<Vec<String>> {
    let mut lines = document.lines().skip_while(|line| *line != heading).skip(1);
    let rows: Vec<_> = lines
        .by_ref()
        .take_while(|line| !line.starts_with('#'))
        .filter(|line| line.starts_with('|'))
        .skip(2)
        .map(|line| {
            let inner = line.trim_matches('|');
            inner
                .split('|')
                .map(|cell| cell.trim().to_owned())
                .collect()
        })
        .collect();
    assert!(!rows.is_empty(), "no table below {heading:?}");
    rows
}

/// Returns the words in backticks of a cell.
fn quoted(cell: &str) -> BTreeSet<String> {
    let parts = cell.split('`').skip(1).step_by(2);
    parts.map(str::to_owned).collect()
}

/// A row about a module: `| module | what it is | may import | touches |`.
struct Row {
    name: String,
    path: Vec<String>,
    files: BTreeSet<String>,
    imports: Vec<Vec<String>>,
    touches: BTreeSet<String>,
}

fn module_path(name: &str) -> Vec<String> {
    let name = name.trim_end_matches('/').trim_end_matches(".rs");
    name.split('/').map(str::to_owned).collect()
}

fn rows(document: &str, folder: &str) -> Vec<Row> {
    table(document, &format!("### `{folder}`"))
        .into_iter()
        .map(|cells| {
            assert_eq!(cells.len(), 4, "{folder}: {cells:?}");
            let name = cells[0].trim_matches('`').to_owned();
            let mut files = quoted(&cells[1]);
            files.retain(|file| file.ends_with(".rs") || file.ends_with('/'));
            let touches = cells[3].split(", ").filter(|cell| *cell != "–");
            Row {
                path: module_path(&name),
                name,
                files,
                imports: quoted(&cells[2])
                    .iter()
                    .map(|name| module_path(name))
                    .collect(),
                touches: touches.map(str::to_owned).collect(),
            }
        })
        .collect()
}

/// Returns the row that a module belongs to: the one that names most of its path.
fn row_of<'r>(rows: &'r [Row], path: &[String]) -> Option<&'r Row> {
    let fits = rows.iter().filter(|row| path.starts_with(&row.path));
    fits.max_by_key(|row| row.path.len())
}

/// Each folder that has a table, which is each crate that is built on the others' modules.
const FOLDERS: [&str; 9] = [
    "crates/backtrail/src",
    "crates/backtrail-index/src",
    "crates/backtrail-formats/src",
    "crates/backtrail-cli/src",
    "crates/backtrail-tui/src",
    "crates/backtrail-view/src",
    "crates/backtrail-web/src",
    "crates/backtrail-remote/src",
    "crates/backtrail-testkit/src",
];

#[test]
fn every_module_has_a_row_and_every_row_a_module() {
    let document = document();
    let mut wrong = Vec::new();
    for folder in FOLDERS {
        let rows = rows(&document, folder);
        let dir = root().join(folder);
        for row in &rows {
            if !dir.join(&row.name).exists() {
                wrong.push(format!("{folder}: `{}` is gone", row.name));
            }
            for file in &row.files {
                let inside = dir.join(&row.name).join(file);
                if !inside.exists() && !dir.join(file).exists() {
                    wrong.push(format!(
                        "{folder}: `{}` names `{file}`, which is gone",
                        row.name
                    ));
                }
            }
        }
        for module in source::modules(&dir) {
            if !module.path.is_empty() && row_of(&rows, &module.path).is_none() {
                wrong.push(format!("{} has no row", module.file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "ARCHITECTURE.md:\n{}", wrong.join("\n"));
}

/// Returns the module that a name at the crate's root comes from.
fn origins(modules: &[Module]) -> BTreeMap<String, Vec<String>> {
    let root = modules.iter().find(|module| module.path.is_empty());
    let exported = root.map(Module::exports).unwrap_or_default();
    let named = exported.into_iter().filter(|path| path.len() > 2);
    named
        .map(|mut path| (path.pop().unwrap(), path.split_off(1)))
        .collect()
}

/// Returns which rows import which, with an example of each.
fn imports(rows: &[Row], modules: &[Module]) -> BTreeMap<(String, String), String> {
    let origins = origins(modules);
    let mut found = BTreeMap::new();
    for module in modules {
        let Some(from) = row_of(rows, &module.path) else {
            continue;
        };
        for path in module.paths() {
            let Some(("crate", inside)) = path.split_first().map(|(a, b)| (a.as_str(), b)) else {
                continue;
            };
            let origin = inside.first().and_then(|name| origins.get(name));
            let Some(to) = row_of(rows, origin.map_or(inside, Vec::as_slice)) else {
                continue;
            };
            if from.path[0] != to.path[0] {
                let example = format!("{} names {}", module.file.display(), path.join("::"));
                found
                    .entry((from.name.clone(), to.name.clone()))
                    .or_insert(example);
            }
        }
    }
    found
}

/// Returns the imports that go against the layers, each with its reason in the document.
fn exceptions(document: &str) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for cells in table(document, "### Exceptions") {
        assert_eq!(cells.len(), 3, "{cells:?}");
        assert!(cells[2].len() > 10, "an exception has a reason: {cells:?}");
        for from in quoted(&cells[0]) {
            for to in quoted(&cells[1]) {
                found.insert((from.clone(), to));
            }
        }
    }
    found
}

#[test]
fn no_module_imports_what_its_row_does_not_allow() {
    let document = document();
    let mut unused = exceptions(&document);
    let mut wrong = Vec::new();
    for folder in FOLDERS {
        let rows = rows(&document, folder);
        let modules = source::modules(&root().join(folder));
        for ((from, to), example) in imports(&rows, &modules) {
            let row = rows.iter().find(|row| row.name == from).unwrap();
            let target = module_path(&to);
            let allowed = row.imports.iter().any(|path| target.starts_with(path));
            if !allowed && !unused.remove(&(from.clone(), to.clone())) {
                wrong.push(format!("`{from}` may not import `{to}`: {example}"));
            }
        }
    }
    for (from, to) in unused {
        wrong.push(format!(
            "the exception of `{from}` for `{to}` is not needed"
        ));
    }
    assert!(wrong.is_empty(), "ARCHITECTURE.md:\n{}", wrong.join("\n"));
}

#[test]
fn the_layers_have_no_cycle() {
    let document = document();
    for folder in FOLDERS {
        let rows = rows(&document, folder);
        let mut left: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for row in &rows {
            let below = left.entry(&row.path[0]).or_default();
            below.extend(row.imports.iter().map(|path| path[0].as_str()));
            below.remove(row.path[0].as_str());
        }
        // Takes away whatever rests on nothing that is left, until nothing is.
        while !left.is_empty() {
            let names: BTreeSet<&str> = left.keys().copied().collect();
            let before = left.len();
            left.retain(|_, below| below.iter().any(|name| names.contains(name)));
            assert!(left.len() < before, "{folder}: a cycle among {left:#?}");
        }
    }
}

/// What a module can touch, and the paths that give it away.
const TOUCHES: [(&str, &[&str]); 7] = [
    ("files", &["std::fs", "rustix::fs"]),
    (
        "threads",
        &["std::thread", "thread::spawn", "thread::scope"],
    ),
    (
        "processes",
        &["std::process::Command", "std::process::exit"],
    ),
    ("environment", &["std::env"]),
    (
        "terminal",
        &[
            "std::io::stdout",
            "std::io::stderr",
            "std::io::stdin",
            "io::stdout",
            "io::stderr",
            "io::stdin",
            "anstream",
        ],
    ),
    ("SQLite", &["rusqlite"]),
    ("tantivy", &["tantivy"]),
];

/// Returns what a module touches, by the paths that it names.
fn touched(module: &Module) -> BTreeSet<String> {
    let paths: Vec<String> = module.paths().iter().map(|path| path.join("::")).collect();
    let names = |wanted: &str| {
        let mut starts = paths.iter().filter_map(|path| path.strip_prefix(wanted));
        starts.any(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    let mut found: BTreeSet<String> = TOUCHES
        .iter()
        .filter(|(_, paths)| paths.iter().any(|path| names(path)))
        .map(|(what, _)| (*what).to_owned())
        .collect();
    if ["print", "println", "eprint", "eprintln"]
        .iter()
        .any(|name| module.calls(name))
    {
        found.insert("terminal".to_owned());
    }
    found
}

#[test]
fn every_row_says_what_its_modules_touch() {
    let document = document();
    let mut wrong = Vec::new();
    for folder in FOLDERS {
        let rows = rows(&document, folder);
        let mut found: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for module in source::modules(&root().join(folder)) {
            let Some(row) = row_of(&rows, &module.path) else {
                continue;
            };
            found.entry(&row.name).or_default().extend(touched(&module));
        }
        for row in &rows {
            let touched = found.remove(row.name.as_str()).unwrap_or_default();
            if touched != row.touches {
                let name = &row.name;
                wrong.push(format!(
                    "{folder}: `{name}` touches {touched:?}, not {:?}",
                    row.touches
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "ARCHITECTURE.md:\n{}", wrong.join("\n"));
}

#[test]
fn crates_depend_on_those_that_their_row_names() {
    let rows = table(&document(), "### Crates");
    let listed: BTreeSet<String> = rows.iter().flat_map(|cells| quoted(&cells[0])).collect();
    let mut there = BTreeSet::from(["agents", "bench", "fuzz"].map(str::to_owned));
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        there.insert(format!("crates/{}", entry.unwrap().file_name().display()));
    }
    assert_eq!(listed, there);
    for cells in rows {
        let name = quoted(&cells[0]).pop_first().unwrap();
        let manifest = root().join(&name).join("Cargo.toml");
        let manifest = std::fs::read_to_string(manifest).unwrap();
        let section = manifest.split("[dependencies]").nth(1).unwrap_or("");
        let section = section.split("\n[").next().unwrap();
        let lines = section.lines().filter(|line| line.starts_with("backtrail"));
        let depends: BTreeSet<String> = lines
            .map(|line| line.split(['.', ' ', '=']).next().unwrap().to_owned())
            .collect();
        assert_eq!(quoted(&cells[2]), depends, "{name}");
    }
}

#[test]
fn no_crate_has_more_than_three_types_of_one_name() {
    let mut wrong = Vec::new();
    for folder in FOLDERS {
        let modules = source::modules(&root().join(folder));
        let mut files: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for module in &modules {
            for name in module.types() {
                let file = module.file.display().to_string();
                files.entry(name).or_default().push(file);
            }
        }
        files.retain(|_, files| files.len() > 3);
        wrong.extend(
            files
                .into_iter()
                .map(|(name, files)| format!("{name}: {files:#?}")),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
