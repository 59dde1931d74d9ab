//! Other users of this machine and other machines get nothing.

use std::fs;
use std::net::{TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::client::{Web, writing};

/// Returns an address of this machine that others see. Nothing is sent.
fn outer_address() -> Option<std::net::IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

#[test]
fn other_addresses_of_this_machine_refuse() {
    let web = writing();
    let port = web.server.port();
    assert!(TcpStream::connect(("127.0.0.2", port)).is_err());
    assert!(TcpStream::connect(("::1", port)).is_err());
    if let Some(address) = outer_address() {
        assert!(TcpStream::connect((address, port)).is_err(), "{address}");
    }
    web.assert_answers();
}

/// Runs a script of bash as nobody; returns what it printed.
fn as_nobody(script: &str) -> Option<String> {
    let mut nobody = Command::new("setpriv");
    nobody.args([
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "bash",
        "-c",
    ]);
    let ran = nobody.arg(script).current_dir("/").output().ok()?;
    Some(String::from_utf8_lossy(&ran.stdout).into_owned())
}

/// Asks as nobody, and returns the answer.
fn ask_as_nobody(web: &Web, request: &str) -> String {
    let request = web.text(&format!("{request}Connection: close\n\n"));
    let port = web.server.port();
    let script =
        format!("exec 3<>/dev/tcp/127.0.0.1/{port} && printf %s '{request}' >&3 && cat <&3");
    as_nobody(&script).unwrap()
}

#[test]
fn a_second_user_of_this_machine_gets_nothing() {
    if as_nobody("id -u").as_deref() != Some("65534\n") {
        eprintln!("SKIPPED: needs root and setpriv; no other user tried to read");
        return;
    }
    let (web, parent) = (writing(), tempfile::tempdir().unwrap());
    fs::set_permissions(parent.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let file = web.server.write_opener(parent.path(), "/").unwrap();
    let file = file.display();
    for script in [
        format!("cat {file}"),
        format!("ls {}", parent.path().join("*/").display()),
    ] {
        assert_eq!(as_nobody(&script).unwrap(), "");
    }
    let arguments = as_nobody("cat /proc/*/cmdline /proc/*/environ 2>/dev/null").unwrap();
    assert!(!arguments.contains(&web.token()));
    let shell = ask_as_nobody(&web, "GET / HTTP/1.1\nHost: HOST\n");
    assert!(shell.starts_with("HTTP/1.1 200"), "{shell}");
    for request in [
        "GET /api/hello HTTP/1.1\nHost: HOST\n",
        "GET /api/events HTTP/1.1\nHost: HOST\nSec-Fetch-Site: same-origin\nOrigin: http://HOST\n",
        "POST /api/plan HTTP/1.1\nHost: HOST\nContent-Type: application/json\nContent-Length: 0\n",
    ] {
        let answer = ask_as_nobody(&web, request);
        assert!(answer.starts_with("HTTP/1.1 401"), "{request}: {answer}");
        assert!(
            !answer.contains("parser") && !answer.contains(&web.token()),
            "{answer}"
        );
    }
}
