//! The verbs in the groups that help shows, and the verb that a wrong word means.

use clap::Command;

/// The verbs in the order of the help. To show a verb, add it to its group.
pub(crate) const GROUPS: &[(&str, &[&str])] = &[
    (
        "Going back",
        &["undo", "redo", "rewind", "restore", "resume", "fork"],
    ),
    (
        "Looking",
        &[
            "ui", "web", "status", "log", "diff", "cat", "blame", "list", "show", "search", "stats",
        ],
    ),
    (
        "Recording",
        &["setup", "run", "watch", "checkpoint", "import"],
    ),
    ("Sharing", &["export", "remote", "push", "pull"]),
    ("Organising", &["title", "tag", "pin", "delete", "trash"]),
    ("Housekeeping", &["doctor", "gc", "config"]),
];

/// The verbs that only `help --all` and the manual show.
pub(crate) const MORE: (&str, &[&str]) = (
    "More",
    &[
        "record",
        "hook",
        "statusline",
        "context",
        "compact",
        "verify",
        "repair",
        "rebuild",
        "relink",
        "man",
        "completions",
        "help",
        "version",
    ],
);

/// Words that people know from other programs, and what they are called here.
const MEANINGS: &[(&str, &str)] = &[
    ("annotate", "blame"),
    ("back", "undo"),
    ("branch", "fork"),
    ("browser", "web"),
    ("checkout", "restore"),
    ("clean", "gc"),
    ("commit", "checkpoint"),
    ("cost", "stats"),
    ("download", "pull"),
    ("exec", "run"),
    ("fetch", "pull"),
    ("find", "search"),
    ("fsck", "verify"),
    ("grep", "search"),
    ("history", "list"),
    ("hooks", "setup"),
    ("install", "setup"),
    // `list` is a verb, so this is `trash list`.
    ("list", "trash"),
    ("open", "show"),
    ("prune", "gc"),
    ("remove", "delete"),
    ("rename", "title"),
    ("reset", "rewind"),
    ("revert", "restore"),
    ("rm", "delete"),
    ("rollback", "rewind"),
    ("save", "checkpoint"),
    ("serve", "web"),
    ("sessions", "list"),
    ("settings", "config"),
    ("snapshot", "checkpoint"),
    ("steps", "log --steps"),
    ("sync", "push"),
    ("timeline", "log"),
    ("upload", "push"),
    ("usage", "stats"),
    ("view", "show"),
    ("who", "blame"),
];

/// Returns what a word that is not a verb means, if other programs have such a verb. The word
/// may be misspelled a little.
pub(crate) fn by_meaning(word: &str) -> Option<&'static str> {
    let word = word.to_lowercase();
    let similarity = |known: &str| match known {
        // A misspelled `list` is the verb.
        "list" if word != "list" => 0.0,
        known => strsim::jaro(known, &word),
    };
    let known = MEANINGS
        .iter()
        .map(|(known, verb)| (similarity(known), *verb))
        .filter(|(similarity, _)| *similarity > 0.9)
        .max_by(|(a, _), (b, _)| a.total_cmp(b));
    known.map(|(_, verb)| verb)
}

/// Returns the verb of a command that a wrong word means or is spelled like.
pub(crate) fn suggest(command: &Command, word: &str) -> Option<String> {
    let similarity = |verb: &Command| strsim::jaro(verb.get_name(), word);
    let by_spelling = || {
        let similar = command
            .get_subcommands()
            .filter(|verb| similarity(verb) > 0.7);
        let best = similar.max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
        best.map(|verb| verb.get_name().to_owned())
    };
    by_meaning(word).map(str::to_owned).or_else(by_spelling)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_meaning_is_a_verb_and_every_word_is_not() {
        let command = crate::args::command();
        for (word, meaning) in MEANINGS {
            let verb = meaning.split(' ').next().unwrap();
            assert!(command.find_subcommand(verb).is_some(), "{meaning}");
            let is_verb = command.find_subcommand(word).is_some();
            assert!(!is_verb || *word == "list", "{word}");
        }
        assert!(MEANINGS.is_sorted(), "in alphabetical order");
        assert_eq!(by_meaning("Histroy"), Some("list"));
        for verb in [
            "lsit", "shwo", "serach", "undoo", "resotre", "rewnd", "comapct",
        ] {
            assert_eq!(by_meaning(verb), None, "{verb}");
        }
    }
}
