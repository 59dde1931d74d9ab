//! Paths as they are seen from the workspace.

use std::borrow::Cow;
use std::path::Path;

/// Shortens the paths in texts: in the workspace `/home/me/shop`, `/home/me/shop/src/a.rs` is
/// `src/a.rs`, and `/home/me/.config` is `~/.config`.
#[derive(Debug, Clone, Default)]
pub struct RelativePaths {
    /// The root, without a slash at its end; empty if there is nothing to shorten.
    root: String,
    /// The home directory that the root is in; empty if it is in none.
    home: String,
}

impl RelativePaths {
    /// Creates one for a workspace.
    pub fn new(root: Option<&Path>) -> Self {
        let root = root.map(|root| root.to_string_lossy().into_owned());
        let root = root.unwrap_or_default();
        let root = root.trim_end_matches(['/', '\\']);
        let is_absolute = root.starts_with('/') || root.get(1..2) == Some(":");
        let root = if is_absolute { root } else { "" };
        Self {
            root: root.to_owned(),
            home: home_of(root).unwrap_or_default().to_owned(),
        }
    }

    /// Creates one for paths in a home directory.
    pub(super) fn in_home(home: &str) -> Self {
        Self {
            root: String::new(),
            home: home.to_owned(),
        }
    }

    /// Returns a path as seen from the workspace; the workspace itself is `.`.
    pub fn path<'t>(&self, path: &'t str) -> Cow<'t, str> {
        let path = path.strip_prefix("file://").unwrap_or(path);
        if let Some(inside) = inside(path, &self.root) {
            return Cow::Borrowed(if inside.is_empty() { "." } else { inside });
        }
        match inside(path, &self.home) {
            Some("") => Cow::Borrowed("~"),
            Some(inside) => Cow::Owned(format!("~/{inside}")),
            None => Cow::Borrowed(path),
        }
    }

    /// Shortens the paths in a text. The workspace itself stays as it is named, apart from
    /// the home directory.
    pub fn prose<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.shortened(text, None)
    }

    /// Shortens the paths in a command or its output; the workspace itself is `.`.
    pub fn code<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.shortened(text, Some("."))
    }

    fn shortened<'t>(&self, text: &'t str, itself: Option<&str>) -> Cow<'t, str> {
        match replaced(text, &self.root, "", itself) {
            Cow::Borrowed(text) => replaced(text, &self.home, "~/", Some("~")),
            Cow::Owned(text) => {
                Cow::Owned(replaced(&text, &self.home, "~/", Some("~")).into_owned())
            }
        }
    }
}

/// Returns the home directory that a path is in.
pub(super) fn home_of(path: &str) -> Option<&str> {
    let parent = ["/home/", "/Users/"]
        .into_iter()
        .find(|parent| path.starts_with(parent))?;
    let name = path[parent.len()..].split('/').next()?;
    (!name.is_empty()).then(|| &path[..parent.len() + name.len()])
}

/// Returns the rest of a path that is in a directory.
fn inside<'t>(path: &'t str, directory: &str) -> Option<&'t str> {
    let rest = path
        .strip_prefix(directory)
        .filter(|_| !directory.is_empty())?;
    match rest {
        "" => Some(""),
        rest => rest.strip_prefix(['/', '\\']),
    }
}

/// Replaces a directory in a text: before the paths in it by `with`, and alone by `itself`.
fn replaced<'t>(text: &'t str, root: &str, with: &str, itself: Option<&str>) -> Cow<'t, str> {
    if root.is_empty() || !text.contains(root) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(root) {
        let (before, found) = rest.split_at(at);
        let after = &found[root.len()..];
        let before = before.strip_suffix("file://").unwrap_or(before);
        let is_start = !before.ends_with(is_path_char) && (at > 0 || !out.ends_with(is_path_char));
        let inside = after.strip_prefix(['/', '\\']);
        let is_inside = inside.is_some_and(|inside| inside.starts_with(is_name_char));
        let is_itself = !is_inside && !after.starts_with(is_name_char);
        match (is_start, is_inside, itself) {
            (true, true, _) => {
                out.push_str(before);
                out.push_str(with);
                rest = inside.unwrap_or(after);
            }
            (true, false, Some(itself)) if is_itself => {
                out.push_str(before);
                out.push_str(itself);
                rest = after;
            }
            _ => {
                out.push_str(&rest[..at + root.len()]);
                rest = after;
            }
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Returns whether a path may continue before this character.
fn is_path_char(c: char) -> bool {
    c == '/' || is_name_char(c)
}

fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '@' | '~' | '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_in_the_workspace() {
        let paths = RelativePaths::new(Some(Path::new("/home/me/shop/")));
        for (path, expected) in [
            ("/home/me/shop/src/a.rs", "src/a.rs"),
            ("/home/me/shop", "."),
            ("/home/me/shopping/a", "~/shopping/a"),
            ("/home/me", "~"),
            ("/home/melon/a", "/home/melon/a"),
            ("/etc/hosts", "/etc/hosts"),
            ("src/a.rs", "src/a.rs"),
            ("file:///home/me/shop/a", "a"),
        ] {
            assert_eq!(paths.path(path), expected, "{path}");
        }
        for (text, expected) in [
            (
                "cd /home/me/shop && cat /home/me/shop/a.txt",
                "cd . && cat a.txt",
            ),
            ("x:/home/me/shop/a:3", "x:a:3"),
            ("`/home/me/shop/a`, \"/home/me/shop/.git\"", "`a`, \".git\""),
            ("/mnt/home/me/shop/a", "/mnt/home/me/shop/a"),
            ("/home/me/shop-2/a /home/me/shop/", "~/shop-2/a ./"),
            ("ls /home/me/.x /home/me", "ls ~/.x ~"),
            ("file:///home/me/shop/a", "a"),
        ] {
            assert_eq!(paths.code(text), expected, "{text}");
        }
        assert_eq!(paths.prose("open /home/me/shop now"), "open ~/shop now");
        assert_eq!(paths.prose("in /home/me/shop/a"), "in a");
        let elsewhere = RelativePaths::new(Some(Path::new("/srv/shop")));
        assert_eq!(elsewhere.path("/home/me/a"), "/home/me/a");
        assert_eq!(elsewhere.prose("open /srv/shop now"), "open /srv/shop now");
        let none = RelativePaths::new(Some(Path::new("/")));
        assert_eq!(none.code("/etc/passwd"), "/etc/passwd");
        assert_eq!(RelativePaths::new(None).path("/a"), "/a");
    }
}
