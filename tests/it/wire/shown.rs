//! Texts from the service are shown escaped, and with every secret, token and cursor redacted.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    CURSOR, SECRET, TOKEN, batch, batch_with, configured, export, for_auth, in_parallel, page, run,
    service, token,
};
use crate::fake::{Answer, Batch, FakeService, cursor};
use crate::harness::trayscan;

/// Characters that control a terminal.
const HOSTILE: &str = "a\u{1b}[31mred\u{7}\u{9b}2J\u{8}\u{7f}\u{202e}evil\u{2066}x\u{200f}";

#[track_caller]
fn assert_harmless(stderr: &str) {
    let controls_terminal = |character: &char| {
        (character.is_control() && *character != '\n')
            || matches!(character, '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let found: Vec<char> = stderr.chars().filter(controls_terminal).collect();
    assert!(found.is_empty(), "{found:?} in {stderr:?}");
}

#[test]
fn terminal_control_sequences_are_escaped() {
    for status in [500, 422, 401] {
        for body in [json!({ "detail": HOSTILE }).to_string(), HOSTILE.to_owned()] {
            let service = service([Answer::status(status, body)]);
            let exported = export(&service, &["-vv", "--color", "never"]);
            assert_harmless(&exported.stderr);
            for shown in ["\\u{1b}", "\\u{9b}", "\\u{202e}", "\\u{2066}", "\\u{7}"] {
                assert!(exported.has(shown), "{shown} in {}", exported.stderr);
            }
        }
    }
    let detail = json!({"detail": [{"loc": ["query", HOSTILE], "msg": HOSTILE, "type": "x"}]});
    let exported = export(&service([Answer::status(422, detail.to_string())]), &[]).expect(6);
    assert_harmless(&exported.stderr);
    assert!(exported.has("\\u{1b}[31m"), "{}", exported.stderr);
    let invalid = batch_with(HOSTILE, "warnings", None);
    let exported = export(&service([Answer::ok(page(&[invalid], None))]), &[]).expect(7);
    assert_harmless(&exported.stderr);
    assert!(exported.has("\\u{1b}[31m"), "{}", exported.stderr);
}

#[test]
fn json_errors_contain_no_terminal_control_sequences() {
    let bodies = [
        json!({ "detail": HOSTILE }).to_string(),
        json!({ "detail": [{"loc": ["query", HOSTILE], "msg": HOSTILE, "type": "x"}] }).to_string(),
    ];
    for body in bodies {
        let service = service([Answer::status(422, body)]);
        let exported = export(&service, &["--message-format", "json"]).expect(6);
        // A program that parses the JSON still gets them.
        assert!(
            exported.error()["detail"].to_string().contains("evil"),
            "{}",
            exported.stderr
        );
        assert_harmless(&exported.stderr);
    }
}

#[test]
fn the_service_cannot_forge_message_lines() {
    let forged = "x\nwarning: all is well\nerror: gone";
    let invalid = batch_with(forged, "warnings", None);
    let repeated = batch_with("b1", forged, Some("1"));
    let repeated = repeated.replacen('{', &format!("{{{}:1,", json!(forged)), 1);
    let details = json!({"detail": [{"loc": ["query", forged], "msg": forged}]}).to_string();
    for answer in [
        Answer::ok(page(&[invalid], None)),
        Answer::ok(page(&[repeated], None)),
        Answer::ok(page(&[json!(forged).to_string()], None)),
        Answer::error(422, forged),
        Answer::error(422, &forged.replace('\n', "\r\n")),
        Answer::status(422, details),
        Answer::status(422, forged),
    ] {
        let exported = export(&service([answer]), &["-vv"]);
        let forged = exported.stderr.lines().find(|line| {
            line.starts_with("warning: all is well") || line.starts_with("error: gone")
        });
        assert_eq!(forged, None, "{}", exported.stderr);
    }
}

/// Returns errors that contain `secret` in every possible place.
fn echoes(secret: &str) -> Vec<Answer> {
    let mut echoes = Vec::new();
    let words = format!("I got <{secret}>, sorry");
    for status in [401, 422, 503] {
        echoes.push(Answer::error(status, &words));
        echoes.push(Answer::status(status, &words));
        let entry = json!({
            "type": "invalid",
            "loc": ["body", secret],
            "msg": words,
            "input": secret,
            "ctx": { "given": [secret], secret: 1 },
        });
        echoes.push(Answer::status(
            status,
            json!({ "detail": [entry] }).to_string(),
        ));
        echoes.push(Answer::status(
            status,
            json!({ "detail": { "got": secret } }).to_string(),
        ));
        echoes.push(Answer::status(
            status,
            json!({ "error": secret }).to_string(),
        ));
    }
    echoes
}

/// Escapes every character as in JSON.
fn escapes(text: &str) -> String {
    text.chars().fold(String::new(), |escaped, character| {
        escaped + &format!("\\u{:04x}", u32::from(character))
    })
}

/// Exports from `make(echo)` for each echo and asserts that nothing in `hidden` is printed.
fn assert_hidden(echoes: &[Answer], hidden: &[&str], make: impl Fn(Answer) -> FakeService + Sync) {
    in_parallel(echoes, |echo| {
        for format in ["text", "json"] {
            let exported = export(&make(echo.clone()), &["-vv", "--message-format", format]);
            assert_ne!(exported.code, 0);
            for hidden in hidden {
                assert!(!exported.has(hidden), "{hidden} in {}", exported.stderr);
            }
        }
    });
}

/// A service that returns `answer` for the second page.
fn for_page_two(answer: Answer) -> FakeService {
    FakeService::start(move |asked| {
        if asked.path().ends_with("/auth") {
            return token();
        }
        match asked.query("next_token") {
            None => Answer::ok(page(&[batch("b1")], Some(&cursor(1)))),
            Some(_) => answer.clone(),
        }
    })
}

#[test]
fn a_token_or_cursor_echoed_by_the_service_is_redacted() {
    assert_hidden(&echoes(TOKEN), &[TOKEN], |echo| service([echo]));
    assert_hidden(&echoes(&cursor(1)), &[CURSOR], for_page_two);
}

#[test]
fn a_secret_is_redacted_in_every_encoding() {
    let form: String = form_urlencoded::byte_serialize(SECRET.as_bytes()).collect();
    let escaped = escapes(SECRET);
    let slashed = json!(SECRET).to_string().replace('/', "\\/");
    let bodies = [
        format!("{{\"detail\":\"I got {escaped}\"}}"),
        format!("{{\"detail\":{slashed}}}"),
        format!(
            "{{\"detail\":[{{\"loc\":[\"body\"],\"msg\":\"{escaped}\",\"input\":{slashed}}}]}}"
        ),
        json!({ "detail": format!("I got client_secret={form}&grant_type=x") }).to_string(),
        format!("I got client_secret={form}"),
        // Without `detail`, the body is shown as it is.
        format!("{{\"error\":\"invalid_client\",\"got\":{slashed}}}"),
        format!("not JSON: {slashed}"),
        json!({ "detail": format!("{{\"got\":{slashed}}}") }).to_string(),
        json!({ "error": { "got": format!("{{\"secret\":{slashed}}}") } }).to_string(),
    ];
    let mut bodies = bodies.to_vec();
    // In HTML, and in URLs of other spellings, also twice.
    let html = SECRET.chars().map(|letter| match letter {
        'a'..='z' | '0'..='9' => letter.to_string(),
        other => format!("&#{};", u32::from(other)),
    });
    let html: String = html.collect();
    let lower = SECRET.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        other => format!("%{other:02x}"),
    });
    let lower: String = lower.collect();
    for spelling in [&html, &lower, &lower.replace('%', "%25")] {
        bodies.push(json!({ "detail": format!("I got <{spelling}>") }).to_string());
    }
    // Of a large error, only the start is read.
    for place in [4, 8, SECRET.len() - 1] {
        let blanks = " ".repeat(64 * 1024 - place);
        bodies.push(format!("{blanks}{SECRET}"));
    }
    let echoes: Vec<Answer> = bodies
        .into_iter()
        .map(|body| Answer::status(422, body))
        .collect();
    assert_hidden(&echoes, &[SECRET, "s3cret", &form, &html, &lower], for_auth);
}

