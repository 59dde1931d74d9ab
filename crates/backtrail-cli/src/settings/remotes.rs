//! The remotes of a store, in `config.toml`:
//!
//! ```toml
//! [remotes.work]
//! url = "postgresql://anna@db.example/backtrail"
//! blobs = "s3://bucket/sessions?region=eu-central-1"
//! encrypt = ["age1…"]
//! identity = "~/.config/backtrail/key.txt"
//! ```

use super::edit::{before_comments, headers, quoted, without_empty};
use super::{Settings, nearest, parse_table};
use crate::error::{CommandError, Result};
use crate::secret_url::SecretUrl;
use crate::text::one_line;

use std::path::Path;

/// A second home of sessions, and how to reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RemoteSettings {
    pub(crate) name: String,
    pub(crate) url: SecretUrl,
    /// Where large parts are; `None`: in the database.
    pub(crate) blobs: Option<SecretUrl>,
    pub(crate) encryption: Encryption,
    /// The file that opens what is encrypted.
    pub(crate) identity: Option<String>,
    /// A command that prints the password of the database.
    pub(crate) password_command: Option<String>,
    /// The schema of the database; `None`: the usual one.
    pub(crate) schema: Option<String>,
}

/// What the remote can read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Encryption {
    /// Everything.
    Plaintext,
    /// Nothing but ids, sizes and times: the rest is encrypted for these.
    For(Vec<String>),
}

const NAMES: [&str; 7] = [
    "url",
    "blobs",
    "encrypt",
    "plaintext",
    "identity",
    "password_command",
    "schema",
];

/// The longest name of a remote.
const LONGEST: usize = 40;

/// Returns why a name is not one of a remote. The name may be a URL with a password, so it is
/// not repeated.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    if begins && name.len() <= LONGEST && name.chars().all(is_plain) {
        return Ok(());
    }
    let what = format!(
        "the name of a remote has up to {LONGEST} lower-case letters, digits, - and _, and begins \
         with a letter or digit"
    );
    Err(CommandError::invalid(what))
}

/// Reads all remotes.
pub(super) fn read(value: &toml::Value) -> Result<Vec<RemoteSettings>> {
    let Some(remotes) = value.as_table() else {
        return Err(CommandError::invalid("remotes must be a table of remotes"));
    };
    remotes
        .iter()
        .map(|(name, remote)| read_remote(name, remote))
        .collect()
}

fn read_remote(name: &str, value: &toml::Value) -> Result<RemoteSettings> {
    check_name(name)?;
    let key = format!("remotes.{name}");
    let wrong = |what: &str| CommandError::invalid(format!("{key} {what}"));
    let Some(table) = value.as_table() else {
        return Err(wrong("must be a table with a url"));
    };
    if let Some(unknown) = table.keys().find(|name| !NAMES.contains(&name.as_str())) {
        let error = wrong(&format!(
            "has an unknown name \"{}\"",
            one_line(unknown, 60)
        ));
        return Err(nearest(error, unknown, &NAMES, "known names:"));
    }
    let text = |name: &str| match table.get(name) {
        None => Ok(None),
        Some(toml::Value::String(text)) if !text.trim().is_empty() => Ok(Some(text.clone())),
        Some(_) => Err(wrong(&format!("has a {name} that is not text"))),
    };
    let url = text("url")?.ok_or_else(|| wrong("has no url"))?;
    Ok(RemoteSettings {
        name: name.to_owned(),
        url: SecretUrl::new(url),
        blobs: text("blobs")?.map(SecretUrl::new),
        encryption: read_encryption(table)
            .ok_or_else(|| wrong("needs either encrypt = [\"age1…\"] or plaintext = true"))?,
        identity: text("identity")?,
        password_command: text("password_command")?,
        schema: text("schema")?,
    })
}

