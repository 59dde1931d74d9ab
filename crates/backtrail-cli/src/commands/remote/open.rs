//! Connecting to a remote by its name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use backtrail::ErrorKind;
use backtrail::replica::{Answer, BlobName, LogKey, Replica, ReplicaError, Request};
use backtrail_remote::{EncryptedReplica, Identities, KeyError, Recipient, Remote, RemoteOptions};

use super::password::{is_open_to_others, with_password};
use super::plain::PlainReplica;
use super::{IdentityArgs, failed};
use crate::error::{CommandError, Result};
use crate::files;
use crate::home;
use crate::progress::while_waiting;
use crate::secret_url::SecretUrl;
use crate::settings::{Encryption, RemoteSettings, Settings, check_name};
use crate::text::visible_path;
use crate::ui::Ui;

/// The database of a remote, and its bucket: what can be asked of them without a key.
pub(in crate::commands) struct Database {
    pub(in crate::commands) settings: RemoteSettings,
    pub(in crate::commands) remote: Arc<Remote>,
}

impl Database {
    pub(in crate::commands) fn name(&self) -> &str {
        &self.settings.name
    }

    /// Returns the error for an answer that does not fit.
    pub(in crate::commands) fn odd(&self) -> CommandError {
        let what = format!(
            "the remote {} gave an answer that does not fit",
            self.name()
        );
        CommandError::new(ErrorKind::Corrupt, what)
    }
}

/// A remote that sessions are pushed to and pulled from.
pub(in crate::commands) struct OpenRemote {
    pub(in crate::commands) database: Database,
    pub(in crate::commands) replica: Box<dyn Replica>,
}

impl OpenRemote {
    pub(in crate::commands) fn name(&self) -> &str {
        self.database.name()
    }
}

/// Connects to a remote to list what is there. Without a key, it is not known who wrote it.
pub(super) fn open_to_list(
    name: &str,
    identity: &IdentityArgs,
    ui: &Ui,
) -> Result<(OpenRemote, Readable)> {
    let settings = find(name, ui)?;
    let has_file = identity_file(&settings, identity).is_some();
    let keys = match has_file {
        true => Keys::read(&settings, identity, ui)?,
        false => None,
    };
    let readable = match (&settings.encryption, &keys) {
        (Encryption::For(_), None) => Readable::Sizes,
        _ => Readable::Everything,
    };
    let database = connect(settings, ui)?;
    let replica: Box<dyn Replica> = match keys {
        // Nothing is read, so nothing can be misread.
        None => Box::new(Shared(Arc::clone(&database.remote))),
        keys => replica(&database, keys),
    };
    Ok((OpenRemote { database, replica }, readable))
}

/// What can be read of a remote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Readable {
    Everything,
    /// Ids, sizes and times.
    Sizes,
}

impl Readable {
    /// Returns a holder for people: what only makes it unique is left out.
    pub(super) fn who(self, holder: &str) -> Option<&str> {
        let who = holder.split_once(" #").map_or(holder, |(who, _)| who);
        (self == Self::Everything).then_some(who)
    }
}

/// Connects to the database of a remote.
pub(in crate::commands) fn open_database(name: &str, ui: &Ui) -> Result<Database> {
    connect(find(name, ui)?, ui)
}

fn connect(settings: RemoteSettings, ui: &Ui) -> Result<Database> {
    let options = options(&settings, &settings.url, ui)?;
    let connected = while_waiting(ui, "connecting", || Remote::connect(&options));
    let remote = connected.map_err(|error| failed(error, &settings.name))?;
    Ok(Database {
        settings,
        remote: Arc::new(remote),
    })
}

/// Connects to a remote that was added.
pub(in crate::commands) fn open(
    name: &str,
    identity: &IdentityArgs,
    ui: &Ui,
) -> Result<OpenRemote> {
    let settings = find(name, ui)?;
    // A wrong key is noticed before anything is asked.
    let keys = Keys::read(&settings, identity, ui)?;
    let database = connect(settings, ui)?;
    Ok(OpenRemote {
        replica: replica(&database, keys),
        database,
    })
}

/// Returns what sessions are pushed to and pulled from.
pub(super) fn replica(database: &Database, keys: Option<Keys>) -> Box<dyn Replica> {
    let shared = Shared(Arc::clone(&database.remote));
    match keys {
        None => Box::new(PlainReplica(shared)),
        Some(Keys {
            recipients,
            identities,
        }) => Box::new(EncryptedReplica::new(shared, recipients, identities)),
    }
}

/// Finds a remote by its name.
pub(super) fn find(name: &str, ui: &Ui) -> Result<RemoteSettings> {
    let (dir, _) = ui.store_dir()?;
    let remotes = Settings::read(&dir)?.remotes.value;
    // What is not a name may be a URL with a password.
    check_name(name).map_err(|error| {
        error.hint("name a remote that was added, and not its URL: backtrail remote list")
    })?;
    let names: Vec<String> = remotes.iter().map(|it| it.name.clone()).collect();
    if let Some(found) = remotes.into_iter().find(|it| it.name == name) {
        return Ok(found);
    }
    let error = CommandError::not_found(format!("no remote \"{name}\""));
    Err(match names.is_empty() {
        true => error.hint("add one: backtrail remote add NAME URL"),
        false => error.hint(format!("known remotes: {}", names.join(", "))),
    })
}

