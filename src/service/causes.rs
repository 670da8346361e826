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

/// Says what to do about a certificate that is not trusted.
pub(crate) fn trust_hint(error: &(dyn Error + 'static)) -> &'static str {
    let cause = root(error);
    let says = |words: &str| cause.contains(words);
    if says("not valid for") || says("NotValidForName") {
        "it is for another name: look at the host in the address"
    } else if says("CaUsedAsEndEntity") {
        "it is an authority's own: give the service one that the authority signed, or one made with basicConstraints=CA:FALSE"
    } else if says("expired") || says("Expired") || says("not valid yet") || says("NotValidYet") {
        "it has expired, or is not valid yet: it must be renewed, or a clock is wrong"
    } else {
        "where it is your own authority's, name its certificate with `--ca-cert`"
    }
}

/// Returns the innermost cause in words: what stands above it only says that it happened.
pub(crate) fn root(error: &(dyn Error + 'static)) -> String {
    anyhow::Chain::new(error)
        .last()
        .map_or_else(String::new, ToString::to_string)
}
