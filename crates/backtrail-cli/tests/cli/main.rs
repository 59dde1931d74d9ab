//! The command's promises, proven on the real program.

#![expect(
    clippy::disallowed_methods,
    reason = "tests look at files from outside, and damage them"
)]
#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod agent_sessions;
mod agents;
mod architecture;
mod as_sent;
mod blame;
mod checkpoint;
mod close;
mod closed;
mod compact;
mod completions;
mod config;
mod copy;
mod cut_off;
mod disk;
mod doctor;
mod escapes;
mod examples;
mod export;
mod export_browser;
mod find;
mod follow;
mod fork_into;
mod fresh;
mod gc;
mod git_head;
mod git_worktree;
mod hand_over;
mod help;
mod hooks_hostile;
mod house;
mod import;
mod import_agents;
mod import_kill;
mod import_times;
mod kill;
mod kit;
mod left_running;
mod links;
mod list;
mod live;
mod man;
mod marks;
mod moves;
mod notes;
mod old_store;
mod output;
mod overview;
mod pickers;
mod picture;
mod prices;
mod processes;
mod protection;
mod pty;
mod reads_well;
mod record;
mod relink;
mod repair;
mod requirements;
mod resume;
mod resume_elsewhere;
mod review;
mod rewind;
mod run;
mod run_signals;
mod run_terminal;
mod same_numbers;
mod search;
mod setup;
mod short_ids;
mod show;
mod snapshots;
mod stats;
mod trash;
mod umask;
mod usage_figures;
mod verify;
mod wrong;
