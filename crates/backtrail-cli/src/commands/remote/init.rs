//! `remote init`: sets up the database of a remote.

use backtrail_remote::init;
use serde_json::json;

use super::add::secret_url;
use super::failed;
use super::open::{find, options};
use crate::commands::Answer;
use crate::error::Result;
use crate::progress::while_waiting;
use crate::secret_url::SecretUrl;
use crate::ui::Ui;

/// Set up a remote, or bring it to this version
///
/// Creates the schema, its tables, its functions and three roles: readers, agents and admins get
/// functions to call, and no tables. Running it again changes nothing. Afterwards give your own
/// role one of the three: GRANT backtrail_agent TO anna.
#[derive(Debug, clap::Args)]
pub(super) struct InitArgs {
    /// The remote
    #[arg(value_name = "REMOTE")]
    name: String,

    /// Connect with this URL, of a role that may create schemas and roles [default: the remote's
    /// own]
    #[arg(long = "as", value_name = "URL", value_parser = secret_url)]
    owner: Option<SecretUrl>,
}

pub(super) fn run(args: &InitArgs, ui: &Ui) -> Result<Answer> {
    let remote = find(&args.name, ui)?;
    let url = args.owner.as_ref().unwrap_or(&remote.url);
    let options = match &args.owner {
        // The password command has the password of the other role.
        Some(owner) => {
            let mut other = remote.clone();
            other.password_command = None;
            options(&other, owner, ui)?
        }
        None => options(&remote, url, ui)?,
    };
    let done = while_waiting(ui, "setting up", || init(&options));
    let done = done.map_err(|error| failed(error, &remote.name).without_hints())?;
    if ui.json() {
        return ui.answer_json(&json!({"remote": remote.name, "done": done}));
    }
    for line in &done {
        ui.print_line(line)?;
    }
    let schema = &options.schema;
    ui.status(&format!(
        "let a role push and pull, in psql: GRANT {schema}_agent TO anna (or {schema}_reader, \
         {schema}_admin)"
    ));
    Ok(Answer::Done)
}
