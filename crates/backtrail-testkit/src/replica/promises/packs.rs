//! Packs: what a line relies on is never removed, and the rest can be.

use std::collections::BTreeSet;

use backtrail::replica::{Answer, BlobKind, BlobName, ObjectPlace, PackStatus, Request};

use super::case::{Case, LONG_MS, SHORT_MS, Writer, blob, end_of, line};

type Name = [u8; 32];

/// Returns ids of objects that no other promise has.
fn ids<const N: usize>(case: &Case<'_>) -> [Name; N] {
    std::array::from_fn(|_| *blake3::hash(case.control.fresh().as_str().as_bytes()).as_bytes())
}

/// Returns the bytes of a pack with room for eight objects of 10 bytes.
fn pack_bytes(case: &Case<'_>) -> Vec<u8> {
    let [random] = ids(case);
    [&random[..16], &[7; 80]].concat()
}

/// Returns where objects of 10 bytes are in a pack.
fn places(pack: Name, ids: &[Name]) -> Vec<ObjectPlace> {
    let place = |(at, id): (usize, &Name)| ObjectPlace {
        id: *id,
        pack,
        from: 16 + 10 * at as u64,
        bytes: 10,
    };
    ids.iter().enumerate().map(place).collect()
}

fn seal(writer: &Writer<'_>, objects: &[ObjectPlace]) -> Request {
    Request::SealPack {
        log: writer.log.clone(),
        objects: objects.to_vec(),
    }
}

/// Stores and seals a pack with these objects.
fn pack(case: &Case<'_>, writer: &Writer<'_>, ids: &[Name]) -> Name {
    let name = case
        .put(&writer.log, BlobKind::Pack, &pack_bytes(case))
        .hash;
    let sealed = case.ask(&seal(writer, &places(name, ids)));
    assert_eq!(sealed, Answer::Done);
    name
}

fn locate(case: &Case<'_>, writer: &Writer<'_>, ids: &[Name]) -> Vec<ObjectPlace> {
    let request = Request::Locate {
        log: writer.log.clone(),
        ids: ids.to_vec(),
    };
    let Answer::Objects(mut found) = case.ask(&request) else {
        panic!("no objects");
    };
    found.sort_by_key(|place| ids.iter().position(|id| *id == place.id));
    found
}

/// Returns a pack as it is now; `None` if there is no such pack.
fn status(case: &Case<'_>, pack: Name) -> Option<PackStatus> {
    // Starts just before it, for others may have thousands.
    let mut before = pack;
    for byte in before.iter_mut().rev() {
        *byte = byte.wrapping_sub(1);
        if *byte != 0xff {
            break;
        }
    }
    let packs = case.statuses(&Request::Packs {
        after: Some(before),
        limit: 1,
    });
    packs.into_iter().find(|status| status.pack == pack)
}

fn uses(case: &Case<'_>, pack: Name) -> u64 {
    status(case, pack).expect("the pack is there").uses
}

fn is_condemned(case: &Case<'_>, pack: Name) -> bool {
    let status = status(case, pack).expect("the pack is there");
    status.condemned_ms.is_some()
}

fn condemn_at(case: &Case<'_>, packs: &[(Name, u64)]) -> Vec<Name> {
    let condemned = case.statuses(&Request::Condemn {
        packs: packs.to_vec(),
    });
    assert!(condemned.iter().all(|status| status.condemned_ms.is_some()));
    condemned.iter().map(|status| status.pack).collect()
}

/// Condemns packs as they are, which has to succeed.
fn condemn(case: &Case<'_>, packs: &[Name]) {
    let with_uses: Vec<_> = packs
        .iter()
        .map(|pack| (*pack, uses(case, *pack)))
        .collect();
    let mut condemned = condemn_at(case, &with_uses);
    let mut expected = packs.to_vec();
    condemned.sort_unstable();
    expected.sort_unstable();
    assert_eq!(condemned, expected);
}

fn remove(case: &Case<'_>, condemned_ms: u64, limit: u32) -> Vec<Name> {
    let removed = case.statuses(&Request::RemovePacks {
        condemned_ms,
        limit,
    });
    removed.iter().map(|status| status.pack).collect()
}

