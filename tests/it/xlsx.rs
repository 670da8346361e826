//! `xlsx`: the content of a workbook, read with another library, and what is refused.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Read as _, Write};
use std::path::Path;

use calamine::{Data, DataType as _, Range, Reader as _, Xlsx};
use serde_json::json;
use tempfile::TempDir;

use crate::fake::{Batch, FakeService, deflated_bomb};
use crate::harness::{Output, Run, Server, export, run};

/// An exported workbook.
struct Book {
    folder: TempDir,
    bytes: Vec<u8>,
    ended: Output,
}

impl Book {
    /// Exports valid batches, except for these fields.
    fn of(batches: &[&[(&str, &str)]], args: &[&str]) -> Self {
        let (folder, ended) = try_export(batches, args);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let bytes = fs::read(folder.path().join("a.xlsx")).unwrap();
        Self {
            folder,
            bytes,
            ended,
        }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn open(&self) -> Xlsx<Cursor<&[u8]>> {
        Xlsx::new(Cursor::new(&self.bytes[..])).unwrap()
    }

    fn sheet(&self, name: &str) -> Range<Data> {
        self.open().worksheet_range(name).unwrap()
    }

    /// Returns the cell of a field, in the row of a batch.
    fn cell(&self, row: usize, field: &str) -> Data {
        let sheet = self.sheet("Batches");
        let names = sheet.rows().next().unwrap();
        let is_named = |cell: &Data| *cell == field;
        let place = names.iter().position(is_named).unwrap();
        sheet.rows().nth(row).unwrap()[place].clone()
    }

    /// Returns the visible heading of each field, as listed on the second sheet.
    fn headings(&self) -> BTreeMap<String, String> {
        let about = self.sheet("About");
        let rows = about
            .rows()
            .map(|row| [0, 2, 3].map(|at| row[at].to_string()));
        let mut rows = rows.skip_while(|[.., field]| field != "Field");
        assert_eq!(rows.next().unwrap(), ["Column", "Unit", "Field"]);
        rows.map(|[title, unit, field]| match unit.as_str() {
            "" => (field, title),
            unit => (field, format!("{title} ({unit})")),
        })
        .collect()
    }

    /// Returns the text of a part of the package.
    fn part(&self, name: &str) -> String {
        let mut archive = zip::ZipArchive::new(Cursor::new(&self.bytes[..])).unwrap();
        let mut text = String::new();
        let mut part = archive.by_name(name).unwrap();
        part.read_to_string(&mut text).unwrap();
        text
    }
}

fn try_export(batches: &[&[(&str, &str)]], args: &[&str]) -> (TempDir, Output) {
    let batches: Vec<Batch> = (1..)
        .zip(batches)
        .map(|(number, other)| Batch::new(&format!("b{number}")).with_all(other))
        .collect();
    let service = FakeService::with(&batches);
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (path, manifest) = (at("a.xlsx"), at("a.json"));
    let place = ["-o", &path, "--manifest", &manifest];
    let ended = export(&service, &[&place[..], args].concat());
    (folder, ended)
}

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
        "<pane ySplit=\"1\" topLeftCell=\"A2\" activePane=\"bottomLeft\" state=\"frozen\"/>",
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
fn columns_are_in_the_order_of_the_fields() {
    let book = Book::of(
        &[&[("more", "1")], &[]],
        &["--fields", "comment,batch_creation_date,batch_id"],
    );
    let sheet = book.sheet("Batches");
    let names: Vec<String> = sheet
        .rows()
        .next()
        .unwrap()
        .iter()
        .map(Data::to_string)
        .collect();
    assert_eq!(names, ["comment", "batch_creation_date", "batch_id"]);
    assert_eq!(book.headings().len(), 3);
    assert_eq!(sheet.height(), 3);
    assert!(!book.ended.stderr.contains("more"), "{:?}", book.ended);
    let book = Book::of(&[&[("more", "1")], &[]], &[]);
    let warning = "xlsx has no column for the field `more`; it was left out";
    assert!(book.ended.stderr.contains(warning), "{:?}", book.ended);
    let book = Book::of(&[&[("more", "1")], &[("a\nb, c", "2")]], &[]);
    let warning = "xlsx has no column for the fields `a\\nb, c`, `more`; they were left out";
    assert!(book.ended.stderr.contains(warning), "{:?}", book.ended);
}

#[test]
fn the_about_sheet_matches_the_manifest() {
    let book = Book::of(
        &[&[], &[]],
        &["--start", "2026-05-01", "--end", "2026-05-02"],
    );
    let sheet = book.sheet("About");
    let about: BTreeMap<String, Data> = sheet
        .rows()
        .map(|row| (row[0].to_string(), row[1].clone()))
        .collect();
    let manifest = fs::read(book.path("a.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(
        about["Set digest"].to_string(),
        manifest["set_digest"].as_str().unwrap()
    );
    assert_eq!(about["Batches"], Data::Float(2.0));
    assert_eq!(about["Version"].to_string(), "v2");
    assert!(
        about["Range"].to_string().contains("2026-05-01"),
        "{about:?}"
    );
    assert!(about["Service"].to_string().starts_with("http://127.0.0.1"));
    // The core properties have the same time. Some programs refuse a workbook without a valid one.
    let core = book.part("docProps/core.xml");
    let Data::DateTime(time) = &about["Asked (UTC)"] else {
        panic!("{about:?}");
    };
    let (_, created) = core.split_once("dcterms:W3CDTF\">").unwrap();
    let midnight = chrono::NaiveDate::parse_from_str(&created[..10], "%Y-%m-%d").unwrap();
    let epoch = chrono::NaiveDate::from_ymd_opt(1899, 12, 30).unwrap();
    let days = u32::try_from((midnight - epoch).num_days()).unwrap();
    assert!(
        (f64::from(days) - time.as_f64().floor()).abs() < 0.5,
        "{core}"
    );
    assert!(about["Written by"].to_string().starts_with("trayscan "));
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

#[test]
fn batches_with_warnings_are_marked() {
    let book = Book::of(&[&[("warnings", "true")], &[]], &[]);
    let sheet = book.part("xl/worksheets/sheet1.xml");
    let styles = |row: u32| -> Vec<String> {
        let (_, rest) = sheet.split_once(&format!("<row r=\"{row}\"")).unwrap();
        let (cells, _) = rest.split_once("</row>").unwrap();
        let style = |cell: &str| {
            cell.split_once(" s=\"")
                .unwrap()
                .1
                .split('"')
                .next()
                .unwrap()
                .to_owned()
        };
        cells.split("<c ").skip(1).map(style).collect()
    };
    let (marked, plain) = (styles(2), styles(3));
    // Empty cells are marked too.
    assert_eq!(marked.len(), 18);
    assert!(
        marked.iter().all(|style| !plain.contains(style)),
        "{marked:?} {plain:?}"
    );
}

#[test]
fn it_needs_a_file_and_is_not_compressed() {
    for (args, why) in [
        (
            &["-f", "xlsx"][..],
            "xlsx cannot be written to standard output",
        ),
        (&["-o", "a.xlsx.gz"], "xlsx is not compressed"),
        (&["-o", "a.ods"], "`-o batches.xlsx`"),
        (&["-o", "a.xlsx", "--excel"], "`--excel` is for csv and tsv"),
    ] {
        let ended = run(&[&["export", "--sandbox"], args].concat()).expect(2);
        assert!(ended.stderr.contains(why), "{ended:?}");
    }
}

#[test]
fn workbooks_are_verified_like_any_export() {
    let server = Server::start(&["--batches", "3000"]);
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (book, manifest, csv) = (at("a.xlsx"), at("a.manifest"), at("a.csv"));
    assert_eq!(
        export(&server, &["-o", &book, "--manifest", &manifest]).code,
        Some(0)
    );
    assert_eq!(export(&server, &["-o", &csv]).code, Some(0));
    for against in [["--manifest", &manifest], ["--against", &csv]] {
        run(&[&["verify", &book][..], &against].concat()).expect(0);
    }
    let part = at("b.xlsx");
    assert_eq!(
        export(&server, &["-o", &part, "--limit", "2999"]).code,
        Some(0)
    );
    run(&["verify", &part, "--against", &csv]).expect(7);
    // A truncated workbook is refused.
    let bytes = fs::read(&book).unwrap();
    fs::write(&part, &bytes[..bytes.len() / 2]).unwrap();
    run(&["verify", &part, "--against", &csv]).expect(7);
}

#[test]
fn fields_have_their_units_and_meanings() {
    let book = Book::of(&[&[]], &["--where", "crop_type!=", "--limit", "7"]);
    let headings = book.headings();
    assert_eq!(headings.len(), 18);
    for (field, heading) in [
        ("batch_creation_date", "Created (UTC)"),
        ("avg_germination_rate", "Germination rate (%)"),
        ("avg_usable_seedlings", "Usable seedlings (per tray)"),
        ("avg_coefficient_of_variation", "Size CV (%)"),
        ("avg_median_seedling_size_mm2", "Median size (mm²)"),
    ] {
        assert_eq!(headings[field], heading);
    }
    // Programs read the field name; the number format shows the heading instead.
    let styles = book.part("xl/styles.xml");
    for heading in headings.values() {
        let format = format!(r#"formatCode=";;;&quot;{heading}&quot;""#);
        assert!(styles.contains(&format), "{format} in {styles}");
    }
    let about = book.sheet("About");
    let cells: Vec<String> = about.rows().map(|row| row[1].to_string()).collect();
    for text in [
        "crop_type!=",
        "the first 7",
        "Median seedling size, average of the trays",
    ] {
        assert!(cells.iter().any(|cell| cell == text), "{text} in {cells:?}");
    }
}

#[test]
fn it_prints_in_landscape_with_the_header_on_every_page() {
    let book = Book::of(&[&[("comment", "\"one\\ntwo\"")]], &[]);
    let sheet = book.part("xl/worksheets/sheet1.xml");
    for part in [
        "<pageSetUpPr fitToPage=\"1\"/>",
        "<pageSetup paperSize=\"9\" fitToHeight=\"0\" orientation=\"landscape\"",
        "numberStoredAsText=\"1\"",
    ] {
        assert!(sheet.contains(part), "{part} in {sheet}");
    }
    let workbook = book.part("xl/workbook.xml");
    let titles = "<definedName name=\"_xlnm.Print_Titles\" localSheetId=\"0\">Batches!$1:$1<";
    assert!(workbook.contains(titles), "{workbook}");
    // Comments with several lines are wrapped.
    assert!(book.part("xl/styles.xml").contains("wrapText=\"1\""));
}

/// Repacks a workbook with one part replaced or added.
fn with_part(
    book: &[u8],
    other: &str,
    size: usize,
    [before, filling, after]: [&str; 3],
) -> Vec<u8> {
    let (deflated, crc) = deflated_bomb(before, filling, size, after);
    let mut archive = zip::ZipArchive::new(Cursor::new(book)).unwrap();
    let mut packed = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for place in 0..archive.len() {
        let mut part = archive.by_index(place).unwrap();
        let name = String::from_utf8(part.name_raw().to_vec()).unwrap();
        if name != other {
            packed.start_file(name, options).unwrap();
            std::io::copy(&mut part, &mut packed).unwrap();
        }
    }
    let stored = options.compression_method(zip::CompressionMethod::Stored);
    packed.start_file(other, stored).unwrap();
    packed.write_all(&deflated).unwrap();
    let mut bytes = packed.finish().unwrap().into_inner();
    // The part is stored as it is; both of its headers say that it is deflated, and what it unpacks to.
    let mut archive = zip::ZipArchive::new(Cursor::new(&bytes)).unwrap();
    let part = archive.by_name(other).unwrap();
    let starts = [(part.header_start(), 8), (part.central_header_start(), 10)];
    drop(part);
    drop(archive);
    for (start, method) in starts {
        let start = usize::try_from(start).unwrap() + method;
        bytes[start..start + 2].copy_from_slice(&8u16.to_le_bytes());
        bytes[start + 6..start + 10].copy_from_slice(&crc.sum().to_le_bytes());
        bytes[start + 14..start + 18].copy_from_slice(&crc.amount().to_le_bytes());
    }
    bytes
}

#[cfg(target_os = "linux")]
#[test]
fn a_workbook_too_large_for_memory_is_refused() {
    let book = Book::of(&[&[], &[]], &[]);
    let texts = "xl/sharedStrings.xml";
    let sheet = "xl/worksheets/sheet1.xml";
    let good = book.part(sheet);
    let (before, after) = good.split_once("</row>").unwrap();
    let long = "x".repeat(1000);
    let (text, element) = (format!("<si><t>{long}</t></si>"), format!("<x>{long}</x>"));
    // Mebibytes that compress well: long texts and empty ones, a large part, and large cells.
    let cell = |kind: &str| format!("{before}<c r=\"ZZ1\" t=\"inlineStr\"><is>{kind}");
    let (one, many) = (cell("<t>"), cell(""));
    let bombs = [
        (
            520,
            texts,
            ["<sst>", &text, "</sst>"],
            "unpacks to more than 512 MiB",
        ),
        (
            64,
            texts,
            ["<sst>", "<si/>", "</sst>"],
            "unpacks to more than 512 MiB",
        ),
        (
            80,
            "xl/styles.xml",
            ["<styleSheet>", &element, "</styleSheet>"],
            "unpacks to more than 64 MiB",
        ),
        (
            640,
            sheet,
            [&one, "x", after],
            "has a cell of more than 2 MiB",
        ),
        (
            16,
            sheet,
            [&many, "<r><t>abcd</t></r>", after],
            "has a cell of more than 2 MiB",
        ),
    ];
    let path = book.path("bomb.xlsx");
    for (size, name, parts, why) in bombs {
        let bomb = with_part(&book.bytes, name, size, parts);
        assert!(bomb.len() < 32 << 20, "{}", bomb.len());
        assert_refused_with_little_memory(&path, &bomb, why);
    }
    let lie = "<sst uniqueCount=\"99999999999\"></sst>";
    let lie = with_part(&book.bytes, texts, 0, [lie, " ", ""]);
    assert_refused_with_little_memory(&path, &lie, "far more texts than it has");
    // The same part with a correct count is accepted.
    let truth = "<sst uniqueCount=\"1\"><si><t>a</t></si></sst>";
    let truth = with_part(&book.bytes, texts, 0, [truth, " ", ""]);
    fs::write(&path, truth).unwrap();
    run(&["verify", &path, "--manifest", &book.path("a.json")]).expect(0);
}

#[cfg(target_os = "linux")]
fn assert_refused_with_little_memory(path: &str, bytes: &[u8], why: &str) {
    fs::write(path, bytes).unwrap();
    // If the program allocates more, it is terminated with another exit code.
    let command = "ulimit -v 524288; exec \"$0\" verify \"$1\"";
    let ended = Run::new("sh")
        .args(["-c", command, env!("CARGO_BIN_EXE_trayscan"), path])
        .output()
        .expect(7);
    assert!(ended.stderr.contains(why), "{why}: {ended:?}");
}

/// Opens a workbook with LibreOffice and returns the cells as shown; `None` if not installed.
fn shown_by_libreoffice(book: &Path) -> Option<Vec<Vec<String>>> {
    let folder = TempDir::new().unwrap();
    let home = folder.path().join("home");
    let home = format!("-env:UserInstallation=file://{}", home.display());
    // Comma, double quotes, UTF-8, from the first line, cells as shown.
    let filter = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true,true";
    let tried = Run::new("soffice")
        .args([&home, "--headless", "--convert-to", filter, "--outdir"])
        .arg(folder.path())
        .arg(book)
        .try_raw();
    let Ok(output) = tried else {
        eprintln!("skipped: LibreOffice is not installed");
        return None;
    };
    assert!(output.status.success(), "{output:?}");
    let path = folder.path().join(book.with_extension("csv").file_name()?);
    let reader = csv::ReaderBuilder::new().has_headers(false).from_path(path);
    let rows = reader.unwrap().into_records().map(|row| {
        let row = row.unwrap();
        row.iter().map(str::to_owned).collect()
    });
    Some(rows.collect())
}

#[test]
fn libreoffice_shows_the_values_of_the_csv() {
    let server = Server::start(&["--batches", "3000"]);
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (book, csv) = (at("a.xlsx"), at("b.csv"));
    for path in [&book, &csv] {
        assert_eq!(export(&server, &["-o", path]).code, Some(0));
    }
    let Some(shown) = shown_by_libreoffice(Path::new(&book)) else {
        return;
    };
    let mut exported = csv::Reader::from_path(&csv).unwrap();
    let names = exported.headers().unwrap().clone();
    let exported: Vec<_> = exported.records().map(Result::unwrap).collect();
    assert_eq!(shown.len(), exported.len() + 1);
    let seen = ["Batch id", "Batch name", "Created (UTC)", "Crop", "Images"];
    assert_eq!(shown[0][..5], seen);
    assert_eq!(shown[0][8], "Germination rate (%)");
    for (shown, exported) in shown[1..].iter().zip(&exported) {
        for ((name, exported), shown) in names.iter().zip(exported).zip(shown) {
            let expected = match name {
                // LibreOffice shows milliseconds only if present.
                "batch_creation_date" => exported.replace('T', " ").replace('Z', ""),
                "warnings" => exported.to_uppercase(),
                _ => exported.to_owned(),
            };
            assert_eq!(*shown, expected, "{name} of {}", &exported);
        }
    }
}
