//! One client: it writes under leases, and retries what was not answered.

use backtrail::replica::{
    Answer, BlobKind, End, Fence, Line, LogKey, ObjectPlace, Order, Replica, Request,
};

use super::world::{Shared, Written, object_of, sum};

const TTL_MS: u64 = 1500;

pub(super) struct Client {
    name: String,
    asleep_until_ms: i64,
    writer: Option<Writer>,
    /// What was not answered yet. It is asked again, word for word.
    asked: Option<Request>,
    /// The source of a log that is forked, until its first trail has begun.
    source: Option<(LogKey, String, u64)>,
    /// An append that was answered before.
    answered: Option<(Request, Answer)>,
}

struct Writer {
    log: LogKey,
    fence: Fence,
    end: Option<End>,
}

impl Client {
    pub(super) fn new(number: usize) -> Self {
        Self {
            name: format!("client-{number}"),
            asleep_until_ms: 0,
            writer: None,
            asked: None,
            source: None,
            answered: None,
        }
    }

    pub(super) fn act(&mut self, world: &mut Shared) {
        let now_ms = backtrail::Clock::now(&world.clock).as_millis();
        if now_ms < self.asleep_until_ms {
            return;
        }
        if world.happens(8) {
            self.asleep_until_ms = now_ms + world.draw(5000) as i64;
            world.seen.count("slept");
        } else if world.happens(2) {
            // Killed: nobody knows what became of its request.
            (self.writer, self.asked, self.source) = (None, None, None);
            world.seen.count("killed");
        } else if let Some(request) = self.asked.take() {
            match world.net.ask(&request) {
                Ok(answer) => self.answered(world, request, answer),
                Err(_) => {
                    world.seen.count("mishap");
                    self.asked = Some(request);
                }
            }
        } else if let Some(writer) = self.writer.take() {
            self.asked = Some(self.next_of(world, &writer));
            self.writer = Some(writer);
        } else {
            self.asked = self.next(world);
        }
    }

    /// Chooses what a client without a lease asks.
    fn next(&mut self, world: &mut Shared) -> Option<Request> {
        let log = world.some_log();
        match world.draw(100) {
            0..55 => Some(self.lease(log)),
            55..70 => {
                let text = self.text(world, "note");
                world.notes.entry(log).or_default().push(text);
                None
            }
            70..75 => self.fork(world, &log),
            75..85 => {
                self.ask_again(world);
                None
            }
            85 => {
                world.purges.entry(log.clone()).or_insert(false);
                Some(Request::Purge { log })
            }
            86..90 => {
                world.seen.count("trash");
                Some(Request::Delete {
                    log,
                    deleted: world.happens(50),
                })
            }
            90..95 => Some(Request::Trails { log }),
            _ => Some(Request::Read {
                log,
                trail: world.draw(3) as u32,
                beyond: world.happens(60).then(|| world.draw(30) as u64),
                order: if world.happens(50) {
                    Order::Forwards
                } else {
                    Order::Backwards
                },
                max_bytes: world.draw(2000) as u64,
            }),
        }
    }

    fn lease(&self, log: LogKey) -> Request {
        Request::Lease {
            log,
            holder: self.name.clone(),
            ttl_ms: TTL_MS,
            wrapped_key: Vec::new(),
        }
    }

    /// Makes a log that continues at the last line of another one.
    fn fork(&mut self, world: &mut Shared, from: &LogKey) -> Option<Request> {
        let (end, _) = world.last_line(from)?;
        let number = world.logs.iter().position(|log| log == from).unwrap();
        let log = world.new_log();
        let source = format!("fork {number}:{}:{}", end.trail, end.seq);
        self.source = Some((log.clone(), source, end.seq));
        world.seen.count("fork");
        Some(self.lease(log))
    }

    /// Repeats an append that was answered long ago.
    fn ask_again(&mut self, world: &mut Shared) {
        let Some((request, first)) = &self.answered else {
            return;
        };
        match world.insist(request) {
            Answer::Purged(_) => world.assert_may_be_purged(log_of(request)),
            answer => assert_eq!(answer, *first, "to {request:?}"),
        }
        world.seen.count("old retry");
    }

    /// Returns a text that nobody wrote before.
    fn text(&self, world: &mut Shared, kind: &str) -> String {
        world.texts += 1;
        format!("{kind} {} {}", self.name, world.texts)
    }

