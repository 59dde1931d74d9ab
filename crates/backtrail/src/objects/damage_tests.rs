//! Damage is found, affects only the objects it hit, and never returns wrong content
//! (F12).

use std::ops::Range;

use backtrail_testkit::MemoryStorage;

use super::format::{Block, BlockKind, MAGIC, MAX_RAW, Record, Tail, encode_commit};
use super::pack_name::PackName;
use super::testing::*;
use super::*;

/// Returns a disk with a sealed pack and an open one with several commits.
fn filled() -> (MemoryStorage, Vec<Vec<u8>>) {
    let memory = memory();
    let mut all = Vec::new();
    for n in 0..9 {
        let contents = vec![noise(n, 60), text(n, 200), noise(100 + n, 30)];
        store(&open(&memory, n), &contents).unwrap();
        all.extend(contents);
    }
    let files = pack_files(&memory);
    assert_eq!(files.len(), 2, "{files:?}");
    (memory, all)
}

/// Returns the ranges of a pack's entries.
fn entries(path: &Path, bytes: &[u8]) -> Vec<Range<usize>> {
    let salt = PackName::parse(path.file_name().unwrap()).unwrap().salt();
    let (mut at, mut entries) = (MAGIC.len(), Vec::new());
    while at < bytes.len() {
        let block = Block::parse(&bytes[at..], salt, at as u64).unwrap();
        let end = block.end(at as u64) as usize;
        entries.extend(block.kind.is_entry().then_some(at..end));
        at = end;
    }
    entries
}

#[test]
fn a_flipped_bit_anywhere_costs_at_most_the_object_that_it_hit() {
    let (pristine, contents) = filled();
    for path in pack_files(&pristine) {
        let bytes = pristine.read(&path).unwrap();
        let entries = entries(&path, &bytes);
        for at in 0..bytes.len() {
            let memory = pristine.kill();
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            memory.write(&path, &flipped).unwrap();
            let objects = open(&memory, 1);
            let mut lost = Vec::new();
            for content in &contents {
                let id = ObjectId::of(content);
                match objects.read(&id) {
                    Ok(read) => assert!(read == *content, "wrong content, byte {at}"),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Corrupt);
                        assert!(error.to_string().contains(&id.to_string()), "{error}");
                        lost.push(content.clone());
                    }
                }
            }
            let hit = usize::from(entries.iter().any(|entry| entry.contains(&at)));
            assert!(
                lost.len() <= hit,
                "byte {at} of {path:?} cost {}",
                lost.len()
            );
            // Stored again, it is readable again, and so is everything else.
            store(&objects, &lost).unwrap();
            assert_stored(&objects, &contents);
            let other = open(&memory, 2);
            for content in &contents {
                assert!(other.read(&ObjectId::of(content)).unwrap() == *content);
            }
        }
    }
}

#[test]
fn verify_names_every_damaged_object_and_the_place() {
    let (pristine, contents) = filled();
    let mut hits = 0;
    for path in pack_files(&pristine) {
        let bytes = pristine.read(&path).unwrap();
        for content in &contents {
            let Some(at) = memchr::memmem::find(&bytes, content) else {
                continue;
            };
            let memory = pristine.kill();
            let mut flipped = bytes.clone();
            flipped[at + content.len() / 2] ^= 0x10;
            memory.write(&path, &flipped).unwrap();
            let objects = open(&memory, 1);
            let (verified, damages) = verify(&objects);
            let id = ObjectId::of(content);
            if damages.is_empty() {
                // The last commit may be what a power cut left.
                assert_eq!(verified.leftovers, 1);
            } else {
                hits += 1;
                assert_eq!(damages.len(), 1);
                assert_eq!(damages[0].object, Some(id));
                assert_eq!(damages[0].path, path);
                assert_eq!(damages[0].byte, at as u64 - 16);
                assert_eq!(verified.objects, contents.len() as u64 - 1);
            }
            assert!(!objects.contains(&id).unwrap());
        }
    }
    assert!(hits >= 12, "{hits}");
}

#[test]
fn verify_reports_a_damaged_seal_wherever_it_is_hit() {
    let (pristine, _) = filled();
    let path = pack_files(&pristine)
        .into_iter()
        .find(|path| path.extension().is_some_and(|ext| ext == "pack"))
        .unwrap();
    let bytes = pristine.read(&path).unwrap();
    let seal = Tail::parse(&bytes).unwrap().at as usize;
    for at in (0..MAGIC.len()).chain(seal..bytes.len()) {
        let memory = pristine.kill();
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        memory.write(&path, &flipped).unwrap();
        let (_, damages) = verify(&open(&memory, 1));
        assert!(!damages.is_empty(), "byte {at}");
        assert!(damages.iter().all(|damage| damage.path == path));
    }
}

