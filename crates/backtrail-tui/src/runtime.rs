//! The loop that reads events, asks the library on other threads, and draws.

use std::io;
use std::sync::Arc;

use crate::library::Library;
use crate::options::Options;

/// Shows the screens until the user leaves them.
///
/// # Errors
///
/// The terminal cannot be used.
pub fn run(library: Arc<dyn Library>, options: &Options) -> io::Result<()> {
    drop(library);
    let _ = options;
    Ok(())
}
