//! The server compared with the interface document: a table of clause, request and expected answer.
//!
//! The rows follow the order of the document. Tests that need more than one request are below the table,
//! or in `paging`.

use serde_json::Value;

use crate::data::moment;
use crate::harness::{Reply, Request, Server};

/// A row: the section of the interface, its clause, the request, and the expected answer.
struct Row {
    section: u8,
    says: &'static str,
    request: Request,
    expected: Expected,
}

enum Expected {
    /// A token response.
    Token,
    /// A flat array with this number of batches.
    Flat(usize),
    /// A page with this number of batches, and whether another follows.
    Page(usize, bool),
    /// An error whose detail is a string.
    Error(u16),
    /// A 422 that names these fields.
    Invalid(&'static [&'static str]),
    /// An error in answer to HEAD, which has no body.
    NoBody(u16),
}

use Expected::{Error, Flat, Invalid, NoBody, Page, Token};

/// The rows for a service with the batches `all`, in pages of 100.
#[rustfmt::skip]
#[allow(clippy::too_many_lines, reason = "it is a table")]
fn table(v1: &str, v2: &str, server: &Server, all: &[Value]) -> Vec<Row> {
    let since = |date: &str| all.iter().filter(|batch| moment(batch).as_str() >= date).count();
    let this_year = since("2026-01-01T00:00:00");
    assert!(this_year > 50, "the rows below need some batches");
    let row = |section, says, request, expected| Row { section, says, request, expected };
    let get1 = |query: &str| Request::batches("v1", query).token(v1);
    let get2 = |query: &str| Request::batches("v2", query).token(v2);
    let (id, secret) = (&server.client_id, &server.client_secret);
    let form = |text: &str| text.replace("ID", id).replace("SECRET", secret);
    let auth1 = |text: &str| Request::form("v1", &form(text));
    let auth2 = |text: &str| Request::form("v2", &form(text));
    let whole = "client_id=ID&client_secret=SECRET&grant_type=client_credentials";
    let json = format!(r#"{{"client_id":"{id}","client_secret":"{secret}","grant_type":"client_credentials"}}"#);
    let bad_dates: &[&str] = &[
        "2026-05-01", "2026-05", "today", "0", "1777593600", "2026-05-01T06:00Z", "2026-05-01T06:00:00",
        "2026-05-01T06:00:00.500Z", "2026-05-01T06:00:00%2B02:00", "2026-05-01T06:00:00-00:00",
        "2026-05-01%2006:00:00Z", "2026-02-30T06:00:00Z", "2026-05-01T25:00:00Z", "2026-05-01T06:00:60Z",
        "2026-05-01t06:00:00z", "%FF", "null", "",
    ];
    let mut rows = vec![
        // 1. What the service does
        row(1, "credentials give a token", Request::auth("v2"), Token),
        row(1, "the token gives the data", get2(""), Page(100, true)),
        row(1, "batch endpoints are read-only: POST v1", Request::new("POST", "/v1/batches").token(v1).body(""), Error(405)),
        row(1, "read-only: POST v2", Request::new("POST", "/v2/batches").token(v2).body("x"), Error(405)),
        row(1, "read-only: PUT", Request::new("PUT", "/v2/batches").token(v2).body("x"), Error(405)),
        row(1, "read-only: PATCH", Request::new("PATCH", "/v1/batches").token(v1).body("x"), Error(405)),
        row(1, "read-only: DELETE", Request::new("DELETE", "/v2/batches").token(v2), Error(405)),
        // 2. Resources: the date format
        row(2, "dates end with Z", get2("start_date=2026-05-01T06:00:00Z&end_date=2026-05-01T06:00:00Z"), Page(0, false)),
        row(2, "+00:00 is accepted, bare", get1("start_date=2026-01-01T00:00:00+00:00"), Flat(this_year)),
        row(2, "+00:00 is accepted, encoded", get1("start_date=2026-01-01T00:00:00%2B00:00"), Flat(this_year)),
        row(2, "Z means the same", get1("start_date=2026-01-01T00%3A00%3A00Z"), Flat(this_year)),
        row(2, "a datetime without a timezone is invalid", get1("start_date=2026-05-01T06:00:00"), Invalid(&["query.start_date"])),
        // 3. States and transitions, 6. Events: none
        row(3, "no batch has its own address", get2("").target("/v2/batches/1"), Error(404)),
        row(6, "no events", get2("").target("/v2/events"), Error(404)),
        // 4. Endpoints: auth
        row(4, "POST v1/auth obtains a token", Request::auth("v1"), Token),
        row(4, "POST v2/auth obtains a token", Request::auth("v2"), Token),
        row(4, "pairs in any order, others ignored", auth2("scope=x&grant_type=client_credentials&client_secret=SECRET&client_id=ID"), Token),
        row(4, "values may be percent-encoded", auth2(&whole.replace("client_credentials", "client%5Fcredentials")), Token),
        row(4, "a form may name its charset", auth2(whole).content_type("Application/X-WWW-Form-Urlencoded; charset=UTF-8"), Token),
        row(4, "form-encoded, not JSON", auth2(&json).content_type("application/json"), Invalid(&["body"])),
        row(4, "JSON called a form has no fields", auth2(&json), Invalid(&["body.client_id", "body.client_secret", "body.grant_type"])),
        row(4, "a form needs its content type", auth2(whole).content_type("text/plain"), Invalid(&["body"])),
        row(4, "client_id is required", auth1("client_secret=SECRET&grant_type=client_credentials"), Invalid(&["body.client_id"])),
        row(4, "client_secret is required", auth2("client_id=ID&grant_type=client_credentials"), Invalid(&["body.client_secret"])),
        row(4, "grant_type is required", auth2("client_id=ID&client_secret=SECRET"), Invalid(&["body.grant_type"])),
        row(4, "all three are required", auth1(""), Invalid(&["body.client_id", "body.client_secret", "body.grant_type"])),
        row(4, "also without any body", Request::new("POST", "/v2/auth"), Invalid(&["body.client_id", "body.client_secret", "body.grant_type"])),
        row(4, "grant_type is client_credentials only", auth2(&whole.replace("client_credentials", "password")), Invalid(&["body.grant_type"])),
        row(4, "in that spelling only", auth2(&whole.replace("client_credentials", "Client_Credentials")), Invalid(&["body.grant_type"])),
        row(4, "an empty client_id is invalid", auth2("client_id=&client_secret=SECRET&grant_type=client_credentials"), Invalid(&["body.client_id"])),
        row(4, "an empty client_secret is invalid", auth2("client_id=ID&client_secret=&grant_type=client_credentials"), Invalid(&["body.client_secret"])),
        row(4, "an empty grant_type is invalid", auth2("client_id=ID&client_secret=SECRET&grant_type="), Invalid(&["body.grant_type"])),
        row(4, "a doubled field is invalid", auth2(&format!("client_id=ID&{whole}")), Invalid(&["body.client_id"])),
        row(4, "a doubled secret is invalid", auth2(&format!("{whole}&client_secret=x")), Invalid(&["body.client_secret"])),
        row(4, "credentials in the query are ignored", auth2("").target(&form(&format!("/v2/auth?{whole}"))), Invalid(&["body.client_id", "body.client_secret", "body.grant_type"])),
        row(4, "auth v1 accepts only POST", Request::get("/v1/auth"), Error(405)),
        row(4, "auth v2 accepts only POST", Request::get("/v2/auth"), Error(405)),
        row(4, "auth does not accept HEAD", Request::new("HEAD", "/v2/auth"), NoBody(405)),
        // 4. Endpoints: v1
        row(4, "v1 is one flat array of all batches", get1(""), Flat(250)),
        row(4, "v1: on or after", get1("start_date=2026-10-31T00:00:00Z"), Flat(0)),
        row(4, "v1: on or before", get1("end_date=2023-11-01T00:00:00Z"), Flat(0)),
        row(4, "v1: a start after the end gives no batches", get1("start_date=2026-01-01T00:00:00Z&end_date=2025-01-01T00:00:00Z"), Flat(0)),
        row(4, "v1: next_token is ignored", get1("next_token=x"), Flat(250)),
        row(4, "v1 requires the bearer token", Request::batches("v1", ""), Error(401)),
        row(4, "HEAD is not GET", Request::new("HEAD", "/v1/batches").token(v1), NoBody(405)),
        // 4. Endpoints: v2
        row(4, "v2: without next_token the first page", get2(""), Page(100, true)),
        row(4, "v2: a range on one page", get2("start_date=2026-10-31T00:00:00Z"), Page(0, false)),
        row(4, "v2: unknown parameters are ignored", get2("page=7&limit=1"), Page(100, true)),
        row(4, "v2 requires the bearer token", Request::batches("v2", ""), Error(401)),
        // 5. Authentication
        row(5, "the scheme is Bearer, in any case", Request::batches("v2", "").header("Authorization", &format!("bearer {v2}")), Page(100, true)),
        row(5, "another scheme is no bearer token", Request::batches("v2", "").header("Authorization", &format!("Basic {v2}")), Error(401)),
        row(5, "a token without a scheme is refused", Request::batches("v2", "").header("Authorization", v2), Error(401)),
        row(5, "an empty token is refused", Request::batches("v2", "").token(""), Error(401)),
        row(5, "a wrong token is refused", Request::batches("v2", "").token(&v2.replace(|_: char| true, "A")), Error(401)),
        row(5, "a token with extra characters is refused", Request::batches("v2", "").token(&format!("{v2}A")), Error(401)),
        row(5, "two tokens are refused", get2("").token(v2), Error(401)),
        row(5, "a token in the query is ignored", Request::batches("v2", &format!("access_token={v2}")), Error(401)),
        row(5, "a v1 token is not for v2 (not shown; the stricter reading)", Request::batches("v2", "").token(v1), Error(401)),
        row(5, "a v2 token is not for v1", Request::batches("v1", "").token(v2), Error(401)),
        row(5, "the token is checked before the dates", Request::batches("v2", "start_date=x"), Error(401)),
        // 7. Errors
        row(7, "401: wrong client_id, v1", auth1("client_id=other&client_secret=SECRET&grant_type=client_credentials"), Error(401)),
        row(7, "401: wrong client_id, v2", auth2("client_id=other&client_secret=SECRET&grant_type=client_credentials"), Error(401)),
        row(7, "401: wrong client_secret", auth2("client_id=ID&client_secret=other&grant_type=client_credentials"), Error(401)),
        row(7, "401: a secret cut short is wrong", auth2(&whole.replace("SECRET", &secret[1..])), Error(401)),
        row(7, "422 before 401", auth2("client_id=other&client_secret=other&grant_type=x"), Invalid(&["body.grant_type"])),
        row(7, "422: both dates are named", get2("start_date=x&end_date=y"), Invalid(&["query.start_date", "query.end_date"])),
        row(7, "422: a doubled date", get1("end_date=2026-05-01T06:00:00Z&end_date=2026-05-01T06:00:00Z"), Invalid(&["query.end_date"])),
        row(7, "422: an unknown next_token (not shown)", get2("next_token=abc"), Invalid(&["query.next_token"])),
        row(7, "422: an empty next_token", get2("next_token="), Invalid(&["query.next_token"])),
        row(7, "422: a doubled next_token", get2("next_token=a&next_token=b"), Invalid(&["query.next_token"])),
        row(7, "422: all errors are named", get2("start_date=x&next_token="), Invalid(&["query.start_date", "query.next_token"])),
        // 8. Limits
        row(8, "v1 and v2 have the same batches: v1", get1("start_date=2026-10-20T00:00:00Z"), Flat(since("2026-10-20T00:00:00"))),
        row(8, "v1 and v2 have the same batches: v2", get2("start_date=2026-10-20T00:00:00Z"), Page(since("2026-10-20T00:00:00"), false)),
        // 9. Versioning
        row(9, "the version is part of the path", get2("").target("/batches"), Error(404)),
        row(9, "there is no v3", get2("").target("/v3/batches"), Error(404)),
        row(9, "a trailing slash is not accepted", get2("").target("/v2/batches/"), Error(404)),
        row(9, "paths are case-sensitive", get2("").target("/V2/batches"), Error(404)),
        row(9, "nothing at the root", Request::get("/"), Error(404)),
    ];
    for date in bad_dates {
        for (name, field) in [("start_date", "query.start_date"), ("end_date", "query.end_date")] {
            let fields: &'static [&'static str] = Vec::leak(vec![field]);
            let query = format!("{name}={date}");
            rows.push(row(7, "422: an invalid date, v1", get1(&query), Invalid(fields)));
            rows.push(row(7, "422: an invalid date, v2", get2(&query), Invalid(fields)));
        }
    }
    rows
}

