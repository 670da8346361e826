//! `export` against answers that are cut, broken, hostile or slow.
//!
//! Every export here writes a file, and every one is checked for what holds always: a failure
//! publishes nothing and leaves no litter, and no secret, token or cursor is ever printed.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use crate::harness::{Ended, SOON, trayscan};
use crate::scripted::{Answer, Asked, Framing, Scripted, bomb};

/// Holds what JSON, forms and addresses write differently.
const SECRET: &str = "s3cret\"/+&x\u{f6}-9f2";
const TOKEN: &str = "token-4711-abcdefgh";
/// Every cursor begins like this.
const CURSOR: &str = "crsr-";
/// No export here may take longer, whatever it is told.
const LIMIT: Duration = Duration::from_secs(90);

/// What an export left behind.
struct Exported {
    code: i32,
    stderr: String,
    file: Option<String>,
    took: Duration,
}

impl Exported {
    fn has(&self, words: &str) -> bool {
        self.stderr.contains(words)
    }

    /// Returns the identifiers in the file.
    fn ids(&self) -> Vec<String> {
        let file = self
            .file
            .as_ref()
            .unwrap_or_else(|| panic!("{}", self.stderr));
        let lines = file.lines().map(|line| serde_json::from_str(line).unwrap());
        lines
            .map(|line: Value| line["batch_id"].as_str().unwrap().to_owned())
            .collect()
    }

    #[track_caller]
    fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}", self.stderr);
        self
    }

    fn error(&self) -> Value {
        let last = self.stderr.lines().last().unwrap();
        serde_json::from_str::<Value>(last).unwrap()["error"].clone()
    }
}

/// The program, told to ask `base_url` in the environment.
fn configured(mut command: Command, base_url: &str) -> Command {
    command
        .env("TRAYSCAN_BASE_URL", base_url)
        .env("TRAYSCAN_CLIENT_ID", "client")
        .env("TRAYSCAN_CLIENT_SECRET", SECRET)
        .env("TRAYSCAN_RETRIES", "1")
        .env("TRAYSCAN_RETRY_WAIT", "0s")
        .env("TRAYSCAN_TIMEOUT", "20s");
    command
}

/// Runs an export into a file and checks what holds for all of them.
#[track_caller]
fn run(mut command: Command, args: &[&str]) -> Exported {
    let folder = tempfile::tempdir().unwrap();
    let home = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.ndjson");
    command
        .args(["export", "-o", path.to_str().unwrap()])
        .args(args);
    command
        .env("HOME", home.path())
        .env("XDG_CONFIG_HOME", home.path());
    let started = Instant::now();
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let readers = [
        thread::spawn(move || std::io::read_to_string(stdout).unwrap()),
        thread::spawn(move || std::io::read_to_string(stderr).unwrap()),
    ];
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if started.elapsed() > LIMIT {
            let _ = child.kill();
            panic!("it hangs: {args:?}");
        }
        thread::sleep(Duration::from_millis(2));
    };
    let took = started.elapsed();
    let [stdout, stderr] = readers.map(|reader| reader.join().unwrap());
    for printed in [&stdout, &stderr] {
        for secret in [SECRET, TOKEN, CURSOR] {
            assert!(!printed.contains(secret), "{secret} was printed: {printed}");
        }
    }
    let file = fs::read_to_string(&path).ok();
    let code = status
        .code()
        .unwrap_or_else(|| panic!("{status}: {stderr}"));
    let files = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(
        (file.is_some(), files),
        (code == 0, usize::from(code == 0)),
        "{stderr}"
    );
    assert!(code != 1 && code != 101, "{stderr}");
    Exported {
        code,
        stderr,
        file,
        took,
    }
}

#[track_caller]
fn export(service: &Scripted, args: &[&str]) -> Exported {
    run(configured(trayscan(&[]), &service.base_url()), args)
}

/// The fields of a batch, as names and JSON.
pub(crate) fn fields(id: &str) -> Vec<(String, String)> {
    let mut fields = vec![
        ("batch_id".to_owned(), json!(id).to_string()),
        ("batch_name".to_owned(), "\"Tray\"".to_owned()),
        (
            "batch_creation_date".to_owned(),
            "\"2026-05-01T06:00:00Z\"".to_owned(),
        ),
        ("number_of_images".to_owned(), "12".to_owned()),
        ("warnings".to_owned(), "false".to_owned()),
        ("total_cells_per_tray".to_owned(), "128".to_owned()),
        ("avg_germination_rate".to_owned(), "\"87.50\"".to_owned()),
    ];
    let nulls = [
        "crop_type",
        "avg_germinated_seedlings",
        "avg_non_germinated_seedlings",
        "avg_usable_seedlings",
        "avg_non_usable_cells",
        "avg_usable_seedling_rate",
        "avg_coefficient_of_variation",
        "avg_median_seedling_size_mm2",
        "scanned_by_email",
        "analysis_link",
        "comment",
    ];
    fields.extend(nulls.map(|name| (name.to_owned(), "null".to_owned())));
    fields
}

pub(crate) fn object(fields: &[(String, String)]) -> String {
    let members: Vec<String> = fields
        .iter()
        .map(|(name, value)| format!("{}:{value}", json!(name)))
        .collect();
    format!("{{{}}}", members.join(","))
}

fn batch(id: &str) -> String {
    object(&fields(id))
}

/// A batch that is right but for `field`, which holds `value`, or is not there.
fn batch_with(id: &str, field: &str, value: Option<&str>) -> String {
    let mut fields = fields(id);
    let place = fields.iter().position(|(name, _)| name == field);
    match (place, value) {
        (Some(place), Some(value)) => value.clone_into(&mut fields[place].1),
        (Some(place), None) => drop(fields.remove(place)),
        (None, value) => fields.push((field.to_owned(), value.unwrap().to_owned())),
    }
    object(&fields)
}

pub(crate) fn page(batches: &[String], next: Option<&str>) -> String {
    format!(
        "{{\"data\":[{}],\"next_token\":{}}}",
        batches.join(","),
        json!(next)
    )
}

pub(crate) fn cursor(number: usize) -> String {
    format!("{CURSOR}{number:04}")
}

/// A token response.
pub(crate) fn token() -> Answer {
    Answer::ok(json!({ "access_token": TOKEN, "token_type": "bearer" }).to_string())
}

/// A service whose batches answers are these; the last repeats.
fn service(batches: impl IntoIterator<Item = Answer>) -> Scripted {
    Scripted::answering(vec![token()], batches.into_iter().collect())
}

fn one_page() -> Answer {
    Answer::ok(page(&[batch("b1")], None))
}

/// Runs `job` on every item, a few at a time.
fn in_parallel<T: Sync>(items: &[T], job: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    job(item);
                }
            });
        }
    });
}

fn gaps(asked: &[Asked]) -> Vec<Duration> {
    let pairs = asked.windows(2);
    pairs
        .map(|pair| pair[1].at.duration_since(pair[0].at).unwrap_or_default())
        .collect()
}

// Answers that are cut short.

