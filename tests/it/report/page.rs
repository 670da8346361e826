//! The page as a whole: the same for any source, complete, self-contained.

use std::fs;

use tempfile::TempDir;

use super::figures::exported;
use super::reading::{
    body_rows, crops, facts, findings, headings, lead, parts, plain, section, tiles,
};
use super::{MADE, MADE_TEXT, config, nursery, page, report, sound, usable, without_figures};
use crate::archives::ArchiveFile;
use crate::fake::live::{DAY, Order};
use crate::files::names;
use crate::harness::{Server, Service as _, run, trayscan};
use crate::manifest::receipt;
use crate::terminal::on_terminal;

#[test]
fn batches_without_a_date_are_still_shown() {
    let undated = sound("b", MADE).with("batch_creation_date", "\"some day\"");
    let html = page(&nursery([undated]), &["--lenient"]);
    assert_eq!(facts(&html)["Batches"], "1");
    assert!(!html.contains("No batches in this range"), "{html}");
    assert_eq!(
        body_rows(section(&html, "range"))[0][3],
        "87.50 [87.50, 87.50]"
    );
    assert_eq!(findings(&html).len(), 2);
    assert_eq!(
        lead(&html),
        "No batch has a valid date, so nothing can be compared."
    );
    assert_eq!(headings(&html), ["verdict", "more", "range", "quality"]);
}

#[test]
fn few_or_no_batches_still_make_a_page() {
    let none = page(&nursery([]), &[]);
    assert!(none.contains("No batches in this range"));
    assert!(!none.contains("<svg") && !none.contains("href="));
    assert_eq!(headings(&none), Vec::<&str>::new());
    let one = page(&nursery([sound("a", MADE)]), &[]);
    assert_eq!(
        headings(&one),
        [
            "verdict",
            "crops",
            "attention",
            "tiles",
            "trends",
            "more",
            "range",
            "quality"
        ]
    );
    assert_eq!(
        crops(&one)[0],
        [
            "Tomato",
            "81.25",
            "too few to compare",
            "",
            "1",
            "87.50",
            "6.25",
            "15.00",
            "100.00"
        ]
    );
    assert_eq!(
        body_rows(section(&one, "range"))[0][..4],
        [
            "Tomato",
            "1",
            "81.25 [81.25, 81.25]",
            "87.50 [87.50, 87.50]"
        ]
    );
    assert!(lead(&one).contains("Too few batches to compare"));
    let not_compared = "not enough batches to compare (at least 3 of a crop)";
    assert_eq!(tiles(&one)[1], ["Usable", "–", not_compared]);
    let nulls = page(&nursery([without_figures(sound("a", MADE))]), &[]);
    assert_eq!(crops(&nulls)[0][..3], ["Tomato", "–", "too few to compare"]);
    assert_eq!(
        body_rows(section(&nulls, "range"))[0],
        ["Tomato", "1", "–", "–", "–", "–", "–"]
    );
    assert_eq!(tiles(&nulls)[4][1], "–");
    for html in [&none, &one, &nulls] {
        assert!(!html.contains("NaN") && !html.contains("inf\"") && !html.contains("Some("));
        assert_self_contained(html);
    }
}

/// Asserts that a page is self-contained and links only to analyses.
#[track_caller]
pub(crate) fn assert_self_contained(html: &str) {
    let lower = html.to_lowercase();
    for tag in [
        "script",
        "link",
        "img",
        "iframe",
        "object",
        "embed",
        "base",
        "form",
        "image",
        "use",
        "foreignobject",
        "animate",
        "set",
        "video",
        "audio",
        "input",
        "button",
    ] {
        for end in [" ", ">", "/"] {
            assert!(!lower.contains(&format!("<{tag}{end}")), "<{tag}");
        }
    }
    assert!(!lower.contains("refresh") && !lower.contains("@import") && !lower.contains("src="));
    assert!(!lower.contains("url("), "a style that loads a resource");
    for href in parts(html, "href=\"", "\"") {
        let is_web = href.starts_with("https://") || href.starts_with("http://");
        assert!(href == "#attention" || is_web, "{href}");
    }
    let links = html.matches("href=\"http").count();
    assert_eq!(links, html.matches("rel=\"noopener noreferrer\"").count());
    assert!(html.len() < 1 << 20, "{} bytes", html.len());
}