/// Removes packs, which has to succeed.
fn remove_these(case: &Case<'_>, packs: &[Name]) {
    condemn(case, packs);
    let removed = remove(case, 0, u32::MAX);
    assert!(packs.iter().all(|pack| removed.contains(pack)));
}

pub(super) fn objects_are_where_they_were_sealed(case: &Case<'_>) {
    let writer = case.writer();
    let [a, b, c, unknown] = ids(case);
    let first = pack(case, &writer, &[a, b]);
    let second = pack(case, &writer, &[c]);
    let all = [places(first, &[a, b]), places(second, &[c])].concat();
    assert_eq!(locate(case, &writer, &[a, b, unknown, c]), all);
    assert_eq!(locate(case, &writer, &[unknown]), []);
    assert_eq!(locate(case, &writer, &[]), []);
    let other = case.writer();
    assert_eq!(locate(case, &other, &[c]), all[2..]);
}

pub(super) fn objects_are_read_from_the_pack_that_was_sealed_last(case: &Case<'_>) {
    let writer = case.writer();
    let [a, b, c] = ids(case);
    let first = pack(case, &writer, &[a, b]);
    let objects = |pack| status(case, pack).map(|status| (status.objects, status.bytes));
    assert_eq!(objects(first), Some((2, 96)));
    let second = pack(case, &writer, &[b, c]);
    let expected = [places(first, &[a]), places(second, &[b, c])].concat();
    assert_eq!(locate(case, &writer, &[a, b, c]), expected);
    assert_eq!(
        (objects(first), objects(second)),
        (Some((1, 96)), Some((2, 96)))
    );
}

pub(super) fn objects_are_read_from_packs_that_stay(case: &Case<'_>) {
    let writer = case.writer();
    let [a] = ids(case);
    let first = pack(case, &writer, &[a]);
    let second = pack(case, &writer, &[a]);
    condemn(case, &[second]);
    assert_eq!(locate(case, &writer, &[a]), places(first, &[a]));
    condemn(case, &[first]);
    assert_eq!(
        locate(case, &writer, &[a]).len(),
        1,
        "no choice, and still there"
    );
    let mut writer = case.writer();
    let append = writer.append_with(&[line(1, "needs the first")], &[first]);
    assert!(matches!(case.ask(&append), Answer::Appended(_)));
    writer.end = end_of(0, &line(1, "needs the first"));
    // The second pack is removed now, and what it had is still in the first.
    assert!(remove(case, 0, u32::MAX).contains(&second));
    assert_eq!(locate(case, &writer, &[a]), places(first, &[a]));
    remove_these(case, &[first]);
    assert_eq!(locate(case, &writer, &[a]), []);
}

pub(super) fn a_pack_without_bytes_is_not_sealed(case: &Case<'_>) {
    let writer = case.writer();
    let [a, b] = ids(case);
    let absent = blob(BlobKind::Pack, &pack_bytes(case)).hash;
    let answer = case.ask(&seal(&writer, &places(absent, &[a])));
    assert_eq!(answer, Answer::PacksGone(vec![absent]));
    let removed = pack(case, &writer, &[b]);
    remove_these(case, &[removed]);
    // A request that arrives late.
    let answer = case.ask(&seal(&writer, &places(removed, &[b])));
    assert_eq!(answer, Answer::PacksGone(vec![removed]));
    assert_eq!(locate(case, &writer, &[a, b]), []);
}

pub(super) fn packs_are_listed_once_in_order(case: &Case<'_>) {
    let writer = case.writer();
    let ids: [Name; 5] = ids(case);
    let ours = ids.map(|id| pack(case, &writer, &[id]));
    for limit in [2, 1000] {
        let mut listed: Vec<PackStatus> = Vec::new();
        loop {
            let after = listed.last().map(|status| status.pack);
            let page = case.statuses(&Request::Packs { after, limit });
            assert!(page.len() <= limit as usize);
            assert!(page.iter().all(|status| Some(status.pack) > after));
            if page.is_empty() {
                break;
            }
            listed.extend(page);
        }
        assert!(listed.is_sorted_by(|a, b| a.pack < b.pack));
        for pack in ours {
            let found = listed.iter().find(|status| status.pack == pack);
            let found = found.expect("it was sealed");
            assert_eq!(
                (found.bytes, found.objects, found.condemned_ms),
                (96, 1, None)
            );
        }
    }
}

