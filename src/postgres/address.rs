//! The address of a table: a URL, completed by the environment variables of libpq.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use tokio_postgres::config::ChannelBinding;

use super::passfile;
use crate::error::Failure;
use crate::secret::Secret;

/// Characters that need no escape in an address.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'/');

/// The address of a table, and the user to connect as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableAddress {
    pub(super) host: Host,
    pub(super) port: u16,
    pub(super) user: String,
    pub(super) password: Option<Secret>,
    pub(super) database: String,
    pub(super) table: TableName,
    pub(super) security: Security,
    /// The only certificate authorities to trust, if set.
    pub(super) roots: Option<PathBuf>,
    /// Whether the server must prove that it, and not a proxy with another certificate, checks the password.
    pub(super) channel_binding: ChannelBinding,
    pub(super) connect_timeout: Duration,
    pub(super) application_name: String,
    pub(super) options: Option<String>,
}

impl TableAddress {
    /// Parses an address. Missing parts are taken from the environment variables.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        Self::parse_with(text, &|name| {
            std::env::var(name).ok().filter(|value| !value.is_empty())
        })
    }

    fn parse_with(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        let mut given = url_parts(text)?;
        let table = given
            .remove("table")
            .unwrap_or_else(|| "batches".to_owned());
        let table = TableName::parse(&table).ok_or_else(|| {
            malformed("its table name is not valid").hint(format!(
                "write `table=name` or `table=schema.name`, each at most {LONGEST_NAME} bytes long; a name in double quotes (%22) may contain dots"
            ))
        })?;
        let mut or = |name: &str, default: &str| {
            let given = given.remove(name).filter(|value| !value.is_empty());
            given.or_else(|| variable(default))
        };
        let port = match or("port", "PGPORT") {
            Some(port) => match port.parse() {
                Ok(port @ 1..) => port,
                _ => return Err(malformed("its port is not a number from 1 to 65535")),
            },
            None => 5432,
        };
        let host = or("host", "PGHOST");
        let host = host.map_or_else(|| Ok(Host::local(port)), |host| Host::parse(&host))?;
        let user = or("user", "PGUSER").or_else(|| whoami::username().ok());
        let user = user.ok_or_else(|| malformed("it has no user, and PGUSER is not set"))?;
        let database = or("dbname", "PGDATABASE").unwrap_or_else(|| user.clone());
        let roots = or("sslrootcert", "PGSSLROOTCERT");
        let is_system = roots.as_deref() == Some("system");
        let security = match or("sslmode", "PGSSLMODE") {
            Some(word) => Security::parse(&word)?,
            // Connections on the same machine cannot be intercepted.
            None if host.is_local() && !is_system => Security::Prefer,
            None => Security::VerifyFull,
        };
        if is_system && security != Security::VerifyFull {
            // Like libpq: anybody can get a certificate of a public authority for another name.
            let why = "`sslrootcert=system` needs `sslmode=verify-full`";
            return Err(malformed(why)
                .hint("use `sslmode=verify-full`, or remove one of them; PGSSLROOTCERT and PGSSLMODE count too"));
        }
        let roots = roots.filter(|_| !is_system);
        let binding = or("channel_binding", "PGCHANNELBINDING");
        let channel_binding = binding.map_or(Ok(ChannelBinding::Prefer), |word| {
            channel_binding(&word, security, &host)
        })?;
        let connect_timeout = or("connect_timeout", "PGCONNECT_TIMEOUT");
        let connect_timeout = connect_timeout.map_or(Ok(10), |seconds| seconds.parse());
        let connect_timeout = connect_timeout
            .map_err(|_| malformed("its `connect_timeout` is not a number of seconds"))?;
        let application_name = or("application_name", "PGAPPNAME");
        let options = or("options", "PGOPTIONS");
        let password = or("password", "PGPASSWORD").or_else(|| {
            let (host, port) = (host.for_passfile(), port.to_string());
            let path = variable("PGPASSFILE").map(PathBuf::from);
            passfile::find([&host, &port, &database, &user], path)
        });
        Ok(Self {
            password: password.map(Secret::new),
            application_name: application_name.unwrap_or_else(|| "trayscan".to_owned()),
            roots: roots.map(PathBuf::from),
            host,
            port,
            user,
            database,
            table,
            security,
            channel_binding,
            connect_timeout: Duration::from_secs(connect_timeout),
            options,
        })
    }

    /// Describes server, database and user in messages.
    pub(super) fn server(&self) -> String {
        let server = match &self.host {
            Host::Name(name) if name.contains(':') => format!("[{name}]:{}", self.port),
            Host::Name(name) => format!("{name}:{}", self.port),
            Host::Socket(folder) => {
                format!("{}/.s.PGSQL.{}", folder.display(), self.port)
            }
        };
        let Self { database, user, .. } = self;
        format!("{server} (database `{database}`, user `{user}`)")
    }
}

