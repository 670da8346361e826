//! Where a server is, and how the way there is protected.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use super::url::malformed;
use crate::error::Failure;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Host {
    Name(String),
    /// The folder of a socket on this machine.
    Socket(PathBuf),
}

impl Host {
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        if text.contains(',') {
            return Err(
                malformed("it names several hosts").hint("name one: the server that is written to")
            );
        }
        if text.starts_with('/') {
            return Ok(Self::Socket(text.into()));
        }
        Ok(Self::Name(text.to_owned()))
    }

    /// Where a server on this machine usually is.
    pub(super) fn usual(port: u16) -> Self {
        let has_socket =
            |folder: &&str| Path::new(folder).join(format!(".s.PGSQL.{port}")).exists();
        let folders = ["/var/run/postgresql", "/tmp"];
        match folders
            .iter()
            .find(|folder| cfg!(unix) && has_socket(folder))
        {
            Some(folder) => Self::Socket((*folder).into()),
            None => Self::Name("localhost".to_owned()),
        }
    }

    pub(super) fn is_local(&self) -> bool {
        match self {
            Self::Socket(_) => true,
            Self::Name(name) => {
                let address: Option<IpAddr> = name.parse().ok();
                name.eq_ignore_ascii_case("localhost")
                    || address.is_some_and(|address| address.is_loopback())
            }
        }
    }

    /// What a line of the password file calls it.
    pub(super) fn for_passfile(&self) -> String {
        match self {
            Self::Name(name) => name.clone(),
            Self::Socket(folder) => match folder.to_str() {
                Some("/var/run/postgresql" | "/tmp") | None => "localhost".to_owned(),
                Some(folder) => folder.to_owned(),
            },
        }
    }
}

/// How a connection is protected; the words are those of `sslmode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Security {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl Security {
    pub(super) fn parse(word: &str) -> Result<Self, Failure> {
        Ok(match word {
            "disable" => Self::Disable,
            // Without TLS first would be the less safe of two ways.
            "allow" | "prefer" => Self::Prefer,
            "require" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" => Self::VerifyFull,
            _ => {
                return Err(malformed("its `sslmode` is not known")
                    .hint("write disable, prefer, require, verify-ca or verify-full"));
            }
        })
    }
}