/// The 18 fields of a batch (section 2): name, kind, nullable.
const FIELDS: [(&str, Kind, bool); 18] = [
    ("batch_id", Kind::Text, false),
    ("batch_name", Kind::Text, false),
    ("batch_creation_date", Kind::Date, false),
    ("crop_type", Kind::Text, true),
    ("number_of_images", Kind::Integer, false),
    ("total_cells_per_tray", Kind::Integer, true),
    ("avg_germinated_seedlings", Kind::Decimal, true),
    ("avg_non_germinated_seedlings", Kind::Decimal, true),
    ("avg_germination_rate", Kind::Decimal, true),
    ("avg_usable_seedlings", Kind::Decimal, true),
    ("avg_non_usable_cells", Kind::Decimal, true),
    ("avg_usable_seedling_rate", Kind::Decimal, true),
    ("avg_coefficient_of_variation", Kind::Decimal, true),
    ("avg_median_seedling_size_mm2", Kind::Decimal, true),
    ("scanned_by_email", Kind::Text, true),
    ("analysis_link", Kind::Link, true),
    ("comment", Kind::Text, true),
    ("warnings", Kind::Boolean, false),
];

#[derive(Clone, Copy)]
enum Kind {
    Text,
    Date,
    Integer,
    Decimal,
    Link,
    Boolean,
}

