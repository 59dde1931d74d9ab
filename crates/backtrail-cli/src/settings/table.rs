//! Every setting, with its default and what it means.

/// A setting in `config.toml`.
#[derive(Debug)]
pub(crate) struct SettingInfo {
    pub(crate) name: &'static str,
    /// The default, as it is written there.
    pub(crate) default: &'static str,
    /// What a value must be.
    pub(crate) allowed: &'static str,
    pub(crate) meaning: &'static str,
}

const fn setting(
    name: &'static str,
    default: &'static str,
    allowed: &'static str,
    meaning: &'static str,
) -> SettingInfo {
    SettingInfo {
        name,
        default,
        allowed,
        meaning,
    }
}

pub(crate) const SETTINGS: [SettingInfo; 15] = [
    setting(
        "durability",
        "\"record\"",
        "\"record\", \"batch\" or \"os\"",
        "when a message counts as stored: each one synced, those that wait together, or no sync",
    ),
    setting(
        "rotation",
        "\"64 MiB\"",
        "a size like \"64 MiB\", 1 KiB or more",
        "a longer trail continues in a new file",
    ),
    setting(
        "keep_trails",
        "\"all\"",
        "a whole number, 1 or more, or \"all\"",
        "how many trails of a session stay; older ones before the last compaction go to the trash",
    ),
    setting(
        "snapshot_cap",
        "\"256 MiB\"",
        "a size like \"256 MiB\"",
        "checkpoints skip larger files",
    ),
    setting(
        "include_cap",
        "\"1 GiB\"",
        "a size like \"1 GiB\"",
        "larger directories are not protected by --include-ignored",
    ),
    setting(
        "hook_wait",
        "\"2s\"",
        "a time like \"2s\" or \"500ms\"",
        "how long an agent waits for a snapshot; then its turn is not protected",
    ),
    setting(
        "tell_agents",
        "true",
        "true or false",
        "tell an agent in its next prompt what you undid, where it can be told",
    ),
    setting(
        "auto_import",
        "true",
        "true or false",
        "import what is new before list, search, stats, show and the overview, from agents that were imported before",
    ),
    setting(
        "import.exclude",
        "[]",
        "a list of agents and of patterns of paths, like [\"codex\", \"~/private\", \"client-*\"]",
        "sessions that are never imported: of these agents, in these files, or working in these directories",
    ),
    setting(
        "default_command",
        "\"overview\"",
        "\"overview\" or \"ui\"",
        "what `backtrail` alone does on a terminal: say whether you are protected, or open the screen",
    ),
    setting(
        "mouse",
        "true",
        "true or false",
        "use the mouse on the screen; without it the terminal selects text as ever",
    ),
    setting(
        "statusline.template",
        "\"{model} · {session_cost} · today {today} · block {block} · {context} · {quota} · {undo}\"",
        "text with {model}, {session_cost}, {today}, {block}, {context}, {quota} and {undo}",
        "the parts of the status line, separated by a dot or a bar; one without a value vanishes",
    ),
    setting(
        "statusline.wait",
        "\"5s\"",
        "a time like \"2s\" or \"500ms\"",
        "how long the status line waits for the command that it comes after",
    ),
    setting(
        "prices",
        "{}",
        "a table of models",
        "your own prices of models, in dollars per million tokens",
    ),
    setting(
        "remotes",
        "{}",
        "a table of remotes",
        "second homes of sessions; `remote add` and `remote remove` change them",
    ),
];

/// Returns what is known about a setting.
pub(crate) fn find(name: &str) -> Option<&'static SettingInfo> {
    SETTINGS.iter().find(|setting| setting.name == name)
}
