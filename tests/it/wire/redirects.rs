//! Redirects: followed only within the service, and never with the credentials.

use super::{TOKEN, export, for_auth, in_parallel, one_page, service, token};
use crate::fake::{Answer, FakeService, cursor};

#[test]
fn a_redirect_to_another_origin_is_never_followed() {
    let trap = FakeService::answering(vec![token()], vec![one_page()]);
    let other = trap.base_url();
    let port = trap.address.port();
    let places = [
        format!("{other}/v2/batches?given={TOKEN}"),
        format!("//127.0.0.1:{port}/v2/auth"),
        format!("http://localhost:{port}/v2/batches"),
        format!("https://127.0.0.1:{port}/"),
        format!("\\\\127.0.0.1:{port}\\v2"),
    ];
    let cases: Vec<(u16, &String)> = [301, 302, 303, 307, 308]
        .into_iter()
        .flat_map(|status| places.iter().map(move |place| (status, place)))
        .collect();
    in_parallel(&cases, |&(status, place)| {
        let redirect = Answer::redirect(status, place);
        for service in [for_auth(redirect.clone()), service([redirect.clone()])] {
            let exported = export(&service, &["-vv"]);
            assert_eq!(exported.code, 13, "{status} {place}: {}", exported.stderr);
            let last = service.requests().pop().unwrap();
            assert_eq!(last.nth, 0, "{status} {place}: asked once");
        }
    });
    assert_eq!(trap.connections(), 0, "{:?}", trap.names());
}

#[test]
fn a_redirect_to_another_kind_of_address_names_it() {
    for (place, shown) in [
        ("file:///etc/passwd", "file:///etc/passwd"),
        ("mailto:someone", "mailto:someone"),
        ("ftp://user:hunter2@host/a?b=c", "ftp://host/a"),
        (&format!("data:,{TOKEN}"), "data:,…"),
    ] {
        let exported = export(&service([Answer::redirect(302, place)]), &["-vv"]).expect(13);
        let says = format!("GET /v2/batches was redirected to {shown}\n");
        assert!(exported.has(&says), "{place}: {}", exported.stderr);
        assert!(!exported.has("base URL"), "{place}: {}", exported.stderr);
        assert!(!exported.has("hunter2"), "{place}: {}", exported.stderr);
    }
}

#[test]
fn a_get_redirect_within_the_service_is_followed() {
    for status in [301, 302, 303, 307, 308] {
        let service = FakeService::start(move |asked| match asked.path() {
            "/v2/auth" => token(),
            "/v2/batches" => Answer::redirect(status, "/elsewhere/batches?page=1"),
            "/elsewhere/batches" => one_page(),
            path => Answer::error(404, path),
        });
        assert_eq!(
            export(&service, &["--api", "v2"]).expect(0).ids(),
            ["b1"],
            "{status}"
        );
        let last = service.requests().pop().unwrap();
        assert_eq!(
            (last.method.as_str(), last.target.as_str()),
            ("GET", "/elsewhere/batches?page=1")
        );
        assert_eq!(last.headers("authorization"), [format!("Bearer {TOKEN}")]);
    }
}

#[test]
fn a_redirect_from_a_connection_that_ends_unannounced_is_followed() {
    // Whoever sends the second request on the same connection gets no answer.
    let service = FakeService::start(|asked| match asked.path() {
        "/v2/auth" => token(),
        "/v2/batches" => Answer::redirect(302, "/elsewhere/batches"),
        _ if asked.is_reused => one_page().cut_at(0),
        _ => one_page(),
    });
    let exported = export(&service, &["--retries", "3"]).expect(0);
    assert_eq!(exported.ids(), ["b1"]);
}

#[test]
fn a_redirect_that_drops_the_dates_is_not_followed() {
    for (target, start_alone, both) in [
        ("/v2/batches/", 7, 7),
        ("/v2/batches/?page=1", 7, 7),
        ("/v2/batches/?start_date=2026-01-01T00:00:00Z", 0, 7),
    ] {
        let service = FakeService::start(move |asked| match asked.path() {
            "/v2/auth" => token(),
            "/v2/batches" => Answer::redirect(307, target),
            _ => one_page(),
        });
        export(&service, &["--api", "v2"]).expect(0);
        export(&service, &["--api", "v2", "--start", "2026"]).expect(start_alone);
        let exported = export(&service, &["--api", "v2", "--period", "2026"]).expect(both);
        let why = "the redirect to /v2/batches/ drops the dates or the cursor";
        assert!(exported.stderr.contains(why), "{}", exported.stderr);
    }
}

