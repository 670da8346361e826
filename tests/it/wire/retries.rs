//! Which errors are retried, and with what delays.

use std::time::{Duration, SystemTime};

use super::{export, for_auth, in_parallel, one_page, service, token};
use crate::fake::{Answer, FakeService, Received};

fn gaps(asked: &[Received]) -> Vec<Duration> {
    let pairs = asked.windows(2);
    pairs
        .map(|pair| pair[1].at.duration_since(pair[0].at).unwrap_or_default())
        .collect()
}

#[test]
fn retry_after_in_seconds_is_the_minimum_delay() {
    let cases = [(429, false), (503, false), (500, false), (429, true)];
    in_parallel(&cases, |&(status, auth)| {
        let busy = Answer::error(status, "busy").header("Retry-After", "1");
        let (auth, batches, end) = if auth {
            (vec![busy, token()], vec![one_page()], "/auth")
        } else {
            (vec![token()], vec![busy, one_page()], "/batches")
        };
        let service = FakeService::answering(auth, batches);
        export(&service, &[]).expect(0);
        let gaps = gaps(&service.requests_for(end));
        assert!(
            matches!(gaps[..], [gap] if gap >= Duration::from_millis(990)),
            "{gaps:?}"
        );
    });
}

#[test]
fn retry_after_as_a_date_is_the_minimum_delay() {
    let when = SystemTime::now() + Duration::from_secs(3);
    let date = httpdate::fmt_http_date(when);
    let busy = Answer::error(503, "busy").header("Retry-After", &date);
    let service = service([busy, one_page()]);
    export(&service, &[]).expect(0);
    let asked = service.requests_for("/batches");
    let when = httpdate::parse_http_date(&date).unwrap();
    assert!(
        asked[1].at >= when - Duration::from_millis(20),
        "{:?} before {date}",
        asked[1].at
    );
}

#[test]
fn an_invalid_retry_after_is_tolerated() {
    for value in [
        "-1",
        "0",
        "",
        "soon",
        "1.5",
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "\u{f6}",
        "0x10",
    ] {
        let busy = Answer::error(503, "busy").header("Retry-After", value);
        let service = service([busy, one_page()]);
        let exported = export(&service, &[]).expect(0);
        assert_eq!(exported.ids().len(), 1, "{value}");
    }
}

#[test]
fn a_503_waits_for_the_configured_delay_each_time() {
    let failing = Answer::error(503, "sick");
    let service = service([failing.clone(), failing.clone(), failing, one_page()]);
    let exported = export(&service, &["--retries", "3", "--retry-wait", "400ms"]).expect(0);
    let gaps = gaps(&service.requests_for("/batches"));
    assert_eq!(gaps.len(), 3);
    for gap in gaps {
        let millis = gap.as_millis();
        assert!((298..=1400).contains(&millis), "{millis}");
    }
    assert_eq!(
        exported.stderr.matches("trying again").count(),
        3,
        "{}",
        exported.stderr
    );
}

#[test]
fn other_errors_back_off_exponentially_from_a_quarter() {
    let service = service([
        Answer::error(500, "sick"),
        one_page().cut_at(9),
        Answer::error(429, "busy"),
        one_page(),
    ]);
    export(&service, &["--retries", "3", "--retry-wait", "800ms"]).expect(0);
    let gaps: Vec<u128> = gaps(&service.requests_for("/batches"))
        .iter()
        .map(Duration::as_millis)
        .collect();
    for (gap, (least, most)) in gaps.iter().zip([(148, 250), (298, 500), (598, 1000)]) {
        assert!((least..=most + 800).contains(gap), "{gaps:?}");
    }
    assert_eq!(gaps.len(), 3);
}

#[test]
fn only_retryable_statuses_are_retried() {
    let cases: Vec<(u16, bool)> = [
        400, 401, 402, 403, 404, 405, 406, 408, 409, 410, 413, 415, 418, 422, 425, 429, 431, 451,
        500, 501, 502, 503, 504, 505, 507, 511, 599,
    ]
    .into_iter()
    .flat_map(|status| [(status, false), (status, true)])
    .collect();
    in_parallel(&cases, |&(status, auth)| {
        let error = Answer::error(status, "no");
        let service = if auth {
            for_auth(error)
        } else {
            service([error])
        };
        let exported = export(&service, &["--api", "v2", "--retries", "2"]);
        let code = match status {
            401 | 403 => 4,
            429 | 500.. => 5,
            _ => 6,
        };
        assert_eq!(exported.code, code, "{status} {auth}: {}", exported.stderr);
        let wanted = match status {
            429 | 500 | 502 | 503 | 504 => 3,
            // Repeated with a new token.
            401 | 403 if !auth => 2,
            _ => 1,
        };
        let end = if auth { "/auth" } else { "/batches" };
        assert_eq!(service.requests_for(end).len(), wanted, "{status} {auth}");
        let shown = exported.has(&status.to_string()) && exported.has(end) && exported.has("no");
        assert!(shown, "{}", exported.stderr);
    });
}

#[test]
fn auth_is_retried_like_any_other_request() {
    let auth = vec![
        Answer::error(503, "sick"),
        Answer::error(500, "sick"),
        token().cut_at(120),
        token().cut_at(0).reset(),
        token(),
    ];
    let service = FakeService::answering(auth, vec![one_page()]);
    export(&service, &["--retries", "3"]).expect(5);
    assert_eq!(service.names().len(), 4, "{:?}", service.names());
    drop(service);
    let auth = vec![Answer::error(503, "sick"), token()];
    let service = FakeService::answering(auth, vec![one_page()]);
    assert_eq!(export(&service, &[]).expect(0).ids(), ["b1"]);
}

#[test]
fn a_status_is_reported_even_if_its_body_is_not_decodable() {
    let unavailable = Answer::error(503, "ill").header("Content-Encoding", "br");
    let exported = export(&service([unavailable, one_page()]), &[]).expect(0);
    assert!(exported.has("answered 503"), "{}", exported.stderr);
    let packed = one_page().header("Content-Encoding", "br");
    let exported = export(&service([packed]), &[]).expect(7);
    assert!(
        exported.has("content encoding is not supported"),
        "{}",
        exported.stderr
    );
}
