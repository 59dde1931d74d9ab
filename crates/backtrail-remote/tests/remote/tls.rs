//! TLS: a server that cannot prove who it is gets nothing.

use std::process::Command;

use backtrail::replica::ReplicaErrorKind;
use backtrail_remote::{Remote, RemoteOptions};

use crate::servers::{self, Postgres};

/// Makes a certificate for this machine that signs itself.
fn certificate(directory: &std::path::Path) {
    servers::run(
        Command::new("openssl")
            .args([
                "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
            ])
            .args([
                "-subj",
                "/CN=localhost",
                "-addext",
                "subjectAltName=DNS:localhost",
            ])
            .args([
                "-addext",
                "basicConstraints=critical,CA:FALSE",
                "-keyout",
                "key.pem",
                "-out",
                "certificate.pem",
            ])
            .current_dir(directory),
    );
    if servers::is_root() {
        let files = ["key.pem", "certificate.pem"].map(|file| directory.join(file));
        servers::run(Command::new("chown").arg("65534:65534").args(files));
    }
}

#[test]
fn only_a_server_that_proves_who_it_is_gets_anything() {
    if servers::find("openssl").is_none() {
        servers::skip("openssl");
        return;
    }
    let directory = servers::directory("tls");
    certificate(&directory);
    let at = directory.display();
    let settings =
        format!("-c ssl=on -c ssl_cert_file={at}/certificate.pem -c ssl_key_file={at}/key.pem");
    let Some(cluster) = Postgres::own(&settings) else {
        return;
    };
    let connect = |host: &str, query: &str| {
        let url = format!(
            "postgresql://agent@{host}:{}/template_remote?{query}",
            cluster.port
        );
        Remote::connect(&RemoteOptions::new(url)).map(drop)
    };
    let root = format!("sslrootcert={at}/certificate.pem");
    assert_eq!(connect("localhost", &root), Ok(()));
    assert_eq!(
        connect("localhost", &format!("sslmode=require&{root}")),
        Ok(())
    );
    for (host, query) in [
        ("localhost", "sslmode=verify-full".to_owned()),
        ("localhost", "sslmode=require".to_owned()),
        ("localhost", "sslmode=prefer".to_owned()),
        ("127.0.0.1", root.clone()),
    ] {
        let error = connect(host, &query).unwrap_err();
        assert_eq!(
            error.kind,
            ReplicaErrorKind::Unfit,
            "{host} {query}: {error}"
        );
        assert!(error.message.contains("sslrootcert"), "{error}");
    }
    assert_eq!(connect("127.0.0.1", "sslmode=disable"), Ok(()));
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_server_without_tls_is_refused_where_tls_is_asked_for() {
    let Some(cluster) = Postgres::shared() else {
        return;
    };
    let mut options = cluster.options(&cluster.database(), "agent");
    options.url += "?sslmode=require";
    let error = Remote::connect(&options).unwrap_err();
    assert_eq!(error.kind, ReplicaErrorKind::Unfit, "{error}");
    options.url = options.url.replace("require", "prefer");
    Remote::connect(&options).unwrap();
}