#[test]
fn a_redirect_with_a_password_does_not_change_the_credentials() {
    let service = FakeService::start(|asked| match asked.path() {
        "/v2/auth" => token(),
        "/v2/batches" => {
            let host = asked.headers("host")[0].to_owned();
            Answer::redirect(302, &format!("http://user:hunter2@{host}/elsewhere"))
        }
        _ => one_page(),
    });
    let exported = export(&service, &["--api", "v2", "-vv"]);
    assert!(!exported.has("hunter2"), "{}", exported.stderr);
    for asked in service.requests_for("/elsewhere") {
        assert_eq!(
            asked.headers("authorization"),
            [format!("Bearer {TOKEN}")],
            "only our credentials are sent"
        );
    }
}

#[test]
fn credentials_do_not_follow_a_redirect() {
    for status in [301, 302, 303, 307, 308] {
        let service = FakeService::start(move |asked| match asked.path() {
            "/v2/auth" => Answer::redirect(status, "/elsewhere/auth"),
            _ => token(),
        });
        let exported = export(&service, &[]).expect(7);
        assert_eq!(service.names(), ["POST /v2/auth"], "{status}");
        let says = format!("POST /v2/auth answered {status} and redirects to /elsewhere/auth");
        assert!(exported.has(&says), "{}", exported.stderr);
    }
}

#[test]
fn a_redirect_loop_fails() {
    let service = FakeService::start(|asked| match asked.path() {
        "/v2/auth" => token(),
        _ => Answer::redirect(302, &format!("/v2/batches?round={}", asked.nth % 2)),
    });
    export(&service, &[]).expect(7);
    assert!(
        service.requests_for("/batches").len() <= 12,
        "{}",
        service.requests().len()
    );
    // Every redirect leads to a new address.
    let service = FakeService::start(|asked| match asked.path() {
        "/v2/auth" => token(),
        _ => Answer::redirect(302, &format!("/v2/batches?round={}", asked.nth)),
    });
    export(&service, &[]).expect(7);
    assert!(
        service.requests_for("/batches").len() <= 12,
        "{}",
        service.requests().len()
    );
}

#[test]
fn a_redirect_without_a_usable_location_is_a_protocol_error() {
    for place in ["http://", "http://[", "http://127.0.0.1:99999/"] {
        export(&service([Answer::redirect(302, place)]), &[]).expect(7);
    }
    for status in [300, 304, 302] {
        let service = service([Answer::status(status, "")]);
        export(&service, &[]).expect(7);
        assert_eq!(service.requests_for("/batches").len(), 1);
    }
}

#[test]
fn a_failure_after_a_redirect_names_its_destination() {
    for (answer, says) in [
        (
            Answer::error(422, "no"),
            "answered 422 (redirected to /sign-in/…): no",
        ),
        (
            Answer::ok("<html>Sign in</html>"),
            "(redirected to /sign-in/…)",
        ),
        (
            Answer::redirect(302, &format!("/sign-in/{TOKEN}?again")),
            "too many redirects, the last one to /sign-in/…",
        ),
    ] {
        let service = FakeService::start(move |asked| match asked.path() {
            "/v2/auth" => token(),
            "/v2/batches" => {
                let place = format!("/sign-in/{TOKEN}?next_token={}&a=1", cursor(1));
                Answer::redirect(302, &place)
            }
            _ => answer.clone(),
        });
        let exported = export(&service, &["--api", "v2", "-vv"]);
        assert!(exported.has(says), "{}", exported.stderr);
        assert!(!exported.has("a=1"), "{}", exported.stderr);
        let log = "GET /v2/batches: redirected to /sign-in/…";
        assert!(exported.has(log), "{}", exported.stderr);
    }
}
