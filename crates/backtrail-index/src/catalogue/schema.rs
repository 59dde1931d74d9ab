//! The catalogue's tables. docs/catalogue.md describes them for other programs.

/// The version of the tables. It is part of the file's name, so that two versions of the
/// program never use the same file.
pub(super) const VERSION: u32 = 7;

/// Returns the statements that create an empty catalogue.
pub(super) fn tables() -> String {
    TABLES.replace("{sums}", SUMS)
}

/// The columns of a sum.
const SUMS: &str = "calls            INTEGER NOT NULL,
    input            INTEGER NOT NULL,
    output           INTEGER NOT NULL,
    cache_write      INTEGER NOT NULL,
    cache_write_1h   INTEGER NOT NULL,
    cache_read       INTEGER NOT NULL,
    reasoning        INTEGER NOT NULL,
    cost             INTEGER NOT NULL,
    reported         INTEGER NOT NULL,
    unpriced         INTEGER NOT NULL,
    estimated_calls  INTEGER NOT NULL,
    estimated_tokens INTEGER NOT NULL,
    lower_bounds     INTEGER NOT NULL,";

const TABLES: &str = "
CREATE TABLE about (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE workspaces (
    key     INTEGER PRIMARY KEY,
    id      TEXT UNIQUE,
    root    TEXT NOT NULL,
    bytes   BLOB,
    remote  TEXT,
    project TEXT NOT NULL,
    settled INTEGER NOT NULL DEFAULT 0,
    error   TEXT
);
CREATE INDEX workspaces_by_root ON workspaces (root);

CREATE TABLE former_roots (
    root      TEXT NOT NULL,
    workspace INTEGER NOT NULL,
    since     INTEGER,
    until     INTEGER NOT NULL,
    PRIMARY KEY (root, workspace, until)
) WITHOUT ROWID;

CREATE TABLE workspace_trails (
    workspace INTEGER NOT NULL,
    number    INTEGER NOT NULL,
    bytes     INTEGER NOT NULL,
    modified  INTEGER NOT NULL,
    read_to   INTEGER NOT NULL,
    sum       INTEGER NOT NULL,
    PRIMARY KEY (workspace, number)
) WITHOUT ROWID;

CREATE TABLE checkpoints (
    workspace INTEGER NOT NULL,
    trail     INTEGER NOT NULL,
    seq       INTEGER NOT NULL,
    id        TEXT NOT NULL,
    at        INTEGER,
    why       TEXT NOT NULL,
    session   TEXT,
    label     TEXT,
    about     TEXT,
    prompt_session TEXT,
    prompt_trail   INTEGER,
    prompt_seq     INTEGER,
    changed   INTEGER NOT NULL,
    files     TEXT,
    branch    TEXT,
    PRIMARY KEY (workspace, trail, seq)
) WITHOUT ROWID;
CREATE INDEX checkpoints_by_id ON checkpoints (workspace, id);
CREATE INDEX checkpoints_by_session ON checkpoints (session) WHERE session IS NOT NULL;

CREATE TABLE sessions (
    key           INTEGER PRIMARY KEY,
    id            TEXT NOT NULL UNIQUE,
    short         INTEGER NOT NULL,
    settled       INTEGER NOT NULL DEFAULT 0,
    error         TEXT,
    title         TEXT,
    begins        TEXT,
    agent         TEXT,
    belongs_to    TEXT,
    model         TEXT,
    tags          TEXT NOT NULL DEFAULT '[]',
    pinned        INTEGER NOT NULL DEFAULT 0,
    workspace     INTEGER,
    created_at    INTEGER,
    updated_at    INTEGER,
    times_from_file INTEGER NOT NULL DEFAULT 0,
    last_seq      INTEGER NOT NULL DEFAULT 0,
    family        TEXT NOT NULL DEFAULT '',
    forked_from   TEXT,
    forked_at     INTEGER,
    branch        TEXT,
    spawned_by    TEXT,
    original_id   TEXT,
    messages      INTEGER NOT NULL DEFAULT 0,
    turns         INTEGER NOT NULL DEFAULT 0,
    tool_calls    INTEGER NOT NULL DEFAULT 0,
    runs          INTEGER NOT NULL DEFAULT 0,
    files_changed INTEGER NOT NULL DEFAULT 0,
    damaged       INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX sessions_by_workspace ON sessions (workspace);
CREATE INDEX sessions_by_family ON sessions (family);
CREATE INDEX sessions_by_short ON sessions (short);

CREATE TABLE trails (
    key      INTEGER PRIMARY KEY,
    session  INTEGER NOT NULL,
    number   INTEGER NOT NULL,
    bytes    INTEGER NOT NULL,
    modified INTEGER NOT NULL,
    read_to  INTEGER NOT NULL,
    sum      INTEGER NOT NULL,
    damaged  INTEGER NOT NULL DEFAULT 0,
    behind   INTEGER NOT NULL DEFAULT 0,
    unread   INTEGER NOT NULL DEFAULT 0,
    UNIQUE (session, number)
);

CREATE TABLE messages (
    trail  INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    role   TEXT NOT NULL,
    at     INTEGER,
    prompt TEXT,
    prompt_key INTEGER,
    PRIMARY KEY (trail, seq)
) WITHOUT ROWID;

CREATE TABLE tool_calls (
    trail  INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    n      INTEGER NOT NULL,
    name   TEXT NOT NULL,
    id     TEXT NOT NULL,
    failed INTEGER,
    at     INTEGER,
    model  TEXT,
    ms     INTEGER,
    PRIMARY KEY (trail, seq, n)
) WITHOUT ROWID;
CREATE INDEX tool_calls_open ON tool_calls (trail, id) WHERE failed IS NULL;

CREATE TABLE edits (
    trail INTEGER NOT NULL,
    seq   INTEGER NOT NULL,
    n     INTEGER NOT NULL,
    path  TEXT NOT NULL,
    PRIMARY KEY (trail, seq, n, path)
) WITHOUT ROWID;

CREATE TABLE branches (
    session INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    branch  TEXT NOT NULL,
    PRIMARY KEY (session, at)
) WITHOUT ROWID;

CREATE TABLE files (
    session INTEGER NOT NULL,
    path    TEXT NOT NULL,
    PRIMARY KEY (session, path)
) WITHOUT ROWID;

CREATE TABLE ledger (
    session        INTEGER NOT NULL,
    response       INTEGER NOT NULL,
    response_id    TEXT,
    trail          INTEGER NOT NULL,
    seq            INTEGER NOT NULL,
    at             INTEGER,
    model          TEXT,
    who            TEXT NOT NULL,
    measured       INTEGER NOT NULL,
    input          INTEGER NOT NULL,
    output         INTEGER NOT NULL,
    cache_write    INTEGER NOT NULL,
    cache_write_1h INTEGER NOT NULL,
    cache_read     INTEGER NOT NULL,
    reasoning      INTEGER NOT NULL,
    estimated      INTEGER NOT NULL,
    duration_ms    INTEGER,
    reported       INTEGER,
    cost           INTEGER,
    counts         INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (session, response)
) WITHOUT ROWID;

CREATE TABLE totals (
    session          INTEGER NOT NULL,
    model            TEXT NOT NULL,
{sums}
    first_at         INTEGER,
    last_at          INTEGER,
    PRIMARY KEY (session, model)
) WITHOUT ROWID;

CREATE TABLE totals_by_time (
    session          INTEGER NOT NULL,
    model            TEXT NOT NULL,
    slot             INTEGER NOT NULL,
{sums}
    PRIMARY KEY (session, model, slot)
) WITHOUT ROWID;
";

/// Indexes that are created after the rows of a new catalogue, when they are cheap.
pub(super) const LATE: [&str; 2] = [
    "CREATE INDEX IF NOT EXISTS ledger_by_response ON ledger (response)
     WHERE response_id IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS prompts ON messages (prompt_key, at)
     WHERE prompt_key IS NOT NULL",
];

/// The index of spending by time, which is created after the sums of a new catalogue. It has all
/// that a sum of costs needs, so that a day's costs the same whatever the history.
pub(super) const BY_TIME: &str = "
CREATE INDEX IF NOT EXISTS spending_by_time ON totals_by_time
    (slot, cost, calls, unpriced, estimated_calls, lower_bounds);
";
