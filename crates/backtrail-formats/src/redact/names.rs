//! What the name of a value says about it.

/// What a value is, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    /// May be a word that someone chose.
    Password,
    /// Looks random.
    Secret(&'static str),
    /// Looks random; `key` alone says little.
    Key(&'static str),
    /// The value of an `Authorization` header.
    Authorization,
    /// The value of a `Cookie` header.
    Cookie,
    /// A user and a password in Base64, as Docker and npm write them.
    Login,
}

/// A word at the end of a name.
#[derive(Debug)]
pub(super) struct Word {
    pub(super) word: &'static str,
    pub(super) named: Named,
    /// Whether it must be a word of its own: `api_key`, not `monkey`.
    apart: bool,
}

impl Word {
    /// Returns whether a text ends with this word, of which another one is the end.
    pub(super) fn is_longer(&self, other: &Self, text: &str) -> bool {
        let is_it = |start: usize| {
            let end = text.as_bytes().get(start..);
            end.is_some_and(|end| end.eq_ignore_ascii_case(self.word.as_bytes()))
        };
        self.word.len() > other.word.len()
            && text.len().checked_sub(self.word.len()).is_some_and(is_it)
    }
}

const fn word(word: &'static str, named: Named) -> Word {
    Word {
        word,
        named,
        apart: false,
    }
}

const fn apart(word: &'static str, named: Named) -> Word {
    Word {
        word,
        named,
        apart: true,
    }
}

/// Longer words are before the shorter ones that they end with.
pub(super) const WORDS: &[Word] = &[
    word("secret_access_key", Named::Secret("aws secret key")),
    word("secret-access-key", Named::Secret("aws secret key")),
    word("secretaccesskey", Named::Secret("aws secret key")),
    word("password", Named::Password),
    word("passwd", Named::Password),
    word("passphrase", Named::Password),
    word("passwort", Named::Password),
    apart("pwd", Named::Password),
    apart("pass", Named::Password),
    apart("pw", Named::Password),
    word("apikey", Named::Secret("api key")),
    word("api_key", Named::Secret("api key")),
    word("api-key", Named::Secret("api key")),
    word("accesskey", Named::Secret("access key")),
    word("accountkey", Named::Secret("access key")),
    word("authkey", Named::Secret("secret")),
    word("secretkey", Named::Secret("secret")),
    word("secret_key", Named::Secret("secret")),
    word("secret-key", Named::Secret("secret")),
    word("access_key", Named::Secret("access key")),
    word("private_key", Named::Secret("secret")),
    word("secretkeybase", Named::Secret("secret")),
    word("secret_key_base", Named::Secret("secret")),
    word("privatekey", Named::Secret("secret")),
    word("signingkey", Named::Secret("secret")),
    word("encryptionkey", Named::Secret("secret")),
    word("masterkey", Named::Secret("secret")),
    word("sharedkey", Named::Secret("secret")),
    word("licensekey", Named::Secret("secret")),
    word("client-key-data", Named::Secret("private key")),
    word("secret", Named::Secret("secret")),
    word("credential", Named::Secret("secret")),
    word("credentials", Named::Secret("secret")),
    word("token", Named::Secret("token")),
    apart("jwt", Named::Secret("token")),
    apart("bearer", Named::Secret("token")),
    apart("oauth2-bearer", Named::Secret("token")),
    apart("mnemonic", Named::Password),
    apart("key", Named::Key("key")),
    word("set-cookie", Named::Cookie),
    word("cookie", Named::Cookie),
    word("authorization", Named::Authorization),
    apart("auth", Named::Login),
];

/// Ends of names whose values are not secret.
const NOT: &[&str] = &[
    "pagetoken",
    "nexttoken",
    "continuationtoken",
    "synctoken",
    "canceltoken",
    "cancellationtoken",
    "pagingtoken",
    "resumetoken",
    "publickey",
    "pubkey",
    "primarykey",
    "foreignkey",
    "cachekey",
    "sortkey",
    "partitionkey",
    "idempotencykey",
    "objectkey",
    "rowkey",
    "groupkey",
    "dedupkey",
    "dedupekey",
    "hostkey",
    "hotkey",
    "lookupkey",
];

/// What may follow the word that says what a value is: `API_KEY_PROD`, `password2`.
const SUFFIXES: &[&str] = &[
    "prod",
    "dev",
    "test",
    "live",
    "staging",
    "old",
    "new",
    "base64",
    "b64",
    "value",
    "data",
    "text",
    "plain",
    "string",
    "primary",
    "secondary",
    "default",
    "main",
    "json",
    "header",
];

/// Returns what a name says that ends with a word, and perhaps a suffix.
pub(super) fn named(name: &str, word: &Word) -> Option<Named> {
    let plain = plain(name);
    let ending = self::plain(word.word);
    let head = &plain[..plain.rfind(&ending)?];
    let mut whole = head.to_owned();
    whole.push_str(&ending);
    if NOT.iter().any(|end| whole.ends_with(end)) {
        return None;
    }
    (!word.apart || is_apart(name, word.word)).then_some(word.named)
}

/// Returns the length of a suffix that leaves the meaning of a name: `_2`, `_PROD`.
pub(super) fn suffix_len(rest: &[u8]) -> usize {
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits > 0 {
        return digits;
    }
    if !rest.first().is_some_and(|byte| matches!(byte, b'_' | b'-')) {
        return 0;
    }
    let tail: Vec<u8> = rest[1..]
        .iter()
        .take(16)
        .take_while(|byte| byte.is_ascii_alphanumeric())
        .map(u8::to_ascii_lowercase)
        .collect();
    let is_known = SUFFIXES.iter().any(|suffix| suffix.as_bytes() == tail);
    let is_number = !tail.is_empty()
        && tail
            .iter()
            .all(|byte| byte.is_ascii_digit() || *byte == b'v')
        && tail.len() <= 4;
    match is_known || is_number {
        true => 1 + tail.len(),
        false => 0,
    }
}

/// Returns whether a word in a name is one of its own: after a sign, or capitalised within.
fn is_apart(name: &str, word: &str) -> bool {
    let Some(at) = name.to_ascii_lowercase().rfind(word) else {
        return false;
    };
    let bytes = name.as_bytes();
    match at.checked_sub(1).map(|before| bytes[before]) {
        None => true,
        Some(before) if !before.is_ascii_alphanumeric() => true,
        Some(before) => !before.is_ascii_uppercase() && bytes[at].is_ascii_uppercase(),
    }
}

/// Returns a name without signs, in lower case.
fn plain(name: &str) -> String {
    let chars = name.chars().filter(char::is_ascii_alphanumeric);
    chars.map(|c| c.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::rules::RULES;
    use super::*;

    #[test]
    fn a_name_says_what_its_value_is_by_its_end() {
        for (name, expected) in [
            ("DB_PASSWORD", Some(Named::Password)),
            ("dbPass", Some(Named::Password)),
            ("compass", None),
            ("bypass", None),
            ("PGPASS", None),
            ("SMTP_PASS_2", Some(Named::Password)),
            ("API_KEY_PROD", Some(Named::Secret("api key"))),
            ("serviceKey", Some(Named::Key("key"))),
            ("SERVICE_KEY", Some(Named::Key("key"))),
            ("monkey", None),
            ("primary_key", None),
            ("tokenizer", None),
            ("nextPageToken", None),
            (
                "aws_secret_access_key",
                Some(Named::Secret("aws secret key")),
            ),
            ("X-Auth-Token", Some(Named::Secret("token"))),
            ("Proxy-Authorization", Some(Named::Authorization)),
            ("_auth", Some(Named::Login)),
            ("author", None),
        ] {
            assert_eq!(RULES.meaning(name).0, expected, "{name}");
        }
    }
}
