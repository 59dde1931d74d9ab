//! Whether git's HEAD moved during a run, and how to go back.
//!
//! Nothing here runs git: HEAD is in the checkpoints before and after the command.

use std::path::Path;

use backtrail::workspace::GitHead;
use serde::Serialize;

use crate::shell::{quote, quote_path};
use crate::text::visible;

/// How git's HEAD moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct GitMoved {
    before: GitHead,
    after: GitHead,
    /// The command that goes back.
    pub(super) back: String,
}

impl GitMoved {
    /// Compares HEAD before and after a command; `None` if it did not move, or one of them is
    /// not known.
    pub(super) fn between(
        root: &Path,
        before: Option<&GitHead>,
        after: Option<&GitHead>,
    ) -> Option<Self> {
        let (before, after) = (before?, after?);
        if before == after {
            return None;
        }
        let now = |branch: &str| GitHead::commit_of_branch(root, branch);
        let back = back(&git_in(root), before, after, now)?;
        Some(Self {
            before: before.clone(),
            after: after.clone(),
            back,
        })
    }

    /// Returns what happened: `main moved from 1a2b3c4 to 5d6e7f8`.
    pub(super) fn text(&self) -> String {
        let (before, after) = (&self.before, &self.after);
        match (&before.branch, &before.commit, &after.commit) {
            (Some(branch), None, Some(first)) if after.branch == before.branch => {
                format!("{} has a first commit, {}", visible(branch), short(first))
            }
            (Some(branch), Some(from), Some(to)) if after.branch == before.branch => {
                let branch = visible(branch);
                format!("{branch} moved from {} to {}", short(from), short(to))
            }
            _ => format!("HEAD moved from {} to {}", place(before), place(after)),
        }
    }
}

/// Returns the command that goes back without touching a file that has changes: the branch
/// moves, files and index stay, and a switch stops at what it would overwrite.
fn back(
    git: &str,
    before: &GitHead,
    after: &GitHead,
    now: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    let stays = after.branch == before.branch;
    Some(match (&before.branch, &before.commit) {
        (Some(_), Some(commit)) if stays => format!("{git} reset --soft {commit}"),
        (Some(_), None) if stays => format!("{git} update-ref -d HEAD"),
        (Some(branch), Some(commit)) => {
            let there = now(branch);
            let branch = quote(branch);
            match there {
                Some(now) if now == *commit => format!("{git} switch {branch}"),
                Some(_) => {
                    format!("{git} switch {branch} && {git} reset --soft {commit}")
                }
                None => format!("{git} switch -c {branch} {commit}"),
            }
        }
        (Some(branch), None) => {
            format!(
                "{git} symbolic-ref HEAD {}",
                quote(&format!("refs/heads/{branch}"))
            )
        }
        (None, Some(commit)) => format!("{git} switch --detach {commit}"),
        (None, None) => return None,
    })
}

/// Returns how git is called for a directory: by its name alone within it.
fn git_in(root: &Path) -> String {
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    match here.is_ok_and(|here| here.starts_with(root)) {
        true => "git".to_owned(),
        false => format!("git -C {}", quote_path(root)),
    }
}

fn place(head: &GitHead) -> String {
    match (&head.branch, &head.commit) {
        (Some(branch), _) => visible(branch).into_owned(),
        (None, Some(commit)) => format!("{} (detached)", short(commit)),
        (None, None) => "nothing".to_owned(),
    }
}

fn short(commit: &str) -> &str {
    commit.get(..7).unwrap_or(commit)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn head(branch: Option<&str>, commit: Option<&str>) -> GitHead {
        serde_json::from_value(json!({"branch": branch, "commit": commit})).unwrap()
    }

    #[test]
    fn the_way_back_is_the_one_that_touches_least() {
        let (main, topic) = (Some("main"), Some("topic"));
        let (a, b) = (Some("aaaaaaaaaa"), Some("bbbbbbbbbb"));
        let cases = [
            (head(main, a), head(main, b), a, "reset --soft aaaaaaaaaa"),
            (head(main, None), head(main, a), a, "update-ref -d HEAD"),
            (head(main, a), head(topic, b), a, "switch main"),
            (head(main, a), head(None, b), a, "switch main"),
            (
                head(main, a),
                head(topic, b),
                b,
                "switch main && git reset --soft aaaaaaaaaa",
            ),
            (
                head(main, a),
                head(topic, a),
                None,
                "switch -c main aaaaaaaaaa",
            ),
            (
                head(None, a),
                head(None, b),
                None,
                "switch --detach aaaaaaaaaa",
            ),
            (
                head(None, a),
                head(main, b),
                None,
                "switch --detach aaaaaaaaaa",
            ),
            (
                head(main, None),
                head(topic, b),
                None,
                "symbolic-ref HEAD refs/heads/main",
            ),
        ];
        for (before, after, now, command) in cases {
            let found = back("git", &before, &after, |_| now.map(str::to_owned));
            assert_eq!(
                found,
                Some(format!("git {command}")),
                "{before:?} {after:?}"
            );
        }
    }

    #[test]
    fn what_happened_is_said_in_a_few_words() {
        let moved = |before: GitHead, after: GitHead| {
            let back = String::new();
            GitMoved {
                before,
                after,
                back,
            }
            .text()
        };
        let (a, b) = (Some("aaaaaaaaaa"), Some("bbbbbbbbbb"));
        let (main, topic) = (Some("main"), Some("topic"));
        let text = moved(head(main, a), head(main, b));
        assert_eq!(text, "main moved from aaaaaaa to bbbbbbb");
        let text = moved(head(main, a), head(topic, b));
        assert_eq!(text, "HEAD moved from main to topic");
        let text = moved(head(None, a), head(None, b));
        assert_eq!(
            text,
            "HEAD moved from aaaaaaa (detached) to bbbbbbb (detached)"
        );
        let text = moved(head(main, None), head(main, b));
        assert_eq!(text, "main has a first commit, bbbbbbb");
        // A name in git's files commands no terminal.
        let text = moved(head(Some("x\u{1b}[31m"), a), head(topic, b));
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }
}
