//! The proxy between trayscan and the service, from the usual environment variables.
//!
//! The HTTP client would read them too, but it ignores a value that it cannot use and connects directly.
//! Here such a value is an error. Messages name the variable and never quote its value, which may contain a
//! password.

use std::ffi::OsString;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use percent_encoding::percent_decode_str;
use url::Url;

use super::base_url::{BaseUrl, host_and_port};
use crate::error::{Failure, Kind};
use crate::secret::Secret;

/// The route to the service.
#[derive(Clone, Debug)]
pub(crate) enum Route {
    /// Without a proxy.
    Direct,
    /// As configured in the operating system (macOS, Windows); elsewhere without a proxy.
    System,
    Proxy(ProxyServer),
}

/// A proxy that an environment variable names.
#[derive(Clone)]
pub(crate) struct ProxyServer {
    pub(super) url: Url,
    /// The environment variable that names it.
    pub(super) variable: &'static str,
}

impl Route {
    /// Chooses the route to `base_url`.
    pub(crate) fn to(base_url: &BaseUrl) -> Result<Self, Failure> {
        Self::choose(base_url, |name| std::env::var_os(name))
    }

    /// Returns whether the connection to the proxy may use TLS. The operating system may name any proxy.
    pub(crate) fn may_use_tls(&self) -> bool {
        match self {
            Self::Direct => false,
            Self::System => cfg!(any(windows, target_os = "macos")),
            Self::Proxy(proxy) => proxy.url.scheme() == "https",
        }
    }

    fn choose(
        base_url: &BaseUrl,
        environment: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, Failure> {
        if base_url.is_loopback() {
            return Ok(Self::Direct);
        }
        let value = |names: &[&'static str]| {
            names.iter().find_map(|&name| {
                let value = environment(name).filter(|value| !value.is_empty())?;
                Some((name, value))
            })
        };
        let own: &[&str] = if base_url.is_https() {
            &["HTTPS_PROXY", "https_proxy"]
        } else if environment("REQUEST_METHOD").is_some() {
            // In a CGI program, the client of the web server sets HTTP_PROXY with a `Proxy` header.
            &["http_proxy"]
        } else {
            &["HTTP_PROXY", "http_proxy"]
        };
        let Some((variable, proxy)) = value(own).or_else(|| value(&["ALL_PROXY", "all_proxy"]))
        else {
            return Ok(Self::System);
        };
        if let Some((name, exceptions)) = value(&["NO_PROXY", "no_proxy"]) {
            let exceptions = exceptions.to_str().ok_or_else(|| {
                Failure::new(Kind::Usage, format!("{name} is not text in UTF-8"))
                    .hint("write host names separated by commas, such as example.com,10.0.0.0/8")
            })?;
            if !intercepts("http://proxy.invalid", exceptions, base_url) {
                return Ok(Self::Direct);
            }
        }
        ProxyServer::parse(&proxy, variable, base_url)
            .map(Self::Proxy)
            .map_err(|why| {
                Failure::usage(format!("{variable} is not a valid proxy: {why}"), format!(
                    "it must be a URL such as http://proxy.example.com:3128; or unset {variable}"
                ))
            })
    }
}

impl ProxyServer {
    fn parse(
        value: &OsString,
        variable: &'static str,
        base_url: &BaseUrl,
    ) -> Result<Self, &'static str> {
        let text = value.to_str().ok_or("it is not text in UTF-8")?.trim();
        let with_scheme = if text.contains("://") {
            text.to_owned()
        } else {
            format!("http://{text}")
        };
        let url = Url::parse(&with_scheme).map_err(|_| "it is not a URL")?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err("its scheme is not supported, only http and https are");
        }
        if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
            return Err(
                "it has a path, a query or a fragment (write / in a password as %2F, # as %23, ? as %3F)",
            );
        }
        // Values that the HTTP client would ignore are errors too.
        if !intercepts(url.as_str(), "", base_url) {
            return Err("it is not a URL");
        }
        let proxy = Self { url, variable };
        // From here on, the password is concealed in all output.
        drop(proxy.password().map(Secret::new));
        drop(proxy.url.password().map(Secret::new));
        Ok(proxy)
    }

    pub(crate) fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Host and port.
    pub(crate) fn address(&self) -> String {
        host_and_port(&self.url)
    }

    /// Returns the value of the `Proxy-Authorization` header; `None` without credentials.
    pub(crate) fn authorization(&self) -> Option<String> {
        let user = percent_decode_str(self.url.username()).decode_utf8_lossy();
        let password = self.password();
        if user.is_empty() && password.is_none() {
            return None;
        }
        let both = format!("{user}:{}", password.unwrap_or_default());
        Some(format!("Basic {}", BASE64_STANDARD.encode(both)))
    }

    fn password(&self) -> Option<String> {
        let password = percent_decode_str(self.url.password()?);
        Some(password.decode_utf8_lossy().into_owned())
    }
}

impl std::fmt::Debug for ProxyServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ProxyServer({})", self.address())
    }
}

