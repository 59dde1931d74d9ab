//! Edits of `config.toml` that keep every other byte.

use std::ops::Range;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::{Settings, parse_table, table, unknown};
use crate::error::{CommandError, Result};

/// A change of one setting.
#[derive(Debug)]
pub(crate) enum Edit<'e> {
    /// Sets it to what the user typed: one word, or several for a list.
    Set(&'e [String]),
    /// Removes it, so that the default applies.
    Unset,
}

/// Returns the text of the settings with one of them changed. What is not valid is refused.
pub(crate) fn edited(text: &str, path: &Path, name: &str, edit: &Edit<'_>) -> Result<String> {
    let Some(info) = table::find(name) else {
        return Err(unknown(name));
    };
    if info.name == "prices" {
        let error = CommandError::invalid("prices are a table, which cannot be set like this");
        return Err(error.hint("edit the file: backtrail config edit"));
    }
    if info.name == "remotes" {
        let error = CommandError::invalid("remotes are a table, which cannot be set like this");
        let error = error.hint("add one: backtrail remote add NAME URL");
        return Err(error.hint("remove one: backtrail remote remove NAME"));
    }
    let mut expected = parse_table(text).map_err(|error| error.at_path(path))?;
    let new = match edit {
        Edit::Set(words) => {
            let value = value_of(info.default, words);
            put(&mut expected, name, Some(value.clone()));
            with_value(text, name, &written(&value))
        }
        Edit::Unset => {
            put(&mut expected, name, None);
            without_value(text, name)
        }
    };
    // Whatever the file looks like, no other setting may change.
    if parse_table(&new).ok().map(without_empty) != Some(without_empty(expected)) {
        let what = format!("cannot change {name} in the settings as they are written");
        let error = CommandError::invalid(what).at_path(path);
        return Err(error.hint("edit the file: backtrail config edit"));
    }
    Settings::parse(&new, path)?;
    Ok(new)
}

/// Returns the value that words mean: a list where the default is one, and otherwise a value in
/// TOML, on or off, or plain text.
fn value_of(default: &str, words: &[String]) -> toml::Value {
    let parsed = |word: &String| toml_value(word);
    let text = |word: &String| toml::Value::String(word.clone());
    if default.starts_with('[') {
        return match words {
            [one] if one.trim_start().starts_with('[') => parsed(one).unwrap_or_else(|| text(one)),
            words => toml::Value::Array(words.iter().map(text).collect()),
        };
    }
    let word = words.join(" ");
    match (default, word.as_str()) {
        ("true" | "false", "on") => toml::Value::Boolean(true),
        ("true" | "false", "off") => toml::Value::Boolean(false),
        _ => parsed(&word).unwrap_or_else(|| text(&word)),
    }
}

fn toml_value(text: &str) -> Option<toml::Value> {
    let table: toml::Table = format!("v = {text}").parse().ok()?;
    let value = table.get("v").filter(|_| table.len() == 1)?;
    let is_plain = !matches!(value, toml::Value::Datetime(_) | toml::Value::Table(_));
    is_plain.then(|| value.clone())
}

/// Writes a value as TOML.
fn written(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => quoted(text),
        toml::Value::Array(values) => {
            let values: Vec<String> = values.iter().map(written).collect();
            format!("[{}]", values.join(", "))
        }
        toml::Value::Boolean(value) => value.to_string(),
        toml::Value::Integer(value) => value.to_string(),
        // Of no setting; it is refused with the reason.
        other => format!("{:?}", other.type_str()),
    }
}

pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => {
                quoted.push_str(&format!("\\u{:04X}", u32::from(letter)));
            }
            letter => quoted.push(letter),
        }
    }
    quoted + "\""
}

/// Sets a value in a table, or removes it.
fn put(table: &mut toml::Table, name: &str, value: Option<toml::Value>) {
    let (table, name) = match name.split_once('.') {
        Some((outer, inner)) => {
            if value.is_some() {
                let outer = table
                    .entry(outer)
                    .or_insert_with(|| toml::Table::new().into());
                if !outer.is_table() {
                    return;
                }
            }
            match table.get_mut(outer).and_then(toml::Value::as_table_mut) {
                Some(table) => (table, inner),
                None => return,
            }
        }
        None => (table, name),
    };
    match value {
        Some(value) => drop(table.insert(name.to_owned(), value)),
        None => drop(table.remove(name)),
    }
}

/// Removes tables without a setting, which mean nothing.
pub(super) fn without_empty(mut table: toml::Table) -> toml::Table {
    table.retain(|_, value| value.as_table().is_none_or(|table| !table.is_empty()));
    table
}

/// Where a setting is: its key and its value.
struct Place {
    key: Range<usize>,
    value: Range<usize>,
}

fn find(text: &str, name: &str) -> Option<Place> {
    let table = DeTable::parse(text).ok()?.into_inner();
    let place = |table: &DeTable<'_>, name: &str| {
        let (key, value) = table.get_key_value(name)?;
        Some(Place {
            key: key.span(),
            value: value.span(),
        })
    };
    match name.split_once('.') {
        None => place(&table, name),
        Some((outer, inner)) => match table.get(outer)?.get_ref() {
            DeValue::Table(table) => place(table, inner),
            _ => None,
        },
    }
}

fn with_value(text: &str, name: &str, value: &str) -> String {
    if let Some(place) = find(text, name) {
        return format!(
            "{}{value}{}",
            &text[..place.value.start],
            &text[place.value.end..]
        );
    }
    let (at, key) = match name.split_once('.') {
        Some((outer, inner)) => match after_header(text, outer) {
            Some(at) => (at, inner),
            None => (first_header(text), name),
        },
        None => (first_header(text), name),
    };
    let (before, after) = text.split_at(at);
    let (before_end, after_begin) = match (before.is_empty() || before.ends_with('\n'), after) {
        (false, _) => ("\n", ""),
        // A table keeps its distance.
        (true, after) if after.trim_start().starts_with('[') && before.trim().is_empty() => {
            ("", "\n")
        }
        _ => ("", ""),
    };
    format!("{before}{before_end}{key} = {value}\n{after_begin}{after}")
}

