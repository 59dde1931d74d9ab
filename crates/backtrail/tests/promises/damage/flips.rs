//! Every single byte is changed in turn.

use backtrail::Reason;
use backtrail::verify::Damage;

use super::lab::{Lab, Story, assert_goes_on, assert_shows, lines, starts, trail_path};

/// How much is checked for each damaged trail.
#[derive(Clone, Copy, PartialEq)]
enum Ask {
    /// What is shown, from both ends and by number.
    Reading,
    /// The same, the result of `verify`, and whether the session continues.
    All,
}

/// Changes every byte of a trail and checks that at most the record it belongs to is
/// lost; a newline belongs to none.
fn check_every_byte(story: &Story, trail: u32, ask: Ask, change: impl Fn(u8) -> u8) {
    let bytes = story.bytes(trail);
    let all = lines(&bytes);
    let starts = starts(&bytes);
    let last = &[story.shown.last().unwrap().1.as_slice(), b"\n"].concat()[..];
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] = change(bytes[at]);
        if changed[at] == bytes[at] {
            continue;
        }
        let what = format!("trail {trail}, byte {at} = {:#04x}", changed[at]);
        let line = starts.partition_point(|start| *start <= at) - 1;
        let is_newline = bytes[at] == b'\n';
        let expected = story.without(
            all.iter()
                .skip(line)
                .take(usize::from(!is_newline))
                .copied(),
        );
        let lab = story.with(trail, &changed);
        let damage = assert_shows(&lab, &story.id, &expected, &what);
        // Bytes after the last record of an older trail belong to no record.
        let is_beyond = at + 1 == bytes.len() && !all[line].ends_with(last);
        assert!(
            is_beyond || !damage.is_empty(),
            "{what}: damage is not counted"
        );
        if ask == Ask::Reading {
            continue;
        }
        let place = starts[line]..=starts[line] + all[line].len();
        check_verify(&lab, story, trail, (line, &place), &what);
        let is_end = at + 1 == bytes.len() && story.shown.last() == expected.last();
        let set_aside = assert_goes_on(&lab, &story.id, &expected, &what);
        assert!(set_aside.is_empty() || is_end, "{what}: {set_aside:?}");
    }
}

/// Checks that `verify` names exactly the file, the line and the byte.
fn check_verify(
    lab: &Lab,
    story: &Story,
    trail: u32,
    (line, place): (usize, &std::ops::RangeInclusive<usize>),
    what: &str,
) {
    let report = lab.reader(&story.id).verify().unwrap();
    assert!(!report.is_ok(), "{what}");
    let elsewhere = |damage: &&Damage| {
        let inside = damage.file == trail_path(&story.id, trail)
            && place.contains(&(damage.byte as usize))
            // A split line has two numbers.
            && (line as u64 + 1..=line as u64 + 2).contains(&damage.line.unwrap());
        // The next trail continues a record that is lost.
        !inside && !matches!(damage.reason, Reason::BrokenLink(_))
    };
    let wrong: Vec<&Damage> = report.damage.first().iter().filter(elsewhere).collect();
    assert!(wrong.is_empty(), "{what}: {wrong:?}");
}

macro_rules! every_byte {
    ($($name:ident, $ask:ident: $change:expr;)*) => {
        mod in_one_trail {
            use super::{Ask, Story, check_every_byte};
            $(#[test]
            fn $name() {
                check_every_byte(&Story::in_one_trail(), 0, Ask::All, $change);
            })*
        }
        mod in_an_older_trail {
            use super::{Ask, Story, check_every_byte};
            $(#[test]
            fn $name() {
                check_every_byte(&Story::in_two_trails(), 0, Ask::$ask, $change);
            })*
        }
        mod in_the_second_trail {
            use super::{Ask, Story, check_every_byte};
            $(#[test]
            fn $name() {
                check_every_byte(&Story::in_two_trails(), 1, Ask::$ask, $change);
            })*
        }
    };
}

every_byte! {
    a_flipped_low_bit_costs_at_most_its_record, All: |byte| byte ^ 0x01;
    a_flipped_high_bit_costs_at_most_its_record, Reading: |byte| byte ^ 0x80;
    a_newline_too_many_costs_at_most_the_record_it_splits, All: |_| b'\n';
    a_nul_byte_costs_at_most_its_record, Reading: |_| 0;
    a_stray_quote_costs_at_most_its_record, Reading: |_| b'"';
}
