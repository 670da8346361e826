//! Buckets: how to connect to them, with which credentials, and which objects they contain.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::TryStreamExt as _;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey as S3Key};
use object_store::azure::{AzureConfigKey as AzureKey, MicrosoftAzureBuilder};
use object_store::client::HttpConnector as _;
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey as GcsKey};
use object_store::multipart::MultipartStore;
use object_store::{ObjectStore, ObjectStoreExt as _, RetryConfig};
use parking_lot::Mutex;
use rustls::pki_types::CertificateDer;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};

use super::address::{ObjectAddress, Provider};
use super::credentials::{self, set};
use super::orphans::{Signer, Uploads};
use super::requests::{Tried, attempt};
use super::transport::Transport;
use crate::client::certificates::{lacks_authorities, no_authorities, read_certificates};
use crate::client::retry::RetryPolicy;
use crate::client::{BaseUrl, ClientOptions, wait};
use crate::error::{Failure, Kind};
use crate::secret;

/// The operations needed of a store.
pub(super) trait StoreClient: ObjectStore + MultipartStore {}

impl<T: ObjectStore + MultipartStore> StoreClient for T {}

/// One bucket.
#[derive(Clone)]
pub(super) struct Bucket {
    pub(super) store: Arc<dyn StoreClient>,
    /// Retries and waits for each request.
    pub(super) policy: RetryPolicy,
    /// `None` if uploads are not created explicitly, as on Azure.
    pub(super) uploads: Option<Arc<Uploads>>,
    /// The runtime that sends the requests: that of the command.
    pub(super) runtime: Handle,
}

/// The number of concurrent parts, at the smallest size.
pub(super) const PARTS_AT_ONCE: usize = 4;
/// The memory for small objects until they are published, in KiB. Beyond that, objects are uploaded as parts.
const SMALL_OBJECTS: usize = 64 << 10;
/// The number of concurrent abort requests.
const CONCURRENT_ABORTS: usize = 16;

/// Access to object storage; `None` if the run does not use it.
#[derive(Clone, Default)]
pub(crate) struct Cloud(Option<Arc<CloudState>>);

/// What all uploads of a run share.
pub(super) struct CloudState {
    options: ClientOptions,
    /// Trusted in addition to the system's.
    certificates: Vec<CertificateDer<'static>>,
    /// Opened once each, to reuse connections and tokens.
    buckets: Mutex<HashMap<(Provider, String), Bucket>>,
    pub(super) part_slots: Arc<Semaphore>,
    pub(super) small_objects: Arc<Semaphore>,
    pub(super) aborts: Semaphore,
}

impl Cloud {
    /// Connects to buckets as `options` say, and as the variables of each cloud do.
    pub(crate) fn new(options: &ClientOptions) -> Result<Self, Failure> {
        let file = options.ca_cert.as_ref();
        let certificates = file.map_or_else(|| Ok(Vec::new()), read_certificates)?;
        Ok(Self(Some(Arc::new(CloudState {
            options: options.clone(),
            certificates,
            buckets: Mutex::default(),
            part_slots: Arc::new(Semaphore::new(PARTS_AT_ONCE)),
            small_objects: Arc::new(Semaphore::new(SMALL_OBJECTS)),
            aborts: Semaphore::new(CONCURRENT_ABORTS),
        }))))
    }

    pub(super) fn state(&self) -> Result<&Arc<CloudState>, Failure> {
        let state = self.0.as_ref();
        state.ok_or_else(|| Failure::new(Kind::Internal, "object storage is not prepared"))
    }

    /// Returns the bucket of `address`, without a network request.
    pub(super) fn bucket(&self, address: &ObjectAddress) -> Result<Bucket, Failure> {
        let state = self.state()?;
        let mut buckets = state.buckets.lock();
        let name = (address.provider, address.bucket.clone());
        if let Some(bucket) = buckets.get(&name) {
            return Ok(bucket.clone());
        }
        credentials::conceal_all();
        let (store, uploads) = open(address, state)?;
        let runtime = Handle::try_current().map_err(|error| {
            Failure::new(Kind::Internal, "object storage needs a runtime").caused_by(error)
        })?;
        let bucket = Bucket {
            store,
            policy: state.options.retry,
            uploads: uploads.map(Arc::new),
            runtime,
        };
        Ok(buckets.entry(name).or_insert(bucket).clone())
    }

