//! The promises of the screens, proven without a terminal.

use super::driver_tests::{Driver, Made, entry};
use super::*;
use backtrail_view::library::{Action, Change, Moment, OnConflict};

#[test]
fn the_newest_session_is_shown_with_its_end_at_once() {
    let driver = Driver::new(160, 40);
    driver.expect("fix the currency rounding");
    driver.expect("Answer 99 of id-1");
    driver.expect("undo: prompt 3, 6 files");
    driver.expect("src/a.rs");
}

#[test]
fn enter_never_starts_an_agent() {
    for (columns, rows) in [(60, 20), (120, 30), (200, 50)] {
        let mut driver = Driver::new(columns, rows);
        for view in ["1", "2", "3"] {
            driver.press(view);
            driver.press("<Enter><Enter><Enter><Enter><Enter>");
        }
        assert_eq!(driver.started(), Vec::<Vec<std::ffi::OsString>>::new());
        assert!(driver.library.applied.is_empty());
    }
}

#[test]
fn an_agent_is_started_only_after_it_was_chosen() {
    let mut driver = Driver::new(160, 40);
    driver.press("c");
    driver.expect("codex");
    assert!(driver.started().is_empty());
    driver.press("<Enter>");
    assert_eq!(driver.started(), [["codex", "id-1"]]);
}

#[test]
fn what_changes_files_is_planned_first_and_done_on_enter_alone() {
    for key in ["u", "U", "<Enter>r", "<Enter><Enter>R", "x", "2r"] {
        let mut driver = Driver::new(160, 40);
        driver.press(key);
        driver.expect("restored   src/a.rs");
        assert!(driver.library.applied.is_empty(), "{key}");
        for other in ["j", "k", "y", "<Tab>", "u"] {
            driver.press(other);
            assert!(driver.library.applied.is_empty(), "{key} {other}");
        }
        driver.press("<Enter>");
        assert_eq!(driver.library.applied.len(), 1, "{key}");
        driver.expect("Undid prompt 3: 6 files");
    }
}

#[test]
fn a_plan_that_is_left_is_never_done() {
    for key in ["<Esc>", "q", "<Ctrl-C>"] {
        let mut driver = Driver::new(160, 40);
        driver.press("u");
        driver.press(key);
        assert!(!driver.shows("restored   src/a.rs"), "{key}");
        driver.press("<Enter><Enter>");
        assert!(driver.library.applied.is_empty(), "{key}");
    }
}

#[test]
fn conflicts_show_their_choices_and_the_chosen_one_is_done() {
    let choices = [OnConflict::Keep, OnConflict::Merge, OnConflict::Overwrite];
    for (n, expected) in choices.into_iter().enumerate() {
        let mut library = Made::new();
        library.conflicts = true;
        let mut driver = Driver::with(library, 100, 30);
        driver.press("u");
        driver.expect("keep src/a.rs as it is");
        driver.expect("overwrite");
        driver.press(&"j".repeat(n));
        driver.press("<Enter>");
        assert_eq!(driver.library.applied, [(Action::Undo, expected)]);
    }
}

#[test]
fn a_failed_action_says_why_and_nothing_more_happens() {
    let mut library = Made::new();
    library.fails_to_apply = true;
    let mut driver = Driver::with(library, 100, 30);
    driver.press("u<Enter>");
    driver.expect("src/a.rs changed since the plan");
    driver.press("<Enter>");
    assert!(driver.library.applied.is_empty());
    assert!(!driver.shows("changed since the plan"));
}

#[test]
fn a_file_or_a_hunk_is_restored_as_it_was_before() {
    let mut driver = Driver::new(160, 40);
    driver.press("<Enter><Enter>jR<Enter>");
    let before = Moment::Checkpoint("c1".to_owned());
    let paths = vec!["src/b.rs".to_owned()];
    let restored = Action::Restore("w".to_owned(), before, paths);
    assert_eq!(driver.library.applied, [(restored, OnConflict::Stop)]);

    let mut driver = Driver::new(160, 40);
    // The second hunk of the first file.
    driver.press("<Enter><Enter><Enter>JR<Enter>");
    let [(Action::RestoreHunks(_, path, hunks), _)] = &driver.library.applied[..] else {
        panic!("{:?}", driver.library.applied);
    };
    assert_eq!((path.as_str(), &hunks[..]), ("src/a.rs", &[1][..]));
}

