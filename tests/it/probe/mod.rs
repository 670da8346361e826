//! `check --probe`: its answers under every reading of the interface, and what it must never do.

// What cannot be answered, and what is never shown.
mod limits;

// Every reading of the interface.
mod readings;

use std::net::SocketAddr;

use serde_json::Value;

use crate::harness::{Output, Run, Server, trayscan};

/// Every question, in order: everything that the interface calls "not shown", and related ones.
const QUESTIONS: [&str; 30] = [
    "token_response",
    "auth_difference",
    "token_v2_on_v1",
    "token_v1_on_v2",
    "missing_token_v2",
    "bad_token_v2",
    "missing_token_v1",
    "bad_token_v1",
    "page_size",
    "dates_with_next_token",
    "next_token_twice",
    "bad_next_token",
    "order_v2",
    "order_v1",
    "v1_above_1000",
    "date_field_v2",
    "bounds_v2",
    "fractions_v2",
    "offset_v2",
    "date_field_v1",
    "bounds_v1",
    "fractions_v1",
    "offset_v1",
    "token_lifetime",
    "rate_limits",
    "gzip",
    "v1_deprecation",
    "states",
    "transitions",
    "events",
];

/// More than the 1000 batches of a version 1 response, and enough pages to detect that.
const MANY: [&str; 4] = ["--batches", "1300", "--page-size", "400"];

/// The number of requests that the steps of a successful check send.
const STEPS: usize = 4;

fn command(address: SocketAddr, secret: &str, flags: &[&str]) -> Run {
    let args = [&["check", "--probe", "--retry-wait", "1ms"], flags].concat();
    let mut command = trayscan(&args);
    command
        .env("TRAYSCAN_BASE_URL", format!("http://{address}"))
        .env("TRAYSCAN_CLIENT_ID", "sandbox")
        .env("TRAYSCAN_CLIENT_SECRET", secret);
    command
}

fn check(address: SocketAddr, secret: &str, flags: &[&str]) -> Output {
    command(address, secret, flags).output()
}

/// The result of a probe.
struct Probe {
    ended: Output,
    report: Value,
}

impl Probe {
    fn of(server: &Server, flags: &[&str]) -> Self {
        Self::at(server.address, &server.client_secret, flags)
    }

    fn at(address: SocketAddr, secret: &str, flags: &[&str]) -> Self {
        Self::read(check(address, secret, &[&["-f", "json"], flags].concat()))
    }

    /// Checks the structure of a report and reads it.
    fn read(ended: Output) -> Self {
        let report: Value = ended.json();
        let answers = report["probe"].as_array().unwrap();
        let ids: Vec<&str> = answers
            .iter()
            .map(|entry| entry["id"].as_str().unwrap())
            .collect();
        assert_eq!(ids, QUESTIONS, "{ended:?}");
        for entry in answers {
            let answer = entry["answer"].as_str().unwrap();
            let is_open = answer.starts_with("unknown: ");
            assert_eq!(entry["known"].as_bool().unwrap(), !is_open, "{entry}");
            assert!(!entry["question"].as_str().unwrap().is_empty(), "{entry}");
            let evidence = entry["evidence"].as_array().unwrap();
            assert!(
                is_open || !evidence.is_empty(),
                "an answer without evidence: {entry}"
            );
        }
        Self { ended, report }
    }

    fn entry(&self, id: &str) -> &Value {
        let answers = self.report["probe"].as_array().unwrap();
        answers.iter().find(|entry| entry["id"] == id).unwrap()
    }

    fn answer(&self, id: &str) -> &str {
        self.entry(id)["answer"].as_str().unwrap()
    }

    fn evidence(&self, id: &str) -> String {
        self.entry(id)["evidence"].to_string()
    }

    fn requests(&self) -> usize {
        usize::try_from(self.report["probe_requests"].as_u64().unwrap()).unwrap()
    }

    fn open(&self) -> Vec<&str> {
        let open = |id: &&str| self.entry(id)["known"] == false;
        QUESTIONS.into_iter().filter(open).collect()
    }

    /// Returns every answer by its question.
    fn answers(&self) -> Vec<(&str, &str)> {
        QUESTIONS.map(|id| (id, self.answer(id))).into()
    }
}

/// Asserts the start of each answer; `open` stands for "unknown".
fn assert_answers(probe: &Probe, expected: &[(&str, &str)], of: &str) {
    for (id, begin) in expected {
        let entry = probe.entry(id);
        let begin = begin.replace("open:", "unknown:");
        assert!(
            probe.answer(id).starts_with(&begin),
            "{of}: `{begin}` expected: {entry}"
        );
    }
}

/// Returns whether a text contains what looks like a token or cursor: a long word of these characters.
fn has_opaque_words(text: &str) -> bool {
    let is_opaque = |letter: char| letter.is_ascii_alphanumeric() || "-_=".contains(letter);
    text.split(|letter| !is_opaque(letter))
        .any(|word| word.len() >= 40)
}

