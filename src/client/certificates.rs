//! Certificates to trust beside the system's, from a file in PEM form.

use std::fs::File;
use std::path::Path;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::bounded::ReadLimit;
use crate::error::{Failure, Kind};

/// Returns the certificates in a file: at least one.
pub(crate) fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let failure = || {
        Failure::new(
            Kind::Usage,
            format!("cannot read the certificate `{}`", path.display()),
        )
        .hint("it should be a file in PEM form (-----BEGIN CERTIFICATE-----)")
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