    /// Chooses what a writer asks.
    fn next_of(&mut self, world: &mut Shared, writer: &Writer) -> Request {
        let (log, fence) = (writer.log.clone(), writer.fence);
        let Some(end) = writer.end else {
            return self.begin(world, writer, 0, 0);
        };
        match world.draw(100) {
            0..70 => self.append(world, writer, end),
            70..80 => {
                // Back to an earlier line, or on from the last.
                let is_rewind = world.happens(60);
                let seq = if is_rewind {
                    world.seen.count("rewind");
                    world.draw(end.seq as usize + 1) as u64
                } else {
                    end.seq
                };
                let trail = end.trail + 1 + world.draw(2) as u32;
                self.begin(world, writer, trail, seq)
            }
            80..90 => Request::Renew {
                log,
                fence,
                ttl_ms: TTL_MS,
            },
            _ => Request::Release { log, fence },
        }
    }

    fn begin(&mut self, world: &mut Shared, writer: &Writer, trail: u32, mut seq: u64) -> Request {
        let source = self.source.take().filter(|(log, ..)| *log == writer.log);
        let mut text = self.text(world, "opener");
        if let (Some((_, source, at)), None) = (source, writer.end) {
            text = format!("{text} {source}");
            seq = at;
        }
        Request::Begin {
            log: writer.log.clone(),
            fence: writer.fence,
            head: writer.end,
            trail,
            opener: finished(writer, seq, text),
            relies_on: Vec::new(),
            ttl_ms: TTL_MS,
        }
    }

    fn append(&mut self, world: &mut Shared, writer: &Writer, end: End) -> Request {
        let mut texts = world.notes.remove(&writer.log).unwrap_or_default();
        texts.iter().for_each(|_| world.seen.count("note written"));
        for _ in 0..=world.draw(3) {
            texts.push(self.text(world, "line"));
        }
        let mut relies_on = Vec::new();
        let last = texts.last_mut().unwrap();
        if world.happens(30) {
            let payload = world.put(&writer.log, BlobKind::Payload, last.as_bytes());
            world.payloads.push((writer.log.clone(), payload));
            *last += &format!(" payload {}", blake3::Hash::from(payload.hash));
        }
        if world.happens(50) {
            let (id, pack) = self.stored(world, &writer.log);
            relies_on.push(pack);
            *last += &format!(" object {}", blake3::Hash::from(id));
        }
        let gap = world.draw(2) as u64;
        let lines = (end.seq + 1 + gap..).zip(texts);
        Request::Append {
            log: writer.log.clone(),
            fence: writer.fence,
            after: end,
            lines: lines
                .map(|(seq, text)| finished(writer, seq, text))
                .collect(),
            relies_on,
            ttl_ms: TTL_MS,
        }
    }

