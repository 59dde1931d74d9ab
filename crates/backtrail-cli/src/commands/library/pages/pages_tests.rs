//! Pages tile, whatever is in a session: no part is twice, none is missing, and each is as `show`
//! writes it. A page is bounded, whatever the length of a session or of a record.

use backtrail::{Block, Message, Session, SessionOptions};
use backtrail_index::Index;
use backtrail_view::library::Palette;
use backtrail_view::library::{Fold, Library, Page, PageAt, PageRequest, Part, PartKind, Place};
use proptest::collection::vec;
use proptest::prelude::*;

use super::super::player::{Player, step};
use super::super::testing::{
    Fixture, answer, call, imported_with_sub_agent, plain, plain_parts, result,
};
use super::*;

/// A session of a library, and how its pages are asked for.
struct Paged<'a> {
    library: &'a StoreLibrary,
    session: String,
    width: u16,
    fold: Fold,
}

impl Paged<'_> {
    fn page(&self, at: PageAt) -> Page {
        let request = PageRequest {
            session: self.session.clone(),
            at,
            trail: None,
            width: self.width,
            fold: self.fold,
            palette: Palette::None,
        };
        self.library.page(&request).unwrap()
    }

    /// Returns all parts, laid out in one go.
    fn whole(&self) -> Vec<Part> {
        let id = self.session.parse().unwrap();
        let source = Source::open(self.library, &id, None, 0).unwrap();
        let layout = Layout {
            library: self.library,
            source: &source,
            width: usize::from(self.width),
            fold: self.fold,
            palette: Palette::None,
        };
        let all = Limits {
            lines: usize::MAX,
            records: u64::MAX,
        };
        let parts = layout.collect(0, Direction::Forwards(all, None)).unwrap();
        parts.parts.into()
    }

    /// Returns the parts of a page and of all pages after it.
    fn forwards(&self, mut page: Page) -> Vec<Part> {
        let mut parts = std::mem::take(&mut page.parts);
        while page.has_after {
            let last = page.last;
            page = self.page(PageAt::After(last));
            assert_eq!(page.first, last + 1);
            assert!(page.has_before && page.last >= page.first);
            parts.append(&mut page.parts);
        }
        assert_eq!(page.last, page.end);
        parts
    }

    /// Returns the parts of all pages before one, and its own.
    fn backwards(&self, mut page: Page) -> Vec<Part> {
        let mut pages = vec![std::mem::take(&mut page.parts)];
        while page.has_before {
            let first = page.first;
            page = self.page(PageAt::Before(first));
            assert_eq!(page.last, first - 1);
            assert!(page.has_after && page.first <= page.last);
            pages.push(std::mem::take(&mut page.parts));
        }
        pages.into_iter().rev().flatten().collect()
    }
}

/// Returns the first part that differs, in both, in a few words.
fn difference(found: &[Part], expected: &[Part]) -> Option<[String; 2]> {
    let words = |part: Option<&Part>| match part {
        Some(part) => format!(
            "{} {:?} {} {:?}",
            part.seq, part.kind, part.has_more, part.lines
        )
        .chars()
        .take(800)
        .collect(),
        None => "nothing".to_owned(),
    };
    let most = found.len().max(expected.len());
    let pairs = (0..most).map(|n| (found.get(n), expected.get(n)));
    let mut different = pairs.filter(|(found, expected)| found != expected);
    different
        .next()
        .map(|(found, expected)| [words(found), words(expected)])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn pages_tile_whatever_the_session_the_width_and_the_fold(
        steps in vec(step(), 1..220),
        width in prop_oneof![Just(20u16), Just(60), Just(200)],
        fold in prop_oneof![Just(Fold::Hidden), Just(Fold::Short), Just(Fold::Full)],
        catalogued in 0..220usize,
        around in 0..1000u64,
    ) {
        let fixture = Fixture::new();
        let session = fixture.session(SessionOptions::new());
        let id = session.id().to_string();
        let mut player = Player::new(session);
        for (n, step) in steps.iter().enumerate() {
            player.play(step);
            if n == catalogued {
                let index = Index::open(&fixture.library.store, Default::default()).unwrap();
                index.catch_up().unwrap();
            }
        }
        let paged = Paged { library: &fixture.library, session: id, width, fold };
        let whole = paged.whole();
        prop_assert!(whole.iter().all(|part| !part.lines.is_empty()));
        let forwards = paged.forwards(paged.page(PageAt::Start));
        prop_assert_eq!(difference(&forwards, &whole), None);
        let backwards = paged.backwards(paged.page(PageAt::End));
        prop_assert_eq!(difference(&backwards, &whole), None);
        let wanted = around % (player.session.last_seq() + 1);
        let page = paged.page(PageAt::Around(wanted));
        prop_assert!((page.first..=page.last).contains(&wanted));
        let (before, after) = (paged.backwards(page.clone()), paged.forwards(page.clone()));
        let own = page.parts.len();
        let all = [&before[..], &after[own..]].concat();
        prop_assert_eq!(difference(&all, &whole), None);
    }
}

