//! Invalid pages and batches: refused with their location, or kept with `--lenient`.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use super::{
    CURSOR, TOKEN, batch, batch_with, export, for_auth, in_parallel, page, service, token,
};
use crate::fake::{Answer, Batch, FakeService, Received, cursor, list};

#[test]
fn a_body_that_is_not_a_json_page_is_a_protocol_error() {
    let good = batch("b1");
    let bodies: Vec<Vec<u8>> = [
        "nonsense".to_owned(),
        "<html><body>Welcome</body></html>".to_owned(),
        "\"text\"".to_owned(),
        "null".to_owned(),
        format!("[{good}]"),
        "{}".to_owned(),
        "{\"next_token\":null}".to_owned(),
        "{\"data\":null,\"next_token\":null}".to_owned(),
        "{\"data\":{},\"next_token\":null}".to_owned(),
        format!("{{\"data\":[{good}],\"data\":[{good}],\"next_token\":null}}"),
        format!("{{\"data\":[{good}]\"next_token\":null}}"),
        format!("{{\"data\":[{good},],\"next_token\":null}}"),
        format!("{{\"data\":[{good}],\"next_token\":null,}}"),
        format!("{{\"data\":[{good}],\"next_token\":null}} more"),
        format!("{{\"data\":[{good}],\"next_token\":null}}{{}}"),
        format!("{{'data':[{good}],'next_token':null}}"),
        format!("{{\"data\":[{good}],\"more\":NaN,\"next_token\":null}}"),
        format!("{{\"data\":[{good}],\"more\":01,\"next_token\":null}}"),
        format!("\u{feff}{}", page(std::slice::from_ref(&good), None)),
        format!("{{\"data\":[{good}],\"more\":\"a\nb\",\"next_token\":null}}"),
        page(&["null".to_owned()], None),
        page(&["\"text\"".to_owned()], None),
        page(&["[]".to_owned()], None),
        page(&["{\"batch_id\":}".to_owned()], None),
        page(&[good.replace("\"Tray\"", "Tray")], None),
        page(&[good.replace("\"Tray\"", "\"\\x\"")], None),
    ]
    .into_iter()
    .map(String::into_bytes)
    .chain([
        page(std::slice::from_ref(&good), None)
            .replace("Tray", "Tr\u{1}")
            .into_bytes(),
        latin1(&page(&[good.replace("Tray", "Tr\u{f6}y")], None)),
    ])
    .collect();
    in_parallel(&bodies, |body| {
        let service = service([Answer::ok(body)]);
        let exported = export(&service, &[]);
        let shown = String::from_utf8_lossy(body);
        assert_eq!(exported.code, 7, "{shown}\n{}", exported.stderr);
        assert!(
            exported.has("GET /v2/batches"),
            "{shown}\n{}",
            exported.stderr
        );
        let is_marked = body.starts_with("\u{feff}".as_bytes());
        assert_eq!(exported.has("byte order mark"), is_marked, "{shown}");
        assert_eq!(
            service.requests_for("/batches").len(),
            1,
            "{shown}: it would not get better"
        );
    });
}

/// Encodes text with one byte per character.
fn latin1(text: &str) -> Vec<u8> {
    text.chars()
        .map(|character| u8::try_from(u32::from(character)).unwrap())
        .collect()
}