fn read_encryption(table: &toml::Table) -> Option<Encryption> {
    match (table.get("encrypt"), table.get("plaintext")) {
        (None, Some(toml::Value::Boolean(true))) => Some(Encryption::Plaintext),
        (Some(recipients), None | Some(toml::Value::Boolean(false))) => {
            let text = |it: &toml::Value| it.as_str().map(str::to_owned);
            let recipients = recipients.as_array()?.iter().map(text);
            let recipients = recipients.collect::<Option<Vec<_>>>()?;
            (!recipients.is_empty()).then_some(Encryption::For(recipients))
        }
        _ => None,
    }
}

impl RemoteSettings {
    /// Returns the names and values as they are stored.
    fn lines(&self) -> Vec<(&'static str, String)> {
        let text = |name, value: Option<&str>| value.map(|value| (name, quoted(value)));
        let secret = |url: &Option<SecretUrl>| url.as_ref().map(|it| it.with_secrets().to_owned());
        let encryption = match &self.encryption {
            Encryption::Plaintext => ("plaintext", "true".to_owned()),
            Encryption::For(recipients) => {
                let all: Vec<String> = recipients.iter().map(|it| quoted(it)).collect();
                ("encrypt", format!("[{}]", all.join(", ")))
            }
        };
        let lines = [
            text("url", Some(self.url.with_secrets())),
            text("blobs", secret(&self.blobs).as_deref()),
            Some(encryption),
            text("identity", self.identity.as_deref()),
            text("password_command", self.password_command.as_deref()),
            text("schema", self.schema.as_deref()),
        ];
        lines.into_iter().flatten().collect()
    }
}

