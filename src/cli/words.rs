//! Single words, judged alone: numbers and addresses.

use std::net::SocketAddr;

/// Accepts a whole number within bounds.
pub(super) fn number(word: &str, least: u32, most: u32) -> Result<u32, String> {
    let valid = word
        .parse()
        .ok()
        .filter(|number| (least..=most).contains(number));
    valid.ok_or_else(|| format!("write a whole number from {least} to {most}, such as 1000"))
}

/// Accepts `IP:PORT`, and `localhost:PORT`, `:PORT` or `PORT` because people type them.
pub(super) fn listen_address(word: &str) -> Result<SocketAddr, String> {
    let port = ["localhost:", ":"]
        .iter()
        .find_map(|prefix| word.strip_prefix(prefix))
        .unwrap_or(word);
    let numeric = port
        .parse::<u16>()
        .ok()
        .map(|port| format!("127.0.0.1:{port}"));
    numeric
        .as_deref()
        .unwrap_or(word)
        .parse()
        .map_err(|_| "write an IP address and a port, such as 127.0.0.1:8080 or [::1]:0".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_may_name_localhost_but_no_other_host() {
        assert_eq!(
            listen_address("localhost:80"),
            Ok(([127, 0, 0, 1], 80).into())
        );
        assert!(listen_address("[::1]:0").is_ok());
        assert!(listen_address("example.com:80").is_err());
        assert!(listen_address("127.0.0.1").is_err());
        assert_eq!(listen_address("8080"), Ok(([127, 0, 0, 1], 8080).into()));
        assert_eq!(listen_address(":0"), Ok(([127, 0, 0, 1], 0).into()));
        assert!(listen_address("99999").is_err());
    }
}
