//! Reads the remote of a repository, without credentials.

#![allow(
    clippy::disallowed_methods,
    reason = "the directories of people are no files of the store"
)]

use std::fs;
use std::path::Path;

use super::{Remote, normal, read, remote_of};

fn place(url: &str) -> Option<String> {
    normal(url, Path::new("/home/u/shop"))
}

#[test]
fn one_place_has_one_name_however_it_is_written() {
    for url in [
        "git@github.com:acme/shop.git",
        "git@github.com:acme/shop",
        "git@github.com:/acme/shop.git/",
        "git@github.com:22/acme/shop.git",
        "github.com:acme/shop",
        "[git@github.com:22]:acme/shop.git",
        "[github.com:443]:acme/shop.git",
        "https://github.com/acme/shop.git",
        "https://github.com/acme/shop/",
        "https://GitHub.com//acme/shop.git//",
        "https://user:token@github.com/acme/shop.git",
        "https://user@github.com:8443/acme/shop",
        "http://github.com/acme/shop",
        "ssh://git@github.com:22/acme/shop",
        "ssh://git@github.com/acme/shop.git",
        "ssh://git@github.com:acme/shop.git",
        "git+ssh://git@github.com/acme/shop.git",
        "git://github.com/acme/shop.git",
        " https://github.com/acme/shop?ref=main#readme ",
    ] {
        assert_eq!(place(url).as_deref(), Some("github.com/acme/shop"), "{url}");
    }
    for (url, name) in [
        ("ssh://host:22/x/y", "host/x/y"),
        ("git@github.com:1234/shop.git", "github.com/1234/shop"),
        ("ssh://git@[2001:DB8::1]:22/x/y.git", "[2001:db8::1]/x/y"),
        ("git@[2001:db8::1]:x/y.git", "[2001:db8::1]/x/y"),
        ("https://gitlab.com/a/b/c/d.git", "gitlab.com/a/b/c/d"),
        ("https://host/~me/shop.git", "host/~me/shop"),
        ("https://host/shop.github", "host/shop.github"),
        ("file:///srv/git/shop.git", "/srv/git/shop"),
        ("file://localhost/srv/git/shop.git", "/srv/git/shop"),
        ("file://nas/git/shop.git", "nas/git/shop"),
        ("/srv/git/shop.git/", "/srv/git/shop"),
        ("../other/./shop.git", "/home/u/other/shop"),
        ("/srv/me@work/c#/shop", "/srv/me@work/c#/shop"),
        ("shop.git", "/home/u/shop/shop"),
        ("./a:b", "/home/u/shop/a:b"),
        ("C:\\git\\shop.git", "C:/git/shop"),
    ] {
        assert_eq!(place(url).as_deref(), Some(name), "{url}");
    }
}

#[test]
fn what_is_no_place_is_no_remote() {
    let long = format!("https://host/{}", "x".repeat(600));
    for url in [
        "",
        " ",
        "/",
        "https://",
        "https://github.com",
        "https://github.com/",
        "https:///acme/shop",
        "https://github.com/.git",
        "git@github.com:",
        "git@github.com:.git",
        "[git@github.com",
        ":x",
        "@",
        "?",
        "ext::sh -c secret",
        "codecommit::eu-west-1://me@shop",
        "https://host/x\ny",
        "https://host/\u{1b}[31m",
        "my scheme://host/x",
        &long,
    ] {
        assert_eq!(place(url), None, "{url:?}");
    }
}

/// Whatever the form of a URL: the user, the password and the query are never part of the
/// result.
#[test]
fn credentials_never_survive() {
    let secrets = [
        "s3cr3t",
        "s3cr3t:s3cr3t",
        "user:s3cr3t",
        "x-access-token:s3cr3t",
        "s3cr3t:x-oauth-basic",
        "s3cr3t/with/s3cr3t",
        "user:s3cr3t/s3cr3t",
        "user:s3cr3t@s3cr3t",
        "user:s3cr3t@s3cr3t/s3cr3t",
        "user:s3cr3t#s3cr3t",
        "user:%40s3cr3t",
        "user:[s3cr3t]",
        "user:12/s3cr3t/s3cr3t",
        ":s3cr3t",
    ];
    let places = [
        "host/acme/shop.git",
        "host:22/acme/shop.git",
        "host:s3cr3t/acme/shop",
        "host/acme/shop?token=s3cr3t",
        "host/acme/shop.git?a=b&private_token=s3cr3t#s3cr3t",
        "host/acme/shop#s3cr3t",
        "host?s3cr3t/acme/shop",
        "host#s3cr3t/acme/shop",
    ];
    let mut named = 0;
    for scheme in [
        "https", "http", "ssh", "git", "git+ssh", "ftps", "file", "HTTPS", "svn+ssh",
    ] {
        for secret in secrets {
            for place_of in places {
                // The common ssh mistake turns it into a path, and a path is not a secret.
                if scheme.contains("ssh") && place_of.contains(":s3cr3t") {
                    continue;
                }
                let url = format!("{scheme}://{secret}@{place_of}");
                let place = place(&url).unwrap_or_default();
                assert!(!place.contains("s3cr3t"), "{url}: {place}");
                assert!(!place.contains(['@', '?']), "{url}: {place}");
                named += usize::from(place == "host/acme/shop");
            }
        }
    }
    assert!(named > 200, "{named}");
    for secret in secrets {
        for rest in [
            "host:acme/shop.git",
            "host:acme/shop?s3cr3t",
            "host:acme/shop#s3cr3t",
        ] {
            let url = format!("{secret}@{rest}");
            let place = place(&url).unwrap_or_default();
            // Without a scheme, a URL that begins with a directory is a local path.
            if secret.find('/') < secret.find(':') && secret.contains('/') {
                continue;
            }
            assert!(!place.contains("s3cr3t"), "{url}: {place}");
        }
    }
}

