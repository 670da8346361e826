//! A session on the server.

use std::path::{Path, PathBuf};
use std::time::Duration;

use postgres::Client;
use postgres::config::{Config, SslMode};

use super::address::Address;
use super::failure;
use super::host::{Host, Security};
use super::tls::Tls;
use crate::error::Failure;

/// What a session needs: no limit of the role's may end it while it waits for the service. A lock is
/// waited for, but not for ever.
const LIMITS: &str = "select set_config(name, wanted, false) from pg_settings join (values \
    ('statement_timeout', '0'), ('idle_in_transaction_session_timeout', '0'), \
    ('idle_session_timeout', '0'), ('transaction_timeout', '0'), \
    ('lock_timeout', case current_setting('lock_timeout') when '0' then '5min' else current_setting('lock_timeout') end)\
    ) as limits (limit_name, wanted) on name = limit_name";

/// Where a session goes, and what it trusts on the way.
#[derive(Clone)]
pub(super) struct Way {
    pub(super) address: Address,
    /// An authority to trust beside the system's.
    pub(super) ca_cert: Option<PathBuf>,
}

impl Way {
    pub(super) fn new(address: &Address, ca_cert: Option<&Path>) -> Self {
        Self {
            address: address.clone(),
            ca_cert: ca_cert.map(Path::to_owned),
        }
    }

    /// Opens a session. Not to be called on the runtime: the client has one of its own, and waits.
    pub(super) fn open(&self) -> Result<Client, Failure> {
        let address = &self.address;
        let mut config = Config::new();
        config
            .port(address.port)
            .user(&address.user)
            .dbname(&address.database)
            .application_name(&address.application_name)
            // The session is silent while the service is awaited, and must not be forgotten on the way.
            .keepalives_idle(Duration::from_secs(60))
            // What was created already is no news.
            .notice_callback(|notice| log::debug!("PostgreSQL: {}", notice.message()));
        if !address.connect_timeout.is_zero() {
            config.connect_timeout(address.connect_timeout);
        }
        if let Some(password) = &address.password {
            config.password(password.expose());
        }
        if let Some(options) = &address.options {
            config.options(options);
        }
        let security = match &address.host {
            Host::Name(name) => {
                config.host(name);
                address.security
            }
            Host::Socket(folder) => {
                #[cfg(unix)]
                config.host_path(folder);
                #[cfg(not(unix))]
                config.host(&folder.to_string_lossy());
                Security::Disable
            }
        };
        config.ssl_mode(match security {
            Security::Disable => SslMode::Disable,
            Security::Prefer => SslMode::Prefer,
            Security::Require | Security::VerifyCa | Security::VerifyFull => SslMode::Require,
        });
        let client = if security == Security::Disable {
            config.connect(postgres::NoTls)
        } else {
            config.connect(Tls::new(address, self.ca_cert.as_deref())?)
        };
        let mut client = client.map_err(|error| failure::connecting(address, &error))?;
        let prepared = client.query(LIMITS, &[]);
        prepared.map_err(|error| failure::of(address, "prepare the session", &error))?;
        // A server that has this (from 14, on some systems) ends work whose client has gone.
        let _ = client.batch_execute("set client_connection_check_interval = '10s'");
        Ok(client)
    }
}
