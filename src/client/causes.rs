//! Root causes of network errors.

use std::error::Error;
use std::io;

use rustls::{AlertDescription, CertificateError};

/// Why there is no TLS connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsProblem {
    /// The certificate is not trusted; with a hint.
    Untrusted(&'static str),
    /// The response is not TLS.
    NotTls,
    /// The service speaks plain http.
    PlainHttp,
    /// The request was plain http, and the service speaks TLS.
    ExpectsTls,
    /// There is no TLS version, cipher, key exchange or signature algorithm in common.
    Incompatible,
}

impl TlsProblem {
    /// Returns why TLS failed; `None` if it did not, or if a retry may help.
    pub(crate) fn of(error: &(dyn Error + 'static)) -> Option<Self> {
        match anyhow::Chain::new(error).find_map(tls_error)? {
            rustls::Error::InvalidCertificate(error) => Some(Self::Untrusted(trust_hint(error))),
            rustls::Error::NoCertificatesPresented => Some(Self::Untrusted(OWN_CA)),
            rustls::Error::InvalidMessage(_) => Some(Self::NotTls),
            rustls::Error::PeerIncompatible(_)
            | rustls::Error::AlertReceived(
                AlertDescription::ProtocolVersion
                | AlertDescription::HandshakeFailure
                | AlertDescription::InsufficientSecurity,
            ) => Some(Self::Incompatible),
            _ => None,
        }
    }
}

/// Returns the TLS error in one link of an error chain.
pub(super) fn tls_error<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
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

/// Returns whether the response was not HTTP.
pub(super) fn is_not_http(error: &(dyn Error + 'static)) -> bool {
    let mut causes =
        anyhow::Chain::new(error).filter_map(|cause| cause.downcast_ref::<hyper::Error>());
    causes.any(hyper::Error::is_parse)
}

/// Returns whether the other side closed or reset the connection instead of an answer.
pub(super) fn is_closed(error: &(dyn Error + 'static)) -> bool {
    anyhow::Chain::new(error).any(|cause| {
        let hyper = cause.downcast_ref::<hyper::Error>();
        let mut io = cause.downcast_ref::<io::Error>();
        // One may wrap another, which is not in the chain.
        while let Some(error) = io {
            if matches!(
                error.kind(),
                io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset
            ) {
                return true;
            }
            io = error.get_ref().and_then(|inner| inner.downcast_ref());
        }
        hyper.is_some_and(hyper::Error::is_incomplete_message)
    })
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

const OWN_CA: &str = "if it was issued by your own CA, name the CA certificate with `--ca-cert`";

/// Returns a hint about a certificate that is not trusted.
fn trust_hint(error: &CertificateError) -> &'static str {
    match error {
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the certificate is for another name; check the host name in the address"
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => {
            "the certificate has expired or is not valid yet; renew it, or check the clocks"
        }
        _ if is_of_ca(error) => {
            "it is a CA certificate; name this certificate itself with `--ca-cert`, or give the service one that is signed by a CA"
        }
        _ => OWN_CA,
    }
}

/// Returns whether a certificate is refused only because it is that of a CA.
pub(super) fn is_ca(error: &rustls::Error) -> bool {
    matches!(error, rustls::Error::InvalidCertificate(error) if is_of_ca(error))
}

fn is_of_ca(error: &CertificateError) -> bool {
    // rustls does not export the type of this error.
    matches!(error, CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity"))
}

/// Returns the message of the innermost cause. The outer ones only repeat that something failed.
pub(crate) fn root(error: &(dyn Error + 'static)) -> String {
    let Some(cause) = anyhow::Chain::new(error).last() else {
        return String::new();
    };
    match tls_error(cause) {
        // Its text is meant for developers.
        Some(rustls::Error::InvalidCertificate(CertificateError::Other(_))) => {
            "the certificate is not valid for a service".to_owned()
        }
        _ => cause.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier as _;
    use rustls::pki_types::UnixTime;
    use rustls::{InvalidMessage, PeerIncompatible};

    use super::*;
    use crate::client::certificates::NamedCertificates;

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
                Some(TlsProblem::Incompatible),
            ),
            (
                PeerIncompatible::ServerDoesNotSupportTls12Or13.into(),
                Some(TlsProblem::Incompatible),
            ),
            (
                rustls::Error::AlertReceived(AlertDescription::HandshakeFailure),
                Some(TlsProblem::Incompatible),
            ),
            (
                rustls::Error::NoCertificatesPresented,
                Some(TlsProblem::Untrusted(OWN_CA)),
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

    /// Verifies a certificate for `localhost`, as a TLS client does, and returns why it is not trusted, and the text of that.
    fn untrusted(
        change: impl Fn(&mut CertificateParams),
        name: &'static str,
        is_named: bool,
    ) -> Option<(TlsProblem, String)> {
        let mut params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate.der().clone()).expect("a root");
        let provider = Arc::new(crate::client::certificates::crypto_provider());
        let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let authorities = authorities.build().expect("a verifier");
        let named = Vec::from_iter(is_named.then(|| certificate.der().clone()));
        let verifier = NamedCertificates { authorities, named };
        let name = name.try_into().expect("a name");
        let now = UnixTime::since_unix_epoch(Duration::from_secs(1_767_225_600));
        let verified = verifier.verify_server_cert(certificate.der(), &[], &name, &[], now);
        let error = verified.err()?;
        let error = io::Error::other(error);
        Some((TlsProblem::of(&error)?, root(&error)))
    }

    #[test]
    fn an_untrusted_certificate_has_a_hint() {
        let hint = |change: fn(&mut CertificateParams), name| match untrusted(change, name, false) {
            Some((TlsProblem::Untrusted(hint), text)) => {
                // No words of a programming language.
                assert!(!text.contains("Other"), "{text}");
                hint
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(untrusted(|_| (), "localhost", false), None);
        assert!(hint(|_| (), "example.org").contains("for another name"));
        let expired: fn(&mut CertificateParams) =
            |params| params.not_after = rcgen::date_time_ymd(2025, 1, 1);
        assert!(hint(expired, "localhost").contains("has expired"));
        let early: fn(&mut CertificateParams) =
            |params| params.not_before = rcgen::date_time_ymd(2030, 1, 1);
        assert!(hint(early, "localhost").contains("not valid yet"));
        // This pins the name of the error in rustls.
        let ca: fn(&mut CertificateParams) =
            |params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        assert!(hint(ca, "localhost").contains("it is a CA certificate"));
    }

    #[test]
    fn a_certificate_that_is_named_itself_may_be_that_of_a_ca() {
        let ca = |params: &mut CertificateParams| {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        };
        assert_eq!(untrusted(ca, "localhost", true), None);
        let says = |change: &dyn Fn(&mut CertificateParams), name| match untrusted(
            |params| {
                ca(params);
                change(params);
            },
            name,
            true,
        ) {
            Some((TlsProblem::Untrusted(hint), _)) => hint,
            other => panic!("{other:?}"),
        };
        assert!(says(&|_| (), "example.org").contains("for another name"));
        let expired =
            |params: &mut CertificateParams| params.not_after = rcgen::date_time_ymd(2025, 1, 1);
        assert!(says(&expired, "localhost").contains("has expired"));
    }
}
