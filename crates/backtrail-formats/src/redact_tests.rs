//! What is secret goes, what only looks like it stays; whatever the text, redacting takes
//! linear time, and twice is once.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

/// Makes a text that looks random, of letters that are given.
fn noise(seed: u64, length: usize, letters: &str) -> String {
    let letters: Vec<char> = letters.chars().collect();
    let mut state = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap()
    };
    (0..length)
        .map(|_| letters[next() % letters.len()])
        .collect()
}

const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const HEX: &str = "0123456789abcdef";
const BASE32: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

fn alnum(length: usize) -> String {
    noise(length as u64, length, ALNUM)
}

fn hex(length: usize) -> String {
    noise(length as u64, length, HEX)
}

fn redact(text: &str) -> (String, Vec<(&'static str, u64)>) {
    let mut redactor = Redactor::new();
    let redacted = redactor.redact(text).into_owned();
    let found = redactor
        .findings()
        .map(|found| (found.kind, found.count))
        .collect();
    (redacted, found)
}

fn pem(label: &str, line_break: &str) -> String {
    let body: Vec<String> = (0..6).map(|n| noise(n, 64, ALNUM)).collect();
    let body = body.join(line_break);
    format!("-----BEGIN {label}-----{line_break}{body}{line_break}-----END {label}-----")
}

/// Secrets, each with its kind.
fn secrets() -> Vec<(&'static str, String)> {
    vec![
        (
            "anthropic key",
            format!("sk-ant-api03-{}-{}AA", alnum(60), alnum(30)),
        ),
        ("anthropic key", format!("sk-ant-oat01-{}", alnum(80))),
        ("openai key", format!("sk-proj-{}_{}", alnum(60), alnum(50))),
        ("api key", format!("sk-{}T3BlbkFJ{}", alnum(20), alnum(20))),
        ("openrouter key", format!("sk-or-v1-{}", hex(64))),
        ("google key", format!("AIza{}_", alnum(34))),
        ("aws key id", format!("AKIA{}", noise(5, 16, BASE32))),
        ("aws key id", format!("ASIA{}", noise(6, 16, BASE32))),
        ("github token", format!("ghp_{}", alnum(36))),
        ("github token", format!("gho_{}", alnum(36))),
        ("github token", format!("ghs_{}", alnum(36))),
        (
            "github token",
            format!("github_pat_{}_{}", alnum(22), alnum(59)),
        ),
        ("gitlab token", format!("glpat-{}", alnum(20))),
        (
            "slack token",
            format!("xoxb-1234567890-1234567890123-{}", alnum(24)),
        ),
        ("stripe key", format!("sk_live_{}", alnum(24))),
        ("stripe key", format!("rk_live_{}", alnum(99))),
        ("npm token", format!("npm_{}", alnum(36))),
        ("pypi token", format!("pypi-AgEI{}", alnum(140))),
        ("hugging face token", format!("hf_{}", alnum(34))),
        ("twilio key", format!("SK{}", hex(32))),
        ("sendgrid key", format!("SG.{}.{}", alnum(22), alnum(43))),
        ("telegram token", format!("123456789:AA{}", alnum(33))),
        ("google oauth token", format!("ya29.{}", alnum(60))),
        (
            "json web token",
            format!(
                "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxIn0.{}",
                alnum(43)
            ),
        ),
        ("private key", pem("RSA PRIVATE KEY", "\n")),
        ("private key", pem("PRIVATE KEY", "\\n")),
        ("private key", pem("OPENSSH PRIVATE KEY", "\r\n")),
        ("private key", pem("PGP PRIVATE KEY BLOCK", "\n")),
    ]
}

#[test]
fn secrets_are_removed_wherever_they_are() {
    for (kind, secret) in secrets() {
        for (before, after) in [
            ("", ""),
            ("export KEY=", "\n"),
            ("{\"k\":\"", "\"}"),
            ("(", ")"),
            ("\\n", "\\n"),
            ("é", "é"),
            ("curl https://x/?k=", "&b=1"),
        ] {
            let (redacted, found) = redact(&format!("{before}{secret}{after}"));
            assert_eq!(
                redacted,
                format!("{before}[removed: {kind}]{after}"),
                "{secret}"
            );
            assert_eq!(found, [(kind, 1)]);
        }
    }
}

#[test]
fn secrets_are_recognised_by_their_context() {
    let aws = noise(1, 40, &format!("{ALNUM}/+"));
    let random = alnum(32);
    let basic = "YWRtaW46aHVudGVyMjIyMg==";
    let cases = [
        (
            "postgres://app:pa55w0rd@db:5432/x".into(),
            "postgres://app:[removed: password]@db:5432/x".to_owned(),
        ),
        (
            "mongodb+srv://u:p%40ss@c0.mongodb.net".into(),
            "mongodb+srv://u:[removed: password]@c0.mongodb.net".into(),
        ),
        (
            "redis://:s3cr3t@cache".into(),
            "redis://:[removed: password]@cache".into(),
        ),
        (
            "git clone https://me:hunter2@host/x.git".into(),
            "git clone https://me:[removed: password]@host/x.git".into(),
        ),
        (
            format!("aws_secret_access_key = {aws}"),
            "aws_secret_access_key = [removed: aws secret key]".into(),
        ),
        (
            format!("AWS_SECRET_ACCESS_KEY='{aws}'"),
            "AWS_SECRET_ACCESS_KEY='[removed: aws secret key]'".into(),
        ),
        (
            format!("Authorization: Bearer {random}"),
            "Authorization: Bearer [removed: bearer token]".into(),
        ),
        (
            format!("-H \"authorization: Basic {basic}\""),
            "-H \"authorization: Basic [removed: login]\"".into(),
        ),
        (
            format!("{{\"Authorization\": \"Bearer {random}\"}}"),
            "{\"Authorization\": \"Bearer [removed: bearer token]\"}".into(),
        ),
        (
            format!("api_key: \"{random}\""),
            "api_key: \"[removed: api key]\"".into(),
        ),
        (
            format!("{{\\\"apiKey\\\":\\\"{random}\\\"}}"),
            "{\\\"apiKey\\\":\\\"[removed: api key]\\\"}".into(),
        ),
        (
            "DB_PASSWORD=Tr0ub4dor&3xK9".into(),
            "DB_PASSWORD=[removed: password]".into(),
        ),
        (
            "DB_PASSWORD=\"Tr0ub4dor&3xK9\"".into(),
            "DB_PASSWORD=\"[removed: password]\"".into(),
        ),
        (
            "password=hunter2".into(),
            "password=[removed: password]".into(),
        ),
        (
            format!("client-secret={random}&x=1"),
            "client-secret=[removed: secret]&x=1".into(),
        ),
        (
            format!("config[\"token\"] = '{}'", hex(40)),
            "config[\"token\"] = '[removed: token]'".into(),
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(redact(&text).0, expected);
    }
}

/// What looks like a secret and is none.
fn near_misses() -> Vec<String> {
    let image = noise(3, 4000, &format!("{ALNUM}+/"));
    vec![
        format!("commit {}", hex(40)),
        format!("sha256:{}", hex(64)),
        "019fc8be-1f0a-7cc2-9d3a-0123456789ab".into(),
        format!("data:image/png;base64,iVBORw0KGgo{image}=="),
        format!(
            "\"integrity\": \"sha512-{}==\"",
            noise(4, 86, &format!("{ALNUM}+/"))
        ),
        "AKIAIOSFODNN7EXAMPLE".into(),
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into(),
        format!("AKIA{}", noise(5, 20, BASE32)),
        "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx".into(),
        "sk-...".into(),
        "sk-ant-<your-key>".into(),
        "export OPENAI_API_KEY=<your-key>".into(),
        "api_key = \"YOUR_API_KEY_GOES_HERE_12345\"".into(),
        "password = os.environ[\"DB_PASSWORD_2\"]".into(),
        "token = self.parser.next_token1()".into(),
        "let token: Option<TokenKind2> = lexer.next();".into(),
        "secret: process.env.CLIENT_SECRET_V2".into(),
        "password: ${DB_PASSWORD_123}".into(),
        "\"max_tokens\": 4096, \"input_tokens\": 123456789012345".into(),
        "nextPageToken: CiAKGjBpNDd2Nmp2Zml2cXRwYjBpOXA".into(),
        "postgres://user:password@localhost/db".into(),
        "postgres://postgres:postgres@localhost/db".into(),
        "postgres://user:$PASSWORD@localhost/db".into(),
        "https://example.com:8080/a@b".into(),
        "https://user@example.com/".into(),
        "see http://[::1]:3000/@scope/name".into(),
        "Authorization: Bearer $TOKEN".into(),
        "Authorization: Bearer <token-goes-here>".into(),
        "headers.authorization = `Bearer ${session.access_token}`".into(),
        "-----BEGIN PRIVATE KEY-----".into(),
        "if text.contains(\"-----BEGIN RSA PRIVATE KEY-----\") || x {".into(),
        pem("CERTIFICATE", "\n"),
        pem("PUBLIC KEY", "\n"),
        "glpat-xxxxxxxxxxxxxxxxxxxx".into(),
        "npm_config_registry".into(),
        "npm_lifecycle_event_and_more_words_to_it".into(),
        "hf_hub_download_with_a_very_long_name_of_it".into(),
        "task-management-system-for-everyone-in-the-company".into(),
        "sk-this-is-a-class-name-of-a-skeleton-loader-there".into(),
        "ghp_short".into(),
        "eyJhbGciOiJIUzI1NiJ9".into(),
        "a.b.c eyJub3QiOiJhIGhlYWRlciJ9.eyJzdWIiOiIxIn0.abcdefghijklmnopqrstuvwxyz".into(),
        "12345678:30".into(),
        "2026-11-16T03:24:00.123456789Z".into(),
        "tool_use_id: toolu_01A09q90qw90lq917835lq9".into(),
        "\"signature\": \"EqQBCgIYAhIkYmFzZTY0IG9mIGEgc2lnbmF0dXJl1234\"".into(),
    ]
}

#[test]
fn text_that_only_looks_like_a_secret_stays() {
    for text in near_misses() {
        let (redacted, found) = redact(&text);
        assert_eq!((redacted.as_str(), found), (text.as_str(), vec![]));
    }
}

#[test]
fn a_key_without_its_end_is_removed_as_far_as_it_goes() {
    let whole = pem("RSA PRIVATE KEY", "\n");
    let cut = &whole[..200];
    assert_eq!(redact(&format!("a {cut}")).0, "a [removed: private key]");
    let (redacted, _) = redact(&format!("{cut}\n-----BEGIN CERTIFICATE-----\nabc"));
    assert_eq!(
        redacted,
        "[removed: private key]-----BEGIN CERTIFICATE-----\nabc"
    );
}

#[test]
fn a_key_in_a_named_value_has_its_own_kind() {
    let key = format!("ghp_{}", alnum(36));
    assert_eq!(
        redact(&format!("token: {key}")).0,
        "token: [removed: github token]"
    );
    assert_eq!(
        redact(&format!("https://x:{key}@github.com/a")).0,
        "https://x:[removed: github token]@github.com/a"
    );
}

#[test]
fn strings_of_json_are_redacted_by_their_decoded_text() {
    let key = format!("ghp_{}", alnum(36));
    let escaped: String = key.chars().fold(String::new(), |mut out, c| {
        write!(out, "\\u{:04x}", c as u32).unwrap();
        out
    });
    let random = alnum(32);
    let lines = format!(
        "{{\"a\":\"x {escaped} \\ud83d\",\"n\":1.50,\"{key}\":[]}}\n{{\"password\" : \"{random}\", \"plain\":\"{random}\"}}\nbroken {key} \"open {key}\n{{\"z\":\"\\/\"}}\r\n"
    );
    // In pieces of every size it is the same.
    for size in [1, 2, 7, 4096] {
        let mut redactor = Redactor::new();
        let mut out = Vec::new();
        let mut writer = JsonRedactor::lines(&mut out, &mut redactor);
        for piece in lines.as_bytes().chunks(size) {
            std::io::Write::write_all(&mut writer, piece).unwrap();
        }
        assert!(writer.finish().unwrap());
        let out = String::from_utf8(out).unwrap();
        let github = "[removed: github token]";
        assert_eq!(
            out,
            format!(
                "{{\"a\":\"x {github} \u{fffd}\",\"n\":1.50,\"{github}\":[]}}\n{{\"password\" : \"[removed: password]\", \"plain\":\"{random}\"}}\nbroken {github} \"open {github}\n{{\"z\":\"\\/\"}}\r\n"
            )
        );
        let found: Vec<(&str, u64, Vec<u64>)> = redactor
            .findings()
            .map(|found| {
                (
                    found.kind,
                    found.count,
                    found.places.iter().copied().collect(),
                )
            })
            .collect();
        assert_eq!(
            found,
            [("github token", 4, vec![1, 3]), ("password", 1, vec![2])]
        );
    }
}

#[test]
fn all_of_a_message_is_redacted_and_nothing_else_of_it_changes() {
    let key = format!("ghp_{}", alnum(36));
    let json = format!(
        r#"{{"role":"assistant","blocks":[{{"type":"text","text":"a {key}","x":"{key}"}},
        {{"type":"thinking","thinking":"{key}","signature":"{key}"}},
        {{"type":"tool_use","id":"t","name":"n","input":{{"a":[1.0,"{key}"],"{key}":2}}}},
        {{"type":"tool_result","tool_use_id":"t","tool_name":"{key}","output":[{{"type":"text","text":"{key}"}}]}},
        {{"type":"image","media_type":"image/png","data":"AAAA"}},{{"type":"odd","k":"{key}"}}],"more":"{key}"}}"#
    );
    let mut message: Message = serde_json::from_str(&json).unwrap();
    let mut redactor = Redactor::new();
    redactor.at(7);
    redactor.redact_message(&mut message);
    let found = redactor.findings().next().unwrap();
    assert_eq!((found.count, found.places.first()), (9, Some(&7)));
    let signature = format!(r#""signature":"{key}""#);
    let expected: Message = serde_json::from_str(
        &json
            .replace(&signature, "SIGNATURE")
            .replace(&key, "[removed: github token]")
            .replace("SIGNATURE", &signature),
    )
    .unwrap();
    assert_eq!(message, expected);
}

