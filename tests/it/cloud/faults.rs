//! Failing stores: busy, silent, or with responses lost after the request was processed.

// Responses that never arrive.
mod lost;

// Delays, timeouts, further attempts.
mod retries;

// Uploads that end early.
mod uploads;

use super::proxy::{Fault, Proxy, answer};
use super::{Bucket, assert_code};
use crate::harness::{Output, Run, Server};

/// Short delays for tests, with more than one retry.
const FAST: [&str; 4] = ["--retries", "3", "--retry-wait", "20ms"];

/// A bucket behind a proxy.
struct ProxiedBucket {
    bucket: Bucket,
    proxy: Proxy,
}

impl ProxiedBucket {
    fn new(scheme: &'static str) -> Option<Self> {
        let bucket = Bucket::new(scheme, "behind")?;
        let proxy = Proxy::start(&bucket.endpoint());
        Some(Self { bucket, proxy })
    }

    fn all() -> Vec<Self> {
        let schemes = ["s3", "gs", "az"];
        schemes
            .iter()
            .filter_map(|scheme| Self::new(scheme))
            .collect()
    }

    /// Sends a command through the proxy.
    fn command(&self, mut command: Run) -> Run {
        let endpoint = self.proxy.instead_of(&self.bucket.endpoint());
        self.bucket.use_endpoint(&mut command, &endpoint);
        command
    }

    fn export_command(&self, server: &Server, args: &[&str]) -> Run {
        self.command(self.bucket.export_command(server, args))
    }

    fn export(&self, server: &Server, args: &[&str]) -> Output {
        self.bucket.ended(&mut self.export_command(server, args))
    }

    fn verify(&self, args: &[&str]) -> Output {
        let words = [&["verify"], args].concat();
        self.bucket
            .ended(&mut self.command(self.bucket.command(&words)))
    }

    /// Applies `fault` to the next `times` requests that write a whole object.
    fn rule_for_whole(&self, times: usize, fault: Fault) {
        self.proxy.rule(times, fault, is_whole_put);
    }

    /// Applies `fault` to the next `times` requests that complete a multipart upload.
    fn rule_for_end(&self, times: usize, fault: Fault) {
        self.proxy.rule(times, fault, is_completion);
    }
}

fn is_whole_put(line: &str) -> bool {
    line.starts_with("PUT ") && !line.contains('?')
}

fn is_beginning(line: &str) -> bool {
    line.starts_with("POST ") && line.contains("uploads")
}

fn is_completion(line: &str) -> bool {
    line.starts_with("POST ") && line.contains("uploadId=")
        || line.starts_with("PUT ") && line.contains("comp=blocklist")
}

#[test]
fn common_mistakes_are_reported_with_a_hint() {
    let server = Server::start(&["--batches", "20"]);
    let Some(proxied) = ProxiedBucket::new("s3") else {
        return;
    };
    let address = proxied.bucket.address("a.csv");
    for (fault, hint) in [
        (
            answer(
                "301 Moved Permanently",
                "x-amz-bucket-region: eu-west-1\r\n",
                "PermanentRedirect",
                "",
            ),
            "is in the region eu-west-1: set AWS_REGION=eu-west-1",
        ),
        (
            answer(
                "400 Bad Request",
                "",
                "AuthorizationHeaderMalformed",
                "<Region>eu-north-1</Region>",
            ),
            "set AWS_REGION=eu-north-1",
        ),
        (
            answer("301 Moved Permanently", "", "PermanentRedirect", ""),
            "set AWS_REGION to the region of the bucket",
        ),
        (
            answer("400 Bad Request", "", "ExpiredToken", ""),
            "the temporary credentials have expired",
        ),
        (
            answer("403 Forbidden", "", "RequestTimeTooSkewed", ""),
            "the clock of this machine is wrong",
        ),
        (
            answer(
                "403 Forbidden",
                "Date: Mon, 01 Jan 2001 00:00:00 GMT\r\n",
                "InvalidAccessKeyId",
                "",
            ),
            "the clock of this machine is wrong",
        ),
        (
            answer(
                "403 Forbidden",
                "x-amz-bucket-region: us-east-1\r\n",
                "AccessDenied",
                "",
            ),
            "need the permissions s3:PutObject",
        ),
    ] {
        proxied
            .proxy
            .rule(1, fault, |line| line.contains("uploads"));
        let args = [&["-o", &*address, "--message-format", "json"], &FAST[..]].concat();
        let failed = proxied.export(&server, &args);
        assert_code(&failed, 8);
        proxied.proxy.assert_done();
        let error = failed.error();
        assert!(error["hint"].as_str().unwrap().contains(hint), "{error}");
        assert_eq!(error["retry_later"], false);
        assert!(!failed.stderr.contains("trying again"), "{failed:?}");
    }
    assert!(proxied.bucket.list().is_empty());
}
