use backtrail::Role;
use proptest::prelude::*;

use super::tokens::{model, used};
use super::*;
use crate::collector::EventCollector;
use crate::testing::{check, read, read_sessions, resume};

const PATH: &str = "/home/me/shop/.aider.chat.history.md";
const CHATS: &str = "
# aider chat started at 2026-02-03 04:05:06

> /usr/bin/aider a.rs  
> Aider v0.86.1  
> Models: big/model-1⚡ with diff edit format, weak model small  

#### mend a.rs  
####   
#### please  

Certainly!

    let a = 1;

# A heading

> Tokens: 1.2k sent, 1,000 cache hit, 24 received. Cost: $0.05 message, $0.12 session.  
> Applied edit to a.rs  

# aider chat started at 2026-02-03 05:00:00

> Tokens: 10 sent, 5 received.
Cost: $0.01 request, $0.01 session.  
stray

#### /exit
";

fn collected(text: &str) -> EventCollector {
    read(&Aider, PATH, text.as_bytes()).unwrap().1
}

fn texts(events: &EventCollector) -> Vec<(Role, bool, String)> {
    let messages = events.messages().map(|event| &event.message);
    let text = |message: &Message| {
        let text = message.text().into_owned();
        (message.role.clone(), message.is_meta(), text)
    };
    messages.map(text).collect()
}

#[test]
fn prompts_that_aider_wrote_are_nobodys() {
    let chat = "
# aider chat started at 2026-02-03 04:05:06

#### /help how?  

#### # Question:  how?  
####   
#### # Relevant docs:  
####   
#### <doc>  
#### so  
#### </doc>  

So.

#### # Fix any errors below, if possible.  
####   
#### ## Running: flake8 a.py  

#### <blank>  

#### # Question: is this one?  
";
    let events = collected(chat);
    let typed = texts(&events)
        .into_iter()
        .filter(|said| said.0 == Role::User && !said.1);
    let typed: Vec<String> = typed.map(|said| said.2).collect();
    assert_eq!(typed, ["/help how?", "# Question: is this one?"]);
    let answers = texts(&events)
        .into_iter()
        .filter(|said| said.0 == Role::Assistant);
    assert_eq!(answers.count(), 1);
}

#[test]
fn a_chat_is_prompts_answers_and_output() {
    let events = collected(CHATS);
    assert_eq!(events.session, "aider-20260203040506");
    let said = |role: Role, is_meta: bool, text: &str| (role, is_meta, text.to_owned());
    let expected = [
        said(
            Role::User,
            true,
            "/usr/bin/aider a.rs\nAider v0.86.1\nModels: big/model-1⚡ with diff edit format, weak model small",
        ),
        said(Role::User, false, "mend a.rs\n\nplease"),
        said(
            Role::Assistant,
            false,
            "Certainly!\n\n    let a = 1;\n\n# A heading",
        ),
        said(Role::User, true, "Applied edit to a.rs"),
        said(Role::User, true, "stray"),
        said(Role::User, false, "/exit"),
    ];
    assert_eq!(texts(&events), expected);
    let main = events.main().unwrap();
    let directory = main.details.directory.as_deref();
    assert_eq!(directory, Some(Path::new("/home/me/shop")));
    assert_eq!(
        main.details.started_at.unwrap().as_millis(),
        1_770_091_506_000
    );
    assert_eq!(main.details.model.as_deref(), Some("big/model-1"));
    let answer = events.messages().nth(2).unwrap();
    assert_eq!(answer.model.as_deref(), Some("big/model-1"));
    assert_eq!(answer.at.unwrap().as_millis(), 1_770_091_506_000);
    let used: Vec<_> = main
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Usage(used) => Some((used.usage.input_tokens, used.cost_usd.unwrap())),
            _ => None,
        })
        .collect();
    assert_eq!(used, [(200, 0.05), (10, 0.01)]);
}

#[test]
fn the_chats_of_a_file_are_sessions_if_they_have_a_prompt() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE);
    let again = "# aider chat started at 2026-02-03 05:00:00\n#### x\n";
    let empty = "# aider chat started at 2026-02-03 06:00:00\n> Aider v1\n";
    std::fs::write(&path, format!("-*- mode -*-{CHATS}{again}{empty}")).unwrap();
    let contents = Aider.container(&path).unwrap().unwrap().contents().unwrap();
    assert_eq!(contents.others.get("chat without a prompt"), Some(&1));
    let sessions = read_sessions(&Aider, &path).unwrap();
    let names: Vec<_> = sessions
        .iter()
        .map(|(_, events)| events.session.as_str())
        .collect();
    let expected = [
        "aider-20260203040506",
        "aider-20260203050000",
        "aider-20260203050000-2",
    ];
    assert_eq!(names, expected);
    let second = texts(&sessions[1].1);
    assert_eq!(second.len(), 2, "{second:?}");
    let directory = sessions[1].1.main().unwrap().details.directory.clone();
    assert_eq!(directory.as_deref(), Some(dir.path()));
    let other = dir.path().join("notes.md");
    std::fs::write(&other, "# Notes").unwrap();
    assert!(Aider.container(&other).unwrap().is_none());
}