/// Returns the text of the settings with one more remote, and every other byte as it was.
pub(crate) fn with_remote(text: &str, path: &Path, remote: &RemoteSettings) -> Result<String> {
    let lines = remote.lines();
    let section: String = lines
        .iter()
        .map(|(name, value)| format!("{name} = {value}\n"))
        .collect();
    let mut expected = parsed(text, path)?;
    let table: toml::Table = parsed(&section, path)?;
    let all = expected
        .entry("remotes")
        .or_insert_with(|| toml::Table::new().into());
    if let Some(all) = all.as_table_mut() {
        all.insert(remote.name.clone(), table.into());
    }
    let gap = match text {
        text if text.trim().is_empty() => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let new = format!("{text}{gap}[remotes.{}]\n{section}", remote.name);
    checked(new, expected, path)
}

/// Returns the text of the settings without a remote, and with every other byte as it was.
pub(crate) fn without_remote(text: &str, path: &Path, name: &str) -> Result<String> {
    let mut expected = parsed(text, path)?;
    if let Some(all) = expected.get_mut("remotes").and_then(|it| it.as_table_mut()) {
        all.remove(name);
    }
    let starts = headers(text);
    let is_own = |at: &usize| {
        let line = text[*at..].lines().next().unwrap_or_default().trim();
        line.strip_prefix("[remotes.")
            .and_then(|rest| rest.strip_prefix(name))
            .is_some_and(|rest| rest.starts_with(']'))
    };
    let new = match starts.iter().position(is_own) {
        None => text.to_owned(),
        Some(n) => {
            let end = starts.get(n + 1).map(|next| before_comments(text, *next));
            let end = end.unwrap_or(text.len());
            // The empty line that `with_remote` put before it goes as well, at the end of the file.
            let (before, after) = (&text[..starts[n]], &text[end..]);
            let before = match (before.strip_suffix("\n\n"), after) {
                (Some(_), "") => &before[..before.len() - 1],
                _ => before,
            };
            format!("{before}{after}")
        }
    };
    checked(new, expected, path)
}

fn parsed(text: &str, path: &Path) -> Result<toml::Table> {
    parse_table(text).map_err(|error| error.at_path(path))
}

/// Returns the new text if it has the expected settings, and all of them are valid.
fn checked(new: String, expected: toml::Table, path: &Path) -> Result<String> {
    if parse_table(&new).ok().map(without_empty) != Some(without_empty(expected)) {
        let what = "cannot change the remotes in the settings as they are written";
        let error = CommandError::invalid(what).at_path(path);
        return Err(error.hint("edit the file: backtrail config edit"));
    }
    Settings::parse(&new, path)?;
    Ok(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(name: &str) -> RemoteSettings {
        RemoteSettings {
            name: name.to_owned(),
            url: SecretUrl::new("postgresql://u:a\"b@h/d"),
            blobs: Some(SecretUrl::new("s3://b/p")),
            encryption: Encryption::For(vec!["age1x".to_owned()]),
            identity: Some("~/key".to_owned()),
            password_command: None,
            schema: None,
        }
    }

    fn path() -> &'static Path {
        Path::new("config.toml")
    }

    #[test]
    fn a_remote_comes_and_goes_and_every_other_byte_stays() {
        for text in [
            "",
            "rotation = 2048\n",
            "# mine\nrotation = \"1 MiB\" # small\r\n\n# costs\n[prices.x]\ninput=1\noutput = 2\n",
        ] {
            let one = with_remote(text, path(), &remote("work")).unwrap();
            assert!(one.starts_with(text), "{one}");
            let read = Settings::parse(&one, path()).unwrap().remotes.value;
            assert_eq!(read, [remote("work")]);
            let plain = RemoteSettings {
                encryption: Encryption::Plaintext,
                ..remote("b-2")
            };
            let two = with_remote(&one, path(), &plain).unwrap();
            assert!(two.starts_with(&one), "{two}");
            assert_eq!(without_remote(&two, path(), "b-2").unwrap(), one);
            assert_eq!(without_remote(&one, path(), "work").unwrap(), text);
            let other = without_remote(&two, path(), "work").unwrap();
            let read = Settings::parse(&other, path()).unwrap().remotes.value;
            assert_eq!(read, [plain]);
        }
    }

    #[test]
    fn comments_of_the_next_table_stay_with_it() {
        let text = "[remotes.a] # mine\nurl = \"postgresql://h/d\"\nplaintext = true\n\n# costs\n[prices.x]\ninput = 1\noutput = 2\n";
        let new = without_remote(text, path(), "a").unwrap();
        assert_eq!(new, "# costs\n[prices.x]\ninput = 1\noutput = 2\n");
    }

    #[test]
    fn what_cannot_be_edited_alone_is_left_alone() {
        let text = "remotes = { a = { url = \"postgresql://h/d\", plaintext = true } }\n";
        assert!(Settings::parse(text, path()).is_ok());
        assert!(with_remote(text, path(), &remote("work")).is_err());
        assert!(without_remote(text, path(), "a").is_err());
    }

    #[test]
    fn wrong_remotes_are_refused_without_repeating_what_may_be_secret() {
        for (text, expected) in [
            ("remotes = 1", "must be a table"),
            ("[remotes.A]", "lower-case letters"),
            ("[remotes.a]", "remotes.a has no url"),
            (
                "[remotes.a]\nurl = \"postgresql://u:hush@h\"",
                "needs either encrypt",
            ),
            (
                "[remotes.a]\nurl = \"x:hush\"\nencrypt = []",
                "needs either encrypt",
            ),
            (
                "[remotes.a]\nurl = \"x:hush\"\nencrypt = [\"age1\"]\nplaintext = true",
                "needs either",
            ),
            (
                "[remotes.a]\nurl = [\"hush\"]\nplaintext = true",
                "has a url that is not text",
            ),
            ("[remotes.a]\nlur = \"hush\"", "unknown name \"lur\""),
        ] {
            let error = Settings::parse(text, path()).unwrap_err();
            let shown = format!("{} {:?}", error.with_causes(), error.hints);
            assert!(shown.contains(expected), "{text}: {shown}");
            assert!(!shown.contains("hush"), "{text}: {shown}");
        }
    }
}