/// Asks for a page of a session that is 100 columns wide.
fn page_of(fixture: &Fixture, session: &Session, at: PageAt, fold: Fold) -> Page {
    let paged = Paged {
        library: &fixture.library,
        session: session.id().to_string(),
        width: 60,
        fold,
    };
    paged.page(at)
}

fn conversation(fixture: &Fixture) -> Session {
    let session = fixture.session(SessionOptions::new());
    session.append(Message::user_text("what is here?")).unwrap();
    let look = [Block::thinking("first\nthen"), call("t1", "ls")];
    session.append(Message::assistant(look)).unwrap();
    session.append(result("t1", "a\nb")).unwrap();
    session.append(answer("Two files.")).unwrap();
    session
}

#[test]
fn a_page_is_what_show_prints_and_folds_as_asked() {
    let fixture = Fixture::new();
    let session = conversation(&fixture);
    let shown = |fold| {
        let page = page_of(&fixture, &session, PageAt::End, fold);
        let kinds: Vec<_> = page
            .parts
            .iter()
            .map(|part| (part.seq, part.kind))
            .collect();
        let mut lines = plain_parts(&page.parts);
        // The heading has a time.
        assert!(lines[0].starts_with("── turn 1 · "), "{lines:?}");
        assert!(lines.remove(0).ends_with("─ record 1 ──"));
        (kinds, lines)
    };
    let prompt = (1, PartKind::Prompt);
    let said = (4, PartKind::Answer);
    let folded = [(2, PartKind::Thinking), (2, PartKind::Tool)];
    let (kinds, lines) = shown(Fold::Hidden);
    assert_eq!(kinds, [prompt, said]);
    assert_eq!(lines, ["› what is here?", "", "  Two files."]);
    let (kinds, lines) = shown(Fold::Short);
    assert_eq!(kinds, [prompt, folded[0], folded[1], said]);
    let short = ["  thinking: first …", "  ⚙ bash  ls   ✓ 2 lines"];
    assert_eq!(lines[..2], ["› what is here?", ""]);
    assert_eq!(lines[2..4], short);
    let (_, lines) = shown(Fold::Full);
    let full = [
        "  thinking: first",
        "  then",
        "",
        "  ⚙ bash  ls   ✓ 2 lines",
        "      a",
        "      b",
    ];
    assert_eq!(lines[2..8], full);
}

#[test]
fn what_is_folded_says_so() {
    let fixture = Fixture::new();
    let session = conversation(&fixture);
    let has_more = |fold| {
        let page = page_of(&fixture, &session, PageAt::End, fold);
        page.parts
            .iter()
            .map(|part| part.has_more)
            .collect::<Vec<_>>()
    };
    assert_eq!(has_more(Fold::Short), [false, true, true, false]);
    assert_eq!(has_more(Fold::Full), [false; 4]);
}