#[test]
fn marked_files_are_restored_together() {
    let mut driver = Driver::new(160, 40);
    driver.press("<Enter><Enter><Space><Space>R<Enter>");
    let [(Action::Restore(_, _, paths), _)] = &driver.library.applied[..] else {
        panic!("{:?}", driver.library.applied);
    };
    assert_eq!(paths, &["src/a.rs", "src/b.rs"]);
}

#[test]
fn typing_filters_the_sessions_and_escape_shows_them_all() {
    let mut driver = Driver::new(160, 40);
    driver.press("Fkeys");
    driver.expect("rotate the keys");
    assert!(!driver.shows("why is checkout slow"));
    driver.press("<Enter>");
    assert!(!driver.shows("why is checkout slow"));
    driver.press("<Esc>");
    driver.expect("why is checkout slow");
    // Escape at the start does not leave; q does.
    driver.press("<Esc>");
    assert!(driver.wanted.is_empty());
    driver.press("q");
    assert_eq!(driver.wanted, [Effect::Quit]);
}

#[test]
fn a_match_opens_its_record_and_n_goes_on() {
    let mut driver = Driver::new(160, 40);
    driver.press("/rounding");
    driver.expect("it has rounding in it");
    driver.press("<Enter>");
    let reader = driver.app.reader.as_ref().unwrap();
    assert_eq!(
        reader.place().map(|it| (it.session, it.seq)),
        Some(("id-1".to_owned(), 50))
    );
    assert_eq!(driver.app.focus, Panel::Conversation);
    driver.press("n");
    assert_eq!(driver.app.reader.as_ref().unwrap().session, "id-2");
    driver.press("N");
    assert_eq!(driver.app.reader.as_ref().unwrap().session, "id-1");
}

#[test]
fn prompts_are_reached_beyond_what_is_in_memory() {
    let mut driver = Driver::new(160, 40);
    driver.press("<Enter>");
    let seq = |driver: &Driver| driver.app.reader.as_ref().unwrap().place().unwrap().seq;
    let mut seen = Vec::new();
    for _ in 0..5 {
        driver.press("[");
        seen.push(seq(&driver));
    }
    assert_eq!(seen, [90, 80, 70, 60, 50]);
    driver.press("]");
    assert_eq!(seq(&driver), 60);
}

#[test]
fn a_sub_agent_opens_in_place_and_q_comes_back() {
    let mut driver = Driver::new(160, 40);
    driver.press("j<Enter>");
    let session = |driver: &Driver| driver.app.reader.as_ref().unwrap().session.clone();
    assert_eq!(session(&driver), "id-2");
    // The call after the prompt before the one before the last.
    driver.press("[[J<Enter>");
    assert_eq!(session(&driver), "id-3");
    driver.press("q");
    assert_eq!(session(&driver), "id-2");
    let place = driver.app.reader.as_ref().unwrap().place().unwrap();
    assert_eq!(place.seq, 81);
}

#[test]
fn two_moments_are_compared_whatever_their_order() {
    let mut driver = Driver::new(160, 40);
    driver.press("2mjj");
    let Some(ChangesOf::Between(between)) = driver.app.changes.of.clone() else {
        panic!("{:?}", driver.app.changes.of);
    };
    assert_eq!(between.from, Moment::Checkpoint("c1".to_owned()));
    assert_eq!(between.to, Moment::Checkpoint("c3".to_owned()));
}

#[test]
fn a_group_of_costs_opens_its_sessions() {
    let mut driver = Driver::new(120, 30);
    driver.press("3");
    driver.expect("claude-opus-5");
    driver.press("<Enter>");
    driver.expect("why is checkout slow");
    assert!(!driver.shows("rotate the keys"));
    // Back to the costs, and all sessions are listed again.
    driver.press("q");
    driver.expect("claude-opus-5");
    driver.press("q");
    driver.expect("rotate the keys");
}

#[test]
fn costs_have_the_groupings_of_stats() {
    let mut driver = Driver::new(120, 30);
    driver.press("3");
    for title in [
        "Costs by day",
        "Costs by week",
        "Costs by month",
        "Costs by model",
        "Costs by project",
        "Costs by agent",
        "Calls by tool",
        "Costs by tag",
        "Costs by branch",
        "Costs by 5-hour block",
        "Costs by day",
    ] {
        driver.expect(title);
        driver.press("]");
    }
}

