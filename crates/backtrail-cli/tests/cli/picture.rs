//! The picture in README.md shows what this program prints. With `BACKTRAIL_BLESS=1` it is made again.

use std::path::Path;
use std::process::Command;

#[test]
fn the_picture_shows_this_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let kept = root.join("docs/picture/undo.svg");
    let dir = tempfile::tempdir().unwrap();
    let made = dir.path().join("undo.svg");
    let ran = Command::new("python3")
        .arg(root.join("docs/picture/make"))
        .arg(&made)
        .env("BACKTRAIL", env!("CARGO_BIN_EXE_backtrail"))
        .output();
    let Ok(ran) = ran else {
        eprintln!("SKIPPED: needs python3; the picture was not made");
        return;
    };
    let error = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{error}");
    if std::env::var_os("BACKTRAIL_BLESS").is_some() {
        std::fs::copy(&made, &kept).unwrap();
    }
    let (made, kept) = (std::fs::read_to_string(made), std::fs::read_to_string(kept));
    assert_eq!(
        kept.unwrap(),
        made.unwrap(),
        "docs/picture/make makes it again"
    );
}
