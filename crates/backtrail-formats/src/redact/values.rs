//! What a value looks like: a secret, a placeholder, code.

/// How much of a long value is examined.
const EXAMINED: usize = 128;

/// Returns the beginning of a value.
fn beginning(value: &str) -> &str {
    let mut ends = (0..=EXAMINED.min(value.len())).rev();
    let end = ends.find(|end| value.is_char_boundary(*end));
    &value[..end.unwrap_or(0)]
}

/// Returns whether a value is a placeholder: `xxxx`, `<your-key>`, `$TOKEN`,
/// `AKIAIOSFODNN7EXAMPLE`, or the replacement of a removed secret.
pub(super) fn is_placeholder(value: &str) -> bool {
    let value = beginning(value);
    let lower = value.to_ascii_lowercase();
    let has = |word: &str| lower.contains(word);
    let is_sign = |c: u8| {
        matches!(
            c,
            b'<' | b'>' | b'{' | b'}' | b'[' | b']' | b'$' | b'%' | b'*'
        )
    };
    let fill = |c: u8| matches!(c, b'x' | b'0' | b'.' | b'-' | b'_' | b'*');
    has("example")
        || has("placeholder")
        || has("changeme")
        || has("redacted")
        || has("xxxxxx")
        || has("removed:")
        || lower.starts_with("your")
        || has("your-")
        || has("your_")
        || value.contains('…')
        || value.starts_with("...")
        || value.ends_with("...")
        || value.bytes().next().is_some_and(is_sign)
        || value.contains("***")
        || value.contains("${")
        || value.contains("$(")
        || value.contains("{{")
        || lower.bytes().all(fill)
}

/// Returns whether a value is lower-case words with dashes between them, as in names.
pub(super) fn is_words(value: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'-' || byte == b'_';
    value.bytes().all(is_plain) && value.contains(['-', '_'])
}

/// Returns whether a key is made of one or a few characters.
pub(super) fn is_monotonous(value: &str) -> bool {
    let mut seen = [false; 256];
    beginning(value)
        .bytes()
        .for_each(|byte| seen[usize::from(byte)] = true);
    let distinct = seen.iter().filter(|seen| **seen).count();
    distinct < 6.min(value.len() / 2)
}

/// Returns whether a value with the name of a password may be one, at least as long as
/// `shortest`: it has letters and digits, or signs.
pub(super) fn is_chosen(value: &str, shortest: usize) -> bool {
    let own = beginning(value);
    let has = |test: fn(&u8) -> bool| own.bytes().any(|byte| test(&byte));
    value.len() >= shortest
        && is_one_word(value)
        && !is_code(value)
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_alphabetic)
}

/// Returns whether a value may be a password that is a word.
pub(super) fn is_word(value: &str) -> bool {
    /// Words that are in place of a value, or say something about it.
    const NOT: [&str; 72] = [
        "any",
        "ask",
        "auto",
        "bool",
        "boolean",
        "bytes",
        "char",
        "date",
        "default",
        "disabled",
        "email",
        "empty",
        "enabled",
        "enum",
        "env",
        "error",
        "expired",
        "false",
        "field",
        "file",
        "float",
        "hidden",
        "incorrect",
        "input",
        "integer",
        "invalid",
        "json",
        "list",
        "login",
        "masked",
        "missing",
        "must",
        "none",
        "null",
        "number",
        "object",
        "option",
        "optional",
        "path",
        "prompt",
        "query",
        "reset",
        "required",
        "sensitive",
        "self",
        "should",
        "static",
        "stdin",
        "str",
        "string",
        "system",
        "text",
        "that",
        "this",
        "this.",
        "true",
        "tuple",
        "type",
        "undefined",
        "uint",
        "unknown",
        "unset",
        "url",
        "user",
        "username",
        "uuid",
        "value",
        "varchar",
        "void",
        "when",
        "with",
        "wrong",
    ];
    /// Words in names of variables and in labels.
    const PARTS: [&str; 9] = [
        "passw",
        "passphrase",
        "pwd",
        "secret",
        "token",
        "credential",
        "key",
        "auth",
        "hash",
    ];
    let lower = beginning(value).to_ascii_lowercase();
    (4..=64).contains(&value.len())
        && is_one_word(value)
        && !is_code(value)
        && !NOT.contains(&lower.as_str())
        && !PARTS.iter().any(|part| lower.contains(part))
        && value
            .bytes()
            .filter(|byte| byte.is_ascii_alphanumeric())
            .count()
            >= 4
}