#[test]
fn a_session_that_grows_shows_its_end_and_others_are_unread() {
    let mut driver = Driver::new(160, 40);
    driver.press("<Enter>");
    driver.library.sessions[0].last_seq = 103;
    driver.send(Event::Changed(Change::Session("id-1".to_owned())));
    driver.expect("Answer 103 of id-1");
    driver.library.sessions[1].last_seq = 105;
    driver.send(Event::Changed(Change::Session("id-2".to_owned())));
    let unread = |driver: &Driver, n: usize| {
        let entry = &driver.app.sessions.list.entries[n];
        driver.app.sessions.is_unread(entry)
    };
    assert!(unread(&driver, 1));
    assert!(!unread(&driver, 0));
    driver.press("qj");
    assert!(!unread(&driver, 1), "it was read");
}

/// News that come while the end is being read are not lost.
#[test]
fn a_session_that_grows_while_its_end_is_read_is_read_again() {
    let mut driver = Driver::new(160, 40);
    driver.press("<Enter>");
    driver.library.sessions[0].last_seq = 103;
    let news = || Event::Changed(Change::Session("id-1".to_owned()));
    let effects = driver.app.update(news());
    let first = effects.into_iter().find_map(|effect| match effect {
        Effect::Ask(request @ Request::Page(_)) => Some(request),
        _ => None,
    });
    let first = first.unwrap();
    let reply = driver.library.answer(&first);
    driver.library.sessions[0].last_seq = 105;
    driver.app.update(news());
    driver.send(Event::Reply(Box::new(first), reply));
    driver.expect("Answer 105 of id-1");
}

#[test]
fn someone_who_reads_further_up_stays_there_when_the_session_grows() {
    let mut driver = Driver::new(160, 40);
    driver.press("<Enter>[[");
    let here = |driver: &Driver| driver.app.reader.as_ref().unwrap().place();
    let before = here(&driver);
    driver.library.sessions[0].last_seq = 140;
    driver.send(Event::Changed(Change::Session("id-1".to_owned())));
    assert_eq!(here(&driver), before);
}

#[test]
fn a_session_that_is_deleted_meanwhile_leaves_the_rest_usable() {
    let mut driver = Driver::new(160, 40);
    driver.press("j<Enter>");
    driver.library.sessions.remove(1);
    driver.send(Event::Changed(Change::Sessions));
    driver.press("<Down>[z");
    driver.expect("the session is gone");
    driver.press("q");
    assert!(!driver.shows("why is checkout slow"));
    driver.press("g");
    driver.expect("of id-1");
}

#[test]
fn a_deleted_session_comes_back_with_one_key() {
    let mut driver = Driver::new(160, 40);
    driver.press("x<Enter>X");
    assert_eq!(driver.library.applied.len(), 1, "only planned");
    driver.press("<Esc>X<Enter>X");
    driver.expect("nothing was deleted here");
    let actions: Vec<&Action> = driver
        .library
        .applied
        .iter()
        .map(|(action, _)| action)
        .collect();
    let id = "id-1".to_owned();
    assert_eq!(
        actions,
        [&Action::Delete(id.clone()), &Action::Undelete(id)]
    );
}

#[test]
fn titles_tags_pins_and_exports_are_asked_for_and_done() {
    let mut driver = Driver::new(160, 40);
    driver.press("t 2<Enter>#bug<Enter>pe<Enter><Enter>");
    let id = "id-1".to_owned();
    let actions: Vec<Action> = driver
        .library
        .applied
        .iter()
        .map(|(it, _)| it.clone())
        .collect();
    let expected = [
        Action::Title(id.clone(), "fix the currency rounding 2".to_owned()),
        Action::Tag(id.clone(), "bug".to_owned()),
        Action::Pin(id.clone(), true),
        Action::Export(id, "html".to_owned(), "kkkl.html".to_owned()),
    ];
    assert_eq!(actions, expected);
}

#[test]
fn an_answer_that_is_no_longer_wanted_changes_nothing() {
    let mut driver = Driver::new(160, 40);
    let stale: Vec<Request> = driver.asked.clone();
    driver.press("jj<Enter>");
    let before = driver.screen();
    for request in stale {
        let reply = driver.library.answer(&request);
        driver.app.update(Event::Reply(Box::new(request), reply));
    }
    assert_eq!(driver.screen(), before);
}

