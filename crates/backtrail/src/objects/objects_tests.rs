//! Stored contents are found, stored once, and read back byte for byte (F12, F13).

use std::io::{self, Read};
use std::sync::Arc;
use std::thread;

use backtrail_testkit::MemoryStorage;

use super::pack_writer::PackLimits;
use super::testing::*;
use super::*;

fn big(memory: &MemoryStorage) -> Objects {
    Disk::of(memory.clone()).objects(1, PackLimits::DEFAULT)
}

fn read_in_pieces(objects: &Objects, id: &ObjectId) -> Vec<u8> {
    let mut content = Vec::new();
    let mut take = |piece: &[u8]| {
        content.extend_from_slice(piece);
        Ok(())
    };
    objects.read_to(id, &mut take).unwrap();
    content
}

#[test]
fn contents_of_every_length_and_sort_come_back() {
    let memory = memory();
    let lens = [
        0,
        1,
        47,
        48,
        49,
        500,
        8_175,
        8_176,
        8_177,
        16_384,
        131_071,
        131_072,
        262_144,
        1 << 20,
        (4 << 20) - 1,
        4 << 20,
        (4 << 20) + 1,
        9 << 20,
    ];
    let make: [fn(u64, usize) -> Vec<u8>; 2] = [noise, text];
    let contents: Vec<_> = make
        .iter()
        .flat_map(|make| lens.map(|len| make(len as u64, len)))
        .collect();
    store(&big(&memory), &contents).unwrap();
    assert_stored(&big(&memory), &contents);
    for content in &contents {
        let read = read_in_pieces(&big(&memory), &ObjectId::of(content));
        assert!(read == *content, "{} bytes", content.len());
    }
    assert_sound(&big(&memory));
}

#[test]
fn a_stream_is_stored_in_chunks_that_streams_share() {
    let memory = memory();
    let objects = big(&memory);
    let first = noise(1, 20 << 20);
    let mut second = first.clone();
    second.splice(9 << 20..(9 << 20) + 5, *b"an inserted word");
    let mut written = Vec::new();
    for content in [&first, &second] {
        let before = objects.size().unwrap();
        let writer = objects.writer().unwrap();
        let stored = writer.put_stream(&mut content.as_slice()).unwrap().unwrap();
        assert_eq!(stored, (ObjectId::of(content), content.len() as u64));
        writer.finish().unwrap();
        written.push(objects.size().unwrap() - before);
        assert!(read_in_pieces(&objects, &stored.0) == *content);
        assert!(objects.read(&stored.0).unwrap() == *content);
    }
    assert!(written[0] >= 20 << 20);
    assert!(written[1] < 9 << 20, "{} bytes again", written[1]);
    assert_sound(&objects);
}

#[test]
fn a_short_stream_is_the_same_object_as_its_content() {
    let memory = memory();
    let objects = big(&memory);
    let content = text(7, 100_000);
    store(&objects, std::slice::from_ref(&content)).unwrap();
    let size = objects.size().unwrap();
    let writer = objects.writer().unwrap();
    let put = writer.put_stream(&mut content.as_slice()).unwrap().unwrap();
    assert_eq!(put, (ObjectId::of(&content), 100_000));
    writer.finish().unwrap();
    assert_eq!(objects.size().unwrap(), size);
}

#[test]
fn a_failing_stream_is_an_error_and_spoils_nothing() {
    struct Fails;
    impl Read for Fails {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("gone"))
        }
    }
    let memory = memory();
    let objects = big(&memory);
    let writer = objects.writer().unwrap();
    let content = noise(3, 6 << 20);
    for begin in [&content[..10], &content] {
        let failed = writer.put_stream(&mut begin.chain(Fails)).unwrap();
        assert_eq!(failed.unwrap_err().to_string(), "gone");
    }
    writer.put(b"good").unwrap();
    writer.finish().unwrap();
    assert_stored(&objects, &[b"good".to_vec()]);
    assert_sound(&objects);
}

#[test]
fn the_same_content_is_stored_once_by_any_handle_or_thread() {
    let memory = memory();
    let contents: Vec<_> = (0..20).map(|n| noise(n, 400)).collect();
    store(&open(&memory, 1), &contents).unwrap();
    let size = open(&memory, 9).size().unwrap();
    let again = open(&memory, 2);
    store(&again, &contents).unwrap();
    store(&again, &contents).unwrap();
    assert_eq!(again.size().unwrap(), size);
    assert_eq!(assert_sound(&again).objects, 20);

    let both = open(&memory, 3);
    let writer = both.writer().unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in 100..200 {
                    writer.put(&noise(n, 300)).unwrap();
                }
            });
        }
    });
    writer.finish().unwrap();
    assert_eq!(assert_sound(&both).objects, 120);
}

