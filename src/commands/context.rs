//! What is made once per run and handed down.

use std::sync::{Arc, OnceLock};

use crate::cli::{Cli, ServiceArgs};
use crate::config::Settings;
use crate::error::Failure;
use crate::storage::Storage;
use crate::terminal::Terminal;

/// What a run needs besides its own flags: made once, and handed down. Clones share everything.
#[derive(Clone)]
pub(crate) struct Context {
    /// Where files and objects are read and written.
    pub(crate) storage: Storage,
    pub(crate) terminal: Terminal,
    pub(super) service: Arc<ServiceArgs>,
    settings: Arc<OnceLock<Settings>>,
}

impl Context {
    pub(crate) fn new(terminal: Terminal) -> Self {
        Self {
            terminal,
            storage: Storage::default(),
            service: Arc::default(),
            settings: Arc::default(),
        }
    }

    /// Returns the context for the command line.
    pub(super) fn of(self, cli: &Cli) -> Self {
        let service = cli.command.service().cloned().unwrap_or_default();
        Self {
            service: Arc::new(service),
            ..self
        }
    }

    /// Returns the same context with another storage.
    pub(super) fn with_storage(&self, storage: Storage) -> Self {
        Self {
            storage,
            ..self.clone()
        }
    }

    /// Returns the settings. The first call reads the config file: not every command needs it.
    pub(super) fn settings(&self) -> Result<&Settings, Failure> {
        if let Some(settings) = self.settings.get() {
            return Ok(settings);
        }
        let ServiceArgs {
            given,
            config,
            profile,
            ..
        } = &*self.service;
        let settings = Settings::read(given, config.as_deref(), profile.as_deref())?;
        Ok(self.settings.get_or_init(|| settings))
    }
}
