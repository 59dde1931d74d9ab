//! Examples of every verb, for its help and the manual.

/// The examples, one a line, by verb in alphabetical order; after `#`, what each is for.
pub(crate) const EXAMPLES: &str = "\
blame src/cart.rs   # who wrote each line
blame src/cart.rs:41   # one line, whole prompt
blame src/cart.rs last~1 -L 10,20
cat last~1 src/cart.rs   # before the last turn
cat c81f Cargo.toml > Cargo.toml.old
checkpoint   # save the files as they are now
checkpoint before-lunch   # under a name
compact latest --summary-file summary.md
compact c81f --summary-file - --keep 4
completions bash > ~/.local/share/bash-completion/completions/backtrail
completions zsh > ~/.zfunc/_backtrail
completions fish > ~/.config/fish/completions/backtrail.fish
config
config --json
context latest   # what a model would get
context c81f --format anthropic
context c81f:12 --as-sent   # what was sent
delete c81f   # trash restore restores it
delete c81f --purge --dry-run   # show the plan
diff   # since the start of the last turn or run
diff last~2 -- src   # the last two, in src
diff before-lunch last --stat
doctor
export latest --to html -o chat.html --redact
export latest --to markdown -o chat.md
export c81f --to codex   # the original file
export c81f --to v1   # for older programs
fork latest   # try another way from here
fork c81f:12 --name try-2   # from record 12
fork last~1 --into ../again   # with the files
gc --dry-run   # what would be freed
gc --older-than 30d   # drop older files
gc --max-size 20G --dry-run
help undo   # its options and examples
help --all   # every verb
hook claude-code < payload.json   # by hand
hook copilot-cli --event preToolUse
import   # all agents on this machine
import --from codex --dry-run   # only look
import ~/backup/sessions   # from a directory
list   # the sessions here
list --all --sort cost -n 10   # most expensive
list --agent codex --since 7d
log   # what happened here, newest first
log -n 100 -- src/cart.rs   # one file
log --steps   # what undo and redo would do
man | man -l -   # read the manual
man rewind | man -l -
pin c81f   # list it first
pin c81f --off
pull work --all   # all sessions there
pull work c81f   # one, by its id there
push work latest   # the newest session here
push work c81f --redact   # without secrets
push work c81f --as-fork   # after it diverged
rebuild
record --text 'fix the cart' --title cart
record --session latest < messages.jsonl
redo   # redo the last undone step
redo --dry-run   # show what it would do
relink
remote   # list the remotes
remote add work postgresql://db/bt --plaintext
remote init work   # create its tables and roles
remote check work
remote list work   # the sessions there
remote log work   # who pushed what
repair c81f --dry-run   # what can be recovered
repair   # repair saved files
restore last~1 src/cart.rs   # one file
restore before-lunch docs --dry-run
resume   # the agent's last session here
resume c81f:12   # up to record 12
resume --agent codex   # in another agent
resume c81f:12 --print   # only the command
rewind last~1   # to before the last turn
rewind c81f --dry-run   # show what it would do
rewind last~2 --keep   # skip changed files
run -- claude   # what it does can be undone
run --label built -- make
search rounding refund   # both words
search 'round*' --tool edit --since 7d
search --phrase 'half even' --newest
setup   # all agents on this machine
setup claude --dry-run   # only look
setup --status   # what is installed
setup --remove
show latest   # the newest session here
show c81f --turn -1 --full   # its last turn
show c81f:41   # the turn with record 41
show 3f9c2d1   # the turn that made a commit
show latest --follow   # follow it live
stats --by model   # cost of each model
stats --by day --since 30d
stats latest   # one session
status
status --json
statusline < payload.json   # by hand
statusline --json   # each with its source
statusline --after 'my-statusline.sh'
tag c81f money urgent
tag c81f --remove urgent
title latest
title c81f 'the cart loses a cent'
trash   # what was deleted
trash restore c81f
trash empty --older-than 30d --dry-run
ui   # browse everything; ? shows the keys
ui --all   # from all workspaces
undo   # undo the last step
undo --tool   # only the last tool call
undo --dry-run   # show what it would do
verify   # everything, byte by byte
verify c81f   # one session
verify --quick
verify --remote work --deep   # all of a remote
version
watch   # the agents in this workspace
watch --all   # those in all directories
web   # everything, in your browser
web --write   # with undo, rewind and restore
web --no-open --port 8090
";

/// Returns the examples of a verb; `None` if it has none.
pub(crate) fn of(verb: &str) -> Option<String> {
    let is_of_verb = |line: &&str| line.split(' ').next() == Some(verb);
    let lines = EXAMPLES.lines().filter(is_of_verb);
    let text: String = lines.map(|line| format!("\n  backtrail {line}")).collect();
    (!text.is_empty()).then(|| format!("Examples:{text}"))
}