/// Returns whether the HTTP client would send requests for `base_url` to `proxy`.
fn intercepts(proxy: &str, exceptions: &str, base_url: &BaseUrl) -> bool {
    let matcher = Matcher::builder().all(proxy).no(exceptions).build();
    let place: Option<Uri> = base_url.join("").as_str().parse().ok();
    place.is_some_and(|place| matcher.intercept(&place).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVICE: &str = "https://scan.example.com/api";

    fn choose(base_url: &str, variables: &[(&str, &str)]) -> Result<String, String> {
        let base_url = BaseUrl::parse(base_url, true).expect("an address");
        let environment = |name: &str| {
            let found = variables.iter().find(|(other, _)| *other == name);
            found.map(|(_, value)| OsString::from(value))
        };
        match Route::choose(&base_url, environment) {
            Ok(Route::Proxy(proxy)) => Ok(proxy.address()),
            Ok(other) => Ok(format!("{other:?}")),
            Err(failure) => {
                assert_eq!(failure.kind, Kind::Usage);
                Err(format!("{failure:?}"))
            }
        }
    }

    #[test]
    fn the_variable_of_the_scheme_comes_first() {
        let proxies = [
            ("ALL_PROXY", "http://all:1"),
            ("HTTPS_PROXY", "secure:2"),
            ("http_proxy", "http://plain:3/"),
        ];
        assert_eq!(choose(SERVICE, &proxies).as_deref(), Ok("secure:2"));
        assert_eq!(
            choose("http://a.example", &proxies).as_deref(),
            Ok("plain:3")
        );
        assert_eq!(choose(SERVICE, &proxies[..1]).as_deref(), Ok("all:1"));
        assert_eq!(choose(SERVICE, &proxies[2..]).as_deref(), Ok("System"));
        // An empty variable counts as not set, as all others do.
        let empty = [("HTTPS_PROXY", ""), ("https_proxy", "proxy")];
        assert_eq!(choose(SERVICE, &empty).as_deref(), Ok("proxy:80"));
        let cgi = [("REQUEST_METHOD", "GET"), ("HTTP_PROXY", "trap:1")];
        assert_eq!(choose("http://a.example", &cgi).as_deref(), Ok("System"));
    }

    #[test]
    fn a_value_that_cannot_be_used_is_an_error_and_is_not_shown() {
        for value in [
            "ht tp://hunter2",
            "http://",
            "http://me:hunter2@",
            "http://me:hunter2@:80",
            "http://me:hunter2@proxy:99999",
            "http://me:hun/ter2@proxy:80",
            "http//me:hunter2@proxy:80",
            "me:hunter2/x@proxy:80",
            "socks5://me:hunter2@proxy:1080",
            "ftp://proxy",
            "http://proxy/?hunter2",
            "http://[::1",
        ] {
            for variable in ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
                // A valid value in another variable does not help.
                let variables = [(variable, value), ("all_proxy", "http://proxy:1")];
                let failure = choose(SERVICE, &variables).expect_err(value);
                assert!(failure.contains(variable), "{failure}");
                assert!(
                    !failure.contains("hunter2") && !failure.contains("ter2@"),
                    "{failure}"
                );
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_value_that_is_no_text_is_an_error() {
        use std::os::unix::ffi::OsStringExt as _;
        let base_url = BaseUrl::parse(SERVICE, false).expect("an address");
        for bad in ["HTTPS_PROXY", "NO_PROXY"] {
            let environment = |name: &str| match name {
                name if name == bad => Some(OsString::from_vec(b"http://a\xff".to_vec())),
                "HTTPS_PROXY" => Some("http://proxy".into()),
                _ => None,
            };
            let failure = Route::choose(&base_url, environment).expect_err("no text");
            assert!(failure.to_string().contains(bad), "{failure}");
        }
    }

    #[test]
    fn no_proxy_and_this_machine_need_no_proxy() {
        for hosts in [
            "scan.example.com",
            "example.com",
            "a, .example.com",
            "*",
            "SCAN.example.com",
        ] {
            let variables = [("HTTPS_PROXY", "ftp://unusable"), ("NO_PROXY", hosts)];
            assert_eq!(
                choose(SERVICE, &variables).as_deref(),
                Ok("Direct"),
                "{hosts}"
            );
        }
        let others = [
            ("HTTPS_PROXY", "proxy:1"),
            ("NO_PROXY", "ample.com,10.0.0.0/8"),
        ];
        assert_eq!(choose(SERVICE, &others).as_deref(), Ok("proxy:1"));
        assert_eq!(choose("https://10.1.2.3", &others).as_deref(), Ok("Direct"));
        let bad = [("HTTPS_PROXY", "ftp://x"), ("ALL_PROXY", "ftp://x")];
        assert_eq!(choose("https://localhost", &bad).as_deref(), Ok("Direct"));
    }

    #[test]
    fn credentials_are_decoded_for_the_header_and_hidden_elsewhere() {
        let base_url = BaseUrl::parse(SERVICE, false).expect("an address");
        let value = OsString::from("http://me:p%40ss:word@proxy:3128");
        let proxy = ProxyServer::parse(&value, "HTTPS_PROXY", &base_url).expect("a proxy");
        let encoded = BASE64_STANDARD.encode("me:p@ss:word");
        assert_eq!(proxy.authorization(), Some(format!("Basic {encoded}")));
        assert_eq!(format!("{proxy:?}"), "ProxyServer(proxy:3128)");
        assert_eq!(crate::secret::conceal("<p@ss:word>"), "<…>");
    }
}
