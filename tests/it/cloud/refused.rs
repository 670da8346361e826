//! Targets, credentials and certificates that are refused.

use std::fs;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use tempfile::TempDir;

use super::{Bucket, assert_code};
use crate::files::with_mount;
use crate::harness::{Run, Server};

#[test]
fn unwritable_targets_are_detected_before_the_first_request() {
    let server = Server::start(&["--batches", "20"]);
    for bucket in Bucket::all() {
        for name in ["a.csv", "a.sqlite", "{year}.csv"] {
            let address = format!("{}://no-such-place/{name}", bucket.scheme);
            let failed = bucket.export(&server, &["-o", &address]);
            assert_code(&failed, 8);
            assert!(
                failed
                    .stderr
                    .contains("no-such-place` may not exist: create it first"),
                "{failed:?}"
            );
        }
        let address = bucket.address("a.csv");
        let (variable, path) = match bucket.scheme {
            "s3" => ("AWS_ENDPOINT_URL", ""),
            "gs" => ("GOOGLE_BASE_URL", ""),
            _ => ("AZURE_STORAGE_ENDPOINT", "/devstoreaccount1"),
        };
        for (endpoint, code, words) in [
            ("http://127.0.0.1:1", 5, "no response"),
            (
                "http://storage.invalid",
                13,
                "plain http to another machine",
            ),
            ("ftp://127.0.0.1", 2, "is not a valid address"),
        ] {
            let mut command = bucket.export_command(&server, &["-o", &address]);
            let failed = bucket.ended(command.env(variable, format!("{endpoint}{path}")));
            assert_code(&failed, code);
            assert!(failed.stderr.contains(words), "{failed:?}");
        }
        // The metadata service of the test machine must not be used.
        let mut command = bucket.export_command(&server, &["-o", &address]);
        for name in [
            "AWS_EC2_METADATA_DISABLED",
            "NO_GCE_CHECK",
            "AZURE_METADATA_DISABLED",
        ] {
            command.env(name, "true");
        }
        for name in [
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "AZURE_STORAGE_ACCOUNT_KEY",
        ] {
            command.env_remove(name);
        }
        let failed = bucket.ended(&mut command);
        assert_code(&failed, 2);
        assert!(failed.stderr.contains("no credentials for"), "{failed:?}");
        assert!(bucket.list().is_empty());
        bucket.assert_no_incomplete_uploads();
    }
    let log = server.stop();
    assert!(!log.stderr.contains("/v2/"), "requests were sent: {log:?}");
}

#[test]
fn a_wrong_key_is_reported_without_showing_it() {
    let server = Server::start(&["--batches", "20"]);
    let Some(bucket) = Bucket::new("az", "locked") else {
        return;
    };
    bucket.ask("put", "a.csv", b"old");
    let address = bucket.address("a.csv");
    let wrong = BASE64_STANDARD.encode("not the key of this account at all");
    for (variable, value) in [
        ("AZURE_STORAGE_ACCOUNT_KEY", wrong.clone()),
        (
            "AZURE_STORAGE_SAS_TOKEN",
            "sv=2024-08-04&ss=b&srt=co&sp=rwl&se=2099-01-01T00:00:00Z&sig=c2VjcmV0LXNpZ25hdHVyZS1oZXJl".to_owned(),
        ),
    ] {
        for (words, code) in [(&["export", "-o"][..], 8), (&["verify"], 4)] {
            let mut command = match words {
                ["verify"] => bucket.command(&["verify", &address]),
                _ => bucket.export_command(&server, &["-o", &address]),
            };
            command.env_remove("AZURE_STORAGE_ACCOUNT_KEY").env(variable, &value);
            let failed = bucket.ended(&mut command);
            assert_code(&failed, code);
            assert!(failed.stderr.contains("it answered 403 Auth"), "{failed:?}");
            for secret in [&*wrong, "c2VjcmV0LXNpZ25hdHVyZS1oZXJl", "sig="] {
                assert!(!failed.stderr.contains(secret), "{failed:?}");
            }
        }
    }
    assert_eq!(bucket.get("a.csv"), b"old");
}

#[test]
fn a_line_break_in_a_credential_is_reported_without_showing_it() {
    let server = Server::start(&["--batches", "20"]);
    for (scheme, variables) in [
        (
            "s3",
            &[
                "AWS_ACCESS_KEY_ID",
                "AWS_SECRET_ACCESS_KEY",
                "AWS_SESSION_TOKEN",
                "AWS_REGION",
            ][..],
        ),
        ("gs", &["GOOGLE_BEARER_TOKEN"]),
        ("az", &["AZURE_STORAGE_TOKEN", "AZURE_STORAGE_KEY"]),
    ] {
        let Some(bucket) = Bucket::new(scheme, "mounted") else {
            continue;
        };
        for variable in variables {
            let address = bucket.address("a.csv");
            let mut command = bucket.export_command(&server, &["-o", &address]);
            command.env(variable, "c2VjcmV0LXZhbHVl\n");
            let refused = bucket.ended(&mut command);
            assert_code(&refused, 2);
            let message = format!("{variable} contains a line break");
            assert!(refused.stderr.contains(&message), "{refused:?}");
            assert!(!refused.stderr.contains("c2VjcmV0"), "{refused:?}");
        }
    }
}