    /// Returns an object of this client and the pack that it is in.
    fn stored(&self, world: &mut Shared, log: &LogKey) -> ([u8; 32], [u8; 32]) {
        let object = format!("{} object {}", self.name, world.draw(3));
        let id = *blake3::hash(object.as_bytes()).as_bytes();
        loop {
            if let Some(place) = world.locate(log, id) {
                return (id, place.pack);
            }
            world.texts += 1;
            let bytes = format!("{:016}{object}", world.texts);
            let pack = world.put(log, BlobKind::Pack, bytes.as_bytes()).hash;
            let place = ObjectPlace {
                id,
                pack,
                from: 16,
                bytes: object.len() as u64,
            };
            let seal = Request::SealPack {
                log: log.clone(),
                objects: vec![place],
            };
            match world.insist(&seal) {
                Answer::Done => return (id, pack),
                // Of a purged log nothing is stored; or a late clean-up was quick.
                Answer::PacksGone(_) if world.purges.contains_key(log) => return (id, pack),
                Answer::PacksGone(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn answered(&mut self, world: &mut Shared, request: Request, answer: Answer) {
        match &request {
            Request::Append { .. } | Request::Begin { .. } => self.wrote(world, request, answer),
            Request::Lease { log, .. } => self.leased(world, log.clone(), answer),
            Request::Renew { .. } => match answer {
                Answer::Renewed => {}
                Answer::Fenced { .. } => self.superseded(world),
                other => self.stopped(world, log_of(&request), &other),
            },
            Request::Release { log, .. } => match answer {
                Answer::Renewed => self.writer = None,
                other => self.stopped(world, log, &other),
            },
            Request::Purge { log } => {
                assert_eq!(answer, Answer::Done);
                world.purges.insert(log.clone(), true);
                world.seen.count("purged");
            }
            Request::Delete { log, .. } | Request::Trails { log } | Request::Read { log, .. } => {
                if let Answer::Purged(_) = answer {
                    world.assert_may_be_purged(log);
                }
            }
            other => panic!("{other:?}"),
        }
    }

    fn superseded(&mut self, world: &mut Shared) {
        world.seen.count("fenced");
        self.writer = None;
    }

    /// Ends a writer whose log was purged, the only other answer that there may be.
    fn stopped(&mut self, world: &mut Shared, log: &LogKey, answer: &Answer) {
        assert!(matches!(answer, Answer::Purged(_)), "{log:?}: {answer:?}");
        world.assert_may_be_purged(log);
        world.seen.count("purged writer");
        self.writer = None;
    }

    fn leased(&mut self, world: &mut Shared, log: LogKey, answer: Answer) {
        match answer {
            Answer::Leased { fence, log: status } => {
                let newest = world.fences.entry(log.clone()).or_default();
                assert!(fence.0 > *newest, "fence {fence:?} after {newest}");
                *newest = fence.0;
                self.writer = Some(Writer {
                    log,
                    fence,
                    end: status.head,
                });
            }
            Answer::Held(lease) => {
                assert_ne!(lease.holder, self.name);
                world.seen.count("held");
            }
            other => self.stopped(world, &log, &other),
        }
    }

    fn wrote(&mut self, world: &mut Shared, request: Request, answer: Answer) {
        let written = written(&request);
        match answer {
            Answer::Appended(end) => {
                assert_eq!(end, written.end());
                let is_begin = matches!(request, Request::Begin { .. });
                world
                    .seen
                    .count(if is_begin { "begun" } else { "appended" });
                if let Some(writer) = &mut self.writer {
                    writer.end = Some(end);
                }
                self.assert_object_is_there(world, &written);
                world.acknowledged.push(written);
                self.answered = Some((request, answer));
            }
            Answer::Fenced { fence, .. } => {
                assert!(
                    self.writer
                        .as_ref()
                        .is_some_and(|writer| fence > writer.fence)
                );
                world.refused.push(written);
                world.seen.count("fenced with lines");
                self.superseded(world);
            }
            Answer::PacksGone(_) => {
                world.refused.push(written);
                world.seen.count("packs gone");
            }
            other => {
                world.refused.push(written.clone());
                self.stopped(world, &written.log, &other);
            }
        }
    }

    /// Reads the object that the newest line of a log names, unless another line came meanwhile.
    fn assert_object_is_there(&self, world: &mut Shared, written: &Written) {
        let last = written.lines.last().unwrap();
        let newest = world.last_line(&written.log);
        let (Some(id), true) = (
            object_of(last),
            newest.is_some_and(|(_, line)| line == *last),
        ) else {
            return;
        };
        assert!(
            world.locate(&written.log, id).is_some(),
            "{last:?} names what is gone"
        );
    }
}

fn log_of(request: &Request) -> &LogKey {
    match request {
        Request::Append { log, .. } | Request::Begin { log, .. } | Request::Renew { log, .. } => {
            log
        }
        other => panic!("{other:?}"),
    }
}

/// Returns what a request writes.
fn written(request: &Request) -> Written {
    match request {
        Request::Append {
            log, after, lines, ..
        } => Written {
            log: log.clone(),
            trail: after.trail,
            lines: lines.clone(),
        },
        Request::Begin {
            log, trail, opener, ..
        } => Written {
            log: log.clone(),
            trail: *trail,
            lines: vec![opener.clone()],
        },
        other => panic!("{other:?}"),
    }
}

/// Returns a line that says under which fence it was written.
fn finished(writer: &Writer, seq: u64, text: String) -> Line {
    let bytes = format!("fence {} {text}", writer.fence.0).into_bytes();
    Line {
        seq,
        sum: sum(&bytes),
        bytes,
    }
}
