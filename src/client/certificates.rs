//! TLS: its algorithms, and the certificate authorities to trust. Extra ones are in a file in PEM format, and a system
//! may have none.

use std::error::Error;
use std::fs::File;
use std::path::PathBuf;

use anyhow::anyhow;
use rustls::RootCertStore;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::bounded::ReadLimit;
use super::causes::tls_error;
use crate::error::{Failure, Kind};

/// Returns the algorithms of all TLS connections.
pub(crate) fn crypto_provider() -> CryptoProvider {
    ring::default_provider()
}

/// Makes HTTP clients use them. Must be called before a client is built; later calls change nothing.
pub(crate) fn install_crypto() {
    let _ = crypto_provider().install_default();
}

/// A file with certificates.
#[derive(Clone, Debug)]
pub(crate) struct CertificateFile {
    pub(crate) path: PathBuf,
    /// Where the path is from: a flag, a variable, or the config file.
    pub(crate) place: String,
}

/// Reads a file with at least one certificate.
pub(crate) fn read_certificates(
    file: &CertificateFile,
) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let CertificateFile { path, place } = file;
    let failure = || {
        Failure::usage(
            format!("cannot read the certificate `{}` ({place})", path.display()),
            "it must be a file in PEM format (-----BEGIN CERTIFICATE-----)",
        )
    };
    let opened = path.clone();
    let read = ReadLimit::certificates().read(move || File::open(opened));
    let pem = read.map_err(|error| failure().caused_by(error))?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let certificates = certificates.map_err(|error| failure().caused_by(error))?;
    if certificates.is_empty() {
        return Err(failure());
    }
    let mut roots = RootCertStore::empty();
    let mut certificate = certificates.iter();
    if let Some(place) = certificate.position(|der| roots.add(der.clone()).is_err()) {
        let number = place + 1;
        return Err(failure().caused_by(anyhow!("certificate {number} in it is not valid")));
    }
    Ok(certificates)
}

/// The same for an HTTP client.
pub(crate) fn extra_roots(
    file: Option<&CertificateFile>,
) -> Result<Vec<reqwest::Certificate>, Failure> {
    let certificates = file.map_or_else(|| Ok(Vec::new()), read_certificates)?;
    let certificates = certificates
        .iter()
        .map(|der| reqwest::Certificate::from_der(der));
    certificates.collect::<Result<_, _>>().map_err(|error| {
        Failure::new(Kind::Internal, "cannot prepare the connection").caused_by(error)
    })
}

/// Returns whether TLS could not be prepared because the system has no certificate authorities, as in some containers.
pub(crate) fn lacks_authorities(error: &(dyn Error + 'static)) -> bool {
    // The verifier of the system has no other error of this kind; a test pins it.
    let mut causes = anyhow::Chain::new(error).filter_map(tls_error);
    causes.any(|error| matches!(error, rustls::Error::General(_)))
}

/// What to say about that, and a hint.
pub(crate) fn no_authorities() -> (&'static str, &'static str) {
    let is_set = |name| std::env::var_os(name).is_some();
    let hint = if is_set("SSL_CERT_FILE") || is_set("SSL_CERT_DIR") {
        "check SSL_CERT_FILE and SSL_CERT_DIR; or unset them and install the package ca-certificates, or name a CA certificate with `--ca-cert`"
    } else {
        "install the package ca-certificates, or name a CA certificate with `--ca-cert`"
    };
    let message = "no certificate authorities were found on this system, and TLS needs them";
    (message, hint)
}
