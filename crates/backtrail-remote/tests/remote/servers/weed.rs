//! SeaweedFS, which speaks S3.

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::keeper::Keeper;
use super::{directory, find, free_ports, skip};

pub(crate) struct Weed {
    pub(crate) port: u16,
    _keeper: Keeper,
}

impl Weed {
    /// Returns the one that tests share; `None` if it cannot be had here, which is reported.
    pub(crate) fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Weed>> = OnceLock::new();
        SHARED.get_or_init(Self::start).as_ref().or_else(|| {
            skip("weed");
            None
        })
    }

    fn start() -> Option<Self> {
        let program = find("weed")?;
        let directory = directory("weed");
        let [
            master,
            master_grpc,
            volume,
            volume_grpc,
            filer,
            filer_grpc,
            port,
            s3_grpc,
        ] = free_ports();
        let log = File::create(directory.join("log")).expect("its log");
        #[expect(clippy::zombie_processes, reason = "the keeper ends it")]
        let child = Command::new(program)
            .arg("server")
            .arg(format!("-dir={}", directory.display()))
            .args([
                "-ip=127.0.0.1",
                "-ip.bind=127.0.0.1",
                "-filer",
                "-s3",
                "-master.telemetry=false",
            ])
            .args(["-volume.max=100", "-master.volumeSizeLimitMB=30"])
            .arg(format!("-master.port={master}"))
            .arg(format!("-master.port.grpc={master_grpc}"))
            .arg(format!("-volume.port={volume}"))
            .arg(format!("-volume.port.grpc={volume_grpc}"))
            .arg(format!("-filer.port={filer}"))
            .arg(format!("-filer.port.grpc={filer_grpc}"))
            .arg(format!("-s3.port={port}"))
            .arg(format!("-s3.port.grpc={s3_grpc}"))
            .current_dir(&directory)
            .stdout(log.try_clone().expect("its log"))
            .stderr(log)
            .stdin(Stdio::null())
            .spawn()
            .expect("weed");
        let keeper = Keeper::new(&directory, &format!("kill -9 {}", child.id()));
        let weed = Self {
            port,
            _keeper: keeper,
        };
        let deadline = Instant::now() + Duration::from_secs(90);
        while !weed.create_bucket() {
            assert!(Instant::now() < deadline, "weed does not answer");
            std::thread::sleep(Duration::from_millis(100));
        }
        Some(weed)
    }

    fn create_bucket(&self) -> bool {
        let put = "PUT /remotes HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        let mut answer = String::new();
        TcpStream::connect(("127.0.0.1", self.port))
            .and_then(|mut stream| {
                stream.write_all(put.as_bytes())?;
                stream.read_to_string(&mut answer)
            })
            .is_ok_and(|_| answer.starts_with("HTTP/1.1 200") || answer.starts_with("HTTP/1.1 409"))
    }

    /// Returns the URL of a place in the bucket that no other test has.
    pub(crate) fn place(&self) -> String {
        self.place_through(self.port)
    }

    /// Returns such a URL by way of another port.
    pub(crate) fn place_through(&self, port: u16) -> String {
        static PLACES: AtomicU32 = AtomicU32::new(0);
        let place = PLACES.fetch_add(1, Ordering::Relaxed);
        format!(
            "s3://remotes/place-{place}?endpoint=http://127.0.0.1:{port}&region=here&allow_http=true\
             &access_key_id=any&secret_access_key=any"
        )
    }
}