#[test]
fn hostile_texts_take_linear_time() {
    const SIZE: usize = 1 << 17;
    for piece in [
        "a",
        "sk-",
        "eyJ.",
        "SG.",
        "-----",
        "-----BEGIN RSA PRIVATE KEY-----",
        "://",
        "a://",
        ":",
        "=\"",
        "password=",
        "password=\"",
        "token:'",
        "Authorization: Bearer ",
        "\\",
        "ghp_",
        "1:AA",
        "@",
        "{\"password\":\"",
        "a://b:c",
        "eyJhbGciOiJIUzI1NiJ9.",
        "curl -u ",
        "curl ",
        "password ",
        "password\n",
        "kind: Secret\n",
        "data:\n  a: b\nkind: Secret\n",
        "%2525",
        "&amp;",
        "\u{1b}[",
        "\u{1b}]",
        "\u{1b}]\u{7}",
        "a1\n",
        "ghp_a1\n",
        "key=",
        "discord=",
        "<password>",
        "-----BEGIN RSA PRIVATE KEY-----\nAAAAAAAAAAAAAAAAAAAAAAAA\n",
        "-----END RSA PRIVATE KEY-----\n",
        "Private-Lines: 1\n",
        "/home/",
        "a@",
        "a@b.",
        "sk-ant-",
        "EAAA",
    ] {
        let text = piece.repeat(SIZE / piece.len());
        let mut redactor = Redactor::new().people(None);
        redactor.redact(&text);
        let mut writer = JsonRedactor::lines(std::io::sink(), &mut redactor);
        std::io::Write::write_all(&mut writer, text.as_bytes()).unwrap();
        writer.finish().unwrap();
    }
}