/// Batches with one invalid field each, and the name of the field.
fn invalid(id: &str) -> Vec<(String, &'static str)> {
    let mut invalid = Vec::new();
    let required = [
        "batch_name",
        "batch_creation_date",
        "number_of_images",
        "warnings",
        "batch_id",
    ];
    for field in required {
        invalid.push((batch_with(id, field, None), field));
        invalid.push((batch_with(id, field, Some("null")), field));
        invalid.push((batch_with(id, field, Some("{}")), field));
        invalid.push((batch_with(id, field, Some("[1]")), field));
    }
    for (field, value) in [
        ("batch_id", "7"),
        ("batch_id", "\"\""),
        ("batch_name", "5"),
        ("batch_name", "\"\\ud800\""),
        ("batch_creation_date", "\"2026-05-01T06:00:00\""),
        ("batch_creation_date", "\"2026-05-01T06:00:00+02:00\""),
        ("batch_creation_date", "\"2026-13-01T06:00:00Z\""),
        ("batch_creation_date", "\"yesterday\""),
        ("batch_creation_date", "1777600000"),
        ("number_of_images", "\"12\""),
        ("number_of_images", "12.5"),
        ("number_of_images", "true"),
        ("total_cells_per_tray", "\"128\""),
        ("avg_germination_rate", "87.5"),
        ("avg_germination_rate", "\"87,50\""),
        ("avg_germination_rate", "\"NaN\""),
        ("avg_germination_rate", "\"1e2\""),
        ("avg_germination_rate", "\" 87.50\""),
        ("avg_germination_rate", "\"\""),
        ("crop_type", "false"),
        ("comment", "[]"),
        ("warnings", "\"false\""),
        ("warnings", "0"),
    ] {
        invalid.push((batch_with(id, field, Some(value)), field));
    }
    for field in ["batch_name", "comment", "batch_id"] {
        invalid.push((Batch::new(id).with_twice(field).text(), field));
    }
    let escaped = batch(id).replacen('{', "{\"comm\\u0065nt\":\"x\",", 1);
    invalid.push((escaped, "comment"));
    invalid
}

#[test]
fn an_invalid_batch_fails_with_page_batch_and_field() {
    in_parallel(&invalid("b3"), |(invalid, field)| {
        let second = page(&[batch("b2"), invalid.clone()], None);
        let first = page(&[batch("b1")], Some(&cursor(1)));
        let service = service([Answer::ok(first), Answer::ok(second)]);
        let exported = export(&service, &[]);
        let stderr = &exported.stderr;
        assert_eq!(exported.code, 7, "{invalid}\n{stderr}");
        for words in [
            "page 2",
            "batch 2",
            &format!("`{field}`"),
            "GET /v2/batches",
        ] {
            assert!(exported.has(words), "{words} in {invalid}\n{stderr}");
        }
        assert_eq!(service.requests_for("/batches").len(), 2, "{invalid}");
    });
}

#[test]
fn lenient_keeps_invalid_batches_as_received_and_counts_them() {
    let all = invalid("b1");
    let (mut batches, mut expected, mut skipped) = (Vec::new(), Vec::new(), 0);
    for (number, (text, field)) in all.iter().enumerate() {
        let id = format!("id-{number}");
        let text = text.replace("\"b1\"", &json!(id).to_string());
        batches.push(text.clone());
        // A repeated id still counts as one batch.
        if *field == "batch_id" && !text.contains(&id) {
            skipped += 1;
        } else {
            expected.push(text);
        }
    }
    batches.push(batch("fine"));
    expected.push(batch("fine"));
    let service = service([Answer::ok(page(&batches, None))]);
    let exported = export(&service, &["--lenient"]).expect(0);
    let lines: Vec<&str> = exported.file.as_deref().unwrap().lines().collect();
    assert_eq!(lines, expected, "{}", exported.stderr);
    let warning = exported
        .stderr
        .lines()
        .find(|line| line.contains("break the interface"));
    let warning = warning.unwrap_or_else(|| panic!("{}", exported.stderr));
    assert!(
        warning.contains(&format!("{} batches", all.len())),
        "{warning}"
    );
    assert!(warning.contains(&format!("{skipped} skipped")), "{warning}");
}

#[test]
fn a_batch_that_is_not_json_is_never_skipped() {
    let images = |value: &str| batch_with("b2", "number_of_images", Some(value));
    let comment = |value: &str| batch_with("b2", "comment", Some(value));
    for broken in [
        images("NaN"),
        images("05"),
        comment("\"\\q\""),
        comment("\"a\u{1}\""),
        batch("b2").replace('}', ",}"),
        batch("b2").replace('}', ",\"\\ud800\":1}"),
    ] {
        let service = service([Answer::ok(page(&[batch("b1"), broken.clone()], None))]);
        let exported = export(&service, &["--lenient"]).expect(7);
        for words in ["page 1, batch 2", "not valid JSON"] {
            assert!(exported.has(words), "{broken}\n{}", exported.stderr);
        }
        assert_eq!(exported.file, None, "{broken}");
    }
}