#[test]
fn any_order_of_batches_gives_the_same_bytes() {
    // Many were created in the same second, and some have the same name.
    let items = (0..60).map(|number| {
        let created = MADE - number / 7 * 3 * DAY;
        usable(
            &format!("{number}"),
            created,
            &format!("{}.00", 95 - number % 40),
        )
        .with("batch_name", format!("\"lot {}\"", number % 20))
        .with(
            "crop_type",
            ["\"Leek\"", "\"leek\"", "null"][usize::try_from(number % 3).unwrap()],
        )
    });
    let nursery = nursery(items);
    let expected = page(&nursery, &[]);
    for order in [Order::NewestFirst, Order::None, Order::OldestFirst] {
        for size in [1, 7, 1000] {
            nursery.state().order = order;
            nursery.state().page = size;
            assert!(page(&nursery, &[]) == expected, "{order:?}, {size} a page");
        }
    }
}

#[test]
fn an_archive_gives_the_same_page_as_its_service() {
    let server = Server::start(&["--batches", "400", "--seed", "3"]);
    let shelf = ArchiveFile::new();
    shelf.complete(&server, &[]);
    for args in [
        &["--step", "month"][..],
        &["--where", "crop_type=Tomato", "--start", "2025"],
    ] {
        let from_service = page(&server, args);
        let path = shelf.path.to_str().unwrap();
        let from_archive = page(&server, &[&["--archive", path], args].concat());
        let colophon = |html: &str| parts(html, "<footer>", "</footer>")[0].to_owned();
        let foot = colophon(&from_archive);
        assert!(!foot.contains("interface v"), "{foot}");
        assert!(
            foot.contains(&format!("an archive of http://{}", server.address)),
            "{foot}"
        );
        let body = |html: &str| html.split("<p>trayscan").next().unwrap().to_owned();
        assert_eq!(body(&from_archive), body(&from_service));
        let digest = |html: &str| parts(html, "<code>", "</code>")[0].to_owned();
        assert_eq!(digest(&from_archive), digest(&from_service));
    }
}

#[test]
fn the_footer_shows_range_version_time_and_set_digest() {
    let server = Server::start(&["--batches", "300"]);
    let folder = TempDir::new().unwrap();
    let range = ["--start", "2025", "--end", "2026-03"];
    let manifest = receipt(&server, folder.path(), "a.ndjson", &range);
    let foot = page(&server, &range);
    let foot = parts(&foot, "<footer>", "</footer>")[0].to_owned();
    let version = env!("CARGO_PKG_VERSION");
    let text = plain(&foot);
    for words in [
        format!(
            "trayscan {version}, from http://{} (interface v2)",
            server.address
        ),
        "1 January 2025 to 31 March 2026".to_owned(),
        format!("generated {MADE_TEXT} UTC."),
        format!("Set digest {}", manifest["set_digest"].as_str().unwrap()),
    ] {
        assert!(text.contains(&words), "{words}: {text}");
    }
    let file = folder.path().join("a.ndjson");
    let manifest = folder.path().join("manifest.json");
    run(&[
        "verify",
        file.to_str().unwrap(),
        "--manifest",
        manifest.to_str().unwrap(),
    ])
    .expect(0);
}

#[test]
fn conditions_filter_and_are_shown() {
    let server = Server::start(&["--batches", "300"]);
    let args = [
        "--where",
        "crop_type=Tomato",
        "--where",
        "avg_usable_seedling_rate>90",
    ];
    let html = page(&server, &args);
    let expected = exported(&server, &args);
    assert!(!expected.is_empty());
    assert_eq!(facts(&html)["Batches"], expected.len().to_string());
    assert_eq!(
        facts(&html)["Filter"],
        "crop_type=Tomato, avg_usable_seedling_rate>90"
    );
    let header = "Only batches with <bdi>crop_type=Tomato, avg_usable_seedling_rate&#62;90</bdi>";
    assert!(html.contains(header), "{html}");
    assert_eq!(crops(&html).len(), 1, "only tomatoes");
    assert_eq!(body_rows(section(&html, "range")).len(), 1);
}

