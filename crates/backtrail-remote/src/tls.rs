//! TLS, with the certificates that the machine trusts.

use std::sync::Arc;

use backtrail::replica::ReplicaError;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::unfit;

/// Whether the server has to prove who it is. With a file, by its certificates alone.
pub(crate) enum Verification {
    Off,
    IfOffered(Option<String>),
    Always(Option<String>),
}

/// Makes sure that the process has an implementation of cryptography. One that it chose itself stays.
pub(crate) fn choose_cryptography() {
    if CryptoProvider::get_default().is_none() {
        // Another thread may have been faster.
        ring::default_provider().install_default().ok();
    }
}

/// Returns what connects with TLS; `None` without.
pub(crate) fn connector(
    verification: &Verification,
) -> Result<Option<MakeRustlsConnect>, ReplicaError> {
    choose_cryptography();
    match verification {
        Verification::Off => Ok(None),
        Verification::IfOffered(roots) | Verification::Always(roots) => match roots {
            Some(file) => Ok(Some(MakeRustlsConnect::new(trusting(file)?))),
            None => native(),
        },
    }
}

fn native() -> Result<Option<MakeRustlsConnect>, ReplicaError> {
    let (connect, _) = MakeRustlsConnect::with_native_certs().map_err(|_| {
        unfit("this machine has no certificates to trust: install ca-certificates, or name a file with sslrootcert=FILE in the URL of the remote")
    })?;
    Ok(Some(connect))
}

fn trusting(file: &str) -> Result<ClientConfig, ReplicaError> {
    let broken = |cause: &dyn std::fmt::Display| {
        unfit(&format!("cannot use {file} as sslrootcert: {cause}"))
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|cause| broken(&cause))? {
        let certificate = certificate.map_err(|cause| broken(&cause))?;
        roots.add(certificate).map_err(|cause| broken(&cause))?;
    }
    if roots.is_empty() {
        return Err(broken(&"it has no certificate"));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|cause| broken(&cause))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
