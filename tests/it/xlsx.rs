//! `xlsx`: the content of a workbook, read with another library, and what is refused.

// Workbooks too large for memory.
#[cfg(target_os = "linux")]
mod bombs;

// Single values.
mod cells;

// The sheet `Summary`.
mod summary;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Read as _};
use std::path::Path;

use calamine::{Data, Range, Reader as _, Xlsx};
use tempfile::TempDir;

use crate::fake::{Batch, FakeService};
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

    /// Returns the visible heading of each field, as listed on the last sheet.
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
        (&["-o", "a.xlsx.gz"], "xlsx is already compressed"),
        (&["-o", "a.ods"], "`-o batches.xlsx`"),
        (&["-o", "a.xlsx", "--excel"], "`--excel` is for csv and tsv"),
    ] {
        let ended = run(&[&["export", "--sandbox"], args].concat()).expect(2);
        assert!(ended.stderr.contains(why), "{ended:?}");
    }
}

#[test]
fn workbooks_are_verified_like_any_export() {
    let server = Server::start(&["--batches", "800"]);
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
        export(&server, &["-o", &part, "--limit", "799"]).code,
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