#[test]
fn an_empty_store_says_how_to_begin() {
    let mut library = Made::new();
    library.sessions.clear();
    let mut driver = Driver::with(library, 80, 24);
    driver.expect("backtrail run -- COMMAND");
    driver.press("<Enter>dRbyctxX#p]/<Esc>");
    assert!(driver.library.applied.is_empty());
}

#[test]
fn a_list_of_ten_thousand_sessions_moves_to_its_end() {
    let mut library = Made::new();
    library.sessions = (0..10_000)
        .map(|n| entry(n, &format!("session {n}")))
        .collect();
    let mut driver = Driver::with(library, 160, 40);
    driver.press("G");
    driver.expect("session 9999");
    driver.expect("10000 of 10000");
}

/// An undo is never cut off: who wants to leave meanwhile leaves when it is done.
#[test]
fn leaving_waits_for_what_is_being_done() {
    let mut driver = Driver::new(100, 30);
    driver.press("u");
    let mut effects = driver
        .app
        .update(Event::Key(KeyEvent::from(KeyCode::Enter)));
    let interrupt = KeyEvent::new(KeyCode::Char('c'), crossterm::event::KeyModifiers::CONTROL);
    assert!(driver.app.update(Event::Key(interrupt)).is_empty());
    driver.expect("leaving when this is done");
    let Some(Effect::Ask(request)) = effects.pop() else {
        panic!("{effects:?}");
    };
    let reply = driver.library.answer(&request);
    driver.send(Event::Reply(Box::new(request), reply));
    assert_eq!(driver.library.applied.len(), 1);
    assert_eq!(driver.wanted, [Effect::Quit]);
}

/// The catalogue as it was left may not know this workspace yet.
#[test]
fn only_a_current_list_decides_that_nothing_is_here() {
    let (mut app, _) = App::new(Scope::Workspace, Look::default(), (100, 30));
    let nothing = || {
        crate::request::Reply::Sessions(Ok(backtrail_view::library::SessionList {
            all: 7,
            ..Default::default()
        }))
    };
    let ask = |freshness| Box::new(Request::Sessions(Scope::Workspace, freshness));
    app.update(Event::Reply(ask(Freshness::Known), nothing()));
    assert_eq!(app.sessions.scope, Scope::Workspace);
    app.update(Event::Reply(ask(Freshness::Current), nothing()));
    assert_eq!(app.sessions.scope, Scope::Everything);
}

/// Whatever is pressed at whatever size: no panic, and every cursor is in its list.
#[test]
fn no_keys_at_any_size_break_the_screens() {
    let keys = "jkhlgG\u{4}\u{15}123/nNFa[]JKzdv<>uUrR mwbfcyet#pxXo?:q\n\t\u{1b}\u{7f}äx日";
    let keys: Vec<char> = keys.chars().collect();
    let sizes = [(20, 5), (60, 20), (100, 24), (160, 50), (1, 1), (300, 3)];
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move |n: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % n as u64) as usize
    };
    let mut driver = Driver::new(80, 24);
    for _ in 0..3000 {
        match next(12) {
            0 => {
                let (columns, rows) = sizes[next(sizes.len())];
                driver.send(Event::Resize(columns, rows));
            }
            1 => driver.send(Event::Changed(Change::Session(format!("id-{}", next(5))))),
            _ => {
                let key = match keys[next(keys.len())] {
                    '\n' => KeyEvent::from(KeyCode::Enter),
                    '\t' => KeyEvent::from(KeyCode::Tab),
                    '\u{1b}' => KeyEvent::from(KeyCode::Esc),
                    '\u{7f}' => KeyEvent::from(KeyCode::Backspace),
                    c => KeyEvent::from(KeyCode::Char(c)),
                };
                driver.send(Event::Key(key));
            }
        }
        driver.screen();
        let app = &driver.app;
        assert!(app.sessions.cursor.selected <= app.sessions.shown.len());
        assert!(
            app.areas().is_visible(app.focus),
            "{:?} {:?}",
            app.view,
            app.focus
        );
        // A deleted session is gone for good here: there must be some left.
        if driver.library.sessions.len() < 2 {
            driver.library.sessions = Made::new().sessions;
        }
    }
}