#[test]
fn nothing_new_writes_nothing() {
    let memory = memory();
    let objects = open(&memory, 1);
    objects.writer().unwrap().finish().unwrap();
    assert_eq!(memory.files(), Vec::<std::path::PathBuf>::new());
    assert!(!objects.contains(&ObjectId::of(b"x")).unwrap());
    let error = objects.read(&ObjectId::of(b"x")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains(&ObjectId::of(b"x").to_string()));
}

#[test]
fn what_is_put_and_not_finished_is_not_there_and_leaves_no_bytes() {
    let memory = memory();
    store(&open(&memory, 1), &[noise(1, 300)]).unwrap();
    let size = open(&memory, 1).size().unwrap();
    let objects = open(&memory, 2);
    let writer = objects.writer().unwrap();
    writer.put(&noise(2, 1200)).unwrap();
    assert!(!objects.contains(&ObjectId::of(&noise(2, 1200))).unwrap());
    drop(writer);
    assert_eq!(objects.size().unwrap(), size);
    assert_eq!(assert_sound(&objects).leftovers, 0);
}

#[test]
fn a_full_pack_is_sealed_and_found_by_others_without_reading_it() {
    let memory = memory();
    let objects = open(&memory, 1);
    let contents: Vec<_> = (0..60).map(|n| noise(n, 200)).collect();
    let reader = open(&memory, 2);
    assert!(!reader.contains(&ObjectId::of(&contents[0])).unwrap());
    store(&objects, &contents).unwrap();
    let sealed = |path: &std::path::PathBuf| path.extension().is_some_and(|ext| ext == "pack");
    assert!(
        pack_files(&memory)
            .iter()
            .filter(|path| sealed(path))
            .count()
            >= 3
    );
    assert!(
        pack_files(&memory)
            .iter()
            .filter(|path| !sealed(path))
            .count()
            <= 1
    );
    assert_stored(&objects, &contents);
    assert_stored(&reader, &contents);
    for n in 100..400 {
        assert!(!reader.contains(&ObjectId::of(&noise(n, 200))).unwrap());
    }
}

#[test]
fn many_commits_go_into_one_pack_until_it_is_sealed() {
    let memory = memory();
    for n in 0..12 {
        store(&open(&memory, n), &[noise(n, 40)]).unwrap();
    }
    let contents: Vec<_> = (0..12).map(|n| noise(n, 40)).collect();
    assert_stored(&open(&memory, 99), &contents);
    assert_eq!(assert_sound(&open(&memory, 99)).packs, 2);
}

#[test]
fn writers_at_once_each_have_a_pack_and_the_next_takes_one_of_them() {
    let memory = memory();
    let (one, two) = (open(&memory, 1), open(&memory, 2));
    let writers = [&one, &two, &one].map(|objects| objects.writer().unwrap());
    for (n, writer) in (0..).zip(&writers) {
        writer.put(&noise(n, 100)).unwrap();
        writer.put(&noise(50, 100)).unwrap();
    }
    finish(writers);
    assert_eq!(pack_files(&memory).len(), 3);
    let contents = [noise(0, 100), noise(1, 100), noise(2, 100), noise(50, 100)];
    assert_stored(&open(&memory, 3), &contents);
    store(&open(&memory, 4), &[noise(77, 100)]).unwrap();
    assert_eq!(pack_files(&memory).len(), 3);
    assert_eq!(assert_sound(&open(&memory, 5)).objects, 7);
}

#[test]
fn threads_and_stores_may_write_and_read_at_once() {
    let memory = memory();
    let stores: Vec<_> = (0..3).map(|seed| open(&memory, seed)).collect();
    thread::scope(|scope| {
        for (n, objects) in (0_u64..).zip(&stores) {
            scope.spawn(move || {
                for round in 0..15 {
                    let contents: Vec<_> = (0..6)
                        .map(|k| noise(round * 10 + k + (n % 2) * 3, 150))
                        .collect();
                    store(objects, &contents).unwrap();
                    assert_stored(objects, &contents);
                }
            });
        }
    });
    assert_sound(&open(&memory, 9));
}

#[test]
fn objects_are_found_under_the_operating_system_too() {
    let dir = tempfile::tempdir().unwrap();
    let random = || Arc::new(crate::random::OsRandomness);
    let storage = || Arc::new(crate::storage::LocalStorage);
    let objects = || Objects::with_limits(storage(), random(), &dir.path().join("objects"), SMALL);
    let contents: Vec<_> = (0..40).map(|n| noise(n, 300)).collect();
    let (one, two) = (objects(), objects());
    let (first, second) = (one.writer().unwrap(), two.writer().unwrap());
    for (n, content) in contents.iter().enumerate() {
        let writer = if n % 2 == 0 { &first } else { &second };
        writer.put(content).unwrap();
    }
    first.finish().unwrap();
    second.finish().unwrap();
    assert_stored(&one, &contents);
    assert_stored(&objects(), &contents);
    store(&objects(), &contents).unwrap();
    assert_eq!(assert_sound(&objects()).objects, 40);
}