pub(super) fn seals_and_appends_are_uses(case: &Case<'_>) {
    let mut writer = case.writer();
    let [a] = ids(case);
    let name = pack(case, &writer, &[a]);
    let sealed = uses(case, name);
    case.ask(&seal(&writer, &places(name, &[a])));
    let again = uses(case, name);
    assert!(again > sealed);
    let append = writer.append_with(&[line(1, "a")], &[name]);
    assert!(matches!(case.ask(&append), Answer::Appended(_)));
    writer.end = end_of(0, &line(1, "a"));
    let relied_on = uses(case, name);
    assert!(relied_on > again);
    writer.write(&[line(2, "relies on nothing")]);
    assert_eq!(uses(case, name), relied_on);
}

pub(super) fn a_pack_that_was_used_since_is_not_condemned(case: &Case<'_>) {
    let writer = case.writer();
    let [a, b] = ids(case);
    let (used, unused) = (pack(case, &writer, &[a]), pack(case, &writer, &[b]));
    let noted = [(used, uses(case, used)), (unused, uses(case, unused))];
    case.ask(&writer.append_with(&[line(1, "a")], &[used]));
    assert_eq!(condemn_at(case, &noted), [unused]);
    assert!(!is_condemned(case, used));
    // An answer that was lost.
    assert_eq!(condemn_at(case, &noted), [unused]);
    let absent = blob(BlobKind::Pack, &pack_bytes(case)).hash;
    assert!(condemn_at(case, &[(absent, 0), (used, noted[0].1)]).is_empty());
    assert!(!remove(case, 0, u32::MAX).contains(&used));
}

pub(super) fn condemned_packs_wait(case: &Case<'_>) {
    let writer = case.writer();
    let [a] = ids(case);
    let name = pack(case, &writer, &[a]);
    assert!(!remove(case, 0, u32::MAX).contains(&name));
    condemn(case, &[name]);
    assert!(!remove(case, LONG_MS, u32::MAX).contains(&name));
    assert!(case.has(&writer.log, blob_of(name)));
    case.control.outlive(SHORT_MS);
    let waited = status(case, name).and_then(|status| status.condemned_ms);
    assert!(
        waited.is_some_and(|ms| (SHORT_MS..LONG_MS).contains(&ms)),
        "{waited:?}"
    );
    // To condemn it again does not make it wait again.
    condemn(case, &[name]);
    assert!(remove(case, SHORT_MS, u32::MAX).contains(&name));
}

fn blob_of(pack: Name) -> BlobName {
    BlobName {
        kind: BlobKind::Pack,
        hash: pack,
    }
}

pub(super) fn as_many_packs_are_removed_as_were_asked_for(case: &Case<'_>) {
    let writer = case.writer();
    let ids: [Name; 3] = ids(case);
    let mut left = ids.map(|id| pack(case, &writer, &[id])).to_vec();
    condemn(case, &left);
    let mut all_removed = BTreeSet::new();
    while !left.is_empty() {
        let removed = remove(case, 0, 1);
        assert_eq!(removed.len(), 1);
        assert!(all_removed.insert(removed[0]), "removed twice");
        for name in &left {
            assert_eq!(status(case, *name).is_none(), removed.contains(name));
        }
        left.retain(|name| !removed.contains(name));
    }
}

pub(super) fn a_removed_pack_is_gone_with_its_bytes(case: &Case<'_>) {
    let writer = case.writer();
    let [a, b] = ids(case);
    let (gone, stays) = (pack(case, &writer, &[a]), pack(case, &writer, &[b]));
    remove_these(case, &[gone]);
    assert_eq!(status(case, gone), None);
    assert!(!case.has(&writer.log, blob_of(gone)));
    assert_eq!(case.get(&writer.log, blob_of(gone)), None);
    assert_eq!(locate(case, &writer, &[a, b]), places(stays, &[b]));
    assert!(case.has(&writer.log, blob_of(stays)));
}

