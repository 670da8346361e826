//! The URL of the service.

use std::fmt;

use url::{Host, Url};

use crate::error::{Failure, Kind};

/// The URL of the service: checked, and safe to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BaseUrl(Url);

impl BaseUrl {
    pub(crate) fn parse(text: &str, allow_http: bool) -> Result<Self, Failure> {
        Self::parse_named("the base URL", text, allow_http)
    }

    /// Parses `text`; messages call it `name`.
    pub(crate) fn parse_named(name: &str, text: &str, allow_http: bool) -> Result<Self, Failure> {
        let refuse = |why: &str| {
            Failure::new(Kind::Usage, format!("{name} {why}"))
                .hint("it must be a URL such as https://scan.example.com/api")
        };
        // The text may contain a password, so it is not shown before that is ruled out.
        if !text.contains("://") {
            let failure = refuse("does not start with https://");
            return Err(if text.is_empty() || text.contains(['@', '?', '#']) {
                failure
            } else {
                let with_scheme = ["http", "https"].into_iter().find_map(|scheme| {
                    let rest = text.strip_prefix(scheme)?;
                    let host = rest.trim_start_matches([':', '/']);
                    (rest != host && !host.is_empty()).then_some((scheme, host))
                });
                let (scheme, rest) = with_scheme.unwrap_or_else(|| {
                    let http = Url::parse(&format!("http://{text}"));
                    let is_local = http.is_ok_and(|url| is_loopback(&url));
                    (if is_local { "http" } else { "https" }, text)
                });
                failure.hint(format!(
                    "did you mean {scheme}://{rest}? it must be a URL such as https://scan.example.com/api"
                ))
            });
        }
        let url = Url::parse(text).map_err(|_| refuse("is not a URL"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refuse("contains a user name or a password"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(refuse("contains a query or a fragment"));
        }
        match url.scheme() {
            "https" => {}
            "http" if allow_http || is_loopback(&url) => {}
            "http" => {
                return Err(Failure::new(
                    Kind::Unsafe,
                    format!("{name} is plain http to another machine ({url}); anyone on the network could read the secret"),
                )
                .hint("use https, or allow plain http with `--allow-http`"));
            }
            _ => return Err(refuse("is neither https nor http")),
        }
        if url.host().is_none() {
            return Err(refuse("has no host"));
        }
        Ok(Self(url))
    }

    /// Returns the address of `path` (such as `/v2/auth`) below this one.
    pub(crate) fn join(&self, path: &str) -> Url {
        let mut url = self.0.clone();
        let whole = format!("{}{path}", url.path().trim_end_matches('/'));
        url.set_path(&whole);
        url
    }

    /// Returns the URL without the API version at its end; `None` if there is none.
    pub(crate) fn without_version(&self) -> Option<Self> {
        let path = self.0.path().trim_end_matches('/');
        let path = ["/auth", "/batches"]
            .iter()
            .find_map(|endpoint| path.strip_suffix(endpoint))
            .unwrap_or(path);
        let shorter = ["/v1", "/v2"]
            .iter()
            .find_map(|version| path.strip_suffix(version))?;
        let mut url = self.0.clone();
        url.set_path(shorter);
        Some(Self(url))
    }

    /// Refuses a URL that ends with the API version, which is added to it. The message calls the URL `name`.
    pub(crate) fn refuse_version(&self, name: &str) -> Result<(), Failure> {
        match self.without_version() {
            None => Ok(()),
            Some(shorter) => {
                let message = format!("{name} `{self}` contains the API version");
                Err(Failure::new(Kind::Usage, message).hint(format!("use {shorter}")))
            }
        }
    }

    pub(crate) fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }

    pub(crate) fn is_loopback(&self) -> bool {
        is_loopback(&self.0)
    }

    /// Returns whether `other` is a URL with the same scheme, host and port.
    pub(crate) fn has_origin_of(&self, other: &str) -> bool {
        Url::parse(other).is_ok_and(|other| other.origin() == self.0.origin())
    }

    /// Host and port.
    pub(crate) fn address(&self) -> String {
        host_and_port(&self.0)
    }

    pub(crate) fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Returns host and port of `url`.
pub(super) fn host_and_port(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or_default();
    format!("{host}:{port}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> Option<Kind> {
        BaseUrl::parse(text, false)
            .err()
            .map(|failure| failure.kind)
    }

    #[test]
    fn addresses_are_checked_before_anything_is_sent() {
        for fine in [
            "https://a.example",
            "https://a.example:8443/api/",
            "http://localhost:1",
            "http://127.9.9.9",
            "http://[::1]:8080/x",
        ] {
            assert_eq!(kind(fine), None, "{fine}");
        }
        for unsafe_ in [
            "http://a.example",
            "http://10.0.0.1",
            "http://localhost.example",
            "http://[::2]",
        ] {
            assert_eq!(kind(unsafe_), Some(Kind::Unsafe), "{unsafe_}");
            assert!(BaseUrl::parse(unsafe_, true).is_ok());
        }
        for wrong in [
            "",
            "a.example",
            "ftp://a.example",
            "https://u:p@a.example",
            "https://u@a.example",
            "https://a.example?x",
            "https://a.example#x",
        ] {
            assert_eq!(kind(wrong), Some(Kind::Usage), "{wrong}");
        }
        let failure = BaseUrl::parse("https://u:hunter2@a.example", false).expect_err("a password");
        assert!(!format!("{failure:?}").contains("hunter2"));
    }

    #[test]
    fn a_missing_scheme_is_named() {
        for (text, hint) in [
            ("a.example/api", "did you mean https://a.example/api?"),
            ("localhost:8080", "did you mean http://localhost:8080? "),
            ("u:hunter2@a.example", "it must be a URL such as"),
        ] {
            let failure = BaseUrl::parse(text, false).expect_err(text);
            let (message, found) = failure.into_texts();
            assert_eq!(message, "the base URL does not start with https://");
            assert!(found.starts_with(hint), "{found}");
        }
    }

    #[test]
    fn the_version_can_be_removed() {
        let shorter = |text: &str| {
            let url = BaseUrl::parse(text, false).expect("a URL");
            url.without_version().map(|url| url.to_string())
        };
        for text in ["https://a.example/v2", "https://a.example/v1/auth/"] {
            assert_eq!(shorter(text).as_deref(), Some("https://a.example"));
        }
        let api = shorter("https://a.example/api/v2/batches");
        assert_eq!(api.as_deref(), Some("https://a.example/api"));
        for text in [
            "https://a.example",
            "https://a.example/v3",
            "https://v2/api",
        ] {
            assert_eq!(shorter(text), None);
        }
    }

    #[test]
    fn the_origin_is_scheme_host_and_port() {
        let url = BaseUrl::parse("https://a.example/api", false).expect("a URL");
        for same in ["https://A.example:443/other", "https://a.example"] {
            assert!(url.has_origin_of(same), "{same}");
        }
        for other in [
            "http://a.example/api",
            "https://b.example/api",
            "https://a.example:8443/api",
            "a.example/api",
            "",
        ] {
            assert!(!url.has_origin_of(other), "{other}");
        }
    }

    #[test]
    fn paths_are_joined_with_one_slash() {
        let join = |text: &str| {
            BaseUrl::parse(text, false)
                .expect("fine")
                .join("/v2/auth")
                .to_string()
        };
        assert_eq!(join("https://a.example"), "https://a.example/v2/auth");
        assert_eq!(
            join("https://a.example/api/"),
            "https://a.example/api/v2/auth"
        );
    }
}
