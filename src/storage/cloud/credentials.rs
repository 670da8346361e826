//! Checks that credentials are set before the first request.
//!
//! Without credentials, `object_store` queries the metadata service of the machine, and retries for minutes.
//! Only cloud machines have that service, and it responds at once. Variables of the cloud tools disable the
//! query.

use std::env;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey as S3Key};
use object_store::azure::{AzureConfigKey as AzureKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey as GcsKey};

use crate::error::Failure;
use crate::secret::Secret;

/// The metadata service has the same address in all three clouds.
const METADATA: SocketAddr = SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(169, 254, 169, 254)),
    80,
);
const AT_ONCE: Duration = Duration::from_millis(800);

/// Variables with secret values.
const SECRETS: [&str; 18] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_TOKEN",
    "AWS_SSE_CUSTOMER_KEY_BASE64",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_ACCESS_KEY",
    "AZURE_STORAGE_MASTER_KEY",
    "AZURE_STORAGE_KEY",
    "AZURE_STORAGE_SAS_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_TOKEN",
    "AZURE_STORAGE_CLIENT_SECRET",
    "AZURE_STORAGE_ENCRYPTION_KEY",
    "AZURE_FABRIC_SESSION_TOKEN",
    "AZURE_CLIENT_SECRET",
    "GOOGLE_SERVICE_ACCOUNT_KEY",
    "GOOGLE_BEARER_TOKEN",
];

/// Registers every secret in the environment, so that no message shows it.
pub(super) fn conceal_all() {
    for name in SECRETS {
        let Some(value) = set(name) else { continue };
        // Each part of a signed query is as secret as the whole.
        for (_, part) in form_urlencoded::parse(value.trim_start_matches('?').as_bytes()) {
            if part.len() > 20 {
                drop(Secret::new(part));
            }
        }
        drop(Secret::new(value));
    }
}

/// Refuses control characters in the variables that `object_store` reads: a request cannot contain them.
/// `is_read` takes a variable's name in lower case, and returns whether it is read.
fn check_characters(prefix: &str, is_read: impl Fn(&str) -> bool) -> Result<(), Failure> {
    for (name, value) in env::vars_os() {
        let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else {
            continue;
        };
        if name.starts_with(prefix)
            && value.contains(char::is_control)
            && is_read(&name.to_ascii_lowercase())
        {
            let what = format!("{name} contains a line break or another control character");
            let hint = format!(
                "a value read from a file often ends with a line break: remove it, as `{name}=\"$(cat FILE)\"` does"
            );
            return Err(Failure::usage(what, hint));
        }
    }
    Ok(())
}

