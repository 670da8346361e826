//! What is made once per run and handed down.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use crate::cli::{Cli, ServiceArgs};
use crate::config::{Settings, file};
use crate::error::Failure;
use crate::storage::cloud::ObjectAddress;
use crate::storage::{Storage, is_same_file};
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

    /// Refuses to overwrite the config file, the CA certificates, or a client secret file, also of a profile that is not used. Each output is
    /// paired with the flag or argument that names it.
    pub(super) fn protect_own_files(
        &self,
        outputs: &[(&str, Option<&Path>)],
    ) -> Result<(), Failure> {
        let configs = self.service.config.clone().into_iter();
        let configs = configs.chain(file::default_path());
        let configs = configs.map(|path| (path, "the config file"));
        // A secret file exists, so an output that does not cannot be the same file.
        let mut files = outputs.iter().filter_map(|(_, output)| *output);
        let settings = files.any(Path::is_file).then(|| self.settings());
        // A config file that cannot be read fails later.
        let settings = settings.and_then(Result::ok);
        let secrets = settings.map_or_else(Vec::new, |settings| settings.secret_files.clone());
        let secrets = secrets.into_iter();
        let secrets = secrets.map(|path| (path, "the client secret file"));
        let certificates = settings
            .and_then(|settings| settings.ca_cert.clone())
            .into_iter();
        let certificates = certificates.map(|setting| (setting.value, "the CA certificates"));
        for (path, what) in configs.chain(secrets).chain(certificates) {
            for (flag, output) in outputs {
                let Some(output) = output.filter(|output| is_same_file(output, &path)) else {
                    continue;
                };
                let name = output.display();
                return Err(Failure::usage(
                    format!("{flag} `{name}` would overwrite {what}"),
                    "choose another name for the output",
                ));
            }
        }
        Ok(())
    }

    /// Returns the storage, with access to object storage if any of `locations` is there. It uses the certificates, retries
    /// and time-outs of the service, wherever the batches are from.
    pub(super) fn storage_for(&self, locations: &[Option<&Path>]) -> Result<Storage, Failure> {
        let mut locations = locations.iter().flatten();
        if !locations.any(|location| ObjectAddress::is_meant(location)) {
            return Ok(self.storage.clone());
        }
        let options = self.settings()?.client_options()?;
        self.storage.with_options(&options)
    }
}