/// Returns whether a value is a passphrase of several lower-case words.
pub(super) fn is_phrase(value: &str) -> bool {
    let words: Vec<&str> = value.split(' ').take(26).collect();
    let is_plain = |word: &&str| {
        (3..=12).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_lowercase())
    };
    let is_prose = |word: &str| {
        matches!(
            word,
            "the"
                | "and"
                | "for"
                | "with"
                | "your"
                | "password"
                | "passphrase"
                | "from"
                | "this"
                | "that"
                | "not"
                | "must"
                | "was"
        )
    };
    (4..=25).contains(&words.len())
        && words.iter().all(is_plain)
        && !words.iter().any(|word| is_prose(word))
}

/// Returns whether a value has neither blanks nor control characters.
fn is_one_word(value: &str) -> bool {
    !beginning(value).contains(|c: char| c.is_whitespace() || c.is_control())
}

/// Returns whether a value is long and mixed enough to have been generated or chosen with
/// care.
pub(super) fn is_random(value: &str) -> bool {
    const SHORTEST: usize = 12;
    if value.len() < SHORTEST || !value.is_ascii() || !is_one_word(value) || is_code(value) {
        return false;
    }
    let own = beginning(value);
    let has = |test: fn(&u8) -> bool| u32::from(own.bytes().any(|byte| test(&byte)));
    let digits = has(u8::is_ascii_digit);
    let cases = has(u8::is_ascii_lowercase) + has(u8::is_ascii_uppercase);
    let classes = cases + digits + has(u8::is_ascii_punctuation);
    if cases == 0 || digits == 0 {
        return false;
    }
    match value.len() {
        12..16 => classes >= 3 && entropy(own) >= 3.0,
        16..20 => classes >= 2 && entropy(own) >= 2.5 && !is_numbered_words(own),
        _ => classes >= 2 && entropy(own) >= 2.5,
    }
}

/// Returns whether a value in quotes is a secret although it has signs that code has, or is short.
pub(super) fn is_opaque(value: &str) -> bool {
    let own = beginning(value);
    let has = |test: fn(&u8) -> bool| own.bytes().any(|byte| test(&byte));
    let is_short = value.len() < 20;
    let is_mixed = has(u8::is_ascii_digit) && has(u8::is_ascii_lowercase);
    let is_text = !is_one_word(value) || !value.is_ascii() || is_numbered_words(own);
    let is_other = value.contains("://") || value.contains("()") || own.contains('{');
    if is_text || is_other || value.starts_with(['/', '.', '~', '@', '#', '&']) {
        return false;
    }
    match is_short {
        true => value.len() >= 10 && is_mixed && has(u8::is_ascii_uppercase) && !is_code(value),
        false => is_mixed && has(u8::is_ascii_punctuation) && entropy(own) >= 3.5,
    }
}

/// Returns whether a value is words and short numbers with signs between: `gpt-4-turbo-2024`.
fn is_numbered_words(value: &str) -> bool {
    let is_part = |part: &str| {
        part.bytes().all(|byte| byte.is_ascii_digit())
            || (part.bytes().all(|byte| byte.is_ascii_alphabetic()) && part.len() <= 12)
    };
    let mut parts = value.split(['-', '_', '.', ':', '/', '@']);
    value.contains(['-', '_', '.', ':', '/', '@']) && parts.all(is_part)
}

/// Returns whether a value is more likely an expression, a path, a URL, a version or a time.
pub(super) fn is_code(value: &str) -> bool {
    let value = beginning(value);
    let is_part = |part: &str| {
        let mut bytes = part.bytes();
        let first = bytes.next();
        first.is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
            && part.len() < 24
            && part.bytes().filter(u8::is_ascii_digit).count() <= 3
    };
    let is_dotted = value.contains('.') && value.split('.').all(is_part);
    let is_path = value.starts_with(['/', '.', '~', '@', '#', '&'])
        || value.contains("://")
        || value.contains("::");
    is_dotted || is_path || value.contains(['(', ')', '[', '{', '|', '<'])
}

/// Returns the entropy in bits per character.
pub(super) fn entropy(value: &str) -> f64 {
    let mut counts = [0u32; 256];
    for byte in value.bytes() {
        counts[usize::from(byte)] += 1;
    }
    let length = value.len() as f64;
    let bits = |count: &u32| {
        let share = f64::from(*count) / length;
        -share * share.log2()
    };
    counts.iter().filter(|count| **count > 0).map(bits).sum()
}