/// Returns the value of a variable; `None` if it is unset or empty.
pub(super) fn set(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

pub(super) fn check_s3(builder: &AmazonS3Builder) -> Result<(), Failure> {
    check_characters("AWS_", |name| name.parse::<S3Key>().is_ok())?;
    let has = |key: S3Key| {
        builder
            .get_config_value(&key)
            .is_some_and(|value| !value.is_empty())
    };
    let lacks = |variable: &str| {
        Failure::usage(
            format!("{variable} is not set"),
            "the key has two parts: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or neither",
        )
    };
    match (has(S3Key::AccessKeyId), has(S3Key::SecretAccessKey)) {
        (true, true) => return Ok(()),
        (true, false) => return Err(lacks("AWS_SECRET_ACCESS_KEY")),
        (false, true) => return Err(lacks("AWS_ACCESS_KEY_ID")),
        (false, false) => {}
    }
    let unsigned = builder.get_config_value(&S3Key::SkipSignature).as_deref() == Some("true");
    let elsewhere = set("AWS_WEB_IDENTITY_TOKEN_FILE").is_some() && set("AWS_ROLE_ARN").is_some()
        || has(S3Key::ContainerCredentialsRelativeUri)
        || has(S3Key::ContainerCredentialsFullUri)
        || has(S3Key::MetadataEndpoint);
    if unsigned || elsewhere || is_in_the_cloud("AWS_EC2_METADATA_DISABLED") {
        return Ok(());
    }
    let in_files = set("AWS_PROFILE").is_some()
        || env::home_dir().is_some_and(|home| home.join(".aws").is_dir());
    let hint = if in_files {
        "set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION; files and profiles of the AWS tools are not read, but `eval \"$(aws configure export-credentials --format env)\"` sets the variables from them"
    } else {
        "set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION"
    };
    Err(Failure::usage("no credentials for S3 are set", hint))
}

pub(super) fn check_gcs(builder: &GoogleCloudStorageBuilder) -> Result<(), Failure> {
    // The key of a service account is JSON, and may contain line breaks.
    check_characters("GOOGLE_", |name| {
        name.parse()
            .is_ok_and(|key: GcsKey| key != GcsKey::ServiceAccountKey)
    })?;
    let value = |key: GcsKey| {
        builder
            .get_config_value(&key)
            .filter(|value| !value.is_empty())
    };
    let hint = "set GOOGLE_APPLICATION_CREDENTIALS to the key file of a service account, or run `gcloud auth application-default login`";
    for (key, variable) in [
        (GcsKey::ServiceAccount, "GOOGLE_SERVICE_ACCOUNT"),
        (
            GcsKey::ApplicationCredentials,
            "GOOGLE_APPLICATION_CREDENTIALS",
        ),
    ] {
        if let Some(path) = value(key) {
            if !Path::new(&path).is_file() {
                return Err(Failure::usage(
                    format!("{variable} does not name a file"),
                    hint,
                ));
            }
            return Ok(());
        }
    }
    let unsigned = value(GcsKey::SkipSignature).as_deref() == Some("true");
    let adc = env::home_dir()
        .map(|home| home.join(".config/gcloud/application_default_credentials.json"));
    if unsigned
        || value(GcsKey::ServiceAccountKey).is_some()
        || value(GcsKey::BearerToken).is_some()
        || adc.is_some_and(|path| path.is_file())
        || is_in_the_cloud("NO_GCE_CHECK")
    {
        return Ok(());
    }
    Err(Failure::usage(
        "no credentials for Google Cloud Storage are set",
        hint,
    ))
}

pub(super) fn check_azure(builder: &MicrosoftAzureBuilder) -> Result<(), Failure> {
    // The last two are variables of the `az` command.
    check_characters("AZURE_", |name| {
        name.parse::<AzureKey>().is_ok()
            || ["azure_storage_account", "azure_storage_key"].contains(&name)
    })?;
    let has = |key: AzureKey| {
        builder
            .get_config_value(&key)
            .is_some_and(|value| !value.is_empty())
    };
    let yes = |key: AzureKey| builder.get_config_value(&key).as_deref() == Some("true");
    if yes(AzureKey::UseEmulator) {
        return Ok(());
    }
    if !has(AzureKey::AccountName) {
        return Err(Failure::usage(
            "AZURE_STORAGE_ACCOUNT_NAME is not set",
            "set it to the storage account that the container is in",
        ));
    }
    let login = has(AzureKey::ClientId)
        && (has(AzureKey::ClientSecret) || has(AzureKey::FederatedTokenFile));
    let key = has(AzureKey::AccessKey) || has(AzureKey::SasKey) || has(AzureKey::Token);
    let other =
        yes(AzureKey::UseAzureCli) || yes(AzureKey::SkipSignature) || has(AzureKey::MsiEndpoint);
    if key || login || other || is_in_the_cloud("AZURE_METADATA_DISABLED") {
        return Ok(());
    }
    Err(Failure::usage(
        "no credentials for Azure storage are set",
        "set AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_SAS_TOKEN, or AZURE_USE_AZURE_CLI=true after `az login`",
    ))
}

/// Returns whether the metadata service responds, unless the variable `switch` disables the query.
fn is_in_the_cloud(switch: &str) -> bool {
    let is_off = set(switch).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    !is_off && TcpStream::connect_timeout(&METADATA, AT_ONCE).is_ok()
}