#[test]
fn a_range_that_ends_at_an_instant_is_not_named_like_whole_days() {
    let nursery = nursery([sound("a", MADE - DAY)]);
    for (args, range) in [
        (&["--period", "2026-06-09"][..], "9 June 2026"),
        (&["--end", "2026-06-09"], "until 9 June 2026"),
        (
            &["--end", "2026-06-09T00:00:00Z"],
            "until 9 June 2026, 00:00",
        ),
        (
            &["--start", "2026-06-09", "--end", "2026-06-09T00:00:00Z"],
            "9 June 2026, 00:00",
        ),
        (
            &["--start", "2026-06-08", "--end", "2026-06-09T12:30:00Z"],
            "8 June 2026, 00:00 to 9 June 2026, 12:30",
        ),
    ] {
        assert_eq!(facts(&page(&nursery, args))["Range"], range);
    }
}

#[test]
fn email_addresses_are_shown_only_on_request() {
    let items = ["a", "b"].map(|id| {
        sound(id, MADE)
            .with(
                "scanned_by_email",
                format!("\"{id}.person@nursery.example\""),
            )
            .with("warnings", "true")
            .with("comment", "\"ask c.person@nursery.example first\"")
    });
    let nursery = nursery(items);
    let html = page(&nursery, &[]);
    assert!(html.contains("ask (e-mail hidden) first"));
    assert!(
        !html.contains('@')
            || !html
                .replace("@media", "")
                .replace("@page", "")
                .contains('@'),
        "an address"
    );
    let html = page(&nursery, &["--emails"]);
    for id in ["a", "b"] {
        assert_eq!(
            html.matches(&format!("{id}.person@nursery.example"))
                .count(),
            1
        );
    }
}

#[test]
fn a_page_has_one_title_and_names_the_profile() {
    let nursery = nursery([sound("a", MADE)]);
    let folder = TempDir::new().unwrap();
    let [url, id, secret] = nursery.access();
    let profiles = ["default", "house3"].map(|name| {
        format!("[profiles.{name}]\nbase_url = {url:?}\nclient_id = {id:?}\nclient_secret = {secret:?}\n")
    });
    let config = config(folder.path(), &profiles.concat());
    let title = ["--title", "House <3> & \"more\""];
    let profile = ["--config", &config, "--profile", "house3"];
    let of_profile = trayscan(&["report"])
        .args(profile)
        .output()
        .expect(0)
        .stdout;
    assert_eq!(facts(&of_profile)["Profile"], "house3");
    let html = page(&nursery, &[&profile[..], &title].concat());
    assert!(
        !facts(&html).contains_key("Profile"),
        "from the environment"
    );
    assert_eq!(
        plain(parts(&html, "<h1>", "</h1>")[0]),
        "House <3> & \"more\""
    );
    let mut command = trayscan(&["report", "--config", &config]);
    let html = command.output().expect(0).stdout;
    assert!(!facts(&html).contains_key("Profile"), "it is `default`");
}

#[test]
fn usage_errors_are_reported_before_any_request() {
    let nursery = nursery([sound("a", MADE)]);
    for (args, words) in [
        (&["-o", "a.csv"][..], "a report is an HTML file"),
        (&["-o", "a.PDF"], "a report is an HTML file"),
        (&["-o", "a.html.gz"], "a report is an HTML file"),
        (&["-o", "{year}.html"], "a report is one file"),
        (&["-o", "{week}.html"], "{week}"),
        (&["-o", "html"], "a name that ends in .html"),
        (&["--title", " "], "`--title` is empty"),
        (&["--where", "crop=Tomato"], "crop"),
        (&["--step", "year"], "year"),
        (&["--start", "2026-02", "--end", "2026-01"], "start"),
        (&["--archive", "a.db", "--sandbox"], "--sandbox"),
        (&["--archive", "missing.db"], "missing.db"),
    ] {
        let ended = report(&nursery, args);
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{args:?}: {}", ended.stderr);
    }
    let mut command = trayscan(&["report", "--sandbox"]);
    let ended = command.env("SOURCE_DATE_EPOCH", "soon").output();
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("SOURCE_DATE_EPOCH"),
        "{}",
        ended.stderr
    );
    assert_eq!(nursery.service.requests().len(), 0);
}