#[test]
fn a_block_that_grew_is_sent_again_and_one_that_did_not_is_not() {
    let cut = CHATS.find("> Aider v0").unwrap();
    let mut events = EventCollector::default();
    let before = Source::from_bytes(PATH, &CHATS.as_bytes()[..cut]);
    let report = events.read(Aider.open(&before).unwrap()).unwrap();
    assert_eq!(texts(&events)[0].2, "/usr/bin/aider a.rs");
    let whole = Source::from_bytes(PATH, CHATS.as_bytes());
    let report = resume(&Aider, &whole, &report, &mut events)
        .unwrap()
        .unwrap();
    assert_eq!(events.threads, collected(CHATS).threads);
    resume(&Aider, &whole, &report, &mut events)
        .unwrap()
        .unwrap();
    assert_eq!(events.threads, collected(CHATS).threads);
}

#[test]
fn what_a_call_used_is_told_in_many_ways() {
    let counts = |text: &str| {
        let (usage, cost) = used(text).unwrap();
        let read = usage.cache_read_input_tokens;
        let written = usage.cache_creation_input_tokens;
        (usage.input_tokens, usage.output_tokens, read, written, cost)
    };
    assert_eq!(
        counts("Tokens: 12k sent, 1.2k received."),
        (12_000, 1_200, 0, 0, None)
    );
    assert_eq!(
        counts(
            "Tokens: 8 sent, 6,900 cache hit, 10 received. Cost: $0.0021 message, $1.50 session."
        ),
        (8, 10, 6_900, 0, Some(0.0021))
    );
    assert_eq!(
        counts("Tokens: 7.1k sent, 7.0k cache write, 1M received."),
        (100, 1_000_000, 0, 7_000, None)
    );
    assert_eq!(
        counts("Tokens: 3,100 sent, 3,000 cached, 1 received.\nCost: $2 request, $2 session."),
        (100, 1, 3_000, 0, Some(2.0))
    );
    assert_eq!(used("Tokens: x sent, -1 received, 1e99k cached"), None);
    assert_eq!(model("Main model: a/b with diff edit format"), Some("a/b"));
    assert_eq!(model("Model: c with whole edit format"), Some("c"));
    assert_eq!(model("Model gpt: Missing these"), None);
}

#[test]
fn other_files_are_not_recognised() {
    let is = |text: &str| Aider.recognises(&Source::from_bytes("/x/notes.md", text));
    assert!(is(CHATS));
    assert!(!is("# aider chat started at noon\n#### hi\n"));
    assert!(!is("say `# aider chat started at 2026-02-03 04:05:06`\n"));
    assert!(!is(""));
}

#[test]
fn a_line_that_is_not_utf_8_is_counted_and_read() {
    let mut bytes = CHATS.as_bytes().to_vec();
    let at = CHATS.find("Certainly").unwrap();
    bytes[at] = 0xff;
    let (report, events) = read(&Aider, PATH, &bytes).unwrap();
    assert_eq!(report.damage.count, 1);
    assert!(texts(&events)[2].2.contains("ertainly"));
    check(&Aider, PATH, &bytes, at + 4);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn resuming_equals_reading_from_the_beginning(
        steps in prop::collection::vec(0usize..11, 0..20),
        cuts in prop::collection::vec(0usize..2_000, 8),
    ) {
        let lines = [
            "\n", "#### do it  \n", "> out  \n", "> Tokens: 10 sent, 5 received.\n",
            "Cost: $0.1 message, $0.2 session.  \n", "answer\n", "  indented  \n", ">\n",
            "# aider chat started at 2026-02-03 05:00:00\n", "> Model: m with x edit format\n", "####\n",
        ];
        let mut text = "# aider chat started at 2026-02-03 04:05:06\n".to_owned();
        steps.iter().for_each(|step| text.push_str(lines[*step]));
        for cut in cuts {
            check(&Aider, PATH, text.as_bytes(), cut % (text.len() + 1));
        }
    }
}