#[test]
fn a_huge_record_is_cut_and_its_text_is_whole() {
    let fixture = Fixture::new();
    let session = fixture.session(SessionOptions::new());
    let huge = vec!["line"; 100_000].join("\n");
    session.append(Message::user_text(huge.clone())).unwrap();
    session
        .append(Message::assistant([call("t1", "ls")]))
        .unwrap();
    session.append(result("t1", &huge)).unwrap();
    session.append(answer(&"wide ".repeat(1_000_000))).unwrap();
    let page = page_of(&fixture, &session, PageAt::Around(2), Fold::Full);
    let longest = page.parts.iter().map(|part| part.lines.len()).max();
    assert_eq!(longest, Some(1_001));
    assert!(page.parts.iter().all(|part| part.has_more));
    let text = |seq| {
        let session = session.id().to_string();
        let place = Place {
            session,
            seq,
            trail: None,
        };
        fixture.library.text(&place).unwrap()
    };
    assert_eq!(text(1), huge);
    assert_eq!(text(2), format!("ls\n{huge}"));
    assert_eq!(text(3), text(2), "a result is with its call");
}

#[test]
fn no_line_of_a_page_has_escapes_or_is_endless() {
    let fixture = Fixture::new();
    let session = fixture.session(SessionOptions::new());
    let hostile = "\u{1b}]0;x\u{7}\u{1b}[31mred\u{9b}2J\ttab\r\u{202e}";
    session.append(Message::user_text(hostile)).unwrap();
    session
        .append(Message::assistant([call("t1", hostile)]))
        .unwrap();
    let wide = format!("{hostile}{}", "w".repeat(100_000));
    session.append(result("t1", &wide)).unwrap();
    session.append(answer(hostile)).unwrap();
    let page = page_of(&fixture, &session, PageAt::Start, Fold::Full);
    for line in page.parts.iter().flat_map(|part| plain(&part.lines)) {
        assert!(
            !line.chars().any(|c| c.is_control() || c == '\u{202e}'),
            "{line:?}"
        );
        assert!(line.len() < 10_000, "{}", line.len());
    }
}

#[test]
fn an_undone_turn_is_found_by_its_trail() {
    let fixture = Fixture::new();
    let session = conversation(&fixture);
    session.append(Message::user_text("and now?")).unwrap();
    session.append(answer("Wrong.")).unwrap();
    session.rewind_chat(4).unwrap();
    session.append(Message::user_text("go on")).unwrap();
    let request = PageRequest {
        session: session.id().to_string(),
        at: PageAt::Around(6),
        trail: Some(0),
        width: 60,
        fold: Fold::Short,
        palette: Palette::None,
    };
    let page = fixture.library.page(&request).unwrap();
    let lines = plain_parts(&page.parts);
    assert!(lines[0].starts_with("── undone turn · "), "{lines:?}");
    assert_eq!(lines[1..], ["› and now?", "", "  Wrong."]);
    assert_eq!((page.first, page.last), (5, 6));
    assert!(!page.has_before && !page.has_after);
    let place = Place {
        session: request.session,
        seq: 6,
        trail: Some(0),
    };
    assert_eq!(fixture.library.text(&place).unwrap(), "Wrong.");
    assert_eq!(fixture.library.prompt_from(&place, false).unwrap(), Some(5));
    assert_eq!(fixture.library.prompt_from(&place, true).unwrap(), None);
}

#[test]
fn prompts_are_found_in_both_directions() {
    let fixture = Fixture::new();
    let session = conversation(&fixture);
    let reminder = "<system-reminder>\nno\n</system-reminder>";
    session.append(Message::user_text(reminder)).unwrap();
    session.append(Message::user_text("more")).unwrap();
    let from = |seq, forwards| {
        let session = session.id().to_string();
        let place = Place {
            session,
            seq,
            trail: None,
        };
        fixture.library.prompt_from(&place, forwards).unwrap()
    };
    assert_eq!(from(1, true), Some(6));
    assert_eq!(from(6, true), None);
    assert_eq!(from(6, false), Some(1));
    assert_eq!(from(1, false), None);
}

