//! Every reading of the interface.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::json;

use super::{Probe, STEPS, assert_answers, check};
use crate::fake::readings::{CURSOR, Compared, Readings, TOKEN};

/// Runs the probe against `odd` and asserts that no secret is printed.
pub(super) fn probe_odd(odd: Readings) -> Probe {
    let token = odd.token.clone();
    let service = odd.start();
    let probe = Probe::at(service.address, "hunter2", &["-vv"]);
    let text = check(service.address, "hunter2", &["-vv"]);
    for printed in [&probe.ended, &text] {
        let printed = format!("{printed:?}");
        let parts = token.split(['.', '-']).filter(|part| part.len() > 5);
        for secret in parts.chain([token.as_str(), "hunter2", CURSOR]) {
            assert!(!printed.contains(secret), "{secret} was printed: {printed}");
        }
    }
    for asked in service.requests() {
        let name = asked.name();
        let allowed = [
            "GET /v1/batches",
            "GET /v2/batches",
            "POST /v1/auth",
            "POST /v2/auth",
        ];
        assert!(allowed.contains(&name.as_str()), "{name}");
    }
    assert!(probe.requests() <= 60, "{}", probe.requests());
    probe
}

fn assert_odd(odd: Readings, expected: &[(&str, &str)]) {
    assert_answers(&probe_odd(odd), expected, "odd");
}

#[test]
fn inclusive_and_exclusive_bounds_are_distinguished() {
    let compared = [("date_field_v2", "compares batch_creation_date")];
    for (includes_start, includes_end, answer) in [
        (true, true, "both are included"),
        (true, false, "start_date is included, end_date is not"),
        (false, true, "end_date is included, start_date is not"),
        (false, false, "neither is included"),
    ] {
        let odd = Readings {
            includes_start,
            includes_end,
            ..Readings::default()
        };
        let exact = [
            ("bounds_v2", answer),
            ("bounds_v1", answer),
            ("fractions_v1", "count: "),
        ];
        assert_odd(odd, &[&compared[..], &exact].concat());
    }
    let truncating = Readings {
        truncates: true,
        ..Readings::default()
    };
    assert_odd(
        truncating,
        &[
            ("fractions_v2", "do not count: "),
            ("bounds_v2", "both are"),
        ],
    );
    let truncating = Readings {
        truncates: true,
        includes_start: false,
        includes_end: false,
        ..Readings::default()
    };
    assert_odd(
        truncating,
        &[(
            "fractions_v2",
            "batches created within the second of a bound",
        )],
    );
}

#[test]
fn other_sort_orders_are_recognised() {
    let odd = Readings {
        by_id: true,
        ..Readings::default()
    };
    let order = "by batch_id, ascending";
    assert_odd(
        odd,
        &[
            ("order_v2", order),
            ("order_v1", order),
            ("page_size", "25 batches"),
        ],
    );
}

#[test]
fn kinds_of_cursors_are_distinguished() {
    let once = Readings {
        cursors_once: true,
        ..Readings::default()
    };
    let expected = [
        (
            "dates_with_next_token",
            "optional: the same page is returned",
        ),
        ("next_token_twice", "no: 410 the second time"),
        ("bad_next_token", "400, `detail` is text"),
    ];
    assert_odd(once, &expected);
    let once_with_dates = Readings {
        cursors_once: true,
        needs_dates: true,
        ..Readings::default()
    };
    let expected = [
        ("dates_with_next_token", "required: 400 without them"),
        ("next_token_twice", "no: 410 the second time"),
    ];
    assert_odd(once_with_dates, &expected);
    let anew = Readings {
        starts_anew: true,
        ..Readings::default()
    };
    let expected = [
        (
            "dates_with_next_token",
            "not allowed: with them, the first page is returned again",
        ),
        ("next_token_twice", "yes"),
        ("page_size", "25 batches"),
        ("order_v2", "by batch_creation_date, oldest first"),
    ];
    assert_odd(anew, &expected);
    let forgetful = Readings {
        forgets_dates: true,
        accepts_any_cursor: true,
        ..Readings::default()
    };
    let expected = [
        (
            "dates_with_next_token",
            "required: without them, other batches are returned",
        ),
        ("bad_next_token", "accepted with 200: 25 batches returned"),
    ];
    assert_odd(forgetful, &expected);
}

