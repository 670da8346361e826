//! What cannot be answered, and what is never shown.

use serde_json::Value;

use super::readings::probe_odd;
use super::{MANY, Probe, QUESTIONS, assert_answers, check, has_opaque_words};
use crate::fake::readings::Readings;
use crate::harness::{Server, run, trayscan};

#[test]
fn few_batches_leave_questions_open_and_say_why() {
    let none = Probe::of(&Server::start(&["--batches", "0"]), &[]);
    assert_eq!(none.ended.code, Some(0));
    for id in ["page_size", "order_v2", "order_v1", "v1_above_1000"] {
        assert_answers(&none, &[(id, "open: there are no batches")], "none");
    }
    let expected = [
        (
            "next_token_twice",
            "open: there are no batches, so no next_token",
        ),
        ("date_field_v1", "open: no batch is known"),
        ("bounds_v2", "open: no batch is known"),
        ("offset_v2", "accepted"),
        ("bad_token_v1", "401"),
        ("bad_next_token", "422"),
        ("token_v1_on_v2", "refused with 401"),
    ];
    assert_answers(&none, &expected, "none");

    let few = Probe::of(&Server::start(&["--batches", "3"]), &[]);
    let expected = [
        ("page_size", "open: one page with 3 batches"),
        ("order_v1", "open: too few: 3 batches"),
        ("v1_above_1000", "open: too few: 3 batches"),
        ("date_field_v2", "compares batch_creation_date"),
        ("dates_with_next_token", "open: all batches are on one page"),
    ];
    assert_answers(&few, &expected, "few");

    let exactly = Probe::of(
        &Server::start(&["--batches", "1000", "--fault", "v1-truncate"]),
        &[],
    );
    let expected = [("v1_above_1000", "open: too few: 1000 batches")];
    assert_answers(&exactly, &expected, "exactly 1000");
}

#[test]
fn small_pages_are_counted_with_version_1() {
    for (fault, answer) in [
        (
            "v1-truncate",
            "truncates: 1000 returned from a range with at least 1",
        ),
        ("v1-refuse", "refuses with 422"),
        ("shuffle", "returns at least "),
    ] {
        let args = ["--batches", "1300", "--page-size", "20", "--fault", fault];
        let probe = Probe::of(&Server::start(&args), &[]);
        assert_answers(
            &probe,
            &[("v1_above_1000", answer), ("page_size", "20 batches")],
            fault,
        );
        assert!(probe.requests() <= 45, "{}", probe.requests());
    }
}

#[test]
fn a_missing_version_2_leaves_its_questions_open() {
    for (fault, above) in [
        ("v1-truncate", "truncates: 1000 returned"),
        ("v1-refuse:400", "refuses with 400"),
        ("gzip", "returns at least "),
    ] {
        let faults = ["--fault", "v2-missing", "--fault", fault];
        let server = Server::start(&[&MANY[..], &faults].concat());
        for api in ["auto", "v1"] {
            let probe = Probe::of(&server, &["--api", api]);
            assert_eq!(probe.ended.code, Some(0), "{:?}", probe.ended);
            for id in probe.open() {
                let about_v2 =
                    id.contains("v2") || id.contains("page") || id.contains("next_token");
                let absent = probe
                    .answer(id)
                    .contains("version 2 is not available (POST /v2/auth");
                let both = id == "auth_difference";
                assert_eq!(absent, about_v2 || both, "{}", probe.entry(id));
            }
            let expected = [
                ("v1_above_1000", above),
                ("order_v1", "by batch_creation_date, oldest first"),
                ("bounds_v1", "both are included"),
                ("fractions_v1", "count"),
                ("bad_token_v1", "401"),
                ("token_response", "v1: only access_token"),
            ];
            assert_answers(&probe, &expected, fault);
            assert!(probe.requests() <= 40, "{}", probe.requests());
        }
    }
}

#[test]
fn a_missing_version_1_leaves_its_questions_open() {
    let odd = Readings {
        has_v1: false,
        ..Readings::default()
    };
    let probe = probe_odd(odd);
    assert_eq!(probe.ended.code, Some(0), "version 2 is enough");
    let why = "open: version 1 is not available (POST /v1/auth answered 404)";
    for id in QUESTIONS
        .iter()
        .filter(|id| id.contains("v1") && **id != "v1_deprecation")
    {
        assert_answers(&probe, &[(id, why)], "no v1");
    }
    let expected = [
        (
            "v1_deprecation",
            "open: the probe had no response of version 1",
        ),
        ("bounds_v2", "both are included"),
        ("order_v2", "by batch_creation_date, oldest first"),
        ("page_size", "25 batches"),
    ];
    assert_answers(&probe, &expected, "no v1");
}