#[test]
fn colours_follow_a_background_that_is_told_late() {
    let mut driver = Driver::new(160, 40);
    let mut told = |background| {
        let effects = driver.app.set_background(background);
        let asked = effects.iter().map(|effect| match effect {
            Effect::Ask(Request::Page(_)) => "page",
            Effect::Ask(Request::Diff(_)) => "diff",
            other => panic!("{other:?}"),
        });
        asked.collect::<Vec<_>>()
    };
    assert_eq!(told(Background::Dark), [""; 0]);
    assert_eq!(told(Background::Light), ["page", "diff"]);
}

#[test]
fn a_wrong_query_says_so_and_enter_opens_nothing() {
    let mut driver = Driver::new(120, 30);
    driver.press("/round");
    driver.expect("it has round in it");
    driver.press(")");
    driver.expect("the `)` closes nothing");
    assert!(!driver.shows("it has round in it"));
    driver.press("<Enter>");
    driver.expect("Search in");
    driver.press("<Backspace>");
    driver.expect("it has round in it");
}

/// Where the panel of changes is hidden, and where it may show those of another session.
#[test]
fn a_record_is_rewound_and_its_files_listed_where_its_session_works() {
    for columns in [80, 120, 160] {
        let mut driver = Driver::new(columns, 30);
        driver.press("<Enter>r");
        let Some(Request::Plan(Action::Rewind(workspace, Moment::Record(_)))) = driver.asked.last()
        else {
            panic!("{columns}: {:?}", driver.asked.last());
        };
        assert_eq!(workspace, "", "{columns}");
        driver.press("<Esc>w");
        let Some(Request::Files(workspace, Moment::Record(_))) = driver.asked.last() else {
            panic!("{columns}: {:?}", driver.asked.last());
        };
        assert_eq!(workspace, "", "{columns}");
    }
    let mut driver = Driver::new(160, 40);
    driver.press("2r");
    let Some(Request::Plan(Action::Rewind(workspace, _))) = driver.asked.last() else {
        panic!("{:?}", driver.asked.last());
    };
    assert_eq!(workspace, "w", "a row of the timeline names its own");
}

#[test]
fn a_file_that_only_an_agent_says_it_edited_is_blamed_as_it_was_then() {
    let mut library = Made::new();
    library.knows_no_states = true;
    let mut driver = Driver::with(library, 160, 40);
    driver.press("<Enter><Enter>b");
    let Some(Request::Blame(workspace, Moment::Record(place), path)) = driver.asked.last() else {
        panic!("{:?}", driver.asked.last());
    };
    let asked = (workspace.as_str(), place.seq, path.as_str());
    assert_eq!(asked, ("", 100, "src/a.rs"));
}

#[test]
fn nothing_is_restored_while_what_changed_is_still_being_read() {
    for focus in ["<Enter><Enter>", "<Enter><Enter><Enter>"] {
        let mut driver = Driver::new(160, 40);
        driver.press(focus);
        let effects = driver.app.update(Event::Changed(Change::Workspace));
        let plans = |driver: &Driver| {
            let is_plan = |request: &&Request| matches!(request, Request::Plan(_));
            driver.asked.iter().filter(is_plan).count()
        };
        driver.press("R");
        assert_eq!(plans(&driver), 0, "{focus}");
        driver.expect("still being read");
        for effect in effects {
            if let Effect::Ask(request) = effect {
                let reply = driver.library.answer(&request);
                driver.send(Event::Reply(Box::new(request), reply));
            }
        }
        driver.press("R");
        assert_eq!(plans(&driver), 1, "{focus}");
    }
}

#[test]
fn turns_files_cost_and_time_are_in_the_list_beside_other_panels() {
    for columns in [80, 120, 160, 200] {
        let driver = Driver::new(columns, 30);
        let row = row_with(&driver, "why is checkout slow");
        for fact in ["7t", "12f", "$1.84", "14:32"] {
            assert!(row.contains(fact), "{columns}: {row}");
        }
        let border = &driver.screen()[27];
        let named = row.contains("Claude Code") || border.contains("Claude Code");
        assert!(named, "{columns}: {}", driver.screen().join("\n"));
    }
}