/// Returns how to reach a remote, by its own URL or another one.
pub(super) fn options(
    settings: &RemoteSettings,
    url: &SecretUrl,
    ui: &Ui,
) -> Result<RemoteOptions> {
    let command = settings.password_command.as_deref();
    let url = with_password(url, command, &settings.name, ui)?;
    Ok(without_password(settings, &url))
}

/// Returns how to reach a remote, without asking for its password.
pub(super) fn without_password(settings: &RemoteSettings, url: &SecretUrl) -> RemoteOptions {
    let mut options = RemoteOptions::new(url.with_secrets());
    options.blobs = settings
        .blobs
        .as_ref()
        .map(|it| it.with_secrets().to_owned());
    // Buckets have their keys in the environment; what is not a setting of theirs is ignored.
    options.blob_settings = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    options.keyed_names = settings.encryption != Encryption::Plaintext;
    if let Some(schema) = &settings.schema {
        options.schema.clone_from(schema);
    }
    options
}

/// Shares a connected remote between the encryption and the checks.
#[derive(Debug)]
struct Shared(Arc<Remote>);

impl Replica for Shared {
    fn ask(&self, request: &Request) -> Result<Answer, ReplicaError> {
        self.0.ask(request)
    }

    fn has_blobs(&self, log: &LogKey, names: &[BlobName]) -> Result<Vec<bool>, ReplicaError> {
        self.0.has_blobs(log, names)
    }

    fn put_blob(&self, log: &LogKey, name: BlobName, bytes: &[u8]) -> Result<(), ReplicaError> {
        self.0.put_blob(log, name, bytes)
    }

    fn get_blob(
        &self,
        log: &LogKey,
        name: BlobName,
        part: Option<(u64, u64)>,
    ) -> Result<Option<Vec<u8>>, ReplicaError> {
        self.0.get_blob(log, name, part)
    }
}

/// For whom is encrypted, and what opens it.
pub(super) struct Keys {
    pub(super) recipients: Vec<Recipient>,
    pub(super) identities: Identities,
}

impl Keys {
    /// Reads the keys of a remote; `None` if it is not encrypted.
    pub(super) fn read(
        settings: &RemoteSettings,
        identity: &IdentityArgs,
        ui: &Ui,
    ) -> Result<Option<Self>> {
        let Encryption::For(recipients) = &settings.encryption else {
            if identity.identity.is_some() {
                let what = format!("the remote {} is not encrypted", settings.name);
                return Err(CommandError::invalid(what).hint("leave out --identity"));
            }
            return Ok(None);
        };
        let recipients = recipients.iter().map(|text| recipient(text));
        let recipients = recipients.collect::<Result<Vec<_>>>()?;
        let mut identities = Identities::none();
        match identity_file(settings, identity) {
            Some(path) => add_identity(&mut identities, &path, ui)?,
            None => {
                let what = format!("the remote {} is encrypted", settings.name);
                return Err(CommandError::new(ErrorKind::Denied, what)
                    .hint("name the file with your key: --identity FILE, or BACKTRAIL_IDENTITY"));
            }
        }
        Ok(Some(Self {
            recipients,
            identities,
        }))
    }

    /// Returns whether one of the recipients can open it with these identities.
    pub(super) fn fit(&self) -> bool {
        let own = self.identities.recipients();
        self.recipients.iter().any(|it| own.contains(it))
    }
}

/// Reads a recipient.
pub(super) fn recipient(text: &str) -> Result<Recipient> {
    text.parse()
        .map_err(|error: KeyError| CommandError::invalid(error.to_string()))
}

fn identity_file(settings: &RemoteSettings, args: &IdentityArgs) -> Option<PathBuf> {
    let named = args.identity.clone();
    let variable = || std::env::var("BACKTRAIL_IDENTITY").ok();
    let text = named
        .or_else(|| variable().filter(|it| !it.is_empty()))
        .or_else(|| settings.identity.clone())?;
    let in_home = text
        .strip_prefix("~/")
        .and_then(|rest| Some(home::home_dir()?.join(rest)));
    Some(in_home.unwrap_or_else(|| PathBuf::from(text)))
}

fn add_identity(identities: &mut Identities, path: &Path, ui: &Ui) -> Result<()> {
    let text = files::read(path).map_err(|error| {
        CommandError::io("cannot read the identity file", Some(path), &error)
            .hint("make one: age-keygen -o FILE")
    })?;
    if is_open_to_others(path) {
        let what = format!("{} can be read by others", visible_path(path));
        let hint = format!("chmod 600 {}", visible_path(path));
        ui.warning(&what, Some(&hint));
    }
    let added = identities.add_file(&visible_path(path), &text);
    added.map_err(|error| CommandError::invalid(error.to_string()))
}