/// Pages of one small batch each, the first answer to page `k` cut at byte `k`, and one whole page.
fn cut_pages(framing: Framing, reset: bool, pages: usize) -> Scripted {
    Scripted::start(move |asked| {
        if asked.path().ends_with("/auth") {
            return token();
        }
        let number = asked.query("next_token").map_or(0, |cursor| {
            cursor.strip_prefix(CURSOR).unwrap().parse().unwrap()
        });
        let answer = cut_page(framing, number, pages);
        let place = number.min(answer.len() - 1);
        match (asked.again == 0 && number < pages, reset) {
            (false, _) => answer,
            (true, false) => answer.cut_at(place),
            (true, true) => answer.cut_at(place).reset(),
        }
    })
}

fn cut_page(framing: Framing, number: usize, pages: usize) -> Answer {
    let batch = json!({
        "batch_id": format!("b{number:04}"),
        "batch_name": "Tray",
        "batch_creation_date": "2026-05-01T06:00:00Z",
        "number_of_images": 1,
        "warnings": false,
    });
    let next = (number < pages).then(|| cursor(number + 1));
    Answer::framed(
        200,
        framing,
        page(&[batch.to_string()], next.as_deref()).as_bytes(),
    )
}

#[test]
fn a_page_cut_at_any_byte_is_asked_for_again_and_nothing_is_lost() {
    let kinds = Framing::ALL.map(|framing| (framing, false));
    in_parallel(
        &[&kinds[..], &[(Framing::Length, true)]].concat(),
        |&(framing, reset)| {
            let pages = cut_page(framing, 0, 9).len() + 3;
            let service = cut_pages(framing, reset, pages);
            let exported = export(&service, &["--api", "v2", "--retries", "1"]);
            assert_eq!(exported.code, 0, "{framing:?} {}", exported.stderr);
            let expected: Vec<String> = (0..=pages).map(|number| format!("b{number:04}")).collect();
            assert_eq!(exported.ids(), expected, "{framing:?}");
            let tries = service.asked_for("/batches").len();
            assert_eq!(
                tries,
                2 * pages + 1,
                "{framing:?}: every cut answer is asked for again"
            );
            assert_eq!(
                exported.stderr.matches("trying again").count(),
                pages,
                "each wait is told"
            );
        },
    );
}

#[test]
fn a_page_that_is_always_cut_is_never_a_page() {
    in_parallel(&Framing::ALL, |&framing| {
        let whole = Answer::framed(200, framing, page(&[], None).as_bytes());
        let exported = export(&service([whole.clone()]), &[]).expect(0);
        assert_eq!(exported.ids(), [""; 0], "{framing:?}");
        // Cut at another byte each time, so that one run tries them all.
        let service = service((0..whole.len()).map(|place| whole.clone().cut_at(place)));
        let retries = (whole.len() - 1).to_string();
        let exported = export(&service, &["--retries", &retries]);
        assert_eq!(exported.code, 5, "{framing:?}: {}", exported.stderr);
        assert_eq!(
            service.asked_for("/batches").len(),
            whole.len(),
            "{framing:?}"
        );
    });
}

#[test]
fn an_answer_of_version_1_cut_at_any_byte_is_asked_for_again() {
    in_parallel(&Framing::ALL, |&framing| {
        let body = format!("[{}]", batch("b1"));
        let whole = Answer::framed(200, framing, body.as_bytes());
        let cuts = (0..whole.len()).map(|place| whole.clone().cut_at(place));
        let service = service(cuts.chain([whole.clone()]));
        let retries = whole.len().to_string();
        let exported = export(&service, &["--api", "v1", "--retries", &retries]);
        assert_eq!(exported.code, 0, "{framing:?} {}", exported.stderr);
        assert_eq!(exported.ids(), ["b1"], "{framing:?}");
        assert_eq!(
            service.asked_for("/batches").len(),
            whole.len() + 1,
            "{framing:?}"
        );
    });
}

#[test]
fn a_token_response_cut_at_any_byte_is_asked_for_again() {
    in_parallel(&Framing::ALL, |&framing| {
        let body = json!({ "access_token": TOKEN }).to_string();
        let whole = Answer::framed(200, framing, body.as_bytes());
        let cuts = (0..whole.len()).map(|place| whole.clone().cut_at(place));
        let auth = cuts.chain([whole.clone()]).collect();
        let service = Scripted::answering(auth, vec![one_page()]);
        let exported = export(&service, &["--retries", &whole.len().to_string()]);
        assert_eq!(exported.code, 0, "{framing:?} {}", exported.stderr);
        assert_eq!(
            service.asked_for("/auth").len(),
            whole.len() + 1,
            "{framing:?}"
        );
        let bearer = format!("Bearer {TOKEN}");
        assert_eq!(
            service.asked_for("/batches")[0].headers("authorization"),
            [&bearer]
        );
    });
}

#[test]
fn a_length_that_is_not_true_is_no_page() {
    let body = page(&[batch("b1")], None);
    for length in [
        body.len() + 1,
        body.len() + 1000,
        body.len() - 1,
        body.len() / 2,
    ] {
        let wrong = Answer::ok(&body).claiming(length);
        let service = service([wrong.clone(), one_page()]);
        assert_eq!(export(&service, &[]).expect(0).ids(), ["b1"], "{length}");
        assert_eq!(service.asked_for("/batches").len(), 2, "{length}");
    }
}

#[test]
fn gzip_that_does_not_add_up_is_no_page() {
    let body = page(&[batch("b1")], None);
    let good = Answer::framed(200, Framing::GzipLength, body.as_bytes());
    // Nothing is cut, yet the checksum is not that of the text.
    let mut packed = packed(&body);
    let place = packed.len() - 8;
    packed[place] ^= 1;
    let service = service([Answer::packed(200, packed), good]);
    assert_eq!(export(&service, &[]).expect(0).ids(), ["b1"]);
    assert_eq!(service.asked_for("/batches").len(), 2);
}

/// Packs `text` alone.
fn packed(text: &str) -> Vec<u8> {
    use std::io::Write as _;

    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_service_that_always_resets_is_unavailable() {
    for place in [0, 20, 150] {
        let service = service([one_page().cut_at(place).reset()]);
        let exported = export(&service, &["--retries", "2"]).expect(5);
        assert_eq!(
            service.asked_for("/batches").len(),
            3,
            "{}",
            exported.stderr
        );
    }
}

// Answers that break the interface.

#[test]
fn what_is_no_page_in_json_breaks_the_interface() {
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
        assert_eq!(
            service.asked_for("/batches").len(),
            1,
            "{shown}: it would not get better"
        );
    });
}

/// Writes text with one byte for each character.
fn latin1(text: &str) -> Vec<u8> {
    text.chars()
        .map(|character| u8::try_from(u32::from(character)).unwrap())
        .collect()
}

