//! TLS: its algorithms, and the certificate authorities to trust. Extra ones are in a file in PEM format, and a system
//! may have none.

use std::error::Error;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::anyhow;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_platform_verifier::Verifier;

use super::bounded::ReadLimit;
use super::causes::{is_ca, tls_error};
use crate::error::Failure;

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

/// Returns the TLS configuration of an HTTP client that trusts the system's authorities and `named` certificates.
pub(crate) fn tls_config(
    named: Vec<CertificateDer<'static>>,
    protocols: &[&str],
) -> Result<ClientConfig, rustls::Error> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(crypto_provider()))
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(NamedCertificates::with_system(named)?))
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| (*name).into()).collect();
    Ok(config)
}

/// Trusts certificates that are signed by an authority, and those that the user named.
#[derive(Debug)]
pub(crate) struct NamedCertificates {
    pub(crate) authorities: Arc<dyn ServerCertVerifier>,
    pub(crate) named: Vec<CertificateDer<'static>>,
}

impl NamedCertificates {
    /// Trusts the system's authorities and `named` certificates.
    pub(crate) fn with_system(named: Vec<CertificateDer<'static>>) -> Result<Self, rustls::Error> {
        let provider = Arc::new(crypto_provider());
        let authorities = Arc::new(Verifier::new_with_extra_roots(named.clone(), provider)?);
        Ok(Self { authorities, named })
    }
}

impl ServerCertVerifier for NamedCertificates {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let roots = &self.authorities;
        match roots.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // A usual self-signed certificate is also that of a CA. Its dates were checked before that, its name is not.
            Err(error) if is_ca(&error) && self.named.contains(end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
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