#[test]
fn a_page_is_not_written_to_a_terminal() {
    let folder = TempDir::new().unwrap();
    let line = "$T report --sandbox; echo \"code $?\"";
    let Some(output) = on_terminal(80, line, folder.path()) else {
        return;
    };
    assert!(
        output.contains("a report is an HTML file, not text for the terminal"),
        "{output}"
    );
    assert!(output.ends_with("code 2\n"), "{output}");
}

#[test]
fn the_file_is_written_atomically() {
    let items = (0..30).map(|number| sound(&format!("{number}"), MADE - number * DAY));
    let nursery = nursery(items);
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("report.html");
    let place = file.to_str().unwrap();
    let ended = report(&nursery, &["-o", place]);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), ""),
        "{}",
        ended.stderr
    );
    assert!(
        ended
            .stderr
            .starts_with("report of 30 batches (all dates, v2, "),
        "{}",
        ended.stderr
    );
    let first = fs::read_to_string(&file).unwrap();
    assert_eq!(first, page(&nursery, &[]));

    let ended = report(&nursery, &["-o", place, "--no-clobber"]);
    assert_eq!(ended.code, Some(8), "{}", ended.stderr);
    // The service fails on the second page.
    nursery.state().answers = Some(1);
    let ended = report(&nursery, &["-o", place, "--retries", "1"]);
    assert_eq!(ended.code, Some(5), "{}", ended.stderr);
    nursery.state().answers = None;
    let ended = report(
        &nursery,
        &["-o", place, "--start", "2030", "--fail-on-empty"],
    );
    assert_eq!(ended.code, Some(9), "{}", ended.stderr);
    nursery.state().edit("00029", "warnings", "\"maybe\"");
    let ended = report(&nursery, &["-o", place]);
    assert_eq!(ended.code, Some(7), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(&file).unwrap(), first);
    assert_eq!(names(folder.path()), ["report.html"]);

    let missing = folder.path().join("no/such/report.html");
    let asked = nursery.asked();
    let ended = report(&nursery, &["-o", missing.to_str().unwrap()]);
    assert_eq!(ended.code, Some(8), "{}", ended.stderr);
    assert_eq!(nursery.asked(), asked, "must fail before any request");
    let ended = report(&nursery, &["--start", "2030"]);
    assert_eq!(ended.code, Some(0), "a page without batches");
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn the_page_does_not_depend_on_paging_or_faults() {
        let args = ["--batches", "900", "--seed", "5"];
        let server = Server::start(&args);
        let plain_page = page(&server, &[]);
        assert_self_contained(&plain_page);
        let images = parts(&plain_page, "<svg", "</svg>");
        assert!(images.len() > 8, "{}", images.len());
        for image in images {
            assert!(
                image.contains("<title") && image.contains("<desc"),
                "{image}"
            );
        }
        let from =
            |html: &str, server: &Server| html.replace(&server.address.to_string(), "ADDRESS");
        let expected = from(&plain_page, &server);
        assert_eq!(from(&page(&server, &[]), &server), expected, "again");
        let v1 = page(&server, &["--api", "v1"]);
        assert!(v1.contains("(interface v1)"));
        assert_eq!(
            from(&v1, &server).replace("(interface v1)", "(interface v2)"),
            expected
        );
        for faults in [
            &["--page-size", "7", "--fault", "shuffle"][..],
            &[
                "--page-size",
                "100",
                "--fault",
                "duplicates:0.3",
                "--fault",
                "503:0.2",
                "--fault",
                "truncate:0.1",
                "--fault",
                "unknown-fields",
            ],
        ] {
            let other = Server::start(&[&args[..], faults].concat());
            let html = page(&other, &["--parallel", "8", "--retries", "20"]);
            // Unknown fields are part of the set digest.
            let digest = |html: &str| parts(html, "<code>", "</code>")[0].to_owned();
            let html = html.replace(&digest(&html), &digest(&plain_page));
            assert_eq!(from(&html, &other), expected, "{faults:?}");
        }
    }
}
