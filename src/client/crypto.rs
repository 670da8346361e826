//! The cryptography of all TLS connections.

use rustls::crypto::{CryptoProvider, ring};

/// Returns the algorithms.
pub(crate) fn provider() -> CryptoProvider {
    ring::default_provider()
}

/// Makes HTTP clients use them. Must be called before a client is built; later calls change nothing.
pub(crate) fn install() {
    let _ = provider().install_default();
}