/// Batches with one flaw each, and the field that has it.
fn flawed(id: &str) -> Vec<(String, &'static str)> {
    let mut flawed = Vec::new();
    let required = [
        "batch_name",
        "batch_creation_date",
        "number_of_images",
        "warnings",
        "batch_id",
    ];
    for field in required {
        flawed.push((batch_with(id, field, None), field));
        flawed.push((batch_with(id, field, Some("null")), field));
        flawed.push((batch_with(id, field, Some("{}")), field));
        flawed.push((batch_with(id, field, Some("[1]")), field));
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
        flawed.push((batch_with(id, field, Some(value)), field));
    }
    for field in ["batch_name", "comment", "batch_id"] {
        let mut repeated = fields(id);
        repeated.push(
            repeated
                .iter()
                .find(|(name, _)| name == field)
                .unwrap()
                .clone(),
        );
        flawed.push((object(&repeated), field));
    }
    let escaped = batch(id).replacen('{', "{\"comm\\u0065nt\":\"x\",", 1);
    flawed.push((escaped, "comment"));
    flawed
}

#[test]
fn a_flawed_batch_ends_the_run_with_page_batch_and_field() {
    in_parallel(&flawed("b3"), |(flawed, field)| {
        let second = page(&[batch("b2"), flawed.clone()], None);
        let first = page(&[batch("b1")], Some(&cursor(1)));
        let service = service([Answer::ok(first), Answer::ok(second)]);
        let exported = export(&service, &[]);
        let stderr = &exported.stderr;
        assert_eq!(exported.code, 7, "{flawed}\n{stderr}");
        for words in [
            "page 2",
            "batch 2",
            &format!("`{field}`"),
            "GET /v2/batches",
        ] {
            assert!(exported.has(words), "{words} in {flawed}\n{stderr}");
        }
        assert_eq!(service.asked_for("/batches").len(), 2, "{flawed}");
    });
}

