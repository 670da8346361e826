//! Values in cells: types, links, control characters, and values that do not fit.

use std::fs;

use calamine::{Data, DataType as _};
use serde_json::json;

use super::{Book, try_export};
use crate::harness::run;

#[test]
fn cells_have_the_types_of_their_fields() {
    let book = Book::of(
        &[&[
            ("batch_id", "\"007\""),
            ("batch_creation_date", "\"2026-05-01T06:00:00.125Z\""),
            ("avg_germination_rate", "\"87.50\""),
            ("avg_usable_seedlings", "\"1.005\""),
            ("warnings", "true"),
        ]],
        &[],
    );
    assert_eq!(book.cell(1, "batch_id"), Data::String("007".to_owned()));
    assert_eq!(book.cell(1, "number_of_images"), Data::Float(12.0));
    assert_eq!(book.cell(1, "avg_germination_rate"), Data::Float(87.5));
    assert_eq!(book.cell(1, "avg_usable_seedlings"), Data::Float(1.005));
    assert_eq!(book.cell(1, "warnings"), Data::Bool(true));
    assert_eq!(book.cell(1, "comment"), Data::Empty);
    let Data::DateTime(days) = book.cell(1, "batch_creation_date") else {
        panic!("{:?}", book.cell(1, "batch_creation_date"));
    };
    assert!((days.as_f64() - (46_143.25 + 0.125 / 86_400.0)).abs() < 1e-11);
    let sheet = book.part("xl/worksheets/sheet1.xml");
    for part in [
        "<pane xSplit=\"2\" ySplit=\"1\" topLeftCell=\"C2\" activePane=\"bottomRight\" state=\"frozen\"/>",
        "<autoFilter ref=\"A1:R2\"/>",
    ] {
        assert!(sheet.contains(part), "{part} in {sheet}");
    }
    let styles = book.part("xl/styles.xml");
    for part in ["yyyy-mm-dd hh:mm:ss.000", "<b/>", "FFFFF2CC"] {
        assert!(styles.contains(part), "{part} in {styles}");
    }
}

#[test]
fn a_date_that_no_cell_can_store_is_text_with_a_note() {
    let exact = "2026-05-01T06:00:00.123456789Z";
    let dates = [exact, "1899-12-31T00:00:00Z", "2026-05-01T06:00:00.125Z"];
    let dates = dates.map(|date| [("batch_creation_date", format!("\"{date}\""))]);
    let batches = dates
        .each_ref()
        .map(|fields| fields.each_ref().map(|(name, json)| (*name, json.as_str())));
    let batches = batches.each_ref().map(|fields| &fields[..]);
    let book = Book::of(&batches, &[]);
    assert_eq!(
        book.cell(1, "batch_creation_date"),
        Data::String(exact.to_owned())
    );
    let note = "note: 2 dates are written as text";
    assert!(book.ended.stderr.contains(note), "{:?}", book.ended);
}

#[test]
fn no_text_becomes_a_formula() {
    let texts = [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "\tx",
        "=HYPERLINK(\"http://x\")",
    ];
    let comments: Vec<String> = texts.iter().map(|text| json!(text).to_string()).collect();
    let batches: Vec<[(&str, &str); 2]> = comments
        .iter()
        .map(|comment| [("comment", comment.as_str()), ("analysis_link", comment)])
        .collect();
    let batches: Vec<&[(&str, &str)]> = batches.iter().map(|batch| &batch[..]).collect();
    let book = Book::of(&batches, &[]);
    for (row, text) in (1..).zip(texts) {
        for field in ["comment", "analysis_link"] {
            assert_eq!(book.cell(row, field), Data::String(text.to_owned()));
        }
    }
    assert!(!book.part("xl/worksheets/sheet1.xml").contains("<f>"));
    assert!(!book.ended.stderr.contains("formula"), "{:?}", book.ended);
}