fn pieces() -> impl Strategy<Value = String> {
    let mut all: Vec<String> = near_misses();
    all.extend(secrets().into_iter().map(|(_, secret)| secret));
    let small = [
        " ",
        "\n",
        "\"",
        ":",
        "=",
        "\\",
        "-",
        "_",
        ".",
        "@",
        "://",
        "password",
        "token=",
        "Bearer ",
        "Authorization:",
        "-----BEGIN RSA PRIVATE KEY-----",
        "-----END RSA PRIVATE KEY-----",
        "é",
        "\u{2028}",
        "[removed: x]",
        "A",
        "1",
        "AA",
    ];
    all.extend(small.map(str::to_owned));
    let piece = prop_oneof![proptest::sample::select(all), "\\PC{0,12}"];
    proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn redacting_twice_is_redacting_once(text in pieces()) {
        let (once, _) = redact(&text);
        let (twice, found) = redact(&once);
        prop_assert_eq!(&twice, &once);
        prop_assert_eq!(found, vec![]);
    }

    #[test]
    fn json_stays_json(texts in proptest::collection::vec(pieces(), 0..4)) {
        let list = Json::from_value(&texts).unwrap();
        let mut redactor = Redactor::new();
        let redacted = redactor.redact_json(&list).unwrap_or_else(|| list.clone());
        let read: Vec<String> = redacted.parse().unwrap();
        prop_assert_eq!(read.len(), texts.len());
        // Fields whose names say nothing are redacted like any text.
        let fields: BTreeMap<String, &String> = texts
            .iter()
            .enumerate()
            .map(|(number, text)| (format!("n{number}"), text))
            .collect();
        let object = Json::from_value(&fields).unwrap();
        let redacted = redactor.redact_json(&object).unwrap_or_else(|| object.clone());
        let read: BTreeMap<String, String> = redacted.parse().unwrap();
        let each: Vec<String> = texts.iter().map(|text| redact(text).0).collect();
        prop_assert_eq!(read.into_values().collect::<Vec<_>>(), each);
    }
}
