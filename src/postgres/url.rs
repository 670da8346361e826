//! What stands in an address, word by word.

use percent_encoding::percent_decode_str;

use crate::error::{Failure, Kind};

/// What stands in an address, before anything else is asked.
#[derive(Default)]
pub(super) struct UrlParts {
    pub(super) host: Option<String>,
    pub(super) port: Option<String>,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) database: Option<String>,
    pub(super) table: Option<String>,
    pub(super) sslmode: Option<String>,
    pub(super) sslrootcert: Option<String>,
    pub(super) connect_timeout: Option<String>,
    pub(super) application_name: Option<String>,
    pub(super) options: Option<String>,
}

const PARAMETERS: &str = "table, host, port, user, password, dbname, sslmode, sslrootcert, connect_timeout, application_name and options";

impl UrlParts {
    pub(super) fn read(text: &str) -> Result<Self, Failure> {
        let (_, rest) = text.split_once("://").unwrap_or_default();
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = place.split_once('/').unwrap_or((place, ""));
        // Such a one is likely the rest of a password, and must not be shown as a name.
        if database.contains(['/', '@']) {
            return Err(malformed("its database has a `/` or an `@` in it")
                .hint("in a user, a password or a name, write %2F for `/` and %40 for `@`; better, leave the password to PGPASSFILE or PGPASSWORD"));
        }
        let (access, server) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = match access.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (access, None),
        };
        let (host, port) = split_port(server)?;
        let given =
            |text: &str| decoded(text).map(|text| Some(text).filter(|text| !text.is_empty()));
        let mut words = Self {
            host: given(host)?,
            port: given(port)?,
            user: given(user)?,
            password: password.map_or(Ok(None), given)?,
            database: given(database)?,
            ..Self::default()
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            words.add(pair)?;
        }
        Ok(words)
    }

    fn add(&mut self, pair: &str) -> Result<(), Failure> {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (decoded(name)?, decoded(value)?);
        let word = match name.as_str() {
            "table" => &mut self.table,
            "host" => &mut self.host,
            "port" => &mut self.port,
            "user" => &mut self.user,
            "password" => &mut self.password,
            "dbname" => &mut self.database,
            "sslmode" => &mut self.sslmode,
            "sslrootcert" => &mut self.sslrootcert,
            "connect_timeout" => &mut self.connect_timeout,
            "application_name" => &mut self.application_name,
            "options" => &mut self.options,
            other => {
                return Err(
                    malformed(&format!("`{other}` is no parameter that is known here"))
                        .hint(format!("the parameters are {PARAMETERS}")),
                );
            }
        };
        if word.replace(value).is_some() {
            return Err(malformed(&format!("it gives `{name}` twice")));
        }
        Ok(())
    }
}

fn split_port(server: &str) -> Result<(&str, &str), Failure> {
    if let Some(rest) = server.strip_prefix('[') {
        let (host, rest) = rest
            .split_once(']')
            .ok_or_else(|| malformed("its host has no `]`"))?;
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, port)),
            None if rest.is_empty() => Ok((host, "")),
            None => Err(malformed("behind `]`, only a port can stand")),
        };
    }
    Ok(server.rsplit_once(':').unwrap_or((server, "")))
}

fn decoded(text: &str) -> Result<String, Failure> {
    let broken = || malformed("a `%` in it begins no two digits of a byte, or bytes are no UTF-8");
    let is_escape = |rest: &str| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if !text.split('%').skip(1).all(is_escape) {
        return Err(broken());
    }
    let text = percent_decode_str(text).decode_utf8();
    let text = text.map_err(|_| broken())?.into_owned();
    if text.contains('\0') {
        return Err(malformed("it has a zero byte in it"));
    }
    Ok(text)
}

/// Says what is wrong with an address. It may hold a password, and is not shown.
pub(super) fn malformed(why: &str) -> Failure {
    Failure::new(
        Kind::Usage,
        format!("the address of the PostgreSQL table cannot be used: {why}"),
    )
    .hint("write it as postgres://user@host:5432/database?table=batches")
}