#[test]
fn lenient_carries_flawed_batches_on_as_received_and_counts_them() {
    let all = flawed("b1");
    let (mut batches, mut expected, mut skipped) = (Vec::new(), Vec::new(), 0);
    for (number, (text, field)) in all.iter().enumerate() {
        let id = format!("id-{number}");
        let text = text.replace("\"b1\"", &json!(id).to_string());
        batches.push(text.clone());
        // A repeated identifier is one nevertheless.
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
    assert!(
        warning.contains(&format!("{skipped} left out")),
        "{warning}"
    );
}

#[test]
fn a_nullable_field_that_is_absent_draws_one_warning() {
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
fn unknown_fields_are_kept_wherever_they_stand() {
    let more = batch_with("b1", "soil", Some("{\"ph\":6.50,\"a\":[null]}"));
    let body =
        page(std::slice::from_ref(&more), None).replacen('{', "{\"total\":[1,{\"data\":[]}],", 1);
    let exported = export(&service([Answer::ok(body)]), &[]).expect(0);
    assert_eq!(exported.file, Some(format!("{more}\n")));
}

#[test]
fn a_next_token_that_is_neither_text_nor_null_breaks_the_interface() {
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
        assert_eq!(service.asked_for("/batches").len(), 1, "{end}");
    }
}

#[test]
fn cursors_that_go_round_end_the_run() {
    for round in [1, 2, 5] {
        let service = Scripted::start(move |asked| {
            if asked.path().ends_with("/auth") {
                return token();
            }
            let batches = [batch(&format!("b{}", asked.nth))];
            Answer::ok(page(&batches, Some(&cursor(asked.nth % round))))
        });
        let exported = export(&service, &[]).expect(7);
        assert!(exported.has("next_token"), "{}", exported.stderr);
        assert_eq!(service.asked_for("/batches").len(), round + 1);
    }
}

#[test]
fn an_empty_page_with_a_cursor_is_not_the_end() {
    let odd = format!("{CURSOR}\u{f6}&=+ %2F\"\\");
    let service = service([
        Answer::ok(page(&[], Some(&cursor(1)))),
        Answer::ok(page(&[], Some(&odd))),
        Answer::ok(page(&[batch("b1")], Some(&cursor(3)))),
        Answer::ok(page(&[], None)),
    ]);
    assert_eq!(
        export(&service, &["--start", "2026"]).expect(0).ids(),
        ["b1"]
    );
    let cursors: Vec<Option<String>> = service
        .asked_for("/batches")
        .iter()
        .map(|asked| asked.query("next_token"))
        .collect();
    assert_eq!(
        cursors,
        [None, Some(cursor(1)), Some(odd), Some(cursor(3))],
        "as they came"
    );
    for asked in service.asked_for("/batches") {
        assert_eq!(
            asked.query("start_date").as_deref(),
            Some("2026-01-01T00:00:00Z")
        );
    }
}

// Answers that are too much.

/// Runs an export and returns the most memory it had, in kilobytes.
fn measured(service: &Scripted, args: &[&str]) -> (Exported, u64) {
    let record = tempfile::NamedTempFile::new().unwrap();
    let mut command = Command::new("/usr/bin/time");
    command.env_clear().stdin(Stdio::null());
    command.args(["-f", "%M", "-o", record.path().to_str().unwrap()]);
    command.arg(env!("CARGO_BIN_EXE_trayscan"));
    let exported = run(configured(command, &service.base_url()), args);
    let record = fs::read_to_string(record.path()).unwrap();
    let peak = record.lines().last().unwrap().parse().unwrap();
    (exported, peak)
}

/// Tells whether `/usr/bin/time` is the one that measures memory.
fn can_measure() -> bool {
    let probe = Command::new("/usr/bin/time")
        .args(["-f", "%M", "true"])
        .output();
    let peak = probe
        .ok()
        .map(|output| String::from_utf8_lossy(&output.stderr).trim().to_owned());
    let able = peak.is_some_and(|peak| peak.parse::<u64>().is_ok());
    if !able {
        eprintln!("GNU time is not here: memory is not measured");
    }
    able
}

#[test]
fn bombs_break_the_interface_within_64_mebibytes() {
    if !can_measure() {
        return;
    }
    let inside = batch("b1").replace("\"Tray\"", "@");
    let (before, after) = inside.split_once('@').unwrap();
    let (before, after) = (
        format!("{{\"data\":[{before}"),
        format!("{after}],\"next_token\":null}}"),
    );
    let envelope = "],\"next_token\":null}";
    let bombs = [
        (
            "blanks before all",
            bomb("", " ", "{\"data\":[],\"next_token\":null}"),
        ),
        (
            "blanks after all",
            bomb("{\"data\":[],\"next_token\":null}", "\n", ""),
        ),
        (
            "blanks between batches",
            bomb("{\"data\":[", "\t", envelope),
        ),
        ("zeros between batches", bomb("{\"data\":[", "0", envelope)),
        (
            "a string for a batch",
            bomb("{\"data\":[\"", "x", &format!("\"{envelope}")),
        ),
        ("nesting for a batch", bomb("{\"data\":[", "[", envelope)),
        (
            "objects for a batch",
            bomb("{\"data\":[", "{\"a\":", envelope),
        ),
        (
            "a giant name",
            bomb("{\"", "n", "\":1,\"data\":[],\"next_token\":null}"),
        ),
        (
            "a giant cursor",
            bomb("{\"data\":[],\"next_token\":\"", "c", "\"}"),
        ),
        (
            "zeros in the envelope",
            bomb("{\"more\":", "0", ",\"data\":[],\"next_token\":null}"),
        ),
        (
            "nesting in the envelope",
            bomb("{\"more\":", "[", ",\"data\":[],\"next_token\":null}"),
        ),
        ("NUL bytes", bomb("", "\0", "")),
        (
            "blanks in a batch",
            bomb(&before, " ", &format!("\"Tray\"{after}")),
        ),
        ("zeros in a batch", bomb(&before, "0", &after)),
        (
            "a string in a batch",
            bomb(&format!("{before}\""), "x", &format!("\"{after}")),
        ),
        (
            "escapes in a batch",
            bomb(&format!("{before}\""), "\\u0041x", &format!("\"{after}")),
        ),
        ("nesting in a batch", bomb(&before, "[", &after)),
        (
            "fields in a batch",
            bomb(&format!("{before}1"), ",\"a\":0", &after),
        ),
    ];
    in_parallel(&bombs, |(name, bomb)| {
        let service = service([Answer::packed(200, bomb.clone())]);
        let (exported, peak) = measured(&service, &[]);
        assert_eq!(exported.code, 7, "{name}: {}", exported.stderr);
        assert!(peak < 64 * 1024, "{name}: {peak} kB");
        assert!(
            exported.stderr.len() < 2000,
            "{name}: {} bytes",
            exported.stderr.len()
        );
    });
}

#[test]
fn bombs_for_a_token_or_an_error_are_bounded_too() {
    if !can_measure() {
        return;
    }
    let bomb = bomb("{\"access_token\":\"", "x", "\"}");
    let auth =
        |status| Scripted::answering(vec![Answer::packed(status, bomb.clone())], vec![one_page()]);
    for (status, code) in [(200, 7), (401, 4), (422, 6), (500, 5)] {
        let (exported, peak) = measured(&auth(status), &[]);
        assert_eq!(exported.code, code, "{}", exported.stderr);
        assert!(peak < 64 * 1024, "{status}: {peak} kB");
        assert!(
            exported.stderr.len() < 2000,
            "{status}: {}",
            exported.stderr
        );
    }
}

#[test]
fn a_head_without_end_is_bounded() {
    if !can_measure() {
        return;
    }
    let line = format!("X-More: {}\r\n", "x".repeat(1000));
    let head = format!("HTTP/1.1 200 OK\r\n{}", line.repeat(20_000));
    let (exported, peak) = measured(&service([Answer::raw(&head)]), &["--retries", "0"]);
    assert!(matches!(exported.code, 5 | 7), "{}", exported.stderr);
    assert!(peak < 64 * 1024, "{peak} kB");
}

#[test]
fn a_long_error_page_is_a_few_readable_lines() {
    let row = "<tr><td class=\"cell\">Something went wrong, and here is all about it</td></tr>\n";
    let html = format!(
        "<!DOCTYPE html>\n<html>\n{}",
        row.repeat(10 * (1 << 20) / row.len())
    );
    let one_line = html.replace('\n', " ");
    for (status, code) in [(500, 5), (502, 5), (400, 6), (403, 4), (200, 7)] {
        for format in ["text", "json"] {
            for service in [
                for_auth(Answer::status(status, &html)),
                service([Answer::status(status, &one_line)]),
            ] {
                let exported = export(&service, &["--error-format", format]).expect(code);
                let stderr = &exported.stderr;
                assert!(stderr.len() < 2000, "{stderr}");
                assert!(stderr.lines().count() < 12, "{stderr}");
            }
        }
    }
}

#[test]
fn what_the_service_names_in_a_flawed_batch_is_shown_in_part() {
    let long = "n".repeat(500_000);
    for batch in [
        batch_with(&long, "warnings", None),
        batch_with("b1", &long, Some("1")).replacen('{', &format!("{{\"{long}\":1,"), 1),
        format!("\"{long}\""),
    ] {
        for args in [
            &["--error-format", "text"][..],
            &["--error-format", "json"],
            &["--lenient"],
        ] {
            let service = service([Answer::ok(page(std::slice::from_ref(&batch), None))]);
            let exported = export(&service, args);
            assert_eq!(exported.code, if args.len() == 1 { 0 } else { 7 });
            let length = exported.stderr.len();
            assert!(
                length < 4000,
                "{length} bytes for {}… {args:?}",
                &batch[..40]
            );
        }
    }
}

// What is shown, and what is not.

/// Characters that a terminal would obey.
const HOSTILE: &str = "a\u{1b}[31mred\u{7}\u{9b}2J\u{8}\u{7f}\u{202e}evil\u{2066}x\u{200f}";

#[track_caller]
fn assert_harmless(stderr: &str) {
    let obeyed = |character: &char| {
        (character.is_control() && *character != '\n')
            || matches!(character, '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let found: Vec<char> = stderr.chars().filter(obeyed).collect();
    assert!(found.is_empty(), "{found:?} in {stderr:?}");
}

#[test]
fn what_a_terminal_would_obey_is_shown_as_escapes() {
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
    let flawed = batch_with(HOSTILE, "warnings", None);
    let exported = export(&service([Answer::ok(page(&[flawed], None))]), &[]).expect(7);
    assert_harmless(&exported.stderr);
    assert!(exported.has("\\u{1b}[31m"), "{}", exported.stderr);
}

#[test]
fn json_errors_hold_nothing_that_a_terminal_would_obey() {
    let bodies = [
        json!({ "detail": HOSTILE }).to_string(),
        json!({ "detail": [{"loc": ["query", HOSTILE], "msg": HOSTILE, "type": "x"}] }).to_string(),
    ];
    for body in bodies {
        let service = service([Answer::status(422, body)]);
        let exported = export(&service, &["--error-format", "json"]).expect(6);
        // A program reads them all the same.
        assert!(
            exported.error()["detail"].to_string().contains("evil"),
            "{}",
            exported.stderr
        );
        assert_harmless(&exported.stderr);
    }
}

#[test]
fn the_service_cannot_write_lines_of_its_own() {
    let forged = "x\nwarning: all is well\nerror: gone";
    let flawed = batch_with(forged, "warnings", None);
    let repeated = batch_with("b1", forged, Some("1"));
    let repeated = repeated.replacen('{', &format!("{{{}:1,", json!(forged)), 1);
    let details = json!({"detail": [{"loc": ["query", forged], "msg": forged}]}).to_string();
    for answer in [
        Answer::ok(page(&[flawed], None)),
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

/// Puts what must not be shown into everything that an error can hold.
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

/// Writes every character as JSON may escape it.
fn escapes(text: &str) -> String {
    text.chars().fold(String::new(), |escaped, character| {
        escaped + &format!("\\u{:04x}", u32::from(character))
    })
}

/// Exports with `make(echo)` for each echo and looks for every one of `hidden`.
fn assert_hidden(echoes: &[Answer], hidden: &[&str], make: impl Fn(Answer) -> Scripted + Sync) {
    in_parallel(echoes, |echo| {
        for format in ["text", "json"] {
            let exported = export(&make(echo.clone()), &["-vv", "--error-format", format]);
            assert_ne!(exported.code, 0);
            for hidden in hidden {
                assert!(!exported.has(hidden), "{hidden} in {}", exported.stderr);
            }
        }
    });
}

/// As an auth answer.
fn for_auth(answer: Answer) -> Scripted {
    Scripted::answering(vec![answer], vec![one_page()])
}

/// As the answer to the second page, asked for with a cursor.
fn for_page_two(answer: Answer) -> Scripted {
    Scripted::start(move |asked| {
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
fn a_secret_that_the_service_repeats_is_not_shown() {
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
                    let args = ["-vv", "--error-format", format, "--client-secret", secret];
                    let exported = export(&service, &args);
                    assert!(!exported.has("hunter2"), "{}", exported.stderr);
                }
            }
        });
    }
}

#[test]
fn a_token_or_cursor_that_the_service_repeats_is_not_shown() {
    assert_hidden(&echoes(TOKEN), &[TOKEN], |echo| service([echo]));
    assert_hidden(&echoes(&cursor(1)), &[CURSOR], for_page_two);
}

#[test]
fn a_secret_is_hidden_in_every_way_of_writing_it() {
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
    ];
    let echoes = bodies.map(|body| Answer::status(422, body));
    assert_hidden(&echoes, &[SECRET, "s3cret", &form], for_auth);
}

#[test]
fn a_token_is_hidden_in_every_way_of_writing_it() {
    let escaped = escapes(TOKEN);
    let echo = Answer::status(422, format!("{{\"detail\":\"I got {escaped}\"}}"));
    assert_hidden(&[echo], &[TOKEN], |echo| service([echo]));
}

#[test]
fn an_odd_cursor_is_hidden_as_it_is_written_in_an_address() {
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
fn an_earlier_token_that_the_service_repeats_is_not_shown() {
    let next = Answer::ok("{\"access_token\":\"token-0815-other\"}");
    let auth = vec![token(), next];
    for format in ["text", "json"] {
        let refused = Answer::error(401, &format!("{TOKEN} and token-0815-other are not valid"));
        let service = Scripted::answering(auth.clone(), vec![refused]);
        let exported = export(&service, &["-vv", "--error-format", format]).expect(4);
        assert!(!exported.has("0815"), "{}", exported.stderr);
    }
}

#[test]
fn an_earlier_cursor_that_the_service_repeats_is_not_shown() {
    let last = Answer::error(500, &format!("lost after {}", cursor(1)));
    let service = service([
        Answer::ok(page(&[batch("b1")], Some(&cursor(1)))),
        Answer::ok(page(&[batch("b2")], Some(&cursor(2)))),
        last,
    ]);
    export(&service, &["-vv"]).expect(5);
}

#[test]
fn a_batch_that_repeats_secrets_does_not_have_them_shown() {
    for secret in [SECRET, TOKEN] {
        let flawed = batch_with(secret, "warnings", None);
        let unknown = batch_with("b1", secret, Some("1"));
        let repeated = unknown.replacen('{', &format!("{{{}:1,", json!(secret)), 1);
        for batch in [flawed, repeated, json!(secret).to_string()] {
            let service = service([Answer::ok(page(&[batch], None))]);
            export(&service, &["-vv"]).expect(7);
        }
    }
}

#[test]
fn every_place_and_message_of_a_422_is_shown() {
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

// Redirects.

#[test]
fn a_redirect_to_another_origin_is_never_followed() {
    let trap = Scripted::answering(vec![token()], vec![one_page()]);
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
            let last = service.asked().pop().unwrap();
            assert_eq!(last.nth, 0, "{status} {place}: asked once");
        }
    });
    assert_eq!(trap.connections(), 0, "{:?}", trap.names());
}

#[test]
fn a_get_redirect_within_the_service_is_followed() {
    for status in [301, 302, 303, 307, 308] {
        let service = Scripted::start(move |asked| match asked.path() {
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
        let last = service.asked().pop().unwrap();
        assert_eq!(
            (last.method.as_str(), last.target.as_str()),
            ("GET", "/elsewhere/batches?page=1")
        );
        assert_eq!(last.headers("authorization"), [format!("Bearer {TOKEN}")]);
    }
}

#[test]
fn a_redirect_with_a_password_in_it_does_not_change_who_we_are() {
    let service = Scripted::start(|asked| match asked.path() {
        "/v2/auth" => token(),
        "/v2/batches" => {
            let host = asked.headers("host")[0].to_owned();
            Answer::redirect(302, &format!("http://user:hunter2@{host}/elsewhere"))
        }
        _ => one_page(),
    });
    let exported = export(&service, &["--api", "v2", "-vv"]);
    assert!(!exported.has("hunter2"), "{}", exported.stderr);
    for asked in service.asked_for("/elsewhere") {
        assert_eq!(
            asked.headers("authorization"),
            [format!("Bearer {TOKEN}")],
            "and no other"
        );
    }
}

#[test]
fn credentials_do_not_follow_a_redirect() {
    for status in [301, 302, 303, 307, 308] {
        let service = Scripted::start(move |asked| match asked.path() {
            "/v2/auth" => Answer::redirect(status, "/elsewhere/auth"),
            _ => token(),
        });
        export(&service, &[]).expect(7);
        assert_eq!(service.names(), ["POST /v2/auth"], "{status}");
    }
}

#[test]
fn redirects_that_go_round_end() {
    let service = Scripted::start(|asked| match asked.path() {
        "/v2/auth" => token(),
        _ => Answer::redirect(302, &format!("/v2/batches?round={}", asked.nth % 2)),
    });
    export(&service, &[]).expect(7);
    assert!(
        service.asked_for("/batches").len() <= 12,
        "{}",
        service.asked().len()
    );
    // Without ever coming back to where it was.
    let service = Scripted::start(|asked| match asked.path() {
        "/v2/auth" => token(),
        _ => Answer::redirect(302, &format!("/v2/batches?round={}", asked.nth)),
    });
    export(&service, &[]).expect(7);
    assert!(
        service.asked_for("/batches").len() <= 12,
        "{}",
        service.asked().len()
    );
}

#[test]
fn a_redirect_to_nowhere_breaks_the_interface() {
    for place in ["http://", "http://[", "http://127.0.0.1:99999/"] {
        export(&service([Answer::redirect(302, place)]), &[]).expect(7);
    }
    for status in [300, 304, 302] {
        let service = service([Answer::status(status, "")]);
        export(&service, &[]).expect(7);
        assert_eq!(service.asked_for("/batches").len(), 1);
    }
}

// Trying again.

#[test]
fn retry_after_in_seconds_is_the_least_wait() {
    for (status, auth) in [(429, false), (503, false), (500, false), (429, true)] {
        let busy = Answer::error(status, "busy").header("Retry-After", "1");
        let (auth, batches, end) = if auth {
            (vec![busy, token()], vec![one_page()], "/auth")
        } else {
            (vec![token()], vec![busy, one_page()], "/batches")
        };
        let service = Scripted::answering(auth, batches);
        export(&service, &[]).expect(0);
        let gaps = gaps(&service.asked_for(end));
        assert!(
            matches!(gaps[..], [gap] if gap >= Duration::from_millis(990)),
            "{gaps:?}"
        );
    }
}

#[test]
fn retry_after_as_a_date_is_the_least_wait() {
    let when = SystemTime::now() + Duration::from_secs(3);
    let date = httpdate::fmt_http_date(when);
    let busy = Answer::error(503, "busy").header("Retry-After", &date);
    let service = service([busy, one_page()]);
    export(&service, &[]).expect(0);
    let asked = service.asked_for("/batches");
    let when = httpdate::parse_http_date(&date).unwrap();
    assert!(
        asked[1].at >= when - Duration::from_millis(20),
        "{:?} before {date}",
        asked[1].at
    );
}

#[test]
fn an_odd_retry_after_does_no_harm() {
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
fn a_503_waits_as_told_each_time() {
    let sick = Answer::error(503, "sick");
    let service = service([sick.clone(), sick.clone(), sick, one_page()]);
    let exported = export(&service, &["--retries", "3", "--retry-wait", "400ms"]).expect(0);
    let gaps = gaps(&service.asked_for("/batches"));
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
fn other_faults_wait_a_quarter_and_then_twice_as_long() {
    let service = service([
        Answer::error(500, "sick"),
        one_page().cut_at(9),
        Answer::error(429, "busy"),
        one_page(),
    ]);
    export(&service, &["--retries", "3", "--retry-wait", "800ms"]).expect(0);
    let gaps: Vec<u128> = gaps(&service.asked_for("/batches"))
        .iter()
        .map(Duration::as_millis)
        .collect();
    for (gap, (least, most)) in gaps.iter().zip([(148, 250), (298, 500), (598, 1000)]) {
        assert!((least..=most + 800).contains(gap), "{gaps:?}");
    }
    assert_eq!(gaps.len(), 3);
}

#[test]
fn these_statuses_are_tried_again_and_no_others() {
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
            // Once more, with a new token.
            401 | 403 if !auth => 2,
            _ => 1,
        };
        let end = if auth { "/auth" } else { "/batches" };
        assert_eq!(service.asked_for(end).len(), wanted, "{status} {auth}");
        let shown = exported.has(&status.to_string()) && exported.has(end) && exported.has("no");
        assert!(shown, "{}", exported.stderr);
    });
}

#[test]
fn auth_is_tried_again_like_any_other_request() {
    let auth = vec![
        Answer::error(503, "sick"),
        Answer::error(500, "sick"),
        token().cut_at(120),
        token().cut_at(0).reset(),
        token(),
    ];
    let service = Scripted::answering(auth, vec![one_page()]);
    export(&service, &["--retries", "3"]).expect(5);
    assert_eq!(service.names().len(), 4, "{:?}", service.names());
    drop(service);
    let auth = vec![Answer::error(503, "sick"), token()];
    let service = Scripted::answering(auth, vec![one_page()]);
    assert_eq!(export(&service, &[]).expect(0).ids(), ["b1"]);
}

// Tokens.

#[test]
fn a_refused_token_is_renewed_once_and_the_request_repeated() {
    for status in [401, 403] {
        let auth = vec![token(), Answer::ok("{\"access_token\":\"token-0815\"}")];
        let refused = Answer::error(status, "expired");
        let service = Scripted::answering(auth, vec![refused, one_page()]);
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
            service.asked()[3].headers("authorization"),
            ["Bearer token-0815"]
        );
    }
}

#[test]
fn a_token_refused_twice_ends_the_run() {
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
fn a_token_refused_in_mid_run_loses_nothing() {
    let service = service([
        Answer::ok(page(&[batch("b1")], Some(&cursor(1)))),
        Answer::error(401, "expired"),
        Answer::ok(page(&[batch("b2")], Some(&cursor(2)))),
        Answer::error(401, "expired"),
        Answer::ok(page(&[batch("b3")], None)),
    ]);
    assert_eq!(export(&service, &[]).expect(0).ids(), ["b1", "b2", "b3"]);
    assert_eq!(service.asked_for("/auth").len(), 3);
}

#[test]
fn an_odd_token_response_breaks_the_interface() {
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
fn an_odd_expires_in_does_no_harm() {
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
        let service = Scripted::answering(
            vec![Answer::ok(body)],
            vec![
                Answer::ok(page(&[batch("b1")], Some(&cursor(1)))),
                Answer::ok(page(&[], None)),
            ],
        );
        let exported = export(&service, &[]);
        assert_eq!(exported.code, 0, "{value}: {}", exported.stderr);
        assert_eq!(service.asked_for("/batches").len(), 2, "{value}");
        assert!(service.asked_for("/auth").len() <= 3, "{value}");
    });
}

#[test]
fn a_token_that_expires_soon_is_renewed_in_time() {
    let auth = Answer::ok(format!("{{\"access_token\":\"{TOKEN}\",\"expires_in\":1}}"));
    let slow = Duration::from_millis(1100);
    let service = Scripted::answering(
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

// Versions.

/// A service whose version 2 answers `status`, to auth or to batches, and whose version 1 works.
fn without_version_2(status: u16, auth: bool) -> Scripted {
    Scripted::start(move |asked| match asked.path() {
        "/v2/auth" if auth => Answer::error(status, "no"),
        "/v1/auth" => Answer::ok("{\"access_token\":\"token-of-v1\"}"),
        "/v2/auth" => token(),
        "/v1/batches" => Answer::ok(format!("[{}]", batch("b1"))),
        _ => Answer::error(status, "no"),
    })
}

#[test]
fn version_1_is_used_where_version_2_is_not_there() {
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
        let last = service.asked().pop().unwrap();
        assert_eq!(
            last.headers("authorization"),
            ["Bearer token-of-v1"],
            "its own token"
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
fn version_1_is_not_used_where_version_2_is_ill_or_refuses() {
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
fn a_version_that_was_asked_for_is_the_only_one() {
    let service = without_version_2(404, false);
    export(&service, &["--api", "v2"]).expect(6);
    assert_eq!(service.names(), ["POST /v2/auth", "GET /v2/batches"]);
    let service = Scripted::start(|asked| match asked.path() {
        "/v1/auth" => token(),
        _ => Answer::error(404, "no"),
    });
    export(&service, &["--api", "v1"]).expect(6);
    assert_eq!(service.names(), ["POST /v1/auth", "GET /v1/batches"]);
}

#[test]
fn a_service_without_any_version_says_so_once_for_each() {
    let service = Scripted::start(|_| Answer::error(404, "no"));
    let exported = export(&service, &[]).expect(6);
    assert!(exported.has("base URL"), "{}", exported.stderr);
    assert_eq!(service.names(), ["POST /v2/auth", "POST /v1/auth"]);
}

#[test]
fn a_404_in_mid_run_is_no_reason_for_version_1() {
    let service = service([
        Answer::ok(page(&[batch("b1")], Some(&cursor(1)))),
        Answer::error(404, "no such cursor"),
    ]);
    export(&service, &[]).expect(6);
    let names = service.names();
    assert!(!names.iter().any(|name| name.contains("/v1/")), "{names:?}");
    assert!(names.len() < 20, "{names:?}");
}

// What is sent, and to whom.

#[test]
fn plain_http_to_another_machine_is_refused_at_once() {
    for base_url in [
        "http://192.0.2.1",
        "http://192.0.2.1:8080/api",
        "http://scan.example",
    ] {
        let exported = run(configured(trayscan(&[]), base_url), &[]).expect(13);
        assert!(exported.has("--allow-http"), "{}", exported.stderr);
    }
}

#[test]
fn a_base_url_with_a_password_is_refused_and_not_shown() {
    let trap = service([one_page()]);
    for (start, end) in [
        ("http://user:hunter2@", ""),
        ("http://:hunter2@", "/api"),
        ("http://hunter2@", ""),
        ("HTTP://user:hunter2@", ""),
        ("http:user:hunter2@", ""),
        ("http//user:hunter2@", ""),
        ("user:hunter2@", ""),
        ("http://user:hunter2@@", ""),
        ("http://user:hunter2@", ":99999"),
        ("http://", "/?key=hunter2"),
        ("http://", "/#hunter2"),
    ] {
        let base_url = format!("{start}{}{end}", trap.address);
        for format in ["text", "json"] {
            let args = ["-vv", "--error-format", format];
            let exported = run(configured(trayscan(&[]), &base_url), &args);
            assert_eq!(exported.code, 2, "{base_url}: {}", exported.stderr);
            assert!(!exported.has("hunter2"), "{}", exported.stderr);
        }
        if start.contains("hunter2") {
            let shown = configured(trayscan(&["config", "show"]), &base_url);
            let shown = Ended::of({ shown }.output().unwrap());
            assert!(
                !format!("{shown:?}").contains("hunter2"),
                "{base_url}: {shown:?}"
            );
        }
    }
    assert_eq!(trap.connections(), 0);
}

#[test]
fn requests_say_what_they_must_and_nothing_else() {
    let cookie = |answer: Answer| answer.header("Set-Cookie", "session=abc; Path=/");
    let service = Scripted::answering(
        vec![cookie(token())],
        vec![
            cookie(Answer::redirect(302, "/v2/batches?moved=1")),
            cookie(Answer::ok(page(&[batch("b1")], Some(&cursor(1))))),
            cookie(Answer::ok(page(&[batch("b2")], None))),
        ],
    );
    assert_eq!(export(&service, &[]).expect(0).ids(), ["b1", "b2"]);
    let asked = service.asked();
    assert_eq!(asked.len(), 4, "{:?}", service.names());
    for asked in &asked {
        let agent = asked.headers("user-agent");
        assert!(
            matches!(agent[..], [agent] if agent.starts_with("trayscan/")),
            "{agent:?}"
        );
        for header in ["referer", "cookie", "proxy-authorization", "origin", "from"] {
            assert_eq!(asked.headers(header), [""; 0], "{header}");
        }
        assert_eq!(asked.headers("accept"), ["application/json"]);
        assert_eq!(asked.headers("host"), [service.address.to_string()]);
        assert!(!asked.target.contains("s3cret") && !asked.target.contains(TOKEN));
    }
    let (auth, batches) = asked.split_first().unwrap();
    assert_eq!(auth.headers("authorization"), [""; 0]);
    assert_eq!(
        auth.headers("content-type"),
        ["application/x-www-form-urlencoded"]
    );
    let form: Vec<(String, String)> = form_urlencoded::parse(auth.body.as_bytes())
        .into_owned()
        .collect();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let expected = [
        pair("client_id", "client"),
        pair("client_secret", SECRET),
        pair("grant_type", "client_credentials"),
    ];
    assert_eq!(form, expected);
    for asked in batches {
        assert_eq!(asked.headers("authorization"), [format!("Bearer {TOKEN}")]);
        assert_eq!((asked.method.as_str(), asked.body.as_str()), ("GET", ""));
    }
}

#[test]
fn a_proxy_does_not_come_between_us_and_this_machine() {
    let trap = service([one_page()]);
    let service = service([one_page()]);
    for base_url in [
        service.base_url(),
        format!("http://localhost:{}", service.address.port()),
    ] {
        let mut command = configured(trayscan(&[]), &base_url);
        for name in [
            "HTTP_PROXY",
            "http_proxy",
            "ALL_PROXY",
            "all_proxy",
            "HTTPS_PROXY",
        ] {
            command.env(name, trap.base_url());
        }
        assert_eq!(run(command, &[]).expect(0).ids(), ["b1"]);
    }
    assert_eq!(trap.connections(), 0, "{:?}", trap.names());
}

// Time.

#[test]
fn a_service_that_never_answers_times_out() {
    let cases = [
        for_auth(Answer::silence()),
        service([Answer::silence()]),
        // In the middle of the head, and of the body.
        service([one_page().cut_at(30).dripping(b'x', Duration::from_mins(1))]),
        service([one_page()
            .cut_at(200)
            .dripping(b'x', Duration::from_mins(1))]),
    ];
    in_parallel(&cases, |service| {
        let exported = export(service, &["--timeout", "300ms", "--retries", "1"]).expect(5);
        assert!(
            exported.took >= Duration::from_millis(600) && exported.took < SOON,
            "{:?}",
            exported.took
        );
        let tries = service.asked().pop().unwrap().nth + 1;
        assert_eq!(tries, 2, "{}", exported.stderr);
    });
}

#[test]
fn a_service_that_drips_for_ever_times_out() {
    let pause = Duration::from_millis(50);
    let text = Answer::ok(page(&[batch("b1")], None)).claiming(1_000_000);
    let long = text.header("X-Long", "1");
    let in_string = page(&[batch("b1")], None).find("Tray").unwrap();
    let body = long.head_len() + in_string;
    let error = Answer::error(500, "sick").claiming(1_000_000);
    let drip = |answer: Answer, place: usize| answer.cut_at(place).dripping(b'x', pause);
    let token = Answer::ok(json!({ "access_token": TOKEN }).to_string()).claiming(1_000_000);
    let cases = [
        ("head", service([drip(long.clone(), 30)])),
        ("body", service([drip(long.clone(), body)])),
        (
            "blanks",
            service([long.clone().cut_at(long.head_len()).dripping(b' ', pause)]),
        ),
        ("error", service([error.clone().dripping(b'x', pause)])),
        ("auth head", for_auth(drip(token.clone(), 30))),
        ("auth", for_auth(drip(token.clone(), token.len() - 3))),
    ];
    in_parallel(&cases, |(name, service)| {
        let exported = export(service, &["--timeout", "200ms", "--retries", "0"]);
        assert_eq!(exported.code, 5, "{name}: {}", exported.stderr);
        assert!(exported.took < SOON, "{name}: {:?}", exported.took);
    });
}

#[test]
fn a_slow_service_that_goes_on_is_waited_for() {
    in_parallel(&Framing::ALL, |&framing| {
        // Longer than the time-out in all, and never so long without a byte.
        let body = page(&[batch("b1"), batch("b2")], None);
        let whole = Answer::framed(200, framing, body.as_bytes());
        let size = whole.len() / 10;
        let slow = whole.in_pieces(size, Duration::from_millis(400));
        let exported = export(&service([slow]), &["--timeout", "3s", "--retries", "0"]);
        assert_eq!(exported.code, 0, "{framing:?}: {}", exported.stderr);
        assert_eq!(exported.ids(), ["b1", "b2"]);
        assert!(
            exported.took > Duration::from_secs(3),
            "{:?}",
            exported.took
        );
    });
}

#[test]
fn a_time_out_that_never_comes_is_no_panic() {
    for timeout in ["1000000y", "500000000000y"] {
        let service = service([one_page()]);
        let exported = export(&service, &["--timeout", timeout]);
        assert!(matches!(exported.code, 0 | 2), "{}", exported.stderr);
    }
}

#[test]
fn nobody_listening_is_unavailable() {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let exported = run(
        configured(trayscan(&[]), &base_url),
        &["--error-format", "json"],
    )
    .expect(5);
    assert_eq!(exported.error()["retry_later"], true);
}

#[test]
fn what_is_no_http_is_no_answer() {
    for head in [
        "SSH-2.0-OpenSSH_9.9\r\n",
        "\u{15}\u{3}\u{1}",
        "HTTP/9.9 200 OK\r\n",
        "HTTP/1.1 abc\r\n",
    ] {
        let exported = export(&service([Answer::raw(head)]), &["--retries", "0"]);
        assert!(
            matches!(exported.code, 5 | 7),
            "{head}: {}",
            exported.stderr
        );
    }
}

#[test]
fn lenient_counts_what_version_1_sends_and_not_what_is_kept() {
    // 1500 batches, one each half minute; one has no identifier, and 1000 is all it answers.
    let script = |asked: &Asked| {
        if asked.path().ends_with("/auth") {
            return token();
        }
        let (start, end) = (asked.query("start_date"), asked.query("end_date"));
        let batches: Vec<String> = (0..1500)
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
                let id = (number != 7).then(|| json!(format!("b{number}")).to_string());
                let mut fields = fields("x");
                fields[2].1 = json!(date).to_string();
                match id {
                    Some(id) => fields[0].1 = id,
                    None => drop(fields.remove(0)),
                }
                object(&fields)
            })
            .collect();
        Answer::ok(format!("[{}]", batches.join(",")))
    };
    let service = Scripted::start(script);
    let exported = export(&service, &["--api", "v1", "--lenient"]).expect(0);
    assert_eq!(
        exported.ids().len(),
        1499,
        "all but the one: {}",
        exported.stderr
    );
}

#[test]
fn credentials_that_are_refused_say_nothing_of_ranges_and_cursors() {
    let refusal = || {
        Answer::status(
            422,
            json!({"detail": [{"type": "x", "loc": ["body"], "msg": "no"}]}).to_string(),
        )
    };
    for api in ["v1", "v2"] {
        let service = Scripted::answering(vec![refusal()], vec![one_page()]);
        export(&service, &["--api", api]).expect(6);
        assert_eq!(service.asked().len(), 1, "{api}");
    }
    // In mid-run: the renewal is refused, and that is that.
    let first = Answer::ok(page(&[batch("b1")], Some(&cursor(1))));
    let service = Scripted::answering(
        vec![token(), refusal()],
        vec![first, Answer::error(401, "no")],
    );
    let exported = export(&service, &["--start", "2026"]).expect(6);
    assert!(!exported.has("from its start"), "{}", exported.stderr);
    assert_eq!(service.asked_for("/auth").len(), 2);
}

#[test]
fn a_token_stays_hidden_after_hundreds_of_cursors() {
    const PAGES: usize = 600;
    let last = Answer::error(409, &format!("the header was Bearer {TOKEN}"));
    let pages = (0..PAGES)
        .map(|number| Answer::ok(page(&[batch(&format!("b{number}"))], Some(&cursor(number)))));
    // `export` looks for the token in what was printed.
    let exported = export(&service(pages.chain([last])), &[]).expect(6);
    assert!(
        exported.has("the header was Bearer …"),
        "{}",
        exported.stderr
    );
}

#[test]
fn a_batch_with_too_many_fields_is_refused_soon() {
    let mut many = fields("b1");
    many.extend((0..50_000).map(|number| (format!("f{number}"), "1".to_owned())));
    let exported = export(&service([Answer::ok(page(&[object(&many)], None))]), &[]).expect(7);
    assert!(exported.has("far too many fields"), "{}", exported.stderr);
}

#[test]
fn version_1_that_takes_no_dates_is_found_out() {
    let all: Vec<String> = (0..1000)
        .map(|number| batch(&format!("b{number}")))
        .collect();
    let answer = Answer::ok(format!("[{}]", all.join(",")));
    for (workers, most) in [("1", 200), ("4", 400)] {
        let service = service([answer.clone()]);
        let exported = export(&service, &["--api", "v1", "--parallel", workers]).expect(7);
        assert!(exported.has("whatever the dates"), "{}", exported.stderr);
        let asked = service.asked().len();
        assert!(asked < most, "{asked} with {workers}");
    }
}

#[test]
fn check_reads_what_it_is_sent() {
    let broken = Answer::ok("{\"data\":[{abc}],\"next_token\":null}");
    let service = service([broken]);
    let mut command = configured(trayscan(&["check", "--api", "v2"]), &service.base_url());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    let found = String::from_utf8(output.stdout).unwrap();
    assert!(found.contains("FAILED  batches v2"), "{found}");
}

#[test]
fn a_long_token_is_hidden_where_it_is_shown_in_part() {
    let long = "t".repeat(20) + &"0123456789".repeat(23);
    let auth = Answer::ok(json!({ "access_token": long }).to_string());
    let flawed = batch_with(&long, "warnings", None);
    let service = Scripted::answering(vec![auth], vec![Answer::ok(page(&[flawed], None))]);
    let exported = export(&service, &[]).expect(7);
    assert!(exported.has("`warnings` is missing"), "{}", exported.stderr);
    assert!(!exported.has(&long[..40]), "{}", exported.stderr);
}

#[test]
fn errors_stay_json_whatever_the_secret_is() {
    for secret in ["null", "false", "code", "error"] {
        let service = service([Answer::error(409, &format!("it was {secret}"))]);
        let mut command = configured(
            trayscan(&["export", "--error-format", "json"]),
            &service.base_url(),
        );
        let output = command
            .env("TRAYSCAN_CLIENT_SECRET", secret)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(6));
        let stderr = String::from_utf8(output.stderr).unwrap();
        let error: Value = serde_json::from_str(stderr.lines().last().unwrap()).unwrap();
        assert_eq!(error["error"]["detail"], "it was …", "{stderr}");
        assert_eq!(error["error"]["retry_later"], false);
    }
}

#[test]
fn a_status_counts_however_its_body_is_packed() {
    let ill = Answer::error(503, "ill").header("Content-Encoding", "br");
    let exported = export(&service([ill, one_page()]), &[]).expect(0);
    assert!(exported.has("answered 503"), "{}", exported.stderr);
    let packed = one_page().header("Content-Encoding", "br");
    let exported = export(&service([packed]), &[]).expect(7);
    assert!(exported.has("packed in another way"), "{}", exported.stderr);
}

#[test]
fn what_is_wrong_is_told_also_where_a_limit_ends_the_run() {
    let flawed = batch_with("b1", "number_of_images", Some("\"twelve\""));
    let first = Answer::ok(page(&[flawed, batch("b2")], Some(&cursor(1))));
    let exported = export(&service([first]), &["--lenient", "--limit", "1"]).expect(0);
    assert!(exported.has("1 batch break"), "{}", exported.stderr);
}