#[test]
fn a_cursor_that_is_only_a_position_needs_its_dates() {
    let must = "required: without them, other batches are returned";
    for (cursors_once, count, answer) in [
        (false, 60, must),
        (true, 60, must),
        (
            false,
            30,
            "open: a range that leaves batches out has only one page",
        ),
    ] {
        let stateless = Readings {
            stateless: true,
            cursors_once,
            count,
            ..Readings::default()
        };
        assert_odd(stateless, &[("dates_with_next_token", answer)]);
    }
    let ignorant = Readings {
        compared: Compared::Nothing,
        ..Readings::default()
    };
    let answer = "open: a range that leaves batches out returns the same batches";
    assert_odd(ignorant, &[("dates_with_next_token", answer)]);
}

#[test]
fn a_range_that_is_too_long_is_handled() {
    let odd = Readings {
        accepts_centuries: false,
        ..Readings::default()
    };
    let expected = [
        ("page_size", "25 batches"),
        ("order_v2", "by batch_creation_date, oldest first"),
        (
            "dates_with_next_token",
            "open: a range of all dates was refused",
        ),
        ("next_token_twice", "yes"),
        ("bounds_v2", "both are included"),
        ("bounds_v1", "both are included"),
        ("v1_above_1000", "open: too few: 60 batches"),
    ];
    assert_odd(odd, &expected);
}

#[test]
fn tokens_are_described_and_not_shown() {
    let part = |text: &str| BASE64_URL_SAFE_NO_PAD.encode(text);
    let claims = json!({"iat": 1_777_615_200, "exp": 1_777_618_800, "sub": "sandbox"});
    let odd = Readings {
        token: format!(
            "{}.{}.{}",
            part("{\"alg\":\"none\"}"),
            part(&claims.to_string()),
            part(TOKEN)
        ),
        token_fields: [json!({}), json!({"scope": TOKEN, "expires_in": 1800})],
        ..Readings::default()
    };
    let life = "v2: expires_in says 1800 s; v2: the token is a JWT, exp is 3600 s after iat; v1: the \
        token is a JWT, exp is 3600 s after iat";
    let expected = [
        (
            "token_response",
            "v2: access_token, expires_in, scope; v1: only access_token",
        ),
        (
            "auth_difference",
            "v2 answers access_token, expires_in, scope; v1 answers access_token",
        ),
        ("token_lifetime", life),
    ];
    assert_odd(odd, &expected);
    let odd = Readings {
        token_fields: [json!({"expires_in": 60}), json!({"expires_in": "soon"})],
        accepts_any_token: true,
        ..Readings::default()
    };
    let expected = [
        (
            "token_lifetime",
            "v2: expires_in is not a whole number of seconds; v1: expires_in says 60 s",
        ),
        (
            "auth_difference",
            "the same fields, but a different expires_in",
        ),
        ("missing_token_v2", "accepted with 200"),
        ("bad_token_v1", "accepted with 200"),
    ];
    assert_odd(odd, &expected);
}

#[test]
fn a_token_that_a_new_one_revokes_is_recognised() {
    let odd = Readings {
        revokes_tokens: true,
        ..Readings::default()
    };
    let expected = [
        ("token_v2_on_v1", "accepted"),
        ("token_v1_on_v2", "accepted"),
        (
            "token_lifetime",
            "a new token may revoke the one before: a token of v2 was refused as soon as one of v1 was issued",
        ),
        ("bounds_v2", "both are included"),
        ("bounds_v1", "both are included"),
    ];
    assert_odd(odd, &expected);
}

#[test]
fn headers_and_bodies_are_reported() {
    let odd = Readings {
        headers: vec![
            ("X-RateLimit-Limit", "600"),
            ("RateLimit-Remaining", "599"),
            ("Deprecation", "@1767225600"),
            ("Sunset", "Fri, 01 Jan 2027 00:00:00 GMT"),
            ("X-Quota-Of", TOKEN),
        ],
        refusal: "<html>no</html>".to_owned(),
        accepts_offset: false,
        ..Readings::default()
    };
    let limits = "ratelimit-remaining: 599; x-quota-of: …; x-ratelimit-limit: 600";
    let expected = [
        ("rate_limits", limits),
        (
            "v1_deprecation",
            "deprecation: @1767225600; sunset: Fri, 01 Jan 2027 00:00:00 GMT",
        ),
        ("missing_token_v2", "401, a body without `detail`"),
        ("offset_v2", "refused with 422"),
        ("offset_v1", "refused with 422"),
    ];
    assert_odd(odd, &expected);
    let silent = Readings {
        refusal: String::new(),
        ..Readings::default()
    };
    assert_odd(silent, &[("bad_token_v1", "401, an empty body")]);
}