#[test]
fn a_cursor_does_not_garble_what_has_the_same_text() {
    let folder = TempDir::new().unwrap();
    let made = folder.path().join("lot 1500");
    fs::create_dir(&made).unwrap();
    let at = |name: &str| made.join(name).to_str().unwrap().to_owned();
    for cursor in ["1500", "2026-05-09", "lot 1500"] {
        let pages = || {
            let lot = Batch::new("b1").with("batch_name", json!("lot 1500"));
            let lot = lot.with("warnings", true);
            service([
                Answer::ok(page(&[lot], Some(cursor))),
                Answer::ok(page(&[batch("b2")], None)),
            ])
        };
        let mut report = trayscan(&["report", "-o", &at("r.html")]);
        let nursery = pages();
        report.service(&nursery);
        report.output().expect(0);
        let html = fs::read_to_string(at("r.html")).unwrap();
        assert!(html.contains("lot 1500"), "{cursor}: {html}");
        let nursery = pages();
        let mut export = trayscan(&["export", "-o", &at("x.csv"), "--message-format", "json"]);
        export.service(&nursery);
        let ended = export.output().expect(0);
        assert!(ended.stderr.contains("lot 1500/x.csv"), "{ended:?}");
    }
}

#[test]
fn a_token_is_redacted_in_every_encoding() {
    let escaped = escapes(TOKEN);
    let echo = Answer::status(422, format!("{{\"detail\":\"I got {escaped}\"}}"));
    assert_hidden(&[echo], &[TOKEN], |echo| service([echo]));
}

