//! Tokens: renewed once and in time, and validated.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;

use super::{TOKEN, batch, export, for_auth, in_parallel, one_page, page, service, token};
use crate::fake::{Answer, Batch, FakeService, cursor};

#[test]
fn a_refused_token_is_renewed_once_and_the_request_repeated() {
    for status in [401, 403] {
        let auth = vec![token(), Answer::ok("{\"access_token\":\"token-0815\"}")];
        let refused = Answer::error(status, "expired");
        let service = FakeService::answering(auth, vec![refused, one_page()]);
        assert_eq!(
            export(&service, &["--retries", "0"]).expect(0).ids(),
            ["b1"]
        );
        let names = [
            "POST /v2/auth",
            "GET /v2/batches",
            "POST /v2/auth",
            "GET /v2/batches",
        ];
        assert_eq!(service.names(), names);
        assert_eq!(
            service.requests()[3].headers("authorization"),
            ["Bearer token-0815"]
        );
    }
}

#[test]
fn an_expired_token_may_be_refused_with_any_status() {
    for status in [400, 404, 410, 419, 422, 440, 498] {
        // The first token is good for two pages.
        let (tokens, uses) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let service = FakeService::start(move |asked| {
            if asked.path().ends_with("/auth") {
                let number = tokens.fetch_add(1, Ordering::Relaxed);
                return Answer::ok(format!("{{\"access_token\":\"token-no-{number}\"}}"));
            }
            let is_first = tokens.load(Ordering::Relaxed) == 1;
            if is_first && uses.fetch_add(1, Ordering::Relaxed) >= 2 {
                return Answer::error(status, "no");
            }
            match asked.query("next_token").as_deref() {
                None => Answer::ok(page(&[batch("b1")], Some("page-two"))),
                Some("page-two") => Answer::ok(page(&[batch("b2")], Some("page-three"))),
                _ => Answer::ok(page(&[batch("b3")], None)),
            }
        });
        let exported = export(&service, &["--parallel", "1"]).expect(0);
        assert_eq!(exported.ids(), ["b1", "b2", "b3"], "{status}");
    }
}

#[test]
fn a_token_refused_twice_fails_the_run() {
    for status in [401, 403] {
        let service = service([Answer::error(status, "no")]);
        export(&service, &["--retries", "3"]).expect(4);
        let names = [
            "POST /v2/auth",
            "GET /v2/batches",
            "POST /v2/auth",
            "GET /v2/batches",
        ];
        assert_eq!(service.names(), names);
    }
}

#[test]
fn a_token_refused_during_the_run_loses_no_batches() {
    let service = service([
        Answer::ok(page(&[batch("b1")], Some(&cursor(1)))),
        Answer::error(401, "expired"),
        Answer::ok(page(&[batch("b2")], Some(&cursor(2)))),
        Answer::error(401, "expired"),
        Answer::ok(page(&[batch("b3")], None)),
    ]);
    assert_eq!(export(&service, &[]).expect(0).ids(), ["b1", "b2", "b3"]);
    assert_eq!(service.requests_for("/auth").len(), 3);
}

#[test]
fn an_invalid_token_response_is_a_protocol_error() {
    let huge = json!({ "access_token": "x".repeat(1 << 20) }).to_string();
    let bodies = [
        "{}",
        "{\"token\":\"x\"}",
        "{\"access_token\":null}",
        "{\"access_token\":5}",
        "{\"access_token\":[\"x\"]}",
        "{\"access_token\":{\"a\":\"x\"}}",
        "{\"access_token\":\"\"}",
        "{\"access_token\":\"a\\nb\"}",
        "{\"access_token\":\"a\\r\\nX-More: 1\"}",
        "{\"access_token\":\"a b\"}",
        "{\"access_token\":\"\\u0000\"}",
        "{\"access_token\":\"t\u{f6}ken\"}",
        "[]",
        "[{\"access_token\":\"x\"}]",
        "\"token\"",
        "null",
        "token",
        "access_token=x",
        "<html></html>",
        "{\"access_token\":\"x\"} more",
        &huge,
    ];
    in_parallel(&bodies, |body| {
        let service = for_auth(Answer::ok(body));
        let exported = export(&service, &[]);
        let shown = &body[..body.len().min(60)];
        assert_eq!(exported.code, 7, "{shown}: {}", exported.stderr);
        assert!(
            exported.has("POST /v2/auth"),
            "{shown}: {}",
            exported.stderr
        );
        assert_eq!(service.names(), ["POST /v2/auth"], "{shown}");
    });
}

#[test]
fn an_invalid_expires_in_is_tolerated() {
    let values = [
        "\"3600\"",
        "\"soon\"",
        "-1",
        "0",
        "null",
        "true",
        "[]",
        "{}",
        "0.5",
        "3600.0",
        "1e3",
        "1e999",
        "-1e999",
        "9223372036854775807",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999999999",
    ];
    in_parallel(&values, |value| {
        let body = format!("{{\"access_token\":\"{TOKEN}\",\"expires_in\":{value}}}");
        let service = FakeService::answering(
            vec![Answer::ok(body)],
            vec![
                Answer::ok(page(&[batch("b1")], Some(&cursor(1)))),
                Answer::ok(page::<Batch>(&[], None)),
            ],
        );
        let exported = export(&service, &[]);
        assert_eq!(exported.code, 0, "{value}: {}", exported.stderr);
        assert_eq!(service.requests_for("/batches").len(), 2, "{value}");
        assert!(service.requests_for("/auth").len() <= 3, "{value}");
    });
}

#[test]
fn a_token_that_expires_soon_is_renewed_in_time() {
    let auth = Answer::ok(format!("{{\"access_token\":\"{TOKEN}\",\"expires_in\":1}}"));
    let slow = Duration::from_millis(1100);
    let service = FakeService::answering(
        vec![auth],
        vec![
            Answer::ok(page(&[batch("b1")], Some(&cursor(1)))).after(slow),
            Answer::ok(page(&[batch("b2")], None)),
        ],
    );
    assert_eq!(export(&service, &[]).expect(0).ids(), ["b1", "b2"]);
    let names = [
        "POST /v2/auth",
        "GET /v2/batches",
        "POST /v2/auth",
        "GET /v2/batches",
    ];
    assert_eq!(service.names(), names);
}

#[test]
fn refused_credentials_do_not_mention_ranges_or_cursors() {
    let refusal = || {
        Answer::status(
            422,
            json!({"detail": [{"type": "x", "loc": ["body"], "msg": "no"}]}).to_string(),
        )
    };
    for api in ["v1", "v2"] {
        let service = FakeService::answering(vec![refusal()], vec![one_page()]);
        export(&service, &["--api", api]).expect(6);
        assert_eq!(service.requests().len(), 1, "{api}");
    }
    // During the run: a refused renewal is final.
    let first = Answer::ok(page(&[batch("b1")], Some(&cursor(1))));
    let service = FakeService::answering(
        vec![token(), refusal()],
        vec![first, Answer::error(401, "no")],
    );
    let exported = export(&service, &["--start", "2026"]).expect(6);
    assert!(!exported.has("from its start"), "{}", exported.stderr);
    assert_eq!(service.requests_for("/auth").len(), 2);
}