#[test]
fn a_service_with_enough_batches_answers_every_question() {
    let server = Server::start(&["--batches", "2000"]);
    let probe = Probe::of(&server, &[]);
    assert_eq!(
        (probe.ended.code, probe.ended.stderr.as_str()),
        (Some(0), "")
    );
    assert_eq!(probe.report["ok"], true);
    let both = |id: &str, answer: &'static str| {
        [(format!("{id}_v2"), answer), (format!("{id}_v1"), answer)]
    };
    for (id, answer) in [
        both("missing_token", "401, `detail` is text"),
        both("bad_token", "401, `detail` is text"),
        both("order", "by batch_creation_date, oldest first"),
        both("date_field", "compares batch_creation_date"),
        both("bounds", "both are included"),
        both("fractions", "count: "),
        both("offset", "accepted: the same batches as with Z"),
    ]
    .concat()
    {
        assert_answers(&probe, &[(&id, answer)], "as it is");
    }
    let expected = [
        (
            "token_response",
            "v2: only access_token; v1: only access_token",
        ),
        ("auth_difference", "no difference"),
        ("token_v2_on_v1", "refused with 401"),
        ("token_v1_on_v2", "refused with 401"),
        ("page_size", "500 batches"),
        (
            "dates_with_next_token",
            "optional: the same page is returned",
        ),
        ("next_token_twice", "yes"),
        (
            "bad_next_token",
            "422, `detail` is a list with type, loc and msg",
        ),
        ("v1_above_1000", "returns all of them at once: 1500 batches"),
        ("gzip", "no"),
    ];
    assert_answers(&probe, &expected, "as it is");
    let open = [
        "token_lifetime",
        "rate_limits",
        "v1_deprecation",
        "states",
        "transitions",
        "events",
    ];
    assert_eq!(probe.open(), open);
    assert!(probe.evidence("page_size").contains("200, 500 batches"));
    assert!(
        probe
            .evidence("v1_above_1000")
            .contains("GET /v1/batches, start_date ")
    );
}

#[test]
fn the_probe_only_reads_and_counts_its_requests() {
    for args in [
        &["--batches", "2000"][..],
        &["--batches", "3000", "--page-size", "50"],
    ] {
        let server = Server::start(args);
        let probe = Probe::of(&server, &[]);
        assert!(probe.requests() <= 40, "{}", probe.requests());
        let log = server.stop().stderr;
        let requests: Vec<&str> = log
            .lines()
            .filter_map(|line| Some(line.split_once(" debug: ")?.1))
            .filter_map(|line| {
                line.split_once("batches: ")
                    .or_else(|| line.split_once("auth: "))
            })
            .map(|(request, _)| request)
            .collect();
        for request in &requests {
            let allowed = ["GET /v1/", "GET /v2/", "POST /v1/", "POST /v2/"];
            assert!(allowed.contains(request), "{request}");
        }
        assert_eq!(requests.len(), probe.requests() + STEPS, "{log}");
        assert!(!log.contains("POST /v1/batches") && !log.contains("an unknown path"));
    }
}

/// Runs the probe against a service with many batches and these faults.
fn assert_faults(faults: &[&str], expected: &[(&str, &str)]) {
    let flags: Vec<&str> = faults.iter().flat_map(|fault| ["--fault", fault]).collect();
    let server = Server::start(&[&MANY[..], &flags].concat());
    let probe = Probe::of(&server, &[]);
    assert_eq!(probe.ended.code == Some(0), probe.report["ok"] == true);
    assert_answers(&probe, expected, &format!("{faults:?}"));
    assert!(probe.requests() <= 60, "{faults:?}: {}", probe.requests());
}

#[test]
fn version_1_and_order_faults_give_the_expected_answers() {
    let cuts_off = ("v1_above_1000", "truncates: 1000 returned, 200 that v2 has");
    assert_faults(&["v1-truncate"], &[cuts_off]);
    assert_faults(&["v1-refuse:413"], &[("v1_above_1000", "refuses with 413")]);
    let shuffled = [
        ("order_v2", "none"),
        ("order_v1", "none"),
        ("v1_above_1000", "truncates: 1000 returned"),
        ("offset_v1", "accepted: the same"),
    ];
    assert_faults(&["v1-truncate", "shuffle"], &shuffled);
    let newest = "by batch_creation_date, newest first";
    let whole = ("v1_above_1000", "returns all of them at once: 1200");
    assert_faults(
        &["newest-first"],
        &[("order_v2", newest), ("order_v1", newest), whole],
    );
    let oldest = ("order_v1", "by batch_creation_date, oldest first");
    assert_faults(
        &["duplicates:0.3"],
        &[("page_size", "400 batches"), oldest, whole],
    );
    assert_faults(&["cursor-expiry:3", "v1-truncate"], &[cuts_off]);
}