#[test]
fn refused_credentials_are_not_sent_again() {
    let server = Server::start(&["--batches", "2000"]);
    let probe = Probe::at(server.address, "hunter2", &[]);
    assert_eq!(probe.ended.code, Some(4), "{:?}", probe.ended);
    assert_eq!(probe.report["ok"], false);
    let why = "open: the service refused the credentials (POST /v2/auth answered 401)";
    for id in [
        "token_response",
        "page_size",
        "order_v2",
        "bounds_v2",
        "token_v2_on_v1",
    ] {
        assert_answers(&probe, &[(id, why)], "refused");
    }
    // Questions that need no credentials are still answered.
    assert_answers(
        &probe,
        &[("bad_token_v2", "401"), ("missing_token_v1", "401")],
        "refused",
    );
    let log = server.stop().stderr;
    assert_eq!(log.matches("/auth: ").count(), 2, "{log}");
}

#[test]
fn an_unreachable_service_is_reported_for_every_question() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let probe = Probe::at(address, "hunter2", &[]);
    assert_eq!(probe.ended.code, Some(5), "{:?}", probe.ended);
    assert_eq!((probe.open().len(), probe.requests()), (QUESTIONS.len(), 0));
    assert_answers(
        &probe,
        &[("gzip", "open: there is no connection to the service")],
        "nobody",
    );

    let probe = Probe::read(run(&["check", "--probe", "-f", "json"]));
    assert_eq!(
        (probe.ended.code, probe.open().len()),
        (Some(2), QUESTIONS.len())
    );
    assert_answers(
        &probe,
        &[("gzip", "open: the settings are incomplete or invalid")],
        "nothing",
    );
}

#[test]
fn without_the_flag_nothing_is_probed() {
    let server = Server::start(&[]);
    let mut command = trayscan(&["check", "-f", "json"]);
    command.service(&server);
    let report: Value = serde_json::from_slice(&command.raw().stdout).unwrap();
    assert_eq!(report["probe"], Value::Null);
    assert_eq!(report["probe_requests"], Value::Null);
}

#[test]
fn text_output_has_a_section_after_the_steps() {
    let ended = run(&["check", "--sandbox", "--probe"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let (steps, probe) = ended
        .stdout
        .split_once("\n\nWhat the interface leaves open:\n\n")
        .unwrap();
    assert!(
        steps.lines().last().unwrap().starts_with("ok      clock"),
        "{steps}"
    );
    let (lines, end) = probe.split_once("\n\n").unwrap();
    assert_eq!(
        end,
        "20 of 30 questions answered with 25 read-only requests\n"
    );
    let is_evidence = |line: &&str| line.starts_with("          ");
    let answers: Vec<&str> = lines.lines().filter(|line| !is_evidence(line)).collect();
    assert_eq!(answers.len(), QUESTIONS.len());
    for line in answers {
        let (mark, rest) = line.split_at(8);
        assert!(["found   ", "open    "].contains(&mark), "{line}");
        assert_eq!(mark == "open    ", rest.contains("unknown: "), "{line}");
        // Answers are aligned.
        assert_eq!(&rest[21..23], "  ", "{line}");
        assert!(!rest[23..].starts_with(' '), "{line}");
    }
    assert!(lines.contains("\n          GET /v2/batches, start_date 2000-01-01T00:00:00Z"));
}

#[test]
fn no_token_and_no_cursor_is_in_any_output() {
    let server = Server::start(&[
        "--batches",
        "2000",
        "--fault",
        "503:0.2",
        "--fault",
        "expires-in",
    ]);
    for secret in [server.client_secret.as_str(), "hunter2"] {
        for format in ["text", "json"] {
            let ended = check(server.address, secret, &["-f", format, "-vv"]);
            for printed in [&ended.stdout, &ended.stderr] {
                assert!(!printed.contains(secret), "{ended:?}");
                assert!(!has_opaque_words(printed), "{ended:?}");
                let shown = printed.replace("next_token=********", "");
                assert!(!shown.contains("next_token="), "{ended:?}");
            }
        }
    }
}