fn without_value(text: &str, name: &str) -> String {
    let Some(place) = find(text, name) else {
        return text.to_owned();
    };
    let start = text[..place.key.start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[place.value.end..].find('\n');
    let end = end.map_or(text.len(), |at| place.value.end + at + 1);
    format!("{}{}", &text[..start], &text[end..])
}

/// Returns where the first table begins: settings without a table come before it.
fn first_header(text: &str) -> usize {
    let mut at = 0;
    let tables = headers(text);
    for line in text.split_inclusive('\n') {
        if tables.contains(&at) {
            // Comments right above belong to the table.
            return before_comments(text, at);
        }
        at += line.len();
    }
    text.len()
}

pub(super) fn before_comments(text: &str, mut at: usize) -> usize {
    while let Some(line) = text[..at].strip_suffix('\n') {
        let start = line.rfind('\n').map_or(0, |at| at + 1);
        if !line[start..].trim_start().starts_with('#') {
            break;
        }
        at = start;
    }
    at
}

/// Returns where the lines begin that are headers of tables, and not parts of a value.
pub(super) fn headers(text: &str) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        // What comes before a header is whole by itself.
        if line.trim_start().starts_with('[') && text[..at].parse::<toml::Table>().is_ok() {
            starts.push(at);
        }
        at += line.len();
    }
    starts
}

/// Returns the place after the header of a table.
fn after_header(text: &str, table: &str) -> Option<usize> {
    headers(text).into_iter().find_map(|at| {
        let line = text[at..].split_inclusive('\n').next()?;
        let name = line.trim_start().strip_prefix('[')?.split_once(']')?.0;
        (name.trim() == table && line.ends_with('\n')).then(|| at + line.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str, name: &str, words: &[&str]) -> Result<String> {
        let words: Vec<String> = words.iter().map(|&it| it.to_owned()).collect();
        edited(text, Path::new("config.toml"), name, &Edit::Set(&words))
    }

    fn unset(text: &str, name: &str) -> Result<String> {
        edited(text, Path::new("config.toml"), name, &Edit::Unset)
    }

    #[test]
    fn a_setting_changes_and_every_other_byte_stays() {
        let text =
            "# mine\r\nrotation = \"1 MiB\" # small\n\n# costs\n[prices.x]\ninput=1\noutput = 2\n";
        assert_eq!(
            set(text, "rotation", &["2", "MiB"]).unwrap(),
            text.replace("\"1 MiB\"", "\"2 MiB\"")
        );
        assert_eq!(
            set(text, "auto_import", &["off"]).unwrap(),
            text.replace("# costs", "auto_import = false\n# costs")
        );
        assert_eq!(set("", "keep_trails", &["3"]).unwrap(), "keep_trails = 3\n");
        assert_eq!(
            set("rotation = 4096", "keep_trails", &["all"]).unwrap(),
            "rotation = 4096\nkeep_trails = \"all\"\n"
        );
        assert_eq!(
            unset(text, "rotation").unwrap(),
            text.replace("rotation = \"1 MiB\" # small\n", "")
        );
        assert_eq!(unset(text, "hook_wait").unwrap(), text);
    }

    #[test]
    fn a_list_is_set_wherever_it_is_written() {
        let set = |text: &str| set(text, "import.exclude", &["~/a b", "c\"d"]).unwrap();
        let value = r#"["~/a b", "c\"d"]"#;
        assert_eq!(set(""), format!("import.exclude = {value}\n"));
        assert_eq!(
            set("[import]\nexclude = [\n  \"x\", # why\n]\n"),
            format!("[import]\nexclude = {value}\n")
        );
        assert_eq!(
            set("[import] # here\n\n[prices]\n"),
            format!("[import] # here\nexclude = {value}\n\n[prices]\n")
        );
        assert_eq!(
            set("import = { exclude = [] }\n"),
            format!("import = {{ exclude = {value} }}\n")
        );
        assert_eq!(
            set("import.exclude = []"),
            format!("import.exclude = {value}")
        );
        assert_eq!(
            unset(
                "import.exclude = [\n\"a\",\n]\nrotation = 2048\n",
                "import.exclude"
            )
            .unwrap(),
            "rotation = 2048\n"
        );
        let inline = "import = { exclude = [] }\nrotation = 2048\n";
        assert_eq!(
            unset(inline, "import.exclude").unwrap(),
            "rotation = 2048\n"
        );
    }

    #[test]
    fn what_is_wrong_is_refused_and_nothing_else_changes() {
        for (name, words, expected) in [
            ("rotatoin", &["1 MiB"][..], "unknown setting"),
            ("rotation", &["soon"], "rotation must be a size"),
            ("rotation", &["{a = 1}"], "rotation must be a size"),
            ("durability", &["maybe"], "durability must be \"record\""),
            (
                "auto_import",
                &["perhaps"],
                "auto_import must be true or false",
            ),
            ("import.exclude", &["!a"], "begins with !"),
            ("import", &["a"], "unknown setting"),
            ("prices", &["1"], "prices are a table"),
        ] {
            let error = set("", name, words).unwrap_err();
            assert!(error.to_string().contains(expected), "{name}: {error}");
        }
        // What cannot be removed by itself is not removed with something else.
        let text = "import = { exclude = [], other = 1 }\n";
        assert!(unset(text, "import.exclude").is_err());
    }
}