/// The full address without its password, for messages and manifests.
impl fmt::Display for TableAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let encoded = |text: &str| utf8_percent_encode(text, PLAIN).to_string();
        write!(f, "postgres://{}@", encoded(&self.user).replace('/', "%2F"))?;
        let database = encoded(&self.database).replace('/', "%2F");
        match &self.host {
            Host::Name(name) if name.contains(':') => {
                write!(f, "[{name}]:{}/{database}?", self.port)?;
            }
            Host::Name(name) => write!(f, "{}:{}/{database}?", encoded(name), self.port)?,
            Host::Socket(folder) => {
                let folder = encoded(&folder.to_string_lossy());
                write!(f, "/{database}?host={folder}&port={}&", self.port)?;
            }
        }
        // Without quotes, a dot or a quote in a name has another meaning.
        let name = |name: &str| {
            if name.contains(['.', '"']) {
                encoded(&quoted(name))
            } else {
                encoded(name)
            }
        };
        match &self.table.schema {
            Some(schema) => write!(f, "table={}.{}", name(schema), name(&self.table.name)),
            None => write!(f, "table={}", name(&self.table.name)),
        }
    }
}

const PARAMETERS: [&str; 12] = [
    "table",
    "host",
    "port",
    "user",
    "password",
    "dbname",
    "sslmode",
    "sslrootcert",
    "channel_binding",
    "connect_timeout",
    "application_name",
    "options",
];

/// Splits a URL into parameters, before defaults are applied.
fn url_parts(text: &str) -> Result<BTreeMap<&'static str, String>, Failure> {
    let (_, rest) = text.split_once("://").unwrap_or_default();
    let (base, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = base.split_once('/').unwrap_or((base, ""));
    // This is probably part of a password, and must not be shown as a name.
    if database.contains(['/', '@']) {
        return Err(malformed("its database contains a `/` or an `@`")
            .hint("in a user, a password or a name, write %2F for `/` and %40 for `@`; better, put the password in PGPASSFILE or PGPASSWORD"));
    }
    let (access, server) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = access.split_once(':').unwrap_or((access, ""));
    let (host, port) = split_port(server)?;
    let mut parts = BTreeMap::new();
    for (name, value) in [
        ("host", host),
        ("port", port),
        ("user", user),
        ("password", password),
        ("dbname", database),
    ] {
        if !value.is_empty() {
            parts.insert(name, decoded(value)?);
        }
    }
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (decoded(name)?, decoded(value)?);
        let Some(name) = PARAMETERS.into_iter().find(|known| *known == name) else {
            // After a `?` in the password, this is a part of it.
            let what = if query.contains('@') {
                "after the `?`, it contains something that"
            } else {
                &format!("`{name}`")
            };
            let (last, others) = (PARAMETERS[11], PARAMETERS[..11].join(", "));
            return Err(
                malformed(&format!("{what} is not a supported parameter")).hint(format!(
                    "the parameters are {others} and {last}; in a password, write %3F for `?`"
                )),
            );
        };
        if parts.insert(name, value).is_some() {
            return Err(malformed(&format!("it contains `{name}` twice")));
        }
    }
    Ok(parts)
}