#[test]
fn only_web_addresses_are_links() {
    let links = [
        ("https://example.org/r/1?a=b&c=%20#top", true),
        ("http://example.org/", true),
        ("javascript:alert(1)", false),
        ("file:///etc/passwd", false),
        ("mailto:a@example.org", false),
        ("https://", false),
        ("https://example.org/a b", true),
        ("HTTPS://Example.org/R", true),
        ("hTTp://example.org/Größe/зерно?q=ü", true),
        ("https://müller.example/", true),
        ("https://example.org/%zz", false),
        ("https://example.org/%C3%B6?a=%c3%bc#%2F", true),
        ("https://example.org/?a=%2F&b=%20", true),
        // These addresses cannot be written unchanged.
        ("https://example.org/?a=%2F", false),
        ("https://example.org/%ff", false),
        ("https://example.org/%E2%80%AEa", false),
        (" https://example.org/", false),
        ("https://example.org/ ", false),
        ("HTTPS://", false),
        ("JavaScript:alert(1)", false),
        ("FILE:///etc/passwd", false),
        ("https:example.org", false),
        ("https:\\\\example.org", false),
        ("https://example.org/\u{202e}gpj.exe", false),
        ("https://example\u{200b}.org/", false),
        ("https://example.org/a\u{a0}b", false),
        ("https://example.org/a\nb", false),
        ("http\u{17f}://example.org/", false),
        ("internal:About!A1", false),
    ];
    let texts = links.map(|(link, _)| json!(link).to_string());
    let batches: Vec<[(&str, &str); 1]> = texts
        .iter()
        .map(|text| [("analysis_link", text.as_str())])
        .collect();
    let batches: Vec<&[(&str, &str)]> = batches.iter().map(|batch| &batch[..]).collect();
    let book = Book::of(&batches, &[]);
    let live = book.open().hyperlinks_by_sheet_name("Batches").unwrap();
    for (row, (link, is_live)) in (1..).zip(links) {
        assert_eq!(
            book.cell(row as usize, "analysis_link"),
            Data::String(link.to_owned())
        );
        let found = live.iter().any(|live| live.contains(row, 15));
        assert_eq!(found, is_live, "{link}");
    }
    let addresses = book.part("xl/worksheets/_rels/sheet1.xml.rels");
    for address in [
        "\"https://example.org/a%20b\"",
        "\"https://example.org/R\"",
        "\"http://example.org/Größe/зерно?q=ü\"",
        "\"https://example.org/ö?a=ü\"",
        "\"https://example.org/?a=%2F&amp;b=%20\"",
        "\"https://xn--mller-kva.example/\"",
    ] {
        assert!(addresses.contains(address), "{addresses}");
    }
}

#[test]
fn control_characters_are_visible_counted_and_restored() {
    let book = Book::of(
        &[
            &[("comment", "\"a\\u0001b\\u001b[31m\"")],
            &[("comment", "\"\\\\u{1} _x0041_ \\r\\n\"")],
            &[("comment", "\"plain\\tC:\\\\u\"")],
        ],
        &[],
    );
    let text = |text: &str| Data::String(text.to_owned());
    assert_eq!(book.cell(1, "comment"), text("a\\u{1}b\\u{1b}[31m"));
    assert_eq!(book.cell(2, "comment"), text("\\u{5c}u{1} _x0041_ \r\n"));
    assert_eq!(book.cell(3, "comment"), text("plain\tC:\\u"));
    // Text that only looks like an escape is not counted.
    let warning = "1 text cell contains control characters that xlsx cannot store";
    assert!(book.ended.stderr.contains(warning), "{:?}", book.ended);
    run(&[
        "verify",
        &book.path("a.xlsx"),
        "--manifest",
        &book.path("a.json"),
    ])
    .expect(0);
}

#[test]
fn values_that_do_not_fit_a_cell_are_refused_with_their_batch() {
    let fits = json!("🌱".repeat(16_383)).to_string();
    let text = json!("🌱".repeat(16_384)).to_string();
    let escaped = json!("\u{1}".repeat(8_192)).to_string();
    Book::of(&[&[("comment", &fits)]], &[]);
    for (field, value, why) in [
        (
            "comment",
            text.as_str(),
            "batch `b2`: `comment` has 32768 characters, but a spreadsheet cell",
        ),
        (
            "comment",
            escaped.as_str(),
            "batch `b2`: `comment` has 8192 characters (40960 with the necessary escapes), but a spreadsheet cell",
        ),
        (
            "avg_germination_rate",
            "\"1234567890.1234567\"",
            "batch `b2`: `avg_germination_rate` is 1234567890.1234567, which a spreadsheet cannot",
        ),
        (
            "number_of_images",
            "1234567890123456",
            "batch `b2`: `number_of_images` is 1234567890123456, which",
        ),
    ] {
        let (folder, ended) = try_export(&[&[], &[(field, value)]], &[]);
        assert_eq!(ended.code, Some(7), "{ended:?}");
        assert!(ended.stderr.contains(why), "{ended:?}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[test]
fn dates_that_excel_cannot_represent_are_text() {
    let book = Book::of(
        &[
            &[("batch_creation_date", "\"2026-05-01T06:00:00.123456Z\"")],
            &[("batch_creation_date", "\"2026-05-01T06:00:00.1234567Z\"")],
            &[("batch_creation_date", "\"1899-05-01T06:00:00Z\"")],
            &[("batch_creation_date", "\"9999-12-31T23:59:59.000001Z\"")],
            &[("batch_creation_date", "\"3210-01-02T03:04:07Z\"")],
            &[("batch_creation_date", "\"9999-12-31T23:59:59.125Z\"")],
        ],
        &[],
    );
    for row in [1, 5, 6] {
        assert!(book.cell(row, "batch_creation_date").is_datetime(), "{row}");
    }
    for (row, text) in [
        (2, "2026-05-01T06:00:00.1234567Z"),
        (3, "1899-05-01T06:00:00Z"),
        (4, "9999-12-31T23:59:59.000001Z"),
    ] {
        let cell = book.cell(row, "batch_creation_date");
        assert_eq!(cell, Data::String(text.to_owned()));
    }
    run(&[
        "verify",
        &book.path("a.xlsx"),
        "--manifest",
        &book.path("a.json"),
    ])
    .expect(0);
}
