//! Root causes of network errors.

use std::error::Error;
use std::io;

use rustls::AlertDescription;

/// Why there is no TLS connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsProblem {
    /// The certificate is not trusted.
    Untrusted,
    /// The response is not TLS.
    NotTls,
    /// There is no TLS version in common.
    Version,
    /// There is no cipher, key exchange or signature algorithm in common.
    Handshake,
}

impl TlsProblem {
    /// Returns why TLS failed; `None` if it did not, or if a retry may help.
    pub(crate) fn of(error: &(dyn Error + 'static)) -> Option<Self> {
        match anyhow::Chain::new(error).find_map(tls_error)? {
            rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented => {
                Some(Self::Untrusted)
            }
            rustls::Error::InvalidMessage(_) => Some(Self::NotTls),
            rustls::Error::AlertReceived(AlertDescription::ProtocolVersion)
            | rustls::Error::PeerIncompatible(
                rustls::PeerIncompatible::ServerDoesNotSupportTls12Or13
                | rustls::PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
            ) => Some(Self::Version),
            rustls::Error::PeerIncompatible(_)
            | rustls::Error::AlertReceived(
                AlertDescription::HandshakeFailure | AlertDescription::InsufficientSecurity,
            ) => Some(Self::Handshake),
            _ => None,
        }
    }
}

/// Returns the TLS error in one link of an error chain.
fn tls_error<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut cause = cause;
    // An I/O error hides its inner error from the chain, and may wrap another I/O error.
    while let Some(inner) = cause
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref)
    {
        cause = inner;
    }
    cause.downcast_ref()
}

/// Returns whether the service certainly did not process a request over HTTP/2 (RFC 9113, section 8.7): it
/// closed the connection without an error, or refused the stream.
pub(super) fn is_unprocessed(error: &(dyn Error + 'static)) -> bool {
    let mut causes =
        anyhow::Chain::new(error).filter_map(|cause| cause.downcast_ref::<h2::Error>());
    causes.any(|error| {
        let closed = error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR);
        let refused = error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
        error.is_remote() && (closed || refused)
    })
}

/// Returns a hint about a certificate that is not trusted.
pub(crate) fn trust_hint(error: &(dyn Error + 'static)) -> &'static str {
    let cause = root(error);
    let says = |words: &str| cause.contains(words);
    if says("not valid for") || says("NotValidForName") {
        "the certificate is for another name; check the host name in the address"
    } else if says("CaUsedAsEndEntity") {
        "it is a CA certificate; give the service a certificate signed by the CA, or one made with basicConstraints=CA:FALSE"
    } else if says("expired") || says("Expired") || says("not valid yet") || says("NotValidYet") {
        "the certificate has expired or is not valid yet; renew it, or check the clocks"
    } else {
        "if it was issued by your own CA, name the CA certificate with `--ca-cert`"
    }
}

/// Returns the message of the innermost cause. The outer ones only repeat that something failed.
pub(crate) fn root(error: &(dyn Error + 'static)) -> String {
    anyhow::Chain::new(error)
        .last()
        .map_or_else(String::new, ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::{InvalidMessage, PeerIncompatible};

    #[test]
    fn tls_problems_are_told_apart_by_their_types() {
        let of = |error: rustls::Error| TlsProblem::of(&io::Error::other(io::Error::other(error)));
        for (error, problem) in [
            (
                rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType),
                Some(TlsProblem::NotTls),
            ),
            (
                rustls::Error::AlertReceived(AlertDescription::ProtocolVersion),
                Some(TlsProblem::Version),
            ),
            (
                PeerIncompatible::ServerDoesNotSupportTls12Or13.into(),
                Some(TlsProblem::Version),
            ),
            (
                rustls::Error::AlertReceived(AlertDescription::HandshakeFailure),
                Some(TlsProblem::Handshake),
            ),
            (
                rustls::Error::NoCertificatesPresented,
                Some(TlsProblem::Untrusted),
            ),
            // An overloaded server may recover.
            (
                rustls::Error::AlertReceived(AlertDescription::InternalError),
                None,
            ),
        ] {
            assert_eq!(of(error.clone()), problem, "{error}");
        }
        assert_eq!(TlsProblem::of(&io::Error::other("reset")), None);
    }
}
