//! Extra certificates to trust, from a file in PEM format.

use std::fs::File;
use std::path::Path;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::bounded::ReadLimit;
use crate::error::{Failure, Kind};

/// Reads a file with at least one certificate.
pub(crate) fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let failure = || {
        Failure::new(
            Kind::Usage,
            format!("cannot read the certificate `{}`", path.display()),
        )
        .hint("it must be a file in PEM format (-----BEGIN CERTIFICATE-----)")
    };
    let opened = path.to_owned();
    let read = ReadLimit::certificates().read(move || File::open(opened));
    let pem = read.map_err(|error| failure().caused_by(error))?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(failure()),
        Err(error) => Err(failure().caused_by(error)),
    }
}
