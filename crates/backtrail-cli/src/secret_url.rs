//! URLs that may hold a password, which is never shown.

use std::fmt;

/// What is shown for a password.
const HIDDEN: &str = "***";

/// Settings in a URL whose names contain one of these are secrets.
const SECRETS: [&str; 6] = ["pass", "secret", "token", "key", "credential", "sig"];

/// A URL. It is shown without its password, and without the values of secret settings.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SecretUrl(String);

impl SecretUrl {
    pub(crate) fn new(url: impl Into<String>) -> Self {
        Self(url.into())
    }

    /// Returns the URL with its secrets, to connect with or to store.
    pub(crate) fn with_secrets(&self) -> &str {
        &self.0
    }

    /// Returns whether something of it is hidden where it is shown.
    pub(crate) fn has_secrets(&self) -> bool {
        masked(&self.0) != self.0
    }
}

impl fmt::Display for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&masked(&self.0))
    }
}

impl fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Hides the secrets of a URL. Where it is not clear what is one, more is hidden than needed.
pub(crate) fn masked(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    // A password may contain any letter that was not encoded, also an @.
    let rest = match rest.rsplit_once('@') {
        Some((who, host)) => match who.split_once(':') {
            Some((user, _)) => format!("{user}:{HIDDEN}@{host}"),
            None => rest.to_owned(),
        },
        None => rest.to_owned(),
    };
    let Some((base, settings)) = rest.split_once('?') else {
        return format!("{scheme}://{rest}");
    };
    let settings: Vec<String> = settings.split('&').map(masked_setting).collect();
    format!("{scheme}://{base}?{}", settings.join("&"))
}

fn masked_setting(setting: &str) -> String {
    let Some((name, _)) = setting.split_once('=') else {
        return setting.to_owned();
    };
    let lower = name.to_ascii_lowercase();
    match SECRETS.iter().any(|secret| lower.contains(secret)) {
        true => format!("{name}={HIDDEN}"),
        false => setting.to_owned(),
    }
}

/// Returns the words of this command line.
pub(crate) fn words() -> impl Iterator<Item = String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned())
}

/// Hides in a text the secrets of those words of a command line that are URLs.
pub(crate) fn without_secrets(text: &str, words: impl Iterator<Item = String>) -> String {
    words.fold(text.to_owned(), |text, word| {
        let in_scheme = |c: char| c.is_ascii_alphanumeric() || c == '+';
        // The URL may follow `--option=`.
        let Some(end) = word.find("://") else {
            return text;
        };
        let before = word[..end].trim_end_matches(in_scheme).len();
        let url = &word[before..];
        text.replace(url, &masked(url))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_shown_wherever_it_is_in_a_url() {
        for (url, shown) in [
            ("postgresql://u:hush@h:5/d", "postgresql://u:***@h:5/d"),
            ("postgresql://u:hush@hush@h/d", "postgresql://u:***@h/d"),
            ("postgresql://u:hu/sh?x@h/d", "postgresql://u:***@h/d"),
            ("postgresql://:hush@h/d", "postgresql://:***@h/d"),
            (
                "postgresql://u@h/d?password=hush&a=b",
                "postgresql://u@h/d?password=***&a=b",
            ),
            (
                "s3://b/p?AWS_SECRET_ACCESS_KEY=hush",
                "s3://b/p?AWS_SECRET_ACCESS_KEY=***",
            ),
            ("az://c/p?sig=hush&region=x", "az://c/p?sig=***&region=x"),
            (
                "postgresql://u@h:5432/d?sslmode=disable",
                "postgresql://u@h:5432/d?sslmode=disable",
            ),
            ("file:///var/blobs", "file:///var/blobs"),
            ("work", "work"),
        ] {
            assert_eq!(masked(url), shown);
            assert_eq!(SecretUrl::new(url).has_secrets(), url != shown, "{url}");
            assert_eq!(format!("{:?}", SecretUrl::new(url)), shown);
        }
    }

    #[test]
    fn a_text_that_repeats_the_command_line_has_no_password() {
        let words = ["--blobs=s3://b?token=hush", "postgresql://u:hu sh@h/d", "x"];
        let text = "wrong: 'postgresql://u:hu sh@h/d', 's3://b?token=hush'";
        let shown = without_secrets(text, words.into_iter().map(str::to_owned));
        assert_eq!(shown, "wrong: 'postgresql://u:***@h/d', 's3://b?token=***'");
    }
}
