//! `config set`, `config unset` and `config edit`: change `config.toml`.

use std::path::Path;
use std::process::Command;

use backtrail::StoreOptions;
use serde_json::json;

use super::{SetArgs, UnsetArgs};
use crate::commands::Answer;
use crate::error::{CommandError, Result};
use crate::files;
use crate::settings::{Edit, SETTINGS, Settings, edited};
use crate::text::{one_line, path_json, visible_path};
use crate::ui::Ui;
use crate::user_file::UserFile;

/// The mode of a new file.
const PRIVATE: u32 = 0o600;

pub(super) fn set(args: &SetArgs, ui: &Ui) -> Result<Answer> {
    change(&args.key, &Edit::Set(&args.value), ui)
}

pub(super) fn unset(args: &UnsetArgs, ui: &Ui) -> Result<Answer> {
    change(&args.key, &Edit::Unset, ui)
}

fn change(key: &str, edit: &Edit<'_>, ui: &Ui) -> Result<Answer> {
    let (dir, _) = ui.store_dir()?;
    let path = dir.join("config.toml");
    let file = UserFile::read(&path)?;
    let old = file.text().unwrap_or_default();
    let new = edited(old, &path, key, edit)?;
    if new != old {
        write(&dir, &file, &new)?;
    }
    if ui.json() {
        let changed = new != old;
        return ui.answer_json(&json!({"name": key, "changed": changed, "file": path_json(&path)}));
    }
    ui.status(&match (edit, new == old) {
        (Edit::Set(words), false) => format!("{key} set: {}", one_line(&words.join(" "), 200)),
        (Edit::Unset, false) => format!("{key} unset; the default applies"),
        (Edit::Set(_), true) => format!("{key} is set so already"),
        (Edit::Unset, true) => format!("{key} is not set; the default applies"),
    });
    Ok(Answer::Done)
}

/// Replaces the settings; creates the store if there is none. Wrong settings must not be in the
/// way of better ones, so they are not read here.
pub(in crate::commands) fn write(dir: &Path, file: &UserFile, text: &str) -> Result<()> {
    StoreOptions::new()
        .program("backtrail")
        .open_or_create(dir)?;
    file.check_replaceable()?;
    file.write(text, PRIVATE)
}

/// Lets the user edit a copy, and replaces the settings by it if they are valid.
pub(super) fn edit(ui: &Ui) -> Result<Answer> {
    let (dir, _) = ui.store_dir()?;
    let path = dir.join("config.toml");
    let file = UserFile::read(&path)?;
    let old = file.text().map_or_else(template, str::to_owned);
    let copy = Copy::create(&old)?;
    let new = loop {
        copy.edit()?;
        let new = copy.read()?;
        match Settings::parse(&new, &path) {
            Ok(_) => break new,
            Err(error) if !ui.can_ask() => return Err(error.hint("nothing was changed")),
            Err(error) => {
                ui.error(&error);
                if !ui.confirm("edit again?")? {
                    ui.status("nothing was changed");
                    return Ok(Answer::No);
                }
            }
        }
    };
    match new == old {
        true => ui.status("nothing was changed"),
        false => {
            write(&dir, &file, &new)?;
            ui.status(&format!("settings saved: {}", visible_path(&path)));
        }
    }
    Ok(Answer::Done)
}

/// Returns what an editor shows if there is no file yet: every setting, as a comment.
fn template() -> String {
    let mut text = String::from("# The settings of this store. Remove a # to change one.\n");
    let is_table = |name: &str| ["prices", "remotes"].contains(&name);
    for setting in SETTINGS.iter().filter(|setting| !is_table(setting.name)) {
        text += &format!(
            "\n# {}: {}\n# {} = {}\n",
            setting.meaning, setting.allowed, setting.name, setting.default
        );
    }
    text + "\n# [prices.\"my-local-model\"]\n# input = 0.5\n# output = 1.5\n"
}

/// A copy of the settings, which is removed in the end.
struct Copy(std::path::PathBuf);

impl Copy {
    fn create(text: &str) -> Result<Self> {
        let dir = std::env::temp_dir();
        let path = dir.join(format!("backtrail-config-{}.toml", std::process::id()));
        let failed = |error| CommandError::io("cannot write a copy", Some(&path), &error);
        files::create_whole(&path, |out| out.write_all(text.as_bytes())).map_err(failed)?;
        Ok(Self(path))
    }

    /// Runs the user's editor.
    fn edit(&self) -> Result<()> {
        let variable = |name| std::env::var(name).ok().filter(|it| !it.trim().is_empty());
        let editor = variable("VISUAL").or_else(|| variable("EDITOR"));
        let editor = editor.unwrap_or_else(|| "vi".to_owned());
        // The variable may have options, as shells expect.
        let status = Command::new("sh")
            .args(["-c", &format!("{editor} \"$1\""), "sh"])
            .arg(&self.0)
            .status()
            .map_err(|error| CommandError::io("cannot start the editor", None, &error))?;
        match status.success() {
            true => Ok(()),
            false => {
                let editor = one_line(&editor, 60);
                let error = CommandError::invalid(format!("the editor \"{editor}\" failed"));
                Err(error.hint("nothing was changed; set EDITOR to another one"))
            }
        }
    }

    fn read(&self) -> Result<String> {
        let what = "cannot read the edited copy";
        files::read(&self.0).map_err(|error| CommandError::io(what, Some(&self.0), &error))
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        files::remove(&self.0).ok();
    }
}
