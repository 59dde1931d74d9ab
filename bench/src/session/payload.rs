//! A message with an image, whose bytes go to the payload file, compared with a write and
//! an `fdatasync` of the same bytes.

use std::path::Path;
use std::time::Duration;

use backtrail::{Block, Durability, Message, OsRandomness, Randomness, Role, Store};

use crate::Result;
use crate::args::Args;
use crate::measure::{Samples, interleave, time};
use crate::report::{Entry, Figure, Goal, Quantity, Unit};
use crate::trail::{RawLog, fixture};

/// The image's length: 1 MiB less the byte that Base64 would have to pad.
const IMAGE: usize = (1 << 20) - 1;

pub(super) fn measure(args: &Args, dir: &Path) -> Result<Vec<Entry>> {
    let store = Store::open_or_create(dir.join("store"))?;
    let mut images = Images::new()?;
    let durable = fixture::session(&store, Durability::Record)?;
    let loose = fixture::session(&store, Durability::Os)?;
    let mut image = RawLog::of_lines(&dir.join("image"), IMAGE)?;
    let mut record = RawLog::create(&dir.join("record"))?;
    let mut lane = |session: &backtrail::Session| {
        let message = images.next()?;
        time(|| Ok(session.append(message).map(drop)?))
    };
    let lane = std::cell::RefCell::new(&mut lane);
    let mut ours = || (lane.borrow_mut())(&durable);
    let mut in_os_mode = || (lane.borrow_mut())(&loose);
    let image = std::cell::RefCell::new(&mut image);
    let mut once = || time(|| image.borrow_mut().append_durably());
    let mut twice = || {
        time(|| {
            image.borrow_mut().append_durably()?;
            record.append_durably()
        })
    };
    let rounds = args.pick(150, 20);
    let lanes: [crate::measure::Lane<'_>; 4] = [&mut ours, &mut in_os_mode, &mut once, &mut twice];
    let [ours, in_os_mode, once, twice] = interleave(rounds, lanes)?;
    let figure = |name: &str, ours: &Samples, what, floor: &Samples| {
        Entry::Figure(Figure {
            name: name.to_owned(),
            ours: Quantity::of(ours, Unit::Seconds),
            baseline: Some((what, Quantity::of(floor, Unit::Seconds))),
            goal: Goal::Open,
        })
    };
    Ok(vec![
        figure("append of a 1 MiB image", &ours, "write + fdatasync", &once),
        figure(
            "append of a 1 MiB image",
            &ours,
            "and the same for its record",
            &twice,
        ),
        figure(
            "append of a 1 MiB image, OS mode",
            &in_os_mode,
            "write + fdatasync",
            &once,
        ),
    ])
}

/// Appends this many images in OS mode; only the appends count.
pub(crate) fn append(dir: &Path, count: u64) -> Result<Duration> {
    let store = Store::open_or_create(dir.join("store"))?;
    let session = fixture::session(&store, Durability::Os)?;
    let mut images = Images::new()?;
    let mut took = Duration::ZERO;
    for _ in 0..count {
        let message = images.next()?;
        took += time(|| Ok(session.append(message).map(drop)?))?;
    }
    Ok(took)
}

/// Images that are all different.
struct Images {
    base64: Vec<u8>,
    count: u64,
}

impl Images {
    fn new() -> Result<Self> {
        const ALPHABET: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut base64 = vec![0; IMAGE / 3 * 4];
        OsRandomness.fill(&mut base64)?;
        for byte in &mut base64 {
            *byte = ALPHABET[usize::from(*byte % 64)];
        }
        Ok(Self { base64, count: 0 })
    }

    fn next(&mut self) -> Result<Message> {
        self.count += 1;
        let number = format!("{:020}", self.count);
        self.base64[..number.len()].copy_from_slice(number.as_bytes());
        let base64 = String::from_utf8(self.base64.clone())?;
        let image = Block::image("image/png", base64)?;
        Ok(Message::new(Role::User, [image]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_image_goes_to_the_payload_file_with_its_own_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(dir.path().join("store")).unwrap();
        let session = fixture::session(&store, Durability::Os).unwrap();
        let mut images = Images::new().unwrap();
        for _ in 0..3 {
            session.append(images.next().unwrap()).unwrap();
        }
        let payloads = session.reader().dir().join("payloads");
        let bytes = std::fs::metadata(payloads).unwrap().len();
        assert!(
            (3 * IMAGE as u64..4 * IMAGE as u64).contains(&bytes),
            "{bytes}"
        );
    }
}
