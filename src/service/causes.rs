//! What lies at the bottom of an error of the network.

use std::error::Error;
use std::io;

/// Tells whether TLS failed because the other side could not prove who it is.
pub(crate) fn is_untrusted(error: &(dyn Error + 'static)) -> bool {
    anyhow::Chain::new(error).any(|cause| {
        let mut cause = cause;
        // An I/O error hides what it wraps from the chain, and may wrap another one.
        while let Some(inner) = cause
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref)
        {
            cause = inner;
        }
        matches!(
            cause.downcast_ref(),
            Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented)
        )
    })
}

/// Returns the innermost cause in words: what stands above it only says that it happened.
pub(crate) fn root(error: &(dyn Error + 'static)) -> String {
    anyhow::Chain::new(error)
        .last()
        .map_or_else(String::new, ToString::to_string)
}
