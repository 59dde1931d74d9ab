//! The password of a database, where the URL has none: from a command, from `PGPASSWORD`, or from
//! the password file that PostgreSQL's own programs read.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{CommandError, Result};
use crate::files;
use crate::home;
use crate::secret_url::SecretUrl;
use crate::text::visible_path;
use crate::ui::Ui;

/// Returns the URL with the password that belongs to it, if there is one.
pub(super) fn with_password(
    url: &SecretUrl,
    command: Option<&str>,
    name: &str,
    ui: &Ui,
) -> Result<SecretUrl> {
    let target = Target::of(url.with_secrets());
    if target.has_password {
        return Ok(url.clone());
    }
    let password = match command {
        Some(command) => Some(printed_by(command, name)?),
        None => from_environment().or_else(|| from_file(&target, ui)),
    };
    Ok(match password {
        Some(password) => with(url, &password),
        None => url.clone(),
    })
}

fn with(url: &SecretUrl, password: &str) -> SecretUrl {
    let url = url.with_secrets();
    let sign = if url.contains('?') { '&' } else { '?' };
    SecretUrl::new(format!("{url}{sign}password={}", encoded(password)))
}

fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// Runs a command and returns the first line that it prints.
fn printed_by(command: &str, name: &str) -> Result<String> {
    let failed = |reason: &str| {
        let what = format!("the password command of the remote {name} {reason}");
        CommandError::invalid(what).hint("change it: backtrail config edit")
    };
    let output = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::inherit())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| CommandError::io("cannot run the password command", None, &error))?;
    if !output.status.success() {
        return Err(failed(&format!("failed ({})", output.status)));
    }
    let text = String::from_utf8(output.stdout).map_err(|_| failed("printed no text"))?;
    match text.lines().next().filter(|line| !line.is_empty()) {
        Some(password) => Ok(password.to_owned()),
        None => Err(failed("printed nothing")),
    }
}

fn from_environment() -> Option<String> {
    let password = std::env::var("PGPASSWORD").ok();
    password.filter(|password| !password.is_empty())
}

/// What the lines of a password file are compared with.
#[derive(Debug, Default, PartialEq, Eq)]
struct Target {
    host: String,
    port: String,
    database: String,
    user: String,
    has_password: bool,
}

impl Target {
    fn of(url: &str) -> Self {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let (base, settings) = rest.split_once('?').unwrap_or((rest, ""));
        let (who, place) = base.split_once('@').unwrap_or(("", base));
        let (hosts, database) = place.split_once('/').unwrap_or((place, ""));
        let (user, password) = who.split_once(':').unwrap_or((who, ""));
        let first = hosts.split(',').next().unwrap_or_default();
        let (host, port) = match first.rsplit_once(':') {
            // The colons of an address in brackets are its own.
            Some((host, port)) if !port.ends_with(']') => (host, port),
            _ => (first, ""),
        };
        let mut target = Self {
            host: decoded(host.trim_matches(['[', ']'])),
            port: port.to_owned(),
            database: decoded(database),
            user: decoded(user),
            has_password: !password.is_empty(),
        };
        for (name, value) in settings.split('&').filter_map(|it| it.split_once('=')) {
            let value = decoded(value);
            match name {
                "host" => target.host = value,
                "port" => target.port = value,
                "dbname" => target.database = value,
                "user" => target.user = value,
                "password" => target.has_password |= !value.is_empty(),
                _ => {}
            }
        }
        target.with_defaults()
    }

    fn with_defaults(mut self) -> Self {
        // In a password file a socket is called so.
        if self.host.is_empty() || self.host.starts_with('/') {
            self.host = "localhost".to_owned();
        }
        if self.port.is_empty() {
            self.port = "5432".to_owned();
        }
        if self.user.is_empty() {
            self.user = std::env::var("USER").unwrap_or_default();
        }
        if self.database.is_empty() {
            self.database = self.user.clone();
        }
        self
    }
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let code = after.get(..2).filter(|_| byte == b'%');
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(code) => {
                bytes.push(code);
                rest = &after[2..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn from_file(target: &Target, ui: &Ui) -> Option<String> {
    let named = std::env::var_os("PGPASSFILE").map(PathBuf::from);
    let path = named.or_else(|| Some(home::home_dir()?.join(".pgpass")))?;
    let text = files::read(&path).ok()?;
    if is_open_to_others(&path) {
        let what = format!("{} can be read by others; ignored", visible_path(&path));
        ui.warning(&what, Some(&format!("chmod 600 {}", visible_path(&path))));
        return None;
    }
    text.lines().find_map(|line| password_in(line, target))
}

/// Returns whether others than the owner can read a file.
pub(super) fn is_open_to_others(path: &Path) -> bool {
    files::mode(path).is_some_and(|mode| mode & 0o077 != 0)
}

/// Returns the password of a line `host:port:database:user:password`, if it is about the target.
fn password_in(line: &str, target: &Target) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let mut fields = vec![String::new()];
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ':' if fields.len() < 5 => fields.push(String::new()),
            '\\' => fields.last_mut()?.extend(letters.next()),
            letter => fields.last_mut()?.push(letter),
        }
    }
    let [host, port, database, user, password] = fields.try_into().ok()?;
    let fits = |field: &str, value: &str| field == "*" || field == value;
    let is_it = fits(&host, &target.host)
        && fits(&port, &target.port)
        && fits(&database, &target.database)
        && fits(&user, &target.user);
    is_it.then_some(password)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_password_file_is_found_as_by_other_programs() {
        let target = Target::of("postgresql://anna@db.example:6432/shop?sslmode=require");
        for (line, password) in [
            ("db.example:6432:shop:anna:hush", Some("hush")),
            ("*:*:*:anna:hu\\:sh\\\\", Some("hu:sh\\")),
            ("*:*:*:*:a:b", Some("a:b")),
            ("db.example:5432:shop:anna:hush", None),
            ("#*:*:*:*:hush", None),
            ("*:*:*", None),
        ] {
            assert_eq!(password_in(line, &target).as_deref(), password, "{line}");
        }
        let socket = Target::of("postgresql:///shop?host=%2Frun%2Fpg&user=ann%61");
        assert_eq!(
            password_in("localhost:5432:shop:anna:hush", &socket).as_deref(),
            Some("hush")
        );
        assert_eq!(Target::of("postgresql://a@[::1]:7/d").host, "::1");
        assert_eq!(Target::of("postgresql://a@[::1]/d").port, "5432");
    }

    #[test]
    fn a_password_is_added_once_and_encoded() {
        let with = |url: &str| {
            with(&SecretUrl::new(url), "a&b @/é")
                .with_secrets()
                .to_owned()
        };
        assert_eq!(
            with("postgresql://u@h/d"),
            "postgresql://u@h/d?password=a%26b%20%40%2F%C3%A9"
        );
        assert!(with("postgresql://u@h/d?a=b").contains("?a=b&password=a%26"));
        for url in ["postgresql://u:x@h/d", "postgresql://h/d?password=x"] {
            assert!(Target::of(url).has_password, "{url}");
        }
    }
}
