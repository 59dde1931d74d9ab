//! Workspaces in which an agent worked, in a store with 10,000 other sessions.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use backtrail::{Durability, Message, SessionOptions, StoreOptions};

use super::screen::Screen;
use crate::kit::Cli;
use crate::live::{Claude, write};

/// How many sessions of other workspaces there are.
const OTHERS: usize = 10_000;

/// A workspace with three turns of an agent.
pub(super) struct Shop {
    pub(super) claude: Claude,
    title: String,
}

impl Shop {
    /// Three turns: `cart.rs` is written, then edited in two places, then `notes.md` is added.
    pub(super) fn new() -> Self {
        static SHOPS: AtomicU32 = AtomicU32::new(0);
        let n = SHOPS.fetch_add(1, Ordering::Relaxed);
        let session = format!("e07e0366-c23a-4a59-839c-{:06x}{n:06x}", std::process::id());
        let mut claude = Claude::in_cli(Cli::in_store(store()), &session);
        write(&claude.cli.work(), "keep.txt", "mine\n");
        let cart: String = (1..=30).map(|n| format!("let item_{n} = {n};\n")).collect();
        let title = format!("write the cart {n}");
        claude.turn(&title, "call-1", |work| write(work, "cart.rs", &cart));
        claude.turn("round the prices", "call-2", |work| {
            let rounded = cart
                .replace("item_3 = 3;", "item_3 = round(3);")
                .replace("item_27 = 27;", "item_27 = round(27);");
            write(work, "cart.rs", &rounded);
        });
        claude.turn("add the notes", "call-3", |work| {
            write(work, "notes.md", "# Notes\n")
        });
        let listed = claude.run(&["list", "--all", "--json"]);
        assert_eq!(listed.code, 0, "{listed:#?}");
        Self { claude, title }
    }

    pub(super) fn cli(&self) -> &Cli {
        &self.claude.cli
    }

    /// Opens the screen.
    pub(super) fn ui(&self) -> Screen {
        let mut screen = Screen::start(&mut self.claude.command(&["ui"]));
        screen.expect(&self.title);
        screen.expect("undo: ");
        // The end of the conversation, and what its last turn changed.
        screen.expect("notes.md");
        screen
    }

    /// Opens a screen that is too narrow for what the last turn changed.
    pub(super) fn narrow_ui(&self, columns: u16) -> Screen {
        let mut screen = Screen::sized(&mut self.claude.command(&["ui"]), 30, columns);
        screen.expect(&self.title);
        screen.expect("undo: ");
        screen
    }

    /// Returns the title of the agent's session.
    pub(super) fn title(&self) -> String {
        self.title.clone()
    }

    pub(super) fn read(&self, name: &str) -> Option<String> {
        self.claude.read(name)
    }
}

/// Returns the store that all shops of this process share, with many sessions and its catalogue.
fn store() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
        remove_left_over(tmp);
        let dir = tmp.join(format!("shop-{}", std::process::id()));
        make(&dir);
        dir
    })
}

/// Removes the stores of processes that are gone.
fn remove_left_over(tmp: &Path) {
    for entry in fs::read_dir(tmp).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_gone = |pid: &str| !Path::new("/proc").join(pid).exists();
        if name.strip_prefix("shop-").is_some_and(is_gone) {
            fs::remove_dir_all(&path).ok();
        }
    }
}

fn make(dir: &Path) {
    let options = StoreOptions::new().durability(Durability::Os);
    let store = options.open_or_create(dir).unwrap();
    for n in 0..OTHERS {
        let root = format!("/home/me/src/project-{}", n % 100);
        let options = SessionOptions::new()
            .agent(["claude-code", "codex", "mine"][n % 3])
            .workspace_root(Path::new(&root));
        let session = store.create_session(options).unwrap();
        let asked = format!("sort the shelf number {n}");
        session.append(Message::user_text(asked)).unwrap();
        session
            .append(Message::assistant([backtrail::Block::text(format!(
                "shelf {n} is sorted"
            ))]))
            .unwrap();
        session.close().unwrap();
    }
    let ran = crate::kit::finish(
        &mut crate::kit::command(dir, Path::new("/"), &["list", "--all", "--json", "-n", "1"]),
        b"",
    );
    assert_eq!(ran.code, 0, "{ran:#?}");
}