#[test]
fn a_column_that_does_not_fit_leaves_its_room_to_the_next() {
    let mut driver = Driver::new(126, 30);
    driver.press("aa");
    let row = row_with(&driver, "why is checkout");
    assert!(row.contains(" shop ") && !row.contains("Claude"), "{row}");
    assert!(driver.screen()[27].contains("Claude Code"));
}

#[test]
fn a_sub_agent_is_told_from_a_fork() {
    for columns in [80, 120, 200] {
        let mut library = Made::new();
        library.sessions[3].depth = 1;
        let mut driver = Driver::with(library, columns, 30);
        assert!(row_with(&driver, "look for callers").contains('◇'));
        assert!(!row_with(&driver, "rotate the keys").contains('◇'));
        driver.press("jj");
        assert!(driver.screen()[27].contains("sub-agent"), "{columns}");
    }
}

fn row_with(driver: &Driver, text: &str) -> String {
    let mut rows = driver.screen().into_iter();
    rows.find(|row| row.contains(text)).unwrap_or_default()
}

#[test]
fn a_match_in_a_folded_output_is_unfolded_and_gone_to() {
    for (columns, rows) in [(80, 24), (120, 30), (160, 40)] {
        for matches in [51, 52] {
            let mut library = Made::new();
            library.matches = matches;
            let mut driver = Driver::with(library, columns, rows);
            driver.press("/needle<Enter>");
            driver.expect("a Needle in call 51");
            let reader = driver.app.reader.as_ref().unwrap();
            let lines: Vec<_> = reader.parts().flat_map(|part| &part.lines).collect();
            let selected = lines[reader.cursor.selected];
            assert_eq!(selected[0].text, "a Needle in call 51", "{columns}");
            // What is folded elsewhere stays so.
            driver.press("n");
            driver.expect("a Needle in call 51");
            driver.press("qj");
            assert_eq!(driver.app.fold, Fold::Short);
        }
    }
}

#[test]
fn a_match_in_an_output_is_not_taken_for_one_in_the_line_of_its_call() {
    let mut library = Made::new();
    library.matches = 52;
    let mut driver = Driver::with(library, 120, 30);
    driver.press("/tool<Enter>");
    let reader = driver.app.reader.as_ref().unwrap();
    assert_eq!(reader.fold, Fold::Full);
    let lines: Vec<_> = reader.parts().flat_map(|part| &part.lines).collect();
    let selected = lines[reader.cursor.selected];
    assert_eq!(selected[0].text, "output 0 of tool call 51");
}

#[test]
fn a_match_that_is_still_out_of_sight_says_how_to_see_it() {
    let mut library = Made::new();
    library.matches = 51;
    let mut driver = Driver::with(library, 120, 30);
    driver.press("/hay<Enter>");
    driver.expect("o shows all of it");
    let reader = driver.app.reader.as_ref().unwrap();
    assert_eq!(reader.place().map(|place| place.seq), Some(51));
    // The tools of this conversation are full now; z goes on from there.
    driver.press("z");
    driver.expect("tool calls: hidden");
}

#[test]
fn without_an_agent_to_continue_in_the_list_says_so() {
    let mut library = Made::new();
    library.agents.clear();
    let mut driver = Driver::with(library, 120, 30);
    driver.press("c");
    driver.expect("no agent");
    assert!(!driver.shows("nothing matches"));
    driver.press("<Enter>");
    assert!(driver.started().is_empty());
}

#[test]
fn the_timeline_is_read_again_each_time_it_is_shown() {
    let mut driver = Driver::new(120, 30);
    let asked = |driver: &Driver, wanted: fn(&Request) -> bool| {
        driver
            .asked
            .iter()
            .filter(|request| wanted(request))
            .count()
    };
    let rows: fn(&Request) -> bool = |request| matches!(request, Request::Timeline(_));
    let changes: fn(&Request) -> bool =
        |request| matches!(request, Request::Changes(ChangesOf::Row(_)));
    let diffs: fn(&Request) -> bool = |request| matches!(request, Request::Diff(_));
    driver.press("2");
    assert_eq!((asked(&driver, rows), asked(&driver, changes)), (1, 1));
    let before = asked(&driver, diffs);
    driver.press("2");
    assert_eq!((asked(&driver, rows), asked(&driver, changes)), (2, 2));
    assert_eq!(asked(&driver, diffs), before + 1);
    driver.press("12");
    assert_eq!(asked(&driver, rows), 3);
}
