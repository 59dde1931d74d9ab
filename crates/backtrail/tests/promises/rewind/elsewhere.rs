//! A directory that somebody turns into a link at any moment of a move: nothing
//! outside of the workspace changes, and nothing is lost (F16).

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use backtrail::rewind::{Touch, TouchHook};

use super::kit::HOME;
use super::scene::{Act, Scene, With, next_process};
use crate::snapshots::tree::read_tree;

/// Puts a link in the place of a directory before the nth change to the files.
#[derive(Debug, Clone)]
struct Swapping {
    dir: PathBuf,
    aside: PathBuf,
    outside: PathBuf,
    at: u64,
    step: Arc<AtomicU64>,
}

impl TouchHook for Swapping {
    fn before(&self, _: &Touch<'_>) -> io::Result<()> {
        if self.step.fetch_add(1, Ordering::SeqCst) == self.at
            && fs::rename(&self.dir, &self.aside).is_ok()
        {
            symlink(&self.outside, &self.dir)?;
        }
        Ok(())
    }
}

#[test]
fn f16_a_directory_turned_into_a_link_at_any_step_never_leads_outside() {
    for (act, name) in [
        (Act::Rewind(With::Files), "d"),
        (Act::Rewind(With::Files), "new"),
        (Act::UndoOfRewind(With::Files), "d"),
    ] {
        let scene = Scene::new(act);
        let outside = scene.dir.path().join("outside");
        // The same names as inside.
        fs::create_dir_all(outside.join("deep")).unwrap();
        for name in ["x", "kind", "deep/file"] {
            fs::write(outside.join(name), "outside").unwrap();
        }
        let before = read_tree(&outside);
        for at in 0.. {
            let aside = scene.dir.path().join("aside");
            let swapping = Swapping {
                dir: scene.root().join(name),
                aside: aside.clone(),
                outside: outside.clone(),
                at,
                step: Arc::default(),
            };
            let options = next_process().storage(scene.again());
            let store = options.touch_hook(swapping.clone()).open(HOME).unwrap();
            let workspace = scene.workspace(&store).unwrap();
            let outcome = scene.perform(&workspace);
            assert_eq!(
                read_tree(&outside),
                before,
                "{act:?} {name} at {at}: {outcome:?}"
            );
            workspace.recover().unwrap();
            assert_eq!(
                read_tree(&outside),
                before,
                "{act:?} {name} at {at}, recovered"
            );
            if aside.exists() {
                fs::remove_dir_all(&aside).unwrap();
            }
            if swapping.step.load(Ordering::SeqCst) <= at {
                break;
            }
        }
    }
}