impl Kind {
    fn fits(self, value: &Value) -> bool {
        let text = value.as_str().unwrap_or_default();
        match self {
            Self::Text => !text.is_empty(),
            Self::Date => text.len() >= 20 && text.ends_with('Z') && text.as_bytes()[10] == b'T',
            Self::Integer => value.is_u64(),
            Self::Decimal => {
                let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
                let parts = text.split_once('.');
                parts.is_some_and(|(whole, part)| {
                    !whole.is_empty() && digits(whole) && part.len() == 2 && digits(part)
                })
            }
            Self::Link => text.starts_with("https://"),
            Self::Boolean => value.is_boolean(),
        }
    }
}

/// Asserts that a batch has exactly the fields of the table.
fn check_batch(batch: &Value) {
    let object = batch.as_object().unwrap();
    assert_eq!(object.len(), FIELDS.len(), "{batch}");
    for (name, kind, nullable) in FIELDS {
        let value = object
            .get(name)
            .unwrap_or_else(|| panic!("no {name} in {batch}"));
        let fits = if value.is_null() {
            nullable
        } else {
            kind.fits(value)
        };
        assert!(fits, "{name} in {batch}");
    }
}

fn check(expected: &Expected, reply: &Reply) {
    let status = reply.status;
    match expected {
        Token => {
            assert_eq!(status, 200);
            let token = reply.json();
            // 256 bits in base64.
            assert_eq!(token["access_token"].as_str().unwrap().len(), 43);
            assert_eq!(reply.header("cache-control"), Some("no-store"));
        }
        Flat(count) => {
            assert_eq!(status, 200);
            let batches = reply.json();
            assert_eq!(batches.as_array().unwrap().len(), *count);
            batches.as_array().unwrap().iter().for_each(check_batch);
        }
        Page(count, more) => {
            assert_eq!(status, 200);
            let page = reply.json();
            assert_eq!(
                page.as_object().unwrap().len(),
                2,
                "data and next_token, nothing else"
            );
            assert_eq!(page["data"].as_array().unwrap().len(), *count);
            page["data"]
                .as_array()
                .unwrap()
                .iter()
                .for_each(check_batch);
            match &page["next_token"] {
                Value::String(cursor) => assert!(*more && !cursor.is_empty()),
                next => assert!(!more && next.is_null()),
            }
        }
        Error(code) => {
            assert_eq!(status, *code);
            let body = reply.json();
            assert_eq!(body.as_object().unwrap().len(), 1);
            assert!(!body["detail"].as_str().unwrap().is_empty());
        }
        Invalid(fields) => assert_eq!(reply.invalid_fields(), *fields),
        NoBody(code) => {
            assert_eq!(status, *code);
            assert!(reply.body.is_empty());
        }
    }
    let headers = (reply.header("www-authenticate"), reply.header("allow"));
    match status {
        405 => assert!(headers.1 == Some("GET") || headers.1 == Some("POST")),
        _ => assert_eq!(headers.1, None),
    }
    assert!(reply.header("date").is_some());
}