#[test]
fn an_absent_nullable_field_gives_one_warning() {
    let without = |id: &str| batch_with(id, "comment", None);
    let service = service([
        Answer::ok(page(&[without("b1"), without("b2")], Some(&cursor(1)))),
        Answer::ok(page(&[without("b3"), batch("b4")], None)),
    ]);
    let exported = export(&service, &[]).expect(0);
    assert_eq!(exported.ids(), ["b1", "b2", "b3", "b4"]);
    let warnings = exported
        .stderr
        .lines()
        .filter(|line| line.starts_with("warning:"));
    let warnings: Vec<&str> = warnings.collect();
    assert!(
        matches!(warnings[..], [one] if one.contains("`comment`")),
        "{warnings:?}"
    );
}

#[test]
fn unknown_fields_are_kept_in_any_position() {
    let more = batch_with("b1", "soil", Some("{\"ph\":6.50,\"a\":[null]}"));
    let body =
        page(std::slice::from_ref(&more), None).replacen('{', "{\"total\":[1,{\"data\":[]}],", 1);
    let exported = export(&service([Answer::ok(body)]), &[]).expect(0);
    assert_eq!(exported.file, Some(format!("{more}\n")));
}

#[test]
fn a_next_token_that_is_neither_string_nor_null_is_a_protocol_error() {
    let good = batch("b1");
    for end in [
        "",
        ",\"next_token\":5",
        ",\"next_token\":0",
        ",\"next_token\":false",
        ",\"next_token\":[]",
        ",\"next_token\":{}",
        ",\"next_token\":\"crsr-1\",\"next_token\":null",
        ",\"next_token\":null,\"next_token\":null",
        ",\"nextToken\":null",
    ] {
        let service = service([Answer::ok(format!("{{\"data\":[{good}]{end}}}"))]);
        let exported = export(&service, &[]).expect(7);
        assert!(exported.has("next_token"), "{end}: {}", exported.stderr);
        assert_eq!(service.requests_for("/batches").len(), 1, "{end}");
    }
}

#[test]
fn a_cursor_too_long_for_a_url_is_a_protocol_error() {
    let long = "c".repeat(100_000);
    let service = service([Answer::ok(page(&[batch("b1")], Some(&long)))]);
    let exported = export(&service, &[]).expect(7);
    let why = "the service returned a next_token of more than 16 KiB";
    assert!(exported.stderr.contains(why), "{}", exported.stderr);
}

#[test]
fn repeated_cursors_fail_the_run() {
    for round in [1, 2, 5] {
        let service = FakeService::start(move |asked| {
            if asked.path().ends_with("/auth") {
                return token();
            }
            let batches = [batch(&format!("b{}", asked.nth))];
            Answer::ok(page(&batches, Some(&cursor(asked.nth % round))))
        });
        let exported = export(&service, &[]).expect(7);
        assert!(exported.has("next_token"), "{}", exported.stderr);
        assert_eq!(service.requests_for("/batches").len(), round + 1);
    }
}

#[test]
fn a_cursor_that_is_always_refused_fails_with_a_clear_message() {
    for status in [400, 404, 410, 422] {
        let first = Answer::ok(page(&[batch("b1")], Some(&cursor(1))));
        let service = FakeService::start(move |asked| {
            if asked.path().ends_with("/auth") {
                token()
            } else if asked.query("next_token").is_some() {
                Answer::error(status, "gone")
            } else {
                first.clone()
            }
        });
        let exported = export(&service, &[]).expect(6);
        let message = "the service rejects its own next_token";
        assert!(exported.has(message), "{status}: {}", exported.stderr);
    }
}

