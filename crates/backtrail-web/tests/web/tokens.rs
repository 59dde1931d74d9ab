//! Data is only for those that have the token of this start, in its header.

use crate::client::writing;

const DATA: [&str; 7] = [
    "GET /api/hello",
    "GET /api/events",
    "POST /api/plan",
    "POST /api/apply",
    "POST /api/hello",
    "GET /api/unknown",
    "GET /nowhere",
];

#[test]
fn without_the_token_there_is_nothing() {
    let web = writing();
    let token = web.token();
    assert_eq!(token.len(), 32);
    let wrong = token.replace(|digit: char| digit != '0', "0");
    for header in [
        String::new(),
        "X-Backtrail-Token: \n".to_owned(),
        format!("X-Backtrail-Token: {wrong}\n"),
        format!("X-Backtrail-Token: {}\n", &token[..31]),
        format!("X-Backtrail-Token: {}\n", &token[..1]),
        format!("X-Backtrail-Token: {token}0\n"),
        format!("X-Backtrail-Token: {token}{token}\n"),
        format!("X-Backtrail-Token: \"{token}\"\n"),
        format!("X-Backtrail-Token: {wrong}\nX-Backtrail-Token: {token}\n"),
        format!("X-Backtrail-Token: {token}\nX-Backtrail-Token: {token}\n"),
        format!("Cookie: token={token}; x-backtrail-token={token}\n"),
        format!("Authorization: Bearer {token}\n"),
        format!("Referer: http://HOST/#token={token}\n"),
    ] {
        for line in DATA {
            let answer = web.ask(&format!("{line} HTTP/1.1\nHost: HOST\n{header}\n"));
            answer.assert_refused(401);
            assert!(!answer.head.contains(&token) && !answer.body.contains(&token));
        }
    }
}

#[test]
fn a_token_in_the_address_is_worth_nothing() {
    let web = writing();
    for query in [
        "token=TOKEN",
        "x-backtrail-token=TOKEN",
        "X-Backtrail-Token=TOKEN",
    ] {
        for line in DATA {
            let answer = web.ask(&format!("{line}?{query} HTTP/1.1\nHost: HOST\n\n"));
            answer.assert_refused(401);
        }
    }
}

#[test]
fn every_byte_of_the_token_counts() {
    let web = writing();
    let token = web.token();
    for at in 0..token.len() {
        let other = if &token[at..=at] == "0" { "1" } else { "0" };
        let wrong = format!("{}{other}{}", &token[..at], &token[at + 1..]);
        let head = format!("GET /api/hello HTTP/1.1\nHost: HOST\nX-Backtrail-Token: {wrong}\n\n");
        web.ask(&head).assert_refused(401);
    }
    web.assert_answers();
}

#[test]
fn each_start_has_another_token() {
    let (one, other) = (writing(), writing());
    assert_ne!(one.token(), other.token());
    let head = "GET /api/hello HTTP/1.1\nHost: HOST\nX-Backtrail-Token: ";
    one.ask(&format!("{head}{}\n\n", other.token()))
        .assert_refused(401);
}

#[test]
fn who_has_no_token_is_shown_how_to_get_one() {
    let answer = writing().ask("GET /api/hello HTTP/1.1\nHost: HOST\n\n");
    let hint = answer.json()["hints"][0].as_str().unwrap().to_owned();
    assert!(hint.contains("backtrail web"), "{hint}");
}