#[test]
fn an_unusual_cursor_is_redacted_in_its_url_encoding() {
    let odd = format!("{CURSOR}a/b+c==");
    let written: String = form_urlencoded::byte_serialize(odd.as_bytes()).collect();
    let echo = Answer::error(
        500,
        &format!("no such page: /v2/batches?next_token={written}"),
    );
    assert_hidden(&[echo], &[&odd, &written, CURSOR], |echo| {
        let first = Answer::ok(page(&[batch("b1")], Some(&odd)));
        service([first, echo])
    });
}

#[test]
fn an_earlier_token_echoed_by_the_service_is_redacted() {
    let next = Answer::ok("{\"access_token\":\"token-0815-other\"}");
    let auth = vec![token(), next];
    for format in ["text", "json"] {
        let refused = Answer::error(401, &format!("{TOKEN} and token-0815-other are not valid"));
        let service = FakeService::answering(auth.clone(), vec![refused]);
        let exported = export(&service, &["-vv", "--message-format", format]).expect(4);
        assert!(!exported.has("0815"), "{}", exported.stderr);
    }
}

#[test]
fn an_earlier_cursor_echoed_by_the_service_is_redacted() {
    let last = Answer::error(500, &format!("lost after {}", cursor(1)));
    let service = service([
        Answer::ok(page(&[batch("b1")], Some(&cursor(1)))),
        Answer::ok(page(&[batch("b2")], Some(&cursor(2)))),
        last,
    ]);
    export(&service, &["-vv"]).expect(5);
}

#[test]
fn secrets_echoed_in_a_batch_are_redacted() {
    for secret in [SECRET, TOKEN] {
        let invalid = batch_with(secret, "warnings", None);
        let unknown = batch_with("b1", secret, Some("1"));
        let repeated = unknown.replacen('{', &format!("{{{}:1,", json!(secret)), 1);
        for batch in [invalid, repeated, json!(secret).to_string()] {
            let service = service([Answer::ok(page(&[batch], None))]);
            export(&service, &["-vv"]).expect(7);
        }
    }
}

#[test]
fn every_location_and_message_of_a_422_is_shown() {
    let entries: Vec<Value> = (0..12)
        .map(|number| {
            json!({
                "type": "invalid",
                "loc": ["query", format!("field_{number:02}")],
                "msg": format!("message number {number:02}, which says at some length what is wrong"),
            })
        })
        .collect();
    let service = service([Answer::status(
        422,
        json!({ "detail": entries }).to_string(),
    )]);
    let exported = export(&service, &[]).expect(6);
    for number in 0..12 {
        let (loc, msg) = (
            format!("query.field_{number:02}"),
            format!("message number {number:02}"),
        );
        assert!(
            exported.has(&loc) && exported.has(&msg),
            "{loc}: {}",
            exported.stderr
        );
    }
}