/// How a service treats dates together with a cursor.
#[derive(Clone, Copy, Debug, PartialEq)]
enum DatesWithCursor {
    /// It never accepts both; the cursor contains the dates.
    Refused(u16),
    /// The same, and it filters by another date: the last batch was created in June.
    RefusedByAnother,
    /// It needs the dates, and refuses a cursor once by mistake. Without dates, batches of June follow those of May.
    RefusedOnce(u16),
}

#[test]
fn dates_beside_a_cursor_are_dropped_only_if_they_are_refused_for_good() {
    use DatesWithCursor::{Refused, RefusedByAnother, RefusedOnce};
    let dated = |number: usize, month: u32| {
        let date = format!("\"2026-{month:02}-{:02}T06:00:00Z\"", number + 1);
        Batch::new(&format!("b{number}")).with("batch_creation_date", date)
    };
    for (reading, requests) in [
        (Refused(400), Some("D Dc -c -c -c")),
        (Refused(422), Some("D Dc -c -c -c")),
        // The next page may be requested before this one is judged.
        (RefusedByAnother, None),
        (RefusedOnce(400), None),
        (RefusedOnce(422), None),
    ] {
        let refused = AtomicBool::new(false);
        let service = FakeService::start(move |asked| {
            if asked.path().ends_with("/auth") {
                return token();
            }
            let has_dates = asked.query("start_date").is_some();
            let cursor = asked.query("next_token");
            let is_refused = match reading {
                Refused(_) | RefusedByAnother => true,
                RefusedOnce(_) => !refused.swap(cursor.is_some(), Ordering::Relaxed),
            };
            if has_dates && cursor.is_some() && is_refused {
                let (Refused(status) | RefusedOnce(status)) = reading else {
                    return Answer::error(422, "no");
                };
                return Answer::error(status, "no");
            }
            let number: usize = cursor.map_or(0, |cursor| cursor[1..].parse().unwrap());
            // One batch a page, four of May.
            let is_last = match reading {
                RefusedOnce(_) => (has_dates && number == 4) || number == 8,
                _ => number == 3,
            };
            let next = (!is_last).then(|| format!("c{}", number + 1));
            let batches = match reading {
                RefusedByAnother if number == 3 => vec![dated(number, 6)],
                RefusedOnce(_) if number >= 4 && has_dates => Vec::new(),
                RefusedOnce(_) if number >= 4 => vec![dated(number, 6)],
                _ => vec![dated(number, 5)],
            };
            Answer::ok(page(&batches, next.as_deref()))
        });
        let args = ["--period", "2026-05", "--parallel", "1"];
        let exported = export(&service, &args).expect(0);
        assert_eq!(exported.ids(), ["b0", "b1", "b2", "b3"], "{reading:?}");
        let seen: Vec<String> = service
            .requests_for("/batches")
            .iter()
            .map(|asked| {
                let dates = asked.query("start_date").map_or("-", |_| "D");
                let cursor = asked.query("next_token").map_or("", |_| "c");
                format!("{dates}{cursor}")
            })
            .collect();
        let seen = seen.join(" ");
        assert_eq!(seen, requests.unwrap_or(&seen), "{reading:?}");
    }
}

#[test]
fn an_empty_page_with_a_cursor_is_not_the_end() {
    let odd = format!("{CURSOR}\u{f6}&=+ %2F\"\\");
    let service = service([
        Answer::ok(page::<Batch>(&[], Some(&cursor(1)))),
        Answer::ok(page::<Batch>(&[], Some(&odd))),
        Answer::ok(page(&[batch("b1")], Some(&cursor(3)))),
        Answer::ok(page::<Batch>(&[], None)),
    ]);
    assert_eq!(
        export(&service, &["--start", "2026"]).expect(0).ids(),
        ["b1"]
    );
    let cursors: Vec<Option<String>> = service
        .requests_for("/batches")
        .iter()
        .map(|asked| asked.query("next_token"))
        .collect();
    assert_eq!(
        cursors,
        [None, Some(cursor(1)), Some(odd), Some(cursor(3))],
        "cursors are sent back unchanged"
    );
    for asked in service.requests_for("/batches") {
        assert_eq!(
            asked.query("start_date").as_deref(),
            Some("2026-01-01T00:00:00Z")
        );
    }
}

