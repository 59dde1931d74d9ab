//! Examples of every verb, for its help and the manual.

/// The examples of a verb, and what each is for.
type Examples = &'static [(&'static str, &'static str)];

/// Every verb with its examples, in alphabetical order.
pub(crate) const EXAMPLES: &[(&str, Examples)] = &[
    (
        "cat",
        &[
            ("cat last~1 src/cart.rs", "before the last turn"),
            ("cat c81f Cargo.toml > Cargo.toml.old", ""),
        ],
    ),
    (
        "checkpoint",
        &[
            ("checkpoint", "save the files as they are now"),
            ("checkpoint before-lunch", "under a name"),
        ],
    ),
    (
        "compact",
        &[
            ("compact latest --summary-file summary.md", ""),
            ("compact c81f --summary-file - --keep 4", ""),
        ],
    ),
    (
        "completions",
        &[
            (
                "completions bash > ~/.local/share/bash-completion/completions/backtrail",
                "",
            ),
            ("completions zsh > ~/.zfunc/_backtrail", ""),
            (
                "completions fish > ~/.config/fish/completions/backtrail.fish",
                "",
            ),
        ],
    ),
    ("config", &[("config", ""), ("config --json", "")]),
    (
        "context",
        &[
            ("context latest", "what a model would get"),
            ("context c81f --format anthropic", ""),
        ],
    ),
    (
        "delete",
        &[
            ("delete c81f", "trash restore restores it"),
            ("delete c81f --purge --dry-run", "show the plan"),
        ],
    ),
    (
        "diff",
        &[
            ("diff", "since the start of the last turn or run"),
            ("diff last~2 -- src", "the last two, in src"),
            ("diff before-lunch last --stat", ""),
        ],
    ),
    ("doctor", &[("doctor", "")]),
    (
        "export",
        &[
            ("export latest --to html -o talk.html --redact", ""),
            ("export latest --to markdown -o talk.md", ""),
            ("export c81f --to codex", "the original file"),
            ("export c81f --to v1", "for older programs"),
        ],
    ),
    (
        "fork",
        &[
            ("fork latest", "try another way from here"),
            ("fork c81f:12 --name try-2", "from record 12"),
            ("fork last~1 --into ../again", "with the files"),
        ],
    ),
    (
        "gc",
        &[
            ("gc --dry-run", "what would be freed"),
            ("gc --older-than 30d", "drop older files"),
            ("gc --max-size 20G --dry-run", ""),
        ],
    ),
    (
        "help",
        &[
            ("help undo", "its options and examples"),
            ("help --all", "every verb"),
        ],
    ),
    (
        "import",
        &[
            ("import", "all agents on this machine"),
            ("import --from codex --dry-run", "only look"),
            ("import ~/backup/sessions", "from a directory"),
        ],
    ),
    (
        "list",
        &[
            ("list", "the sessions here"),
            ("list --all --sort cost -n 10", "most expensive"),
            ("list --agent codex --since 7d", ""),
        ],
    ),
    (
        "log",
        &[
            ("log", "what happened here, newest first"),
            ("log -n 100 -- src/cart.rs", "one file"),
            ("log --steps", "what undo and redo would take"),
        ],
    ),
    (
        "man",
        &[
            ("man | man -l -", "read the manual"),
            ("man rewind | man -l -", ""),
        ],
    ),
    (
        "pin",
        &[("pin c81f", "list it first"), ("pin c81f --off", "")],
    ),
    ("rebuild", &[("rebuild", "")]),
    (
        "record",
        &[
            ("record --text 'fix the cart' --title cart", ""),
            ("record --session latest < messages.jsonl", ""),
        ],
    ),
    (
        "redo",
        &[
            ("redo", "redo the last undone step"),
            ("redo --dry-run", "show what it would do"),
        ],
    ),
    ("relink", &[("relink", "")]),
    (
        "repair",
        &[
            ("repair c81f --dry-run", "what can be recovered"),
            ("repair", "repair saved files"),
        ],
    ),
    (
        "restore",
        &[
            ("restore last~1 src/cart.rs", "one file"),
            ("restore before-lunch docs --dry-run", ""),
        ],
    ),
    (
        "rewind",
        &[
            ("rewind last~1", "to before the last turn"),
            ("rewind c81f --dry-run", "show what it would do"),
            ("rewind last~2 --keep", "skip changed files"),
        ],
    ),
    (
        "run",
        &[
            ("run -- claude", "what it does can be undone"),
            ("run --label built -- make", ""),
        ],
    ),
    (
        "search",
        &[
            ("search rounding refund", "both words"),
            ("search 'round*' --tool edit --since 7d", ""),
            ("search --phrase 'half even' --newest", ""),
        ],
    ),
    (
        "show",
        &[
            ("show latest", "the newest session here"),
            ("show c81f --turn -1 --full", "its last turn"),
            ("show c81f:41", "the turn with record 41"),
            ("show latest --follow", "follow it live"),
        ],
    ),
    (
        "stats",
        &[
            ("stats --by model", "cost of each model"),
            ("stats --by day --since 30d", ""),
            ("stats latest", "one session"),
        ],
    ),
    ("status", &[("status", ""), ("status --json", "")]),
    (
        "tag",
        &[
            ("tag c81f money urgent", ""),
            ("tag c81f --remove urgent", ""),
        ],
    ),
    (
        "title",
        &[
            ("title latest", ""),
            ("title c81f 'the cart loses a cent'", ""),
        ],
    ),
    (
        "trash",
        &[
            ("trash", "what was deleted"),
            ("trash restore c81f", ""),
            ("trash empty --older-than 30d --dry-run", ""),
        ],
    ),
    (
        "undo",
        &[
            ("undo", "undo the last step"),
            ("undo --dry-run", "show what it would do"),
        ],
    ),
    (
        "verify",
        &[
            ("verify", "everything, byte by byte"),
            ("verify c81f", "one session"),
            ("verify --quick", ""),
        ],
    ),
    ("version", &[("version", "")]),
];

/// Returns the examples of a verb; `None` if it has none.
pub(crate) fn of(verb: &str) -> Option<String> {
    let (_, examples) = EXAMPLES.iter().find(|(name, _)| *name == verb)?;
    if examples.is_empty() {
        return None;
    }
    let mut text = "Examples:".to_owned();
    for (line, what) in *examples {
        text += &format!("\n  backtrail {line}");
        if !what.is_empty() {
            text += &format!("   # {what}");
        }
    }
    Some(text)
}