#[test]
fn every_clause_of_the_interface_is_met() {
    let server = Server::start(&["--page-size", "100"]);
    let (v1, v2) = (server.token("v1"), server.token("v2"));
    let rows = table(&v1, &v2, &server, &server.flat(""));
    for section in 1..=9 {
        assert!(
            rows.iter().any(|row| row.section == section),
            "no row for section {section}"
        );
    }
    for Row {
        section,
        says,
        request,
        expected,
    } in &rows
    {
        eprintln!("section {section}, {says}: {request:?}");
        check(expected, &server.send(request));
    }
}

#[test]
fn a_missing_or_wrong_token_names_the_scheme() {
    let server = Server::start(&[]);
    for version in ["v1", "v2"] {
        for request in [
            Request::batches(version, ""),
            Request::batches(version, "").token("x"),
        ] {
            let reply = server.send(&request);
            assert_eq!(reply.status, 401);
            assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
        }
    }
}

#[test]
fn each_token_is_new_and_expires_after_its_ttl() {
    let server = Server::start(&["--token-ttl", "1s"]);
    let (first, second) = (server.token("v2"), server.token("v2"));
    assert_ne!(first, second);
    let ask = |token: &str| server.send(&Request::batches("v2", "").token(token)).status;
    assert_eq!((ask(&first), ask(&second)), (200, 200));
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert_eq!((ask(&first), ask(&second)), (401, 401));
    assert_eq!(ask(&server.token("v2")), 200);
}