    /// Checks the address and the credentials, without a network request.
    pub(crate) fn check(&self, address: &ObjectAddress) -> Result<(), Failure> {
        self.bucket(address).map(drop)
    }

    /// Returns the sizes of the objects in the folder of `inside`, and below, by address.
    pub(crate) fn sizes(&self, inside: &ObjectAddress) -> Result<HashMap<String, u64>, Failure> {
        let bucket = self.bucket(inside)?;
        let at = |key: String| ObjectAddress {
            key,
            ..inside.clone()
        };
        let folder = inside.key.rsplit_once('/');
        let folder = folder.map(|(folder, _)| at(folder.to_owned()).object_key());
        let prefix = folder.transpose()?;
        let list = || {
            let objects = bucket.store.list(prefix.as_ref());
            objects
                .map_ok(|object| (at(object.location.to_string()).to_string(), object.size))
                .try_collect()
        };
        let listed = bucket.request(inside, list).result;
        listed.map_err(|error| error.of_reading(inside))
    }

    /// Removes the object at `address` if it exists.
    pub(crate) fn remove(&self, address: &ObjectAddress) -> Result<(), Failure> {
        let (bucket, key) = (self.bucket(address)?, address.object_key()?);
        match bucket.request(address, || bucket.store.delete(&key)).result {
            Err(error) if !error.is_missing() => Err(error.of_writing(address)),
            _ => Ok(()),
        }
    }
}

impl Bucket {
    /// Sends a request about `address`, with retries, and blocks until it is answered.
    fn request<T, F>(&self, address: &ObjectAddress, request: impl FnMut() -> F) -> Tried<T>
    where
        F: Future<Output = object_store::Result<T>>,
    {
        let never = watch::Sender::new(false);
        let tried = attempt(self.policy, address, &never, request);
        wait(&self.runtime, tried)
    }
}

type Opened = (Arc<dyn StoreClient>, Option<Uploads>);

fn open(address: &ObjectAddress, state: &CloudState) -> Result<Opened, Failure> {
    let name = &address.bucket;
    // `requests.rs` does the retries: each wait is logged, and each attempt is signed again.
    let retry = RetryConfig {
        max_retries: 0,
        ..RetryConfig::default()
    };
    let transport = Transport {
        timeout: state.options.timeout,
        certificates: state.certificates.clone(),
    };
    let opened: Result<Opened, object_store::Error> = match address.provider {
        Provider::S3 => {
            let builder = AmazonS3Builder::from_env();
            credentials::check_s3(&builder)?;
            let endpoint = builder
                .get_config_value(&S3Key::S3Endpoint)
                .or_else(|| builder.get_config_value(&S3Key::Endpoint));
            let options = options(state, "AWS_ENDPOINT_URL", endpoint.as_deref())?;
            let client = transport.connect(&options);
            let region = builder.get_config_value(&S3Key::Region);
            // Without credentials, uploads cannot be listed.
            let is_signed =
                builder.get_config_value(&S3Key::SkipSignature).as_deref() != Some("true");
            let built = builder
                .with_bucket_name(name)
                .with_client_options(options)
                .with_http_connector(transport)
                .with_retry(retry)
                .build();
            client.and_then(|client| {
                let store = built?;
                let signer = Signer::S3 {
                    store: store.clone(),
                    region: region.unwrap_or_else(|| "us-east-1".to_owned()),
                };
                let uploads = is_signed.then_some(Uploads { client, signer });
                Ok((Arc::new(store) as _, uploads))
            })
        }
        Provider::Gcs => {
            let builder = GoogleCloudStorageBuilder::from_env();
            credentials::check_gcs(&builder)?;
            let endpoint = builder.get_config_value(&GcsKey::BaseUrl);
            let options = options(state, "GOOGLE_BASE_URL", endpoint.as_deref())?;
            let client = transport.connect(&options);
            let built = builder
                .with_bucket_name(name)
                .with_client_options(options)
                .with_http_connector(transport)
                .with_retry(retry)
                .build();
            client.and_then(|client| {
                let store = built?;
                let signer = Signer::Gcs(store.clone());
                let uploads = Uploads { client, signer };
                Ok((Arc::new(store) as _, Some(uploads)))
            })
        }
        Provider::Azure => {
            let mut builder = MicrosoftAzureBuilder::from_env();
            // The variables of the `az` command.
            for (variable, key) in [
                ("AZURE_STORAGE_ACCOUNT", AzureKey::AccountName),
                ("AZURE_STORAGE_KEY", AzureKey::AccessKey),
            ] {
                if let (Some(value), None) = (set(variable), builder.get_config_value(&key)) {
                    builder = builder.with_config(key, value);
                }
            }
            credentials::check_azure(&builder)?;
            let emulated =
                builder.get_config_value(&AzureKey::UseEmulator).as_deref() == Some("true");
            let (variable, endpoint) = if emulated {
                ("AZURITE_BLOB_STORAGE_URL", set("AZURITE_BLOB_STORAGE_URL"))
            } else {
                (
                    "AZURE_STORAGE_ENDPOINT",
                    builder.get_config_value(&AzureKey::Endpoint),
                )
            };
            let options = options(state, variable, endpoint.as_deref())?;
            builder
                .with_container_name(name)
                .with_client_options(options)
                .with_http_connector(transport)
                .with_retry(retry)
                .build()
                .map(|store| (Arc::new(store) as _, None))
        }
    };
    opened.map_err(|error| {
        if lacks_authorities(&error) {
            let (message, hint) = no_authorities();
            return Failure::usage(message, hint);
        }
        let message = format!("the settings for `{address}` are not valid");
        let hint = "check the environment variables of the cloud: AWS_…, GOOGLE_… or AZURE_…";
        Failure::usage(message, hint).caused_by(anyhow::anyhow!(secret::brief(&error.to_string())))
    })
}

