//! Addresses of objects, such as `s3://bucket/exports/batches.csv`.

use std::fmt;
use std::path::Path;

use object_store::path::Path as Key;

use crate::error::Failure;

/// The provider of the object storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Provider {
    S3,
    Gcs,
    Azure,
}

const PROVIDERS: [(&str, Provider); 3] = [
    ("s3://", Provider::S3),
    ("gs://", Provider::Gcs),
    ("az://", Provider::Azure),
];

impl Provider {
    /// Returns the provider's word for a bucket.
    pub(crate) fn bucket_noun(self) -> &'static str {
        match self {
            Self::S3 | Self::Gcs => "bucket",
            Self::Azure => "container",
        }
    }
}

/// The address of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectAddress {
    pub(crate) provider: Provider,
    /// The bucket, or the container on Azure.
    pub(crate) bucket: String,
    pub(crate) key: String,
}

impl ObjectAddress {
    /// Returns whether `name` is an address in object storage.
    pub(crate) fn is_meant(name: &Path) -> bool {
        let text = name.to_string_lossy();
        PROVIDERS.iter().any(|(scheme, _)| text.starts_with(scheme))
    }

    /// Returns the key for requests.
    pub(super) fn object_key(&self) -> Result<Key, Failure> {
        Key::parse(&self.key).map_err(|_| {
            let message = format!("`{self}` is not a valid object name");
            Failure::usage(message, "choose another name with `-o`")
        })
    }

    /// Parses `name`; `None` if it is not an address in object storage.
    pub(crate) fn parse(name: &Path) -> Result<Option<Self>, Failure> {
        let text = name.to_string_lossy();
        let Some((scheme, provider)) = PROVIDERS
            .iter()
            .find(|(scheme, _)| text.starts_with(scheme))
        else {
            return Ok(None);
        };
        let bucket_noun = provider.bucket_noun();
        let refuse = |why: String| {
            let hint = format!("write it like {scheme}{bucket_noun}/exports/batches.csv");
            Failure::usage(format!("`{text}` {why}"), hint)
        };
        let (bucket, key) = text[scheme.len()..].split_once('/').unwrap_or_default();
        if bucket.is_empty() {
            return Err(refuse(format!(
                "does not name a {bucket_noun} and an object in it"
            )));
        }
        // Any other character would change the address of the requests.
        let is_plain =
            |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
        if !bucket.chars().all(is_plain) {
            return Err(refuse(format!("has an invalid {bucket_noun} name")));
        }
        if key.is_empty() || key.ends_with('/') {
            return Err(refuse("names a folder: name a file in it".to_owned()));
        }
        let is_odd = |part: &str| part.is_empty() || part == "." || part == "..";
        if key.split('/').any(is_odd) {
            return Err(refuse(
                "has a path segment that is empty or consists of dots".to_owned(),
            ));
        }
        if key.chars().any(char::is_control) || name.to_str().is_none() {
            return Err(refuse("contains invalid characters".to_owned()));
        }
        Ok(Some(Self {
            provider: *provider,
            bucket: bucket.to_owned(),
            key: key.to_owned(),
        }))
    }
}

impl fmt::Display for ObjectAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut known = PROVIDERS.iter();
        let known = known.find(|(_, provider)| *provider == self.provider);
        let scheme = known.map_or("", |(scheme, _)| scheme);
        write!(f, "{scheme}{}/{}", self.bucket, self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    fn parse(text: &str) -> Result<Option<ObjectAddress>, Failure> {
        ObjectAddress::parse(Path::new(text))
    }

    #[test]
    fn file_names_are_not_addresses() {
        for text in ["a.csv", "s3:/b/a.csv", "./s3://b/a.csv", "-", "S3/a.csv"] {
            assert_eq!(parse(text).expect(text), None, "{text}");
        }
    }

    #[test]
    fn addresses_are_parsed_and_formatted() {
        for (text, provider, bucket, key) in [
            ("s3://b/a.csv", Provider::S3, "b", "a.csv"),
            ("gs://b.c/d e/a?#.csv", Provider::Gcs, "b.c", "d e/a?#.csv"),
            ("az://b-1/x%2Fy.csv", Provider::Azure, "b-1", "x%2Fy.csv"),
        ] {
            let address = parse(text).expect(text).expect("an address");
            let parts = (address.provider, &*address.bucket, &*address.key);
            assert_eq!(parts, (provider, bucket, key));
            assert_eq!(address.to_string(), text);
        }
    }

    #[test]
    fn invalid_object_names_are_refused() {
        for text in [
            "s3://",
            "s3://b",
            "s3://b/",
            "s3:///a.csv",
            "s3://b/a/",
            "s3://b//a.csv",
            "s3://b/../a.csv",
            "s3://b/a/./b.csv",
            "s3://b@evil/a.csv",
            "s3://b:9/a.csv",
            "gs://b/a\n.csv",
            "az://{year}/a.csv",
        ] {
            assert_eq!(parse(text).expect_err(text).kind, Kind::Usage, "{text}");
        }
    }
}
