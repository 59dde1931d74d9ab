//! `backtrail web`: the pages. What they show comes from the store through [`StoreLibrary`].

use std::env;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use backtrail_web::library::Site;
use backtrail_web::{Options, Server, start};
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::Answer;
use super::library::StoreLibrary;
use crate::error::{CommandError, Result};
use crate::ui::Ui;

/// Browse sessions, files and costs in your browser, until you stop it
///
/// The pages are served from this machine to this machine, and only whoever has the address that
/// is opened can read them. They change nothing unless you allow it with --write; then each
/// change shows its plan first.
#[derive(Debug, clap::Args)]
pub(crate) struct WebArgs {
    /// Use this port of 127.0.0.1 [default: one that is free]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,

    /// Print the address with its token instead of opening a browser
    #[arg(long)]
    no_open: bool,

    /// Allow undo, redo, rewind, restore and changes to sessions
    #[arg(long)]
    write: bool,
}

pub(crate) fn run(args: &WebArgs, ui: &Ui) -> Result<Answer> {
    let failed = |error| CommandError::io("cannot wait for Ctrl-C", None, &error);
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(failed)?;
    let library = StoreLibrary::open(ui)?.shared();
    let options = Options {
        port: args.port.unwrap_or(0),
        write: args.write,
        ..Options::default()
    };
    let site = Arc::clone(&library) as Arc<dyn Site>;
    let server = start(site, options).map_err(|error| not_started(args.port, &error))?;
    let shown = show(args, &server, ui);
    if shown.is_ok() {
        signals.forever().next();
    }
    // What is being done to files is done to its end.
    server.stop();
    library.close();
    shown.map(|()| Answer::Done)
}

fn not_started(port: Option<u16>, error: &io::Error) -> CommandError {
    let what = match (port, error.kind()) {
        (Some(port), io::ErrorKind::AddrInUse) => format!("port {port} is in use"),
        (Some(port), io::ErrorKind::PermissionDenied) => format!("port {port} is not for users"),
        _ => return CommandError::io("cannot serve the pages", None, error),
    };
    CommandError::invalid(what).hint("leave out --port to use one that is free")
}

/// Says where the pages are, and opens the browser there.
fn show(args: &WebArgs, server: &Server, ui: &Ui) -> Result<()> {
    let url = server.url("/");
    if ui.json() {
        ui.print_json(&json!({"url": url}))?;
    } else if args.no_open {
        ui.print_line(&url)?;
    }
    let port = server.port();
    let access = match args.write {
        true => "they may change files and history",
        false => "read-only; --write allows changes",
    };
    ui.status(&format!(
        "serving the pages at http://127.0.0.1:{port} ({access}); stop with Ctrl-C"
    ));
    if !args.no_open {
        open(server, ui)?;
    }
    Ok(())
}

/// Opens the first page in the browser, through a file: other users see the arguments of programs.
fn open(server: &Server, ui: &Ui) -> Result<()> {
    let directory = env::temp_dir();
    let file = server.write_opener(&directory, "/").map_err(|error| {
        let error = CommandError::io(
            "cannot write a file that opens the page",
            Some(&directory),
            &error,
        );
        error.hint("print the address instead: backtrail web --no-open")
    })?;
    let (url, is_json) = (server.url("/"), ui.json());
    // The program may run as long as the browser.
    thread::spawn(move || {
        if !opens(&file) && !is_json {
            Ui::new(false, clap::ColorChoice::Auto).status(&no_browser(&url));
        }
    });
    Ok(())
}

fn no_browser(url: &str) -> String {
    format!("no browser could be opened; open this address yourself:\n{url}")
}

/// Opens a file with the program of the desktop; returns whether that worked.
fn opens(file: &Path) -> bool {
    let program = match cfg!(target_os = "macos") {
        true => "open",
        false => "xdg-open",
    };
    let mut command = Command::new(program);
    command.arg(file).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    // Ctrl-C is meant for the pages, not for the browser.
    command.process_group(0);
    command.status().is_ok_and(|status| status.success())
}