fn repository(config: impl AsRef<[u8]>) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join(".git")).unwrap();
    fs::write(dir.path().join(".git/config"), config).unwrap();
    dir
}

fn remote(config: &str) -> Option<String> {
    remote_of(repository(config).path())
}

#[test]
fn origin_comes_first_and_the_first_one_else() {
    let both = "[core]\n\tbare = false\n[remote \"fork\"]\n\turl = https://h/fork/x\n\
                [branch \"main\"]\n\turl = https://h/no/no\n\
                [remote \"origin\"]\n\tfetch = +refs\n\turl = https://h/a/x.git\n\turl = https://h/second/x\n";
    assert_eq!(remote(both).as_deref(), Some("h/a/x"));
    let one =
        "[remote \"fork\"]\nurl = https://h/fork/x\n[remote \"more\"]\nurl=https://h/more/x\n";
    assert_eq!(remote(one).as_deref(), Some("h/fork/x"));
    assert_eq!(remote("[core]\n\tbare = false\n"), None);
    assert_eq!(remote("[remote \"origin\"]\n\tfetch = +refs\n"), None);
}

#[test]
fn the_configuration_is_read_as_git_reads_it() {
    for config in [
        "[REMOTE \"origin\"]\r\n\tURL = https://h/a/x.git\r\n",
        "[remote \"origin\"] url = https://h/a/x",
        "[remote \"origin\"]\nurl = \"https://h/a/x\" ; mine\n",
        "[remote \"origin\"]\nurl = https://h/a/x # mine\n",
        "[remote \"origin\"]\nurl = https://h/\\\na/x\n",
        "# [remote \"origin\"]\n; url = https://h/no\n[remote \"origin\"]\nurl = https://h/a/x",
        "\u{feff}\n[remote \"origin\"]\n  url   =   https://h/a/x   \n\n",
        "[include]\npath = /etc/passwd\n[remote \"o\\\"]\"]\npushurl = x\n[remote \"origin\"]\nurl = https://h/a/x",
    ] {
        assert_eq!(remote(config).as_deref(), Some("h/a/x"), "{config:?}");
    }
}

#[test]
fn a_hostile_configuration_gives_nothing_and_breaks_nothing() {
    let continued = format!("[remote \"origin\"]\nurl = {}", "\\\n".repeat(100_000));
    let headers = "[remote \"origin\"".repeat(10_000);
    let long = format!(
        "[remote \"origin\"]\nurl = https://h/{}\n",
        "a".repeat(100_000)
    );
    let huge = format!(
        "[remote \"origin\"]\nurl = https://h/a/x\n{}",
        "#\n".repeat(1 << 20)
    );
    for config in [
        continued.as_bytes(),
        headers.as_bytes(),
        long.as_bytes(),
        huge.as_bytes(),
        b"[",
        b"[]",
        b"[remote",
        b"[remote \"",
        b"[remote \"origin\\",
        b"[remote \"origin\"]\nurl",
        b"[remote \"origin\"]\nurl=",
        b"[remote \"origin\"]\nurl=\"\\",
        b"[remote \"origin\"]\nurl = \xff\xfe/x",
        b"\x00\x01\x02[remote \"origin\"]\nurl = https://h/\x00/x",
        b"\\",
    ] {
        let dir = repository(config);
        let shown = String::from_utf8_lossy(&config[..config.len().min(40)]).into_owned();
        assert_eq!(remote_of(dir.path()), None, "{shown:?}");
    }
    // Every prefix of a real configuration can be read without a failure.
    let real = "[remote \"or\\\\igin\"]\n\turl = \"https://h/a/x\" # é\n[remote \"origin\"]\nurl=git@h:a/x\\\ny";
    for end in (0..=real.len()).filter(|end| real.is_char_boundary(*end)) {
        super::url_in(&real[..end]);
    }
}

#[test]
fn worktrees_and_submodules_lead_to_their_repository() {
    let dir = repository("[remote \"origin\"]\nurl = https://h/a/x\n");
    let at = |name: &str| dir.path().join(name);
    fs::create_dir_all(at(".git/worktrees/w")).unwrap();
    fs::write(at(".git/worktrees/w/commondir"), "../..\n").unwrap();
    fs::create_dir(at("w")).unwrap();
    let own = at(".git/worktrees/w");
    fs::write(at("w/.git"), format!("gitdir: {}\n", own.display())).unwrap();
    assert_eq!(remote_of(&at("w")).as_deref(), Some("h/a/x"));
    // A submodule's repository is inside the outer one, but separate.
    fs::create_dir_all(at(".git/modules/sub")).unwrap();
    fs::write(
        at(".git/modules/sub/config"),
        "[remote \"origin\"]\nurl = https://h/b/y\n",
    )
    .unwrap();
    fs::create_dir(at("sub")).unwrap();
    fs::write(at("sub/.git"), "gitdir: ../.git/modules/sub\n").unwrap();
    assert_eq!(remote_of(&at("sub")).as_deref(), Some("h/b/y"));
    // Pointers that lead nowhere, or in circles, give nothing.
    for pointer in ["gitdir: .git", "gitdir: nowhere", "gitdir:", "nonsense", ""] {
        fs::write(at("sub/.git"), pointer).unwrap();
        assert_eq!(read(&at("sub")), Remote::Unknown, "{pointer}");
    }
    assert_eq!(read(&at("nowhere")), Remote::Unknown);
    assert_eq!(read(&at(".git/modules")), Remote::Unknown);
}