/// Content types by file extension. No content encoding is set: the object is the compressed file.
const CONTENT_TYPES: [(&str, &str); 12] = [
    ("csv", "text/csv"),
    ("tsv", "text/tab-separated-values"),
    ("json", "application/json"),
    ("ndjson", "application/x-ndjson"),
    ("jsonl", "application/x-ndjson"),
    ("parquet", "application/vnd.apache.parquet"),
    (
        "xlsx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ),
    ("sqlite", "application/vnd.sqlite3"),
    ("db", "application/vnd.sqlite3"),
    ("html", "text/html; charset=utf-8"),
    ("gz", "application/gzip"),
    ("zst", "application/zstd"),
];

/// Returns the client options for `endpoint`, which `variable` set; without one, for the cloud itself.
fn options(
    state: &CloudState,
    variable: &str,
    endpoint: Option<&str>,
) -> Result<object_store::ClientOptions, Failure> {
    let mut options =
        object_store::ClientOptions::new().with_default_content_type("application/octet-stream");
    for (ending, content_type) in CONTENT_TYPES {
        options = options.with_content_type_for_suffix(ending, content_type);
    }
    let Some(endpoint) = endpoint else {
        return Ok(options);
    };
    let parsed = BaseUrl::parse(endpoint, state.options.allow_http);
    let parsed = parsed.map_err(|failure| match failure.kind {
        Kind::Unsafe => Failure::new(
            Kind::Unsafe,
            format!("{variable} is plain http to another machine, so others on the network could read the batches"),
        )
        .hint("use https, or allow it with `--allow-http`"),
        kind => Failure::new(kind, format!("{variable} is not a valid address"))
            .hint("write it like https://storage.example.com"),
    })?;
    Ok(options.with_allow_http(!parsed.is_https()))
}

#[cfg(test)]
impl Cloud {
    /// Returns access to `store` as the S3 bucket `name`.
    pub(super) fn with_bucket(name: &str, store: Arc<dyn StoreClient>, runtime: Handle) -> Self {
        let cloud = Self::new(&ClientOptions::for_tests());
        let cloud = cloud.expect("there are no certificates");
        let state = cloud.state().expect("the state");
        let bucket = Bucket {
            store,
            policy: state.options.retry,
            uploads: None,
            runtime,
        };
        let mut buckets = state.buckets.lock();
        buckets.insert((Provider::S3, name.to_owned()), bucket);
        drop(buckets);
        cloud
    }
}
