//! Version 1 is used only if version 2 is missing.

use std::collections::HashSet;

use super::{batch, export, page, service, token};
use crate::fake::{Answer, Batch, FakeService, cursor, list, second};

/// A service whose version 2 returns `status`, for auth or for batches, and whose version 1 works.
fn without_version_2(status: u16, auth: bool) -> FakeService {
    FakeService::start(move |asked| match asked.path() {
        "/v2/auth" if auth => Answer::error(status, "no"),
        "/v1/auth" => Answer::ok("{\"access_token\":\"token-of-v1\"}"),
        "/v2/auth" => token(),
        "/v1/batches" => Answer::ok(format!("[{}]", batch("b1"))),
        _ => Answer::error(status, "no"),
    })
}

#[test]
fn version_1_is_used_if_version_2_is_missing() {
    for (status, auth) in [404, 405, 410, 501]
        .into_iter()
        .flat_map(|status| [(status, true), (status, false)])
    {
        let service = without_version_2(status, auth);
        let exported = export(&service, &[]).expect(0);
        assert_eq!(exported.ids(), ["b1"]);
        let mut names = vec!["POST /v2/auth", "POST /v1/auth", "GET /v1/batches"];
        if !auth {
            names.insert(1, "GET /v2/batches");
        }
        assert_eq!(service.names(), names, "{status}");
        let last = service.requests().pop().unwrap();
        assert_eq!(
            last.headers("authorization"),
            ["Bearer token-of-v1"],
            "version 1 gets its own token"
        );
        let warning = exported
            .stderr
            .lines()
            .find(|line| line.starts_with("warning:"));
        let warning = warning.unwrap_or_else(|| panic!("{}", exported.stderr));
        assert!(
            warning.contains("version 1") && warning.contains(&status.to_string()),
            "{warning}"
        );
    }
}

#[test]
fn version_1_is_not_used_if_version_2_fails_or_refuses() {
    for (status, auth) in [500, 503, 502, 429, 401, 403, 422, 400, 406]
        .into_iter()
        .flat_map(|status| [(status, true), (status, false)])
    {
        let service = without_version_2(status, auth);
        let exported = export(&service, &[]);
        assert_ne!(exported.code, 0, "{status}");
        let names = service.names();
        assert!(
            !names.iter().any(|name| name.contains("/v1/")),
            "{status}: {names:?}"
        );
        if matches!(status, 500 | 503) {
            assert!(
                exported.has("--api v1"),
                "the hint names it: {}",
                exported.stderr
            );
        }
    }
}

#[test]
fn a_requested_version_is_the_only_one_used() {
    let service = without_version_2(404, false);
    export(&service, &["--api", "v2"]).expect(6);
    assert_eq!(service.names(), ["POST /v2/auth", "GET /v2/batches"]);
    let service = FakeService::start(|asked| match asked.path() {
        "/v1/auth" => token(),
        _ => Answer::error(404, "no"),
    });
    export(&service, &["--api", "v1"]).expect(6);
    assert_eq!(service.names(), ["POST /v1/auth", "GET /v1/batches"]);
}

#[test]
fn a_service_without_any_version_is_reported_once_per_version() {
    let service = FakeService::start(|_| Answer::error(404, "no"));
    let exported = export(&service, &[]).expect(6);
    assert!(exported.has("base URL"), "{}", exported.stderr);
    assert_eq!(service.names(), ["POST /v2/auth", "POST /v1/auth"]);
}

#[test]
fn a_404_during_the_run_does_not_fall_back_to_version_1() {
    let service = service([
        Answer::ok(page(&[batch("b1")], Some(&cursor(1)))),
        Answer::error(404, "no such cursor"),
    ]);
    export(&service, &[]).expect(6);
    let names = service.names();
    assert!(!names.iter().any(|name| name.contains("/v1/")), "{names:?}");
    assert!(names.len() < 20, "{names:?}");
}

#[test]
fn version_1_may_have_batches_that_no_date_selects() {
    // The dates may be compared with a field that some batches lack: only a request without dates returns these.
    let first = second("2026-05-01T00:00:00Z");
    for lacking in [vec![3, 700, 1499], (0..1500).collect()] {
        let service = FakeService::start(move |asked| {
            if asked.path().ends_with("/auth") {
                return token();
            }
            let [start, end] = ["start_date", "end_date"].map(|name| asked.query(name));
            let dated = start.is_some() || end.is_some();
            let [start, end] = [start, end].map(|date| date.as_deref().map(second));
            let found = (0..1500).filter(|number| {
                let created = first + number * 3600;
                let inside = start.is_none_or(|start| start <= created)
                    && end.is_none_or(|end| created <= end);
                inside && !(dated && lacking.contains(number))
            });
            let found = found.map(|number| {
                Batch::small(&format!("b{number}")).created_at(first + number * 3600)
            });
            Answer::ok(list(&found.collect::<Vec<_>>()))
        });
        for workers in ["1", "4"] {
            let exported = export(&service, &["--api", "v1", "--parallel", workers]).expect(0);
            let ids: HashSet<String> = exported.ids().into_iter().collect();
            assert_eq!((exported.ids().len(), ids.len()), (1500, 1500), "{workers}");
        }
    }
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn version_1_ignoring_dates_is_detected() {
        let all: Vec<Batch> = (0..1000)
            .map(|number| Batch::small(&format!("b{number}")))
            .collect();
        let answer = Answer::ok(list(&all));
        for (workers, most) in [("1", 200), ("4", 400)] {
            let service = service([answer.clone()]);
            let exported = export(&service, &["--api", "v1", "--parallel", workers]).expect(7);
            assert!(exported.has("for different dates"), "{}", exported.stderr);
            let asked = service.requests().len();
            assert!(asked < most, "{asked} with {workers}");
        }
    }
}