#[test]
fn another_copy_is_read_where_one_is_damaged() {
    let memory = memory();
    let (one, two) = (open(&memory, 1), open(&memory, 2));
    let writers = [one.writer().unwrap(), two.writer().unwrap()];
    for writer in &writers {
        writer.put(&noise(1, 100)).unwrap();
    }
    finish(writers);
    for path in pack_files(&memory) {
        let bytes = memory.read(&path).unwrap();
        let mut flipped = bytes.clone();
        flipped[40] ^= 1;
        memory.write(&path, &flipped).unwrap();
        assert_stored(&open(&memory, 3), &[noise(1, 100)]);
        memory.write(&path, &bytes).unwrap();
    }
}

#[test]
fn a_pack_of_a_newer_version_is_left_alone_and_named() {
    let memory = memory();
    store(&open(&memory, 1), &[noise(1, 10)]).unwrap();
    let newer = Path::new(DIR).join("00000000000000aa.open");
    memory.write(&newer, b"backtrail pack 2 and more").unwrap();
    let objects = open(&memory, 1);
    store(&objects, &[noise(2, 10)]).unwrap();
    assert_stored(&objects, &[noise(1, 10), noise(2, 10)]);
    let error = objects.read(&ObjectId::of(b"x")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NewerFormat);
    assert_eq!(memory.read(&newer).unwrap(), b"backtrail pack 2 and more");
}

#[test]
fn files_of_other_names_are_not_packs() {
    let memory = memory();
    store(&open(&memory, 1), &[noise(1, 10)]).unwrap();
    for name in [
        "notes",
        "1.pack",
        "00000000000000AA.pack",
        "00000000000000aa.pack.old",
    ] {
        memory.write(&Path::new(DIR).join(name), b"?").unwrap();
    }
    assert_eq!(assert_sound(&open(&memory, 1)).packs, 1);
}

/// Builds a pack of one block that claims to hold an object.
fn forged(block: Block, body: &[u8], id: ObjectId) -> Vec<u8> {
    let salt = 0xaa_u64.to_be_bytes();
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&block.encode(salt, 16));
    bytes.extend_from_slice(body);
    let tail = Tail {
        at: bytes.len() as u32,
        previous: 0,
        durable: 16,
        commits: 1,
        check: [0; 8],
    };
    let record = Record { id, at: 16 };
    bytes.extend_from_slice(&encode_commit(salt, tail, &[record]).unwrap());
    bytes
}

#[test]
fn lengths_that_lie_take_no_memory_and_give_no_content() {
    let wanted = ObjectId::of(b"wanted");
    let bomb = zstd::bulk::compress(&vec![0; 64 << 20], 19).unwrap();
    let block = |kind, stored: usize, raw: usize| Block {
        kind,
        stored: stored as u32,
        raw: raw as u32,
    };
    let itself = List {
        id: wanted,
        len: 6,
        chunks: vec![wanted; 3],
    }
    .encode();
    let huge = List {
        id: wanted,
        len: u64::MAX,
        chunks: Vec::new(),
    }
    .encode();
    let forgeries = [
        forged(block(BlockKind::Zstd, bomb.len(), MAX_RAW), &bomb, wanted),
        forged(
            block(BlockKind::Zstd, bomb.len(), u32::MAX as usize),
            &bomb,
            wanted,
        ),
        forged(
            block(BlockKind::Plain, u32::MAX as usize, u32::MAX as usize),
            b"",
            wanted,
        ),
        forged(block(BlockKind::Plain, MAX_RAW, MAX_RAW), b"wanted", wanted),
        forged(
            block(BlockKind::Commit, u32::MAX as usize, 1 << 26),
            b"",
            wanted,
        ),
        forged(block(BlockKind::Seal, 0, u32::MAX as usize), b"", wanted),
        forged(
            block(BlockKind::List, itself.len(), itself.len()),
            &itself,
            wanted,
        ),
        forged(
            block(BlockKind::List, huge.len(), huge.len()),
            &huge,
            wanted,
        ),
    ];
    for (n, bytes) in forgeries.iter().enumerate() {
        for suffix in ["open", "pack"] {
            let memory = memory();
            store(&open(&memory, 1), &[noise(1, 10)]).unwrap();
            let path = Path::new(DIR).join(format!("00000000000000aa.{suffix}"));
            memory.write(&path, bytes).unwrap();
            let objects = open(&memory, 1);
            let error = objects.read(&wanted).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{n}");
            verify(&objects);
            assert_stored(&objects, &[noise(1, 10)]);
        }
    }
}