#[test]
fn an_unknown_account_is_reported() {
    let server = Server::start(&["--batches", "20"]);
    let Some(bucket) = Bucket::new("gs", "locked") else {
        return;
    };
    let address = bucket.address("a.csv");
    let other = bucket.local("other.json");
    let account = bucket.servers.google_account.replace("lake@", "pond@");
    fs::write(&other, account).unwrap();
    for (mut command, code) in [
        (bucket.export_command(&server, &["-o", &address]), 8),
        (bucket.command(&["verify", &address]), 4),
    ] {
        command.env("GOOGLE_APPLICATION_CREDENTIALS", &other);
        let failed = bucket.ended(&mut command);
        assert_code(&failed, code);
        for part in ["answered 401 Auth", "check GOOGLE_APPLICATION_CREDENTIALS"] {
            assert!(failed.stderr.contains(part), "{failed:?}");
        }
    }
    assert!(bucket.list().is_empty());
}

#[test]
fn a_missing_object_cannot_be_verified() {
    for bucket in Bucket::all() {
        for args in [
            &[&*bucket.address("none.csv")][..],
            &["-", "--manifest", &bucket.address("none.json")],
        ] {
            let failed = bucket.verify(args);
            assert_code(&failed, 2);
            assert!(failed.stderr.contains("no such object"), "{failed:?}");
        }
    }
}

#[test]
fn a_custom_certificate_is_trusted_if_configured() {
    let server = Server::start(&["--batches", "20"]);
    let Some(bucket) = Bucket::new("s3", "sealed") else {
        return;
    };
    let names = vec!["localhost".to_owned()];
    let certified = rcgen::generate_simple_self_signed(names).unwrap();
    let (certificate, address) = (bucket.local("own.crt"), bucket.address("a.csv"));
    fs::write(&certificate, certified.cert.pem()).unwrap();
    let key = certified.signing_key.serialize_pem();
    fs::write(bucket.local("own.key"), key).unwrap();
    let endpoint = bucket.ask("tls", &bucket.local("own"), &[]);
    let run = |mut command: Run, args: &[&str]| {
        command.env("AWS_ENDPOINT_URL", endpoint.as_str().unwrap());
        bucket.ended(command.args(args))
    };
    let export = || bucket.export_command(&server, &["-o", &address]);
    let verify = || bucket.command(&["verify", &address]);

    let refused = run(export(), &[]);
    assert_code(&refused, 13);
    assert!(refused.stderr.contains("`--ca-cert`"), "{refused:?}");
    assert!(bucket.list().is_empty());
    let trusted = ["--ca-cert", &certificate];
    assert_code(&run(export(), &trusted), 0);
    assert_eq!(bucket.list(), ["a.csv"]);
    assert_code(&run(verify(), &[]), 13);
    assert_code(&run(verify(), &trusted), 0);
    let config = bucket.local("config.toml");
    let profile = format!("[profiles.default]\nca_cert = \"{certificate}\"\n");
    fs::write(&config, profile).unwrap();
    assert_code(&run(verify(), &["--config", &config]), 0);
    assert_code(&run(verify(), &["--ca-cert", &config]), 2);
}

#[test]
fn a_full_disk_for_the_temporary_file_is_reported_and_nothing_is_sent() {
    let server = Server::start(&["--batches", "900"]);
    for bucket in Bucket::all().into_iter().take(1) {
        for name in ["a.xlsx", "a.sqlite"] {
            bucket.ask("put", name, b"old");
            let address = bucket.address(name);
            let inner = bucket.export_command(&server, &["-o", &address]);
            // Only this shell sees the mount, which disappears when it exits.
            let script = "mount -t tmpfs -o size=64k tmpfs \"$TMPDIR\" 2>/dev/null || exit 77
                \"$0\" \"$@\"; code=$?; ls -A \"$TMPDIR\"; exit $code";
            let mut outer = inner.under(&["unshare", "--mount", "/bin/sh", "-c", script]);
            outer.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
            let disk = TempDir::new().unwrap();
            let Some(ended) = with_mount(outer.env("TMPDIR", disk.path())) else {
                return;
            };
            assert_code(&ended, 8);
            assert_eq!(ended.stdout, "", "{ended:?}");
            for part in [&*address, "the disk is full"] {
                assert!(ended.stderr.contains(part), "{ended:?}");
            }
            assert_eq!(bucket.get(name), b"old");
            bucket.assert_no_incomplete_uploads();
        }
    }
}
