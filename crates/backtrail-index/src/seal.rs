//! Whether files are as we left them.