#[test]
fn lenient_counts_batches_sent_by_version_1_rather_than_kept() {
    // 1500 batches, one every 30 seconds; one has no id, and a response has at most 1000.
    let script = |asked: &Received| {
        if asked.path().ends_with("/auth") {
            return token();
        }
        let (start, end) = (asked.query("start_date"), asked.query("end_date"));
        let batches: Vec<Batch> = (0..1500)
            .map(|number| {
                let (hour, minute, second) = (number / 120, number / 2 % 60, number % 2 * 30);
                (
                    number,
                    format!("2026-05-01T{hour:02}:{minute:02}:{second:02}Z"),
                )
            })
            .filter(|(_, date)| {
                start.as_ref().is_none_or(|start| date >= start)
                    && end.as_ref().is_none_or(|end| date <= end)
            })
            .take(1000)
            .map(|(number, date)| {
                let batch = Batch::new(&format!("b{number}")).created(&date);
                match number {
                    7 => batch.without("batch_id"),
                    _ => batch,
                }
            })
            .collect();
        Answer::ok(list(&batches))
    };
    let service = FakeService::start(script);
    let exported = export(&service, &["--api", "v1", "--lenient"]).expect(0);
    assert_eq!(
        exported.ids().len(),
        1499,
        "all but the one: {}",
        exported.stderr
    );
}

#[test]
fn data_issues_are_reported_even_if_a_limit_ends_the_run() {
    let invalid = batch_with("b1", "number_of_images", Some("\"twelve\""));
    let first = Answer::ok(page(&[invalid, batch("b2")], Some(&cursor(1))));
    let exported = export(&service([first]), &["--lenient", "--limit", "1"]).expect(0);
    assert!(exported.has("1 batch break"), "{}", exported.stderr);
}

#[test]
fn data_issues_use_the_correct_singular_or_plural() {
    let first = Batch::new("a").without("comment").without("crop_type");
    let formula = batch_with("b", "comment", Some("\"=1+1\""));
    let none = batch_with("c", "scanned_by_email", None);
    let batches = [first.text(), formula.clone(), none.clone()];
    let exported = export(&service([Answer::ok(page(&batches, None))]), &["-f", "csv"]).expect(0);
    let absent = "`crop_type`, `scanned_by_email`, `comment` are missing in some batches; they count as null";
    assert!(exported.has(absent), "{}", exported.stderr);
    let note = "1 text cell would run as a formula in a spreadsheet; `--excel` makes it harmless";
    assert!(exported.has(note), "{}", exported.stderr);
    let exported = export(&service([Answer::ok(page(&[none], None))]), &[]).expect(0);
    let absent = "`scanned_by_email` is missing in some batches; it counts as null";
    assert!(exported.has(absent), "{}", exported.stderr);

    let unknown = batch_with("a", "a, b\n", Some("1"));
    let exported = export(
        &service([Answer::ok(page(&[unknown], None))]),
        &["-f", "csv"],
    )
    .expect(0);
    let left_out = "csv has no column for the field `a, b\\n`; it was left out";
    assert!(exported.has(left_out), "{}", exported.stderr);

    let large = batch_with("a", "number_of_images", Some("9223372036854775808"));
    let exported = export(&service([Answer::ok(page(&[large], None))]), &[]).expect(7);
    assert!(
        exported.has("`number_of_images` is too large"),
        "{}",
        exported.stderr
    );
}

#[test]
fn an_unrequested_partial_response_is_rejected() {
    let part = Answer::status(206, page(&[batch("b1")], Some(&cursor(1))));
    let part = part.header("Content-Range", "bytes 0-99/1000");
    let batches = service([part]);
    let exported = export(&batches, &["-vv"]).expect(7);
    assert!(exported.has("answered 206"), "{}", exported.stderr);
    assert_eq!(batches.requests_for("/batches").len(), 1);
    let json = json!({ "access_token": TOKEN }).to_string();
    export(&for_auth(Answer::status(206, json)), &[]).expect(7);
}
