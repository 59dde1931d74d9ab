//! `remote add` and `remote remove`: change the settings, and nothing at the remote.

use backtrail_remote::Remote;
use serde_json::json;

use super::open::{find, recipient, without_password};
use super::{failed, remote_json};
use crate::commands::Answer;
use crate::commands::config::change::write;
use crate::error::{CommandError, Result};
use crate::files;
use crate::secret_url::SecretUrl;
use crate::settings::{
    Encryption, RemoteSettings, Settings, check_name, with_remote, without_remote,
};
use crate::text::visible_path;
use crate::ui::Ui;
use crate::user_file::UserFile;

/// Add a remote
///
/// Only the settings change: nothing is connected or sent. Say whether the remote may read your
/// sessions: --plaintext, or --encrypt with the age recipients who can open them. Encrypted, it
/// sees ids, sizes and times.
///
/// The password need not be in the URL: $PGPASSWORD, ~/.pgpass and --password-command are used as
/// well. Keys of a bucket are taken from the environment.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("readers").required(true)))]
pub(super) struct AddArgs {
    /// What to call it
    #[arg(value_name = "NAME")]
    name: String,

    /// The database: postgresql://USER@HOST/DATABASE
    #[arg(value_name = "URL", value_parser = secret_url)]
    url: SecretUrl,

    /// Keep what is large here instead of in the database: s3://BUCKET/PREFIX, gs://, az:// or
    /// file:///DIRECTORY
    #[arg(long, value_name = "URL", value_parser = secret_url)]
    blobs: Option<SecretUrl>,

    /// Encrypt for these recipients (age1...), of which one is yours
    #[arg(long, value_name = "RECIPIENT", num_args = 1..)]
    #[arg(group = "readers")]
    encrypt: Vec<String>,

    /// Let the remote read everything
    #[arg(long, group = "readers")]
    plaintext: bool,

    /// Decrypt with the keys in this file
    #[arg(long, value_name = "FILE", requires = "encrypt")]
    identity: Option<String>,

    /// Get the password of the database from this command
    #[arg(long, value_name = "COMMAND")]
    password_command: Option<String>,

    /// Use this schema of the database [default: backtrail]
    #[arg(long, value_name = "SCHEMA")]
    schema: Option<String>,
}

/// Forget a remote
///
/// What is at the remote stays there, and so do the sessions here.
#[derive(Debug, clap::Args)]
pub(super) struct RemoveArgs {
    /// The remote
    #[arg(value_name = "REMOTE")]
    name: String,
}

/// Reads a URL; clap wants a result.
pub(super) fn secret_url(text: &str) -> Result<SecretUrl, String> {
    Ok(SecretUrl::new(text))
}

pub(super) fn add(args: &AddArgs, ui: &Ui) -> Result<Answer> {
    check_name(&args.name).map_err(|error| {
        error.hint("the name comes first: backtrail remote add work postgresql://…")
    })?;
    let remote = settings_of(args)?;
    let (dir, _) = ui.store_dir()?;
    let path = dir.join("config.toml");
    let file = UserFile::read(&path)?;
    let old = file.text().unwrap_or_default();
    let known = Settings::parse(old, &path)?.remotes.value;
    if known.iter().any(|it| it.name == remote.name) {
        let error = CommandError::invalid(format!("there is a remote {} already", remote.name));
        let error = error.hint(format!(
            "remove it: backtrail remote remove {}",
            remote.name
        ));
        return Err(error.hint("change it: backtrail config edit"));
    }
    let new = with_remote(old, &path, &remote)?;
    write(&dir, &file, &new)?;
    warn_of_password(&remote, &path, ui);
    if ui.json() {
        let mut json = remote_json(&remote);
        json["name"] = remote.name.as_str().into();
        return ui.answer_json(&json);
    }
    ui.status(&format!("remote {} added: {}", remote.name, remote.url));
    ui.status(&format!(
        "set it up once: {program} remote init {name}; then try it: {program} remote check {name}",
        program = ui.program(),
        name = remote.name
    ));
    Ok(Answer::Done)
}

fn settings_of(args: &AddArgs) -> Result<RemoteSettings> {
    let encryption = match args.plaintext {
        true => Encryption::Plaintext,
        false => Encryption::For(args.encrypt.clone()),
    };
    for text in &args.encrypt {
        recipient(text)?;
    }
    let remote = RemoteSettings {
        name: args.name.clone(),
        url: args.url.clone(),
        blobs: args.blobs.clone(),
        encryption,
        identity: args.identity.as_deref().map(absolute).transpose()?,
        password_command: args.password_command.clone(),
        schema: args.schema.clone(),
    };
    // Nothing is connected: this only finds out whether the URLs can be right.
    let mut options = without_password(&remote, &remote.url);
    let blobs = options.blobs.take();
    Remote::new(&options).map_err(|error| failed(error, &remote.name))?;
    // A directory would be created, and the keys of a bucket may come later.
    options.blobs = blobs.filter(|url| !url.starts_with("file:///"));
    match Remote::new(&options) {
        Err(error) if error.message.contains("URL of the blobs") => {
            Err(failed(error, &remote.name))
        }
        _ => Ok(remote),
    }
}

/// Returns the path of an identity file so that it is found from any directory.
fn absolute(file: &str) -> Result<String> {
    if file.starts_with("~/") {
        return Ok(file.to_owned());
    }
    let failed = |error| CommandError::io("cannot find the identity file", None, &error);
    let path = std::path::absolute(file).map_err(failed)?;
    path.into_os_string()
        .into_string()
        .map_err(|_| CommandError::invalid("the path of the identity file is not UTF-8"))
}

fn warn_of_password(remote: &RemoteSettings, path: &std::path::Path, ui: &Ui) {
    let urls = [Some(&remote.url), remote.blobs.as_ref()];
    if !urls.into_iter().flatten().any(SecretUrl::has_secrets) {
        return;
    }
    let is_private = files::mode(path).is_some_and(|mode| mode & 0o077 == 0);
    let (who, hint) = match is_private {
        true => (
            "which only you can read",
            "to keep it out of there: --password-command, PGPASSWORD or ~/.pgpass".to_owned(),
        ),
        false => (
            "which others can read",
            format!("chmod 600 {}", visible_path(path)),
        ),
    };
    let what = format!("the password is stored in {}, {who}", visible_path(path));
    ui.warning(&what, Some(&hint));
}

pub(super) fn remove(args: &RemoveArgs, ui: &Ui) -> Result<Answer> {
    let remote = find(&args.name, ui)?;
    let (dir, _) = ui.store_dir()?;
    let path = dir.join("config.toml");
    let file = UserFile::read(&path)?;
    let new = without_remote(file.text().unwrap_or_default(), &path, &remote.name)?;
    write(&dir, &file, &new)?;
    if ui.json() {
        return ui.answer_json(&json!({"removed": remote.name}));
    }
    ui.status(&format!(
        "remote {} removed; what is there stays there",
        remote.name
    ));
    Ok(Answer::Done)
}