#[test]
fn a_connection_closed_after_a_bad_request_leaves_only_that_question_open() {
    let probe = |hangs_up| {
        let service = Readings {
            hangs_up,
            ..Readings::default()
        };
        Probe::at(service.start().address, "hunter2", &["--retries", "1"])
    };
    let (usual, closed) = (probe(false), probe(true));
    assert_eq!(closed.ended.code, Some(0), "{:?}", closed.ended);
    let mut open = closed.open();
    open.retain(|id| *id != "bad_next_token");
    assert_eq!(open.len() + 1, closed.open().len(), "{:?}", closed.open());
    assert_eq!(open, usual.open());
}

#[test]
fn a_service_that_stops_leaves_the_remaining_questions_open() {
    let service = Readings {
        max_requests: STEPS + 10,
        ..Readings::default()
    }
    .start();
    let probe = Probe::at(service.address, "hunter2", &["--retries", "2"]);
    // The service worked for all steps of the check.
    assert_eq!(probe.ended.code, Some(0), "{:?}", probe.ended);
    assert_answers(&probe, &[("bad_token_v1", "401")], "before");
    for id in ["order_v1", "v1_above_1000", "bounds_v2", "offset_v1"] {
        assert!(
            probe
                .answer(id)
                .contains("the service is no longer reachable"),
            "{}",
            probe.entry(id)
        );
    }
    // One request detects that, and no later one waits.
    assert_eq!(service.requests().len(), STEPS + 10 + 3);
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn the_timestamp_used_by_the_date_filter_is_identified() {
        let why = "open: the date filter does not compare the seconds of batch_creation_date";
        for (compared, answer) in [
            (
                Compared::Minute,
                "compares batch_creation_date, by whole minutes",
            ),
            (
                Compared::Hour,
                "compares batch_creation_date, by whole hours",
            ),
            (Compared::Day, "compares batch_creation_date, by whole days"),
            (
                Compared::Updated,
                "compares `updated_at`, not batch_creation_date",
            ),
            (
                Compared::Nothing,
                "does not compare batch_creation_date: other batches are returned too",
            ),
        ] {
            let odd = Readings {
                compared,
                ..Readings::default()
            };
            let expected = [
                ("date_field_v2", answer),
                ("date_field_v1", answer),
                ("bounds_v1", why),
            ];
            assert_odd(odd, &expected);
        }
        // A range of a few seconds is empty for such a filter.
        for (compared, includes_start) in [
            (Compared::Minute, true),
            (Compared::Minute, false),
            (Compared::Day, true),
            (Compared::Day, false),
        ] {
            let odd = Readings {
                compared,
                includes_start,
                includes_end: !includes_start,
                ..Readings::default()
            };
            let unknown =
                "open: a range of days around it returns the batch, one of seconds does not";
            assert_odd(odd, &[("date_field_v2", unknown), ("bounds_v1", unknown)]);
        }
        for (compared, answer) in [
            (
                Compared::Minute,
                "compares batch_creation_date, by whole minutes",
            ),
            (Compared::Day, "compares batch_creation_date, by whole days"),
        ] {
            let alone = Readings {
                compared,
                count: 1,
                ..Readings::default()
            };
            assert_odd(alone, &[("date_field_v2", answer)]);
        }
        for (count, answer) in [
            (1, "compares nothing: "),
            // All batches are from one day.
            (
                10,
                "does not compare batch_creation_date: other batches are returned too",
            ),
        ] {
            let ignorant = Readings {
                compared: Compared::Nothing,
                count,
                ..Readings::default()
            };
            assert_odd(ignorant, &[("date_field_v1", answer)]);
        }
    }
}