fn split_port(server: &str) -> Result<(&str, &str), Failure> {
    if let Some(rest) = server.strip_prefix('[') {
        let (host, rest) = rest
            .split_once(']')
            .ok_or_else(|| malformed("its host has no `]`"))?;
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, port)),
            None if rest.is_empty() => Ok((host, "")),
            None => Err(malformed("only a port can follow the `]`")),
        };
    }
    Ok(server.rsplit_once(':').unwrap_or((server, "")))
}

fn decoded(text: &str) -> Result<String, Failure> {
    let is_escape = |rest: &str| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let is_escaped = text.split('%').skip(1).all(is_escape);
    match percent_decode_str(text).decode_utf8() {
        Ok(text) if is_escaped && text.contains('\0') => Err(malformed("it contains a zero byte")),
        Ok(text) if is_escaped => Ok(text.into_owned()),
        _ => Err(malformed(
            "a `%` is not followed by two hexadecimal digits, or the decoded text is not UTF-8",
        )),
    }
}

/// The error for a malformed address. It may contain a password, so it is not shown.
pub(super) fn malformed(why: &str) -> Failure {
    Failure::usage(
        format!("the address of the PostgreSQL table is not valid: {why}"),
        "write it as postgres://user@host:5432/database?table=batches",
    )
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Host {
    Name(String),
    /// The folder of a socket on this machine.
    Socket(PathBuf),
}

impl Host {
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        if text.contains(',') {
            return Err(malformed("it names several hosts").hint("name one: the primary server"));
        }
        if text.starts_with('/') {
            return Ok(Self::Socket(text.into()));
        }
        Ok(Self::Name(text.to_owned()))
    }

    /// Returns the default host: a socket on this machine, or localhost.
    pub(super) fn local(port: u16) -> Self {
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

    /// Returns the host as written in the password file.
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

/// The protection of a connection, named like the values of `sslmode`.
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
            // Trying without TLS first would be less secure.
            "allow" | "prefer" => Self::Prefer,
            "require" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" => Self::VerifyFull,
            _ => {
                return Err(malformed("its `sslmode` is not supported")
                    .hint("use disable, prefer, require, verify-ca or verify-full"));
            }
        })
    }
}

/// Parses a value of `channel_binding`. Without TLS there is no channel to bind to.
fn channel_binding(word: &str, security: Security, host: &Host) -> Result<ChannelBinding, Failure> {
    match word {
        "disable" => Ok(ChannelBinding::Disable),
        "prefer" => Ok(ChannelBinding::Prefer),
        "require" if security == Security::Disable => Err(malformed(
            "`channel_binding=require` needs TLS, which `sslmode=disable` turns off",
        )
        .hint("remove one of them; PGCHANNELBINDING and PGSSLMODE count too")),
        "require" if matches!(host, Host::Socket(_)) => Err(malformed(
            "`channel_binding=require` needs TLS, which a socket does not use",
        )
        .hint("connect to `localhost`, or remove `channel_binding`; PGCHANNELBINDING counts too")),
        "require" => Ok(ChannelBinding::Require),
        _ => Err(malformed("its `channel_binding` is not supported")
            .hint("use disable, prefer or require")),
    }
}

/// PostgreSQL truncates longer names.
pub(super) const LONGEST_NAME: usize = 63;

/// The name of a table, unquoted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TableName {
    /// `None` to use the server's search path.
    pub(super) schema: Option<String>,
    pub(super) name: String,
}

impl TableName {
    /// Returns the name quoted for SQL.
    pub(super) fn quoted(&self) -> String {
        match &self.schema {
            Some(schema) => format!("{}.{}", quoted(schema), quoted(&self.name)),
            None => quoted(&self.name),
        }
    }