#[test]
fn the_credentials_can_be_set() {
    let server = Server::start(&["--client-id", "nursery 7", "--client-secret", "s&c=r%t"]);
    assert_eq!(
        (server.client_id.as_str(), server.client_secret.as_str()),
        ("nursery 7", "s&c=r%t")
    );
    let form = "client_id=nursery+7&client_secret=s%26c%3Dr%25t&grant_type=client_credentials";
    assert_eq!(server.send(&Request::form("v2", form)).status, 200);
    let form = "client_id=nursery+7&client_secret=s&grant_type=client_credentials";
    assert_eq!(server.send(&Request::form("v2", form)).status, 401);
}

#[test]
fn a_host_that_is_not_this_machine_is_refused() {
    let server = Server::start(&[]);
    let token = server.token("v2");
    let ask = |host: &str| {
        server.send(
            &Request::batches("v2", "")
                .token(&token)
                .header("Host", host),
        )
    };
    for host in ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:80"] {
        assert_eq!(ask(host).status, 200, "{host}");
    }
    for host in [
        "evil.example",
        "localhost.evil.example",
        "192.0.2.1:80",
        "[2001:db8::1]",
        "",
    ] {
        let reply = ask(host);
        assert_eq!(reply.status, 421, "{host}");
        assert!(reply.json()["detail"].is_string());
    }
    let absolute = Request::get("http://evil.example/v2/batches").token(&token);
    assert_eq!(server.send(&absolute).status, 421);
    let nameless = format!(
        "GET /v2/batches HTTP/1.1\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    );
    assert_eq!(
        Reply::parse(&server.exchange(nameless.as_bytes())).status,
        400
    );
}
