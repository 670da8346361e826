//! `check --probe`: its answers under every reading of the interface, and what it must never do.

use std::net::SocketAddr;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::fake::readings::{CURSOR, Compared, Readings, TOKEN};
use crate::harness::{Output, Run, Server, run, trayscan};

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
            .filter_map(|line| line.strip_prefix("debug: "))
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
        ("page_size", "open: all 3 batches are on one page"),
        ("order_v1", "open: 3 batches are too few"),
        ("v1_above_1000", "open: there are only 3 batches"),
        ("date_field_v2", "compares batch_creation_date"),
        ("dates_with_next_token", "open: all batches are on one page"),
    ];
    assert_answers(&few, &expected, "few");

    let exactly = Probe::of(
        &Server::start(&["--batches", "1000", "--fault", "v1-truncate"]),
        &[],
    );
    let expected = [("v1_above_1000", "open: there are only 1000 batches")];
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
        ("v1_deprecation", "open: version 1 sent no response"),
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
        "20 of 30 questions answered with 23 read-only requests\n"
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
                assert!(!printed.contains("next_token="), "{ended:?}");
            }
        }
    }
}

/// Runs the probe against `odd` and asserts that no secret is printed.
fn probe_odd(odd: Readings) -> Probe {
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
fn the_timestamp_used_by_the_date_filter_is_identified() {
    let why = "open: the date filter does not compare the seconds of batch_creation_date";
    for (compared, answer) in [
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
        ("v1_above_1000", "open: there are only 60 batches"),
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
