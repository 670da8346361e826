//! TLS to the server: trusts the system's certificates, those of `--ca-cert`, or only those in the address.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::{Security, TableAddress};
use crate::client::certificates::{
    CertificateFile, NamedCertificates, crypto_provider, lacks_authorities, no_authorities,
    read_certificates,
};
use crate::error::{Failure, Kind};

/// Prepares the security that `address` requires; `also` is an additional authority to trust.
pub(super) fn connector(
    address: &TableAddress,
    also: Option<&CertificateFile>,
) -> Result<MakeRustlsConnect, Failure> {
    let provider = Arc::new(crypto_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(unprepared)?;
    let roots = match (address.security, &address.roots) {
        (Security::VerifyFull | Security::VerifyCa, None) => {
            let also = also.map_or_else(|| Ok(Vec::new()), read_certificates)?;
            let system = NamedCertificates::with_system(also).map_err(|error| {
                if lacks_authorities(&error) {
                    let (message, hint) = no_authorities();
                    return Failure::new(Kind::Usage, message).hint(hint);
                }
                unprepared(error)
            })?;
            Some(Arc::new(system) as Arc<dyn ServerCertVerifier>)
        }
        // Like libpq: a named authority is always checked, even with `require`.
        (Security::VerifyFull | Security::VerifyCa | Security::Require, Some(path)) => {
            Some(only(path, &provider)?)
        }
        _ => None,
    };
    let check = CertificateCheck {
        roots,
        is_full: address.security == Security::VerifyFull,
        provider,
    };
    let config = config
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(check))
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// Trusts only the authorities in a file.
fn only(
    path: &Path,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, Failure> {
    let mut roots = RootCertStore::empty();
    let file = CertificateFile {
        path: path.to_owned(),
        place: "sslrootcert in the address, or PGSSLROOTCERT".to_owned(),
    };
    let named = read_certificates(&file)?;
    for certificate in &named {
        roots.add(certificate.clone()).map_err(unprepared)?;
    }
    let built = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    let authorities = built.build().map_err(unprepared)?;
    Ok(Arc::new(NamedCertificates { authorities, named }))
}

fn unprepared(error: impl Error + Send + Sync + 'static) -> Failure {
    Failure::new(Kind::Internal, "cannot prepare the connection").caused_by(error)
}

/// Checks a certificate as strictly as the address requires.
#[derive(Debug)]
struct CertificateCheck {
    /// `None` to trust every certificate.
    roots: Option<Arc<dyn ServerCertVerifier>>,
    /// Whether the host name is checked.
    is_full: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for CertificateCheck {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(roots) = &self.roots else {
            return Ok(ServerCertVerified::assertion());
        };
        let checked =
            roots.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match checked {
            // The name is checked last: with this error, the authority is trusted.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.is_full => Ok(ServerCertVerified::assertion()),
            checked => checked,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
