//! Where a table is: an address, completed by the variables that libpq knows.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::host::{Host, Security};
use super::passfile::{self, PasswordQuery};
use super::quoted;
use super::table::{LONGEST_NAME, TableName};
use super::url::{UrlParts, malformed};
use crate::error::Failure;
use crate::secret::Secret;

/// What stands in an address as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'/');

/// Where a table is, and as whom to go there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableAddress {
    pub(super) host: Host,
    pub(super) port: u16,
    pub(super) user: String,
    pub(super) password: Option<Secret>,
    pub(super) database: String,
    pub(super) table: TableName,
    pub(super) security: Security,
    /// The only authorities to trust, where some are named.
    pub(super) roots: Option<PathBuf>,
    pub(super) connect_timeout: Duration,
    pub(super) application_name: String,
    pub(super) options: Option<String>,
}

impl TableAddress {
    /// Reads an address, with this process's variables for what it leaves out.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        Self::parse_with(text, &|name| {
            std::env::var(name).ok().filter(|value| !value.is_empty())
        })
    }

    fn parse_with(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        let words = UrlParts::read(text)?;
        let or = |word: Option<String>, name: &str| {
            word.filter(|word| !word.is_empty())
                .or_else(|| variable(name))
        };
        let port = match or(words.port, "PGPORT") {
            Some(port) => match port.parse() {
                Ok(port @ 1..) => port,
                _ => return Err(malformed("its port is no number from 1 to 65535")),
            },
            None => 5432,
        };
        let host = or(words.host, "PGHOST");
        let host = host.map_or_else(|| Ok(Host::usual(port)), |host| Host::parse(&host))?;
        let user = or(words.user, "PGUSER").or_else(|| whoami::username().ok());
        let user = user.ok_or_else(|| malformed("it names no user, and neither does PGUSER"))?;
        let database = or(words.database, "PGDATABASE").unwrap_or_else(|| user.clone());
        let table = words.table.as_deref().unwrap_or("batches");
        let table = TableName::parse(table).ok_or_else(|| {
            malformed("its table is no name").hint(format!(
                "write `table=name` or `table=schema.name`, each of at most {LONGEST_NAME} bytes; in double quotes (%22) a name may hold dots"
            ))
        })?;
        let security = match or(words.sslmode, "PGSSLMODE") {
            Some(word) => Security::parse(&word)?,
            // Nobody listens in on the way to this machine itself.
            None if host.is_local() => Security::Prefer,
            None => Security::VerifyFull,
        };
        let roots = or(words.sslrootcert, "PGSSLROOTCERT").filter(|roots| roots != "system");
        let connect_timeout = match or(words.connect_timeout, "PGCONNECT_TIMEOUT") {
            Some(seconds) => match seconds.parse() {
                Ok(seconds) => Duration::from_secs(seconds),
                Err(_) => return Err(malformed("its `connect_timeout` is no number of seconds")),
            },
            None => Duration::from_secs(10),
        };
        let application_name = or(words.application_name, "PGAPPNAME");
        let password = or(words.password, "PGPASSWORD").or_else(|| {
            let wanted = PasswordQuery {
                host: host.for_passfile(),
                port,
                database: &database,
                user: &user,
            };
            passfile::find(&wanted, variable("PGPASSFILE").map(PathBuf::from))
        });
        Ok(Self {
            password: password.map(Secret::new),
            options: or(words.options, "PGOPTIONS"),
            application_name: application_name.unwrap_or_else(|| "trayscan".to_owned()),
            roots: roots.map(PathBuf::from),
            host,
            port,
            user,
            database,
            table,
            security,
            connect_timeout,
        })
    }

    /// Names server, database and user for people.
    pub(super) fn server(&self) -> String {
        let place = match &self.host {
            Host::Name(name) if name.contains(':') => format!("[{name}]:{}", self.port),
            Host::Name(name) => format!("{name}:{}", self.port),
            Host::Socket(folder) => {
                format!("{}/.s.PGSQL.{}", folder.display(), self.port)
            }
        };
        format!(
            "{place} (database `{}`, user `{}`)",
            self.database, self.user
        )
    }
}

/// The address without its password, and with all that was left out: what messages and manifests hold.
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
        // A dot or a quote in a name would mean something else without quotes.
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
    fn an_address_says_everything_or_leaves_it_to_variables() {
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
    fn only_this_machine_needs_no_certificate() {
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
    fn what_is_shown_means_the_same() {
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
    fn what_is_wrong_is_said_without_the_password() {
        for (text, why) in [
            ("postgres://me:hunter2@host:x/db", "port"),
            ("postgres://me:hunter2@host:0/db", "port"),
            ("postgres://me:hun/ter2@host/db", "%2F"),
            ("postgres://me:12/hunter2@host/db", "%2F"),
            ("postgres://me:hunter2@a,b/db", "several"),
            ("postgres://me:hunter2@host/db?tabel=x", "`tabel`"),
            ("postgres://me:hunter2@host/db?table=a&table=b", "twice"),
            ("postgres://me:hunter2@host/db?sslmode=on", "sslmode"),
            ("postgres://me:hunter2%@host/db", "%"),
            ("postgres://me:hunter2%00@host/db", "zero"),
            ("postgres://me:hunter2@host/db?table=a.b.c", "table"),
            (
                "postgres://me:hunter2@host/db?connect_timeout=soon",
                "seconds",
            ),
        ] {
            let failure = parse(text, &[]).expect_err(text);
            let kind = failure.kind;
            let error = anyhow::Error::new(failure);
            let said = format!("{error} {:?}", crate::error::hint_of(&error));
            assert!(said.contains(why), "{said}");
            assert!(!said.contains("hunter") && !said.contains("ter2"), "{said}");
            assert_eq!(kind, Kind::Usage);
        }
    }
}