#[test]
fn cursor_faults_give_the_expected_answers() {
    let twice = ("next_token_twice", "yes");
    let size = ("page_size", "400 batches");
    let must = ("dates_with_next_token", "required: 422 without them");
    assert_faults(&["dates-with-cursor:required"], &[must, twice, size]);
    let must_not = ("dates_with_next_token", "not allowed: 422 with them");
    let whole = ("v1_above_1000", "returns all of them");
    assert_faults(&["dates-with-cursor:refused"], &[must_not, twice, whole]);
    // A cursor that is refused once must not look like one that refuses dates.
    let may = (
        "dates_with_next_token",
        "optional: the same page is returned",
    );
    assert_faults(&["cursor-expiry:2"], &[may, twice]);
    assert_faults(
        &["empty-pages:0.5"],
        &[size, ("bounds_v2", "both are included")],
    );
    let server_error = ("bad_next_token", "500, `detail` is text");
    assert_faults(&["bad-cursor:500"], &[server_error, size]);
}

#[test]
fn token_faults_give_the_expected_answers() {
    let fields =
        "v2: access_token, expires_in, token_type; v1: access_token, expires_in, token_type";
    let shared = [
        ("token_v2_on_v1", "accepted"),
        ("token_v1_on_v2", "accepted"),
        ("token_response", fields),
        (
            "token_lifetime",
            "v2: expires_in says 900 s; v1: expires_in says 900 s",
        ),
    ];
    assert_faults(&["tokens-shared", "expires-in"], &shared);
    // A used-up token must not look like a token of the wrong version.
    let used_up = [
        ("token_v1_on_v2", "accepted"),
        (
            "token_lifetime",
            "a token of v2 was refused after 5 requests",
        ),
        ("bounds_v1", "both are included"),
    ];
    assert_faults(&["token-uses:5", "tokens-shared"], &used_up);
    let forbidden = [
        ("missing_token_v1", "403, `detail` is text"),
        ("bad_token_v2", "403, `detail` is text"),
        ("token_v2_on_v1", "refused with 403"),
        ("bad_next_token", "400, `detail` is text"),
    ];
    assert_faults(&["bad-token:403", "bad-cursor:400"], &forbidden);
    let invalid = [
        (
            "bad_token_v1",
            "422, `detail` is a list with type, loc and msg",
        ),
        ("token_v1_on_v2", "refused with 422"),
    ];
    assert_faults(&["bad-token:422"], &invalid);
    // 503 means an outage, and successful requests show that there is none.
    let busy = [
        ("bad_token_v1", "open: GET /v1/batches answered 503"),
        ("token_v1_on_v2", "open: GET /v2/batches answered 503"),
        ("bounds_v1", "both are included"),
    ];
    assert_faults(&["bad-token:503"], &busy);
}

#[test]
fn the_number_of_requests_is_bounded() {
    // The token of each request is already invalid, so it needs a new one.
    let args = [
        "--batches",
        "1300",
        "--page-size",
        "130",
        "--fault",
        "token-uses:1",
    ];
    let probe = Probe::of(&Server::start(&args), &[]);
    assert_eq!(probe.requests(), 60);
    let expected = [
        (
            "token_lifetime",
            "a token of v2 was refused after 1 requests",
        ),
        ("page_size", "130 batches"),
        (
            "bounds_v1",
            "open: the probe reached its limit of 60 requests",
        ),
    ];
    assert_answers(&probe, &expected, "used-up tokens");
}

#[test]
fn network_faults_give_the_expected_answers() {
    assert_faults(&["gzip"], &[("gzip", "yes")]);
    let limited = [
        ("rate_limits", "429 was returned "),
        ("page_size", "400 batches"),
    ];
    assert_faults(&["429:0.2"], &limited);
}

#[test]
fn an_unknown_field_is_named() {
    let server = Server::start(&["--fault", "unknown-fields"]);
    let evidence = Probe::of(&server, &[]).evidence("states");
    assert!(evidence.contains("250 batches seen"), "{evidence}");
    assert!(
        evidence.contains("not in the interface: scanner, tray_material"),
        "{evidence}"
    );
}

#[test]
fn a_busy_service_gives_the_same_answers() {
    let healthy = Server::start(&MANY);
    let expected = Probe::of(&healthy, &[]);
    for seed in ["1", "2"] {
        let faults = ["--fault", "503:0.2", "--fault", "truncate:0.1"];
        // Another seed creates other batches too, but with the same answers.
        let busy = Server::start(&[&MANY[..], &faults, &["--seed", seed]].concat());
        let probe = Probe::of(&busy, &["--retries", "8"]);
        assert_eq!(probe.answers(), expected.answers(), "seed {seed}");
        assert!(
            probe.requests() > expected.requests(),
            "there were no retries"
        );
        assert!(probe.requests() <= 60);
        assert!(probe.ended.stderr.contains("trying again"));
    }
}
