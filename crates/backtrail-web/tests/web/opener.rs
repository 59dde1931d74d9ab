//! The browser is opened through a file that only this user can read, for as long as it needs it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::client::{reading, wait_for};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn the_file_leads_to_the_page_and_only_this_user_can_read_it() {
    let (web, parent) = (reading(), tempfile::tempdir().unwrap());
    let file = web
        .server
        .write_opener(parent.path(), "/session/a\"><b>")
        .unwrap();
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(file.parent().unwrap()), 0o700);
    assert_eq!(file.parent().unwrap().parent(), Some(parent.path()));
    let page = fs::read_to_string(&file).unwrap();
    let address = format!(
        "http://{}/session/a&quot;&gt;&lt;b&gt;#token={}",
        web.host(),
        web.token()
    );
    assert!(
        page.contains(&format!("content=\"0;url={address}\"")),
        "{page}"
    );
    assert!(page.contains(&format!("href=\"{address}\"")), "{page}");
    assert!(!page.contains("<b>"), "{page}");
}

#[test]
fn the_file_is_gone_once_the_page_has_asked_for_data() {
    let (web, parent) = (reading(), tempfile::tempdir().unwrap());
    let file = web.server.write_opener(parent.path(), "/").unwrap();
    assert_eq!(web.ask("GET / HTTP/1.1\nHost: HOST\n\n").status, 200);
    assert_eq!(
        web.ask("GET /api/hello HTTP/1.1\nHost: HOST\n\n").status,
        401
    );
    assert!(file.exists(), "the browser has not shown the token yet");
    web.assert_answers();
    wait_for("the file is gone", || {
        fs::read_dir(parent.path()).unwrap().next().is_none()
    });
}

#[test]
fn the_file_is_gone_when_the_server_stops() {
    let (web, parent) = (reading(), tempfile::tempdir().unwrap());
    let first = web.server.write_opener(parent.path(), "/").unwrap();
    let second = web.server.write_opener(parent.path(), "/costs").unwrap();
    assert_ne!(first, second);
    assert!(!first.exists() && second.exists());
    web.server.stop();
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
}

#[test]
fn a_file_that_cannot_be_written_is_an_error() {
    let (web, parent) = (reading(), tempfile::tempdir().unwrap());
    assert!(
        web.server
            .write_opener(&parent.path().join("none"), "/")
            .is_err()
    );
}