    /// Parses `name` or `schema.name`. Each may be in double quotes, and may then contain dots.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (first, rest) = part(text)?;
        let (schema, name) = match rest {
            "" => (None, first),
            rest => {
                let (name, rest) = part(rest.strip_prefix('.')?)?;
                if !rest.is_empty() {
                    return None;
                }
                (Some(first), name)
            }
        };
        let fits = |name: &String| (1..=LONGEST_NAME).contains(&name.len());
        (fits(&name) && schema.as_ref().is_none_or(fits)).then_some(Self { schema, name })
    }
}

/// Parses one name at the start of `text`, and returns the rest.
fn part(text: &str) -> Option<(String, &str)> {
    let Some(inside) = text.strip_prefix('"') else {
        let end = text.find('.').unwrap_or(text.len());
        return Some((text[..end].to_owned(), &text[end..]));
    };
    let mut name = String::new();
    let mut rest = inside;
    loop {
        let (before, after) = rest.split_once('"')?;
        name.push_str(before);
        match after.strip_prefix('"') {
            Some(more) => {
                name.push('"');
                rest = more;
            }
            None => return Some((name, after)),
        }
    }
}

/// Quotes a name for SQL.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    fn parse(text: &str, variables: &[(&str, &str)]) -> Result<TableAddress, Failure> {
        TableAddress::parse_with(text, &|name| {
            let mut found = variables.iter().filter(|(known, _)| *known == name);
            found.next().map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn missing_parts_of_an_address_are_taken_from_variables() {
        let full = parse(
            "postgresql://me:p%40ss@db.example:5433/plants?table=farm.batches&sslmode=require",
            &[("PGHOST", "other"), ("PGPASSWORD", "other")],
        )
        .expect("an address");
        assert_eq!(full.host, Host::Name("db.example".to_owned()));
        assert_eq!((full.port, full.security), (5433, Security::Require));
        assert_eq!(full.password, Some(Secret::new("p@ss")));
        assert_eq!(full.table.quoted(), r#""farm"."batches""#);
        assert_eq!(
            full.to_string(),
            "postgres://me@db.example:5433/plants?table=farm.batches"
        );
        assert!(!format!("{full:?}").contains("p@ss"));

        let bare = parse(
            "postgres://",
            &[
                ("PGHOST", "db.example"),
                ("PGPORT", "6000"),
                ("PGUSER", "me"),
                ("PGPASSFILE", "/nonexistent"),
            ],
        )
        .expect("an address");
        assert_eq!(
            bare.to_string(),
            "postgres://me@db.example:6000/me?table=batches"
        );
        assert_eq!(bare.password, None);
        assert_eq!(bare.security, Security::VerifyFull);
    }

    #[test]
    fn channel_binding_is_taken_from_the_address_or_a_variable() {
        let required = [("PGCHANNELBINDING", "require")];
        for (more, variables, binding) in [
            ("", &[][..], ChannelBinding::Prefer),
            ("?channel_binding=disable", &[], ChannelBinding::Disable),
            ("?channel_binding=require", &[], ChannelBinding::Require),
            ("", &required, ChannelBinding::Require),
            ("?channel_binding=prefer", &required, ChannelBinding::Prefer),
        ] {
            let address = parse(&format!("postgres://me@localhost/db{more}"), variables);
            assert_eq!(address.expect(more).channel_binding, binding, "{more}");
        }
    }

    #[test]
    fn only_local_connections_need_no_certificate() {
        for (text, security) in [
            ("postgres://me@localhost/db", Security::Prefer),
            ("postgres://me@127.0.0.2/db", Security::Prefer),
            ("postgres://me@[::1]:5432/db", Security::Prefer),
            ("postgres://me@/db?host=/tmp", Security::Prefer),
            ("postgres://me@%2Ftmp/db", Security::Prefer),
            ("postgres://me@10.0.0.1/db", Security::VerifyFull),
            ("postgres://me@localhost.example/db", Security::VerifyFull),
            (
                "postgres://me@10.0.0.1/db?sslmode=disable",
                Security::Disable,
            ),
        ] {
            assert_eq!(parse(text, &[]).expect(text).security, security, "{text}");
        }
    }

    #[test]
    fn a_displayed_address_parses_to_the_same() {
        for text in [
            "postgres://me@host/db?table=%22a.b%22.%22c%22%22d%22",
            "postgres://m%2Fe@/d%2Fb?host=/tmp/x&table=a%3B%20b",
            "postgres://me@[::1]:7/db",
        ] {
            let address = parse(text, &[("PGPASSFILE", "/nonexistent")]).expect(text);
            let shown = address.to_string();
            let again = parse(&shown, &[("PGPASSFILE", "/nonexistent")]).expect(text);
            assert_eq!(again, address, "{shown}");
        }
    }

    #[test]
    fn errors_do_not_show_the_password() {
        for (text, why) in [
            ("postgres://me:hunter2@host:x/db", "port"),
            ("postgres://me:hunter2@host:0/db", "port"),
            ("postgres://me:hun/ter2@host/db", "%2F"),
            ("postgres://me:12/hunter2@host/db", "%2F"),
            ("postgres://me:hunter2@a,b/db", "several"),
            ("postgres://me:hunter2@host/db?tabel=x", "`tabel`"),
            ("postgres://me:a@b?hunter2@host/db", "%3F"),
            ("postgres://me:a%40b?hunter2=x@host/db", "%3F"),
            (
                "postgres://me:hunter2@host/db?sslrootcert=system&sslmode=require",
                "verify-full",
            ),
            (
                "postgres://me:hunter2@localhost/db?sslrootcert=system&sslmode=prefer",
                "verify-full",
            ),
            ("postgres://me:hunter2@host/db?table=a&table=b", "twice"),
            ("postgres://me:hunter2@host/db?sslmode=on", "sslmode"),
            (
                "postgres://me:hunter2@host/db?channel_binding=on",
                "disable, prefer or require",
            ),
            (
                "postgres://me:hunter2@host/db?channel_binding=require&sslmode=disable",
                "`channel_binding=require` needs TLS, which `sslmode=disable` turns off",
            ),
            (
                "postgres://me:hunter2@/db?channel_binding=require&host=/tmp",
                "`channel_binding=require` needs TLS, which a socket does not use",
            ),
            ("postgres://me:hunter2%@host/db", "%"),
            ("postgres://me:hunter2%00@host/db", "zero"),
            ("postgres://me:hunter2@host/db?table=a.b.c", "table"),
            (
                "postgres://me:hunter2@host/db?connect_timeout=soon",
                "seconds",
            ),
        ] {
            let failure = parse(text, &[]).expect_err(text);
            assert_eq!(failure.kind, Kind::Usage);
            let said = format!("{:?}", failure.into_texts());
            assert!(said.contains(why), "{said}");
            assert!(!said.contains("hunter") && !said.contains("ter2"), "{said}");
        }
    }

    #[test]
    fn table_names_are_quoted() {
        for (table, sql) in [
            ("batches", r#""batches""#),
            ("Batches", r#""Batches""#),
            ("a.b", r#""a"."b""#),
            (r#""a.b""#, r#""a.b""#),
            (r#""a""b"."c d""#, r#""a""b"."c d""#),
            ("x; drop table y --", r#""x; drop table y --""#),
            ("a\"b", "\"a\"\"b\""),
        ] {
            let found = TableName::parse(table).expect(table);
            assert_eq!(found.quoted(), sql);
        }
        let long = "x".repeat(64);
        for table in ["", ".", "a.", ".a", "a.b.c", "\"a", "\"a\"b", &long] {
            assert_eq!(TableName::parse(table), None, "{table}");
        }
    }
}