#[test]
fn a_call_names_the_session_that_it_started() {
    let fixture = Fixture::new();
    let session = conversation(&fixture);
    session
        .append(Message::assistant([call("t2", "task")]))
        .unwrap();
    let options = SessionOptions::new();
    let child = session.spawn("t2", options).unwrap();
    session.append(result("t2", "done")).unwrap();
    let page = page_of(&fixture, &session, PageAt::End, Fold::Short);
    let started: Vec<u64> = {
        let is_it = |part: &&Part| part.sub_agent.as_deref() == Some(child.id().as_str());
        page.parts
            .iter()
            .filter(is_it)
            .map(|part| part.seq)
            .collect()
    };
    assert_eq!(started, [5, 6]);
}

#[test]
fn a_call_of_an_imported_session_names_the_session_that_it_started() {
    let fixture = Fixture::new();
    let [parent, child] = imported_with_sub_agent(&fixture);
    let paged = Paged {
        library: &fixture.library,
        session: parent.to_string(),
        width: 60,
        fold: Fold::Short,
    };
    let parts = paged.page(PageAt::End).parts.into_iter();
    let started: Vec<_> = parts
        .filter_map(|part| Some((part.kind, part.sub_agent?)))
        .collect();
    assert_eq!(started, [(PartKind::Tool, child.to_string())]);
}

#[test]
fn a_session_that_is_gone_is_a_failure_and_so_is_a_wrong_id() {
    let fixture = Fixture::new();
    let page = |session: &str| {
        let request = PageRequest {
            session: session.to_owned(),
            at: PageAt::End,
            trail: None,
            width: 80,
            fold: Fold::Short,
            palette: Palette::None,
        };
        fixture.library.page(&request).unwrap_err().message
    };
    let gone = "0198c0de-0000-7000-8000-000000000000";
    assert!(page(gone).contains(gone), "{}", page(gone));
    assert!(page("../x").contains("../x"), "{}", page("../x"));
}

#[test]
fn a_session_without_a_record_is_an_empty_page() {
    let fixture = Fixture::new();
    let session = fixture.session(SessionOptions::new());
    for at in [
        PageAt::Start,
        PageAt::End,
        PageAt::Around(7),
        PageAt::Before(3),
    ] {
        let page = page_of(&fixture, &session, at, Fold::Full);
        assert!(page.parts.is_empty() && !page.has_after, "{at:?}: {page:?}");
    }
}

#[test]
fn code_has_the_colours_that_the_page_is_asked_for() {
    let fixture = Fixture::new();
    let session = fixture.session(SessionOptions::new());
    session.append(Message::user_text("how?")).unwrap();
    let escape = "\u{1b}[31m";
    let text = format!("```rust\nfn main() {{ {escape}\"a\" }}\n```");
    session.append(answer(&text)).unwrap();
    let page = |palette| {
        let request = PageRequest {
            session: session.id().to_string(),
            at: PageAt::Start,
            trail: None,
            width: 60,
            fold: Fold::Short,
            palette,
        };
        fixture.library.page(&request).unwrap()
    };
    let colors = |palette| {
        let page = page(palette);
        let parts = page
            .parts
            .iter()
            .filter(|part| part.kind == PartKind::Answer);
        let spans = parts.flat_map(|part| part.lines.iter().flatten().cloned());
        let colors = spans.filter_map(|span| span.style.get_fg_color());
        colors.collect::<Vec<_>>()
    };
    let all = [Palette::Sixteen, Palette::Dark, Palette::Light].map(colors);
    assert!(all.iter().all(|colors| colors.len() > 1), "{all:?}");
    assert_ne!(all[1], all[2]);
    let is_ansi = |color: &anstyle::Color| matches!(color, anstyle::Color::Ansi(_));
    assert!(all[0].iter().all(is_ansi), "{all:?}");
    assert_eq!(colors(Palette::None), []);
    // Colours change no text, and escapes of the text are gone.
    let text = |palette| plain_parts(&page(palette).parts);
    assert_eq!(text(Palette::Dark), text(Palette::None));
    assert!(text(Palette::Dark).contains(&"      fn main() { \"a\" }".to_owned()));
}