#[test]
fn a_token_is_still_redacted_after_hundreds_of_cursors() {
    const PAGES: usize = 600;
    let last = Answer::error(409, &format!("the header was Bearer {TOKEN}"));
    let pages = (0..PAGES)
        .map(|number| Answer::ok(page(&[batch(&format!("b{number}"))], Some(&cursor(number)))));
    // `export` asserts that the token is not printed.
    let exported = export(&service(pages.chain([last])), &[]).expect(6);
    assert!(
        exported.has("the header was Bearer …"),
        "{}",
        exported.stderr
    );
}

#[test]
fn a_long_token_is_redacted_in_truncated_text() {
    let long = "t".repeat(20) + &"0123456789".repeat(23);
    let auth = Answer::ok(json!({ "access_token": long }).to_string());
    let invalid = batch_with(&long, "warnings", None);
    let service = FakeService::answering(vec![auth], vec![Answer::ok(page(&[invalid], None))]);
    let exported = export(&service, &[]).expect(7);
    assert!(exported.has("`warnings` is missing"), "{}", exported.stderr);
    assert!(!exported.has(&long[..40]), "{}", exported.stderr);
}

#[test]
fn errors_stay_valid_json_for_any_secret() {
    for secret in ["null", "false", "code", "error"] {
        let service = service([Answer::error(409, &format!("it was {secret}"))]);
        let mut command = configured(
            trayscan(&["export", "--message-format", "json"]),
            &service.base_url(),
        );
        let output = command.env("TRAYSCAN_CLIENT_SECRET", secret).raw();
        assert_eq!(output.status.code(), Some(6));
        let stderr = String::from_utf8(output.stderr).unwrap();
        let error: Value = serde_json::from_str(stderr.lines().last().unwrap()).unwrap();
        assert_eq!(error["error"]["detail"], "it was …", "{stderr}");
        assert_eq!(error["error"]["retry_later"], false);
    }
}

#[test]
fn the_title_of_an_error_page_is_shown() {
    let nginx = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n\
                 <center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>nginx</center>\r\n\
                 </body>\r\n</html>";
    let exported = export(&service([Answer::status(502, nginx)]), &[]).expect(5);
    let says = "GET /v2/batches answered 502: 502 Bad Gateway\n";
    assert!(exported.has(says), "{}", exported.stderr);
    assert!(!exported.has("<"), "{}", exported.stderr);
    let exported = export(
        &service([Answer::status(403, "<h1>Blocked &amp; logged</h1>")]),
        &["--message-format", "json"],
    );
    assert_eq!(
        exported.error()["detail"],
        "Blocked & logged",
        "{}",
        exported.stderr
    );
}

#[test]
fn a_refused_connection_names_host_and_port() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let base_url = format!("http://localhost:{}", address.port());
    let exported = run(configured(trayscan(&[]), &base_url), &[]).expect(5);
    let says = format!(
        "POST /v2/auth: cannot connect to localhost:{}\n",
        address.port()
    );
    assert!(exported.has(&says), "{}", exported.stderr);
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn a_secret_echoed_by_the_service_is_redacted() {
        let echoes = [
            echoes("hunter2-plain"),
            echoes("hunter2 \"quoted\" \\ / \u{f6}"),
        ];
        for (secret, echoes) in ["hunter2-plain", "hunter2 \"quoted\" \\ / \u{f6}"]
            .iter()
            .zip(echoes)
        {
            in_parallel(&echoes, |echo| {
                for service in [for_auth(echo.clone()), service([echo.clone()])] {
                    for format in ["text", "json"] {
                        let args = ["-vv", "--message-format", format, "--client-secret", secret];
                        let exported = export(&service, &args);
                        assert!(!exported.has("hunter2"), "{}", exported.stderr);
                    }
                }
            });
        }
    }
}