pub(super) fn an_append_takes_a_condemned_pack_back(case: &Case<'_>) {
    let mut writer = case.writer();
    let [a, b] = ids(case);
    let (named, unnamed) = (pack(case, &writer, &[a]), pack(case, &writer, &[b]));
    condemn(case, &[named, unnamed]);
    let at_condemnation = uses(case, named);
    let append = writer.append_with(&[line(1, "a")], &[named]);
    assert!(matches!(case.ask(&append), Answer::Appended(_)));
    assert!(!is_condemned(case, named));
    assert!(condemn_at(case, &[(named, at_condemnation)]).is_empty());
    let removed = remove(case, 0, u32::MAX);
    assert!(!removed.contains(&named) && removed.contains(&unnamed));
    assert!(case.has(&writer.log, blob_of(named)));
    writer.end = end_of(0, &line(1, "a"));
    writer.write(&[line(2, "b")]);
}

pub(super) fn an_append_that_relies_on_a_removed_pack_appends_nothing(case: &Case<'_>) {
    let mut writer = case.writer();
    let [a, b, c] = ids(case);
    let [stays, gone, gone_too] = [a, b, c].map(|id| pack(case, &writer, &[id]));
    let retried = writer.append_with(&[line(1, "before")], &[gone]);
    let first = case.ask(&retried);
    writer.end = end_of(0, &line(1, "before"));
    remove_these(case, &[gone, gone_too]);
    condemn(case, &[stays]);
    let noted = uses(case, stays);
    let lines = [line(2, "a"), line(3, "b")];
    let append = writer.append_with(&lines, &[gone, stays, gone_too]);
    let Answer::PacksGone(mut told) = case.ask(&append) else {
        panic!("a line names what is not there");
    };
    let mut expected = [gone, gone_too];
    told.sort_unstable();
    expected.sort_unstable();
    assert_eq!(told, expected);
    writer.changes_nothing(&append);
    assert!(is_condemned(case, stays) && uses(case, stays) == noted);
    // Lines that are there are there, whatever became of what they named.
    assert_eq!(case.ask(&retried), first);
    let again = pack(case, &writer, &[b, c]);
    let stored = case.ask(&writer.append_with(&lines, &[stays, again]));
    assert_eq!(stored, Answer::Appended(end_of(0, &lines[1])));
    assert!(!is_condemned(case, stays));
}

pub(super) fn an_append_that_is_refused_takes_nothing_back(case: &Case<'_>) {
    let mut writer = case.writer();
    let [a] = ids(case);
    let name = pack(case, &writer, &[a]);
    condemn(case, &[name]);
    let noted = uses(case, name);
    let end = writer.end;
    writer.end.seq = 9;
    writer.changes_nothing(&writer.append_with(&[line(10, "moved")], &[name]));
    writer.end = end;
    writer.superseded();
    writer.changes_nothing(&writer.append_with(&[line(1, "fenced")], &[name]));
    assert!(is_condemned(case, name));
    assert_eq!(uses(case, name), noted);
    assert!(remove(case, 0, u32::MAX).contains(&name));
}

pub(super) fn a_trail_relies_on_packs_as_well(case: &Case<'_>) {
    let writer = case.writer();
    let [a, b] = ids(case);
    let (condemned, gone) = (pack(case, &writer, &[a]), pack(case, &writer, &[b]));
    remove_these(case, &[gone]);
    condemn(case, &[condemned]);
    let opener = line(0, "names objects");
    let begin = |packs: &[Name]| Request::Begin {
        log: writer.log.clone(),
        fence: writer.fence,
        head: Some(writer.end),
        trail: 1,
        opener: opener.clone(),
        relies_on: packs.to_vec(),
        ttl_ms: LONG_MS,
    };
    let refused = begin(&[condemned, gone]);
    assert_eq!(case.ask(&refused), Answer::PacksGone(vec![gone]));
    writer.changes_nothing(&refused);
    assert!(is_condemned(case, condemned));
    assert_eq!(
        case.ask(&begin(&[condemned])),
        Answer::Appended(end_of(1, &opener))
    );
    assert!(!is_condemned(case, condemned));
}
