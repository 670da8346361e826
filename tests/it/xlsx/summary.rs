//! The sheet `Summary`, read with other libraries: its figures, names and layout, and that it is never data.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Read as _, Write as _};
use std::path::Path;

use calamine::{Data, Range, Reader as _, Xlsx};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::Book;
use crate::harness::{Run, Server, export, python, run};

/// The row of each crop, without its name.
fn rows(sheet: &Range<Data>) -> BTreeMap<String, Vec<Data>> {
    let rows = sheet.rows().skip(1).take_while(|row| row[0] != Data::Empty);
    rows.map(|row| (row[0].to_string(), row[1..].to_vec()))
        .collect()
}

fn read(path: &str) -> Xlsx<Cursor<Vec<u8>>> {
    Xlsx::new(Cursor::new(fs::read(path).unwrap())).unwrap()
}

/// Returns quartile number `quarter` of type 7 in hundredths, rounded half up. All values are in hundredths.
fn quartile(values: &mut [i64], quarter: usize) -> Option<i64> {
    values.sort_unstable();
    let place = values.len().checked_sub(1)? * quarter;
    let (low, high) = (values[place / 4], values[place.div_ceil(4)]);
    let quarters = 4 * low + (high - low) * i64::try_from(place % 4).unwrap();
    Some((quarters + 2).div_euclid(4))
}

#[test]
fn figures_are_those_of_the_batches() {
    let server = Server::start(&["--batches", "900"]);
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (whole, narrow) = (at("a.xlsx"), at("b.xlsx"));
    export(&server, &["-o", &whole]).expect(0);
    export(&server, &["-o", &narrow, "--fields", "batch_id"]).expect(0);
    let batches = export(&server, &["-f", "ndjson"]).expect(0).stdout;
    let batches: Vec<Value> = batches
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();

    let mut book = read(&whole);
    assert_eq!(book.sheet_names(), ["Batches", "Summary", "About"]);
    let sheet = book.worksheet_range("Summary").unwrap();
    let same = read(&narrow).worksheet_range("Summary").unwrap();
    assert_eq!(sheet, same, "whatever the fields");
    let rows = rows(&sheet);
    assert_eq!(rows.len(), 9);
    for (name, row) in &rows {
        let crop = match name.as_str() {
            "no crop given" => Value::Null,
            name => json!(name),
        };
        let own = |batch: &&Value| name == "All crops" || batch["crop_type"] == crop;
        let own: Vec<&Value> = batches.iter().filter(own).collect();
        let values = |field: &str| -> Vec<i64> {
            let texts = own.iter().filter_map(|batch| batch[field].as_str());
            texts
                .map(|text| text.replace('.', "").parse().unwrap())
                .collect()
        };
        let shown = |place: usize| match &row[place] {
            #[allow(clippy::cast_possible_truncation)]
            Data::Float(number) => Some((number * 100.0).round() as i64),
            Data::Empty => None,
            other => panic!("{other:?} in {name}"),
        };
        let count = |place: usize, count: usize| {
            assert_eq!(shown(place), i64::try_from(count * 100).ok(), "{name}");
        };
        count(0, own.len());
        count(
            8,
            own.iter().filter(|batch| batch["warnings"] == true).count(),
        );
        let mut usable = values("avg_usable_seedling_rate");
        let mut germinated = values("avg_germination_rate");
        assert_eq!(shown(1), quartile(&mut usable, 2), "{name}");
        assert_eq!(shown(2), quartile(&mut usable, 1), "{name}");
        assert_eq!(shown(3), quartile(&mut usable, 3), "{name}");
        assert_eq!(shown(4), quartile(&mut germinated, 2), "{name}");
        // The difference is rounded once, not its parts.
        let gap = quartile(&mut germinated, 2).unwrap() - quartile(&mut usable, 2).unwrap();
        assert!((shown(5).unwrap() - gap).abs() <= 1, "{name}");
        let mut variation = values("avg_coefficient_of_variation");
        let mut size = values("avg_median_seedling_size_mm2");
        assert_eq!(shown(6), quartile(&mut variation, 2), "{name}");
        assert_eq!(shown(7), quartile(&mut size, 2), "{name}");
        let mut days: Vec<&str> = own
            .iter()
            .map(|batch| &batch["batch_creation_date"].as_str().unwrap()[..10])
            .collect();
        days.sort_unstable();
        for (place, day) in [(9, days[0]), (10, days[days.len() - 1])] {
            let Data::DateTime(shown) = &row[place] else {
                panic!("{:?} in {name}", row[place]);
            };
            let day = chrono::NaiveDate::parse_from_str(day, "%Y-%m-%d").unwrap();
            let epoch = chrono::NaiveDate::from_ymd_opt(1899, 12, 30).unwrap();
            let days = i32::try_from((day - epoch).num_days()).unwrap();
            assert!((shown.as_f64() - f64::from(days)).abs() < 1e-9, "{name}");
        }
    }
}

#[test]
fn verdicts_are_those_of_the_summary() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.xlsx").to_str().unwrap().to_owned();
    run(&["export", "--sandbox", "-o", &path]).expect(0);
    let summary = run(&["summary", "--sandbox", "-f", "json"])
        .expect(0)
        .stdout;
    let summary: Value = serde_json::from_str(&summary).unwrap();
    let sheet = read(&path).worksheet_range("Summary").unwrap();
    let rows = rows(&sheet);
    let mut verdicts = Vec::new();
    for group in summary["groups"].as_array().unwrap() {
        let row = &rows[group["crop_type"].as_str().unwrap_or("no crop given")];
        let newest = &group["usable_rate_newest"]["median"];
        for (place, expected) in [(11, newest), (12, &group["usable_rate_change"])] {
            let shown = match &row[place] {
                Data::Float(number) => json!(number),
                _ => Value::Null,
            };
            assert_eq!(shown.as_f64(), expected.as_f64(), "{group}");
        }
        let verdict = row[13].to_string();
        let expected = match group["verdict"].as_str().unwrap() {
            "too_few" if newest.is_null() => "no batches",
            "too_few" => "too few",
            other => other,
        };
        assert_eq!(verdict, expected, "{group}");
        verdicts.push(verdict);
    }
    for verdict in ["down", "usual", "too few", "no batches"] {
        assert!(verdicts.contains(&verdict.to_owned()), "{verdicts:?}");
    }
    let notes: Vec<String> = sheet.rows().map(|row| row[0].to_string()).collect();
    for note in [
        "Medians and quartiles of the batches in this workbook",
        "250 batches, scanned from 2023-11-27 to 2026-10-30 (UTC).",
        "Newest week: 2026-W44, 2026-10-26 to 2026-11-01 (UTC).",
    ] {
        assert!(notes.iter().any(|text| text.starts_with(note)), "{notes:?}");
    }
}

#[test]
fn a_range_that_cuts_weeks_is_told_as_in_summary_and_report() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (path, page) = (at("a.xlsx"), at("a.html"));
    let one = "Of the previous four weeks, only a part of one is in this range.";
    let three = "Of the previous four weeks, only three and a part of the first are in this range.";
    for (flags, share, cut) in [
        (&["--period", "2026-10"][..], ", 6 of 7 days", three),
        (&["--start", "2026-10-25"], "", one),
        (
            &["--start", "2026-10-25", "--end", "2026-10-30"],
            ", 5 of 7 days",
            one,
        ),
        (
            &["--start", "2026-10-28"],
            ", 5 of 7 days",
            "Of the previous four weeks, none is in this range.",
        ),
        (&[], "", ""),
    ] {
        run(&[&["export", "--sandbox", "-o", &path], flags].concat()).expect(0);
        let sheet = read(&path).worksheet_range("Summary").unwrap();
        let notes: Vec<String> = sheet.rows().map(|row| row[0].to_string()).collect();
        let week = format!("Newest week: 2026-W44, 2026-10-26 to 2026-11-01{share} (UTC).");
        assert!(
            notes.iter().any(|note| note.starts_with(&week)),
            "{notes:?}"
        );
        let found = notes
            .iter()
            .find(|note| note.starts_with("Of the previous"));
        assert_eq!(found.map_or("", String::as_str), cut, "{flags:?}");
        run(&["verify", &path]).expect(0);

        let table = run(&[&["summary", "--sandbox"], flags].concat())
            .expect(0)
            .stdout;
        assert!(
            table.contains(&format!("Newest week (2026-W44{share}): ")),
            "{table}"
        );
        let found = table
            .lines()
            .find(|line| line.starts_with("Of the previous"));
        assert_eq!(found.unwrap_or_default(), cut, "{flags:?}");

        run(&[&["report", "--sandbox", "-o", &page], flags].concat()).expect(0);
        let shown = fs::read_to_string(&page).unwrap();
        let week = format!("(26 October to 1 November 2026{share})");
        assert!(shown.contains(&week), "{flags:?}");
        assert_eq!(
            shown.contains("Of the previous four weeks"),
            !cut.is_empty()
        );
        assert!(shown.contains(cut), "{flags:?}");
    }
}

#[test]
fn without_batches_it_says_so() {
    let book = Book::of(&[], &[]);
    let sheet = book.sheet("Summary");
    assert_eq!((sheet.height(), sheet.width()), (2, 15));
    assert_eq!(sheet[(0, 0)].to_string(), "Crop");
    assert_eq!(sheet[(1, 0)].to_string(), "no batches");
    run(&["verify", &book.path("a.xlsx")]).expect(0);
}

#[test]
fn names_are_text_and_of_limited_length() {
    let long = "x".repeat(1_000_000);
    let names = [
        json!("=HYPERLINK(\"http://x\")"),
        json!("007"),
        json!("+1"),
        json!("a\u{1}\u{fffe}\nb"),
        json!("<b>&amp;"),
        json!(long),
        json!(""),
        Value::Null,
    ];
    let names: Vec<String> = names.iter().map(Value::to_string).collect();
    let batches: Vec<[(&str, &str); 1]> = names
        .iter()
        .map(|name| [("crop_type", &name[..])])
        .collect();
    let batches: Vec<&[(&str, &str)]> = batches.iter().map(|batch| &batch[..]).collect();
    // The sheet `Batches` could not keep the long one.
    let book = Book::of(&batches, &["--fields", "batch_id,batch_name"]);
    let sheet = book.sheet("Summary");
    let rows = rows(&sheet);
    for (name, count) in [
        ("=HYPERLINK(\"http://x\")", 1.0),
        ("007", 1.0),
        ("+1", 1.0),
        ("a\\u{1}\u{fffd}\\nb", 1.0),
        ("<b>&amp;", 1.0),
        ("no crop given", 2.0),
        ("All crops", 8.0),
    ] {
        assert_eq!(rows[name][0], Data::Float(count), "{name}");
    }
    let shortened = rows.keys().find(|name| name.starts_with("xxx")).unwrap();
    assert!(shortened.len() < 120, "{shortened}");
    assert!(
        sheet
            .used_cells()
            .all(|(_, _, cell)| !matches!(cell, Data::Error(_)))
    );
    assert!(!book.part("xl/worksheets/sheet2.xml").contains("<f"));
    run(&["verify", &book.path("a.xlsx")]).expect(0);
}

#[test]
fn very_many_crops_share_a_row() {
    let names: Vec<String> = (0..1300)
        .map(|number| format!("\"crop {number}\""))
        .collect();
    let batches: Vec<[(&str, &str); 1]> = names
        .iter()
        .map(|name| [("crop_type", &name[..])])
        .collect();
    let batches: Vec<&[(&str, &str)]> = batches.iter().map(|batch| &batch[..]).collect();
    let book = Book::of(&batches, &[]);
    let rows = rows(&book.sheet("Summary"));
    assert_eq!(rows.len(), 1002);
    assert_eq!(rows["all other crops"][0], Data::Float(300.0));
    assert_eq!(rows["All crops"][0], Data::Float(1300.0));
    let notes = book.sheet("Summary");
    let last = notes.rows().next_back().unwrap()[0].to_string();
    assert!(last.contains("the first 1000 that arrived"), "{last}");
    let ended = run(&["verify", &book.path("a.xlsx")]).expect(0);
    let why = "the sheet `Summary` was not checked: it does not list all crops";
    assert!(ended.stderr.contains(why), "{ended:?}");
    // Too many to be readable on one page.
    let sheet = book.part("xl/worksheets/sheet2.xml");
    assert!(sheet.contains("fitToHeight=\"0\""), "{sheet:.2000}");
}

#[test]
fn it_prints_on_one_page_in_landscape() {
    let book = Book::of(&[&[]], &[]);
    let sheet = book.part("xl/worksheets/sheet2.xml");
    for part in [
        "<pageSetUpPr fitToPage=\"1\"/>",
        "<pageSetup paperSize=\"9\" orientation=\"landscape\"",
        "<pane xSplit=\"1\" ySplit=\"1\" topLeftCell=\"B2\"",
    ] {
        assert!(sheet.contains(part), "{part} in {sheet}");
    }
    assert!(!sheet.contains("tabSelected"), "{sheet}");
    let workbook = book.part("xl/workbook.xml");
    let titles = "<definedName name=\"_xlnm.Print_Titles\" localSheetId=\"1\">Summary!$1:$1<";
    assert!(workbook.contains(titles), "{workbook}");
    assert!(!workbook.contains("activeTab"), "{workbook}");
    assert!(
        book.part("xl/worksheets/sheet1.xml")
            .contains("tabSelected")
    );
}

#[test]
fn columns_are_frozen_up_to_the_name_if_they_are_few() {
    for (fields, frozen) in [
        ("batch_name", 1),
        ("batch_id,batch_name,comment", 2),
        ("comment,batch_id,warnings,batch_name", 4),
        ("comment,batch_id,warnings,crop_type,batch_name", 0),
        ("comment,batch_id", 0),
    ] {
        let book = Book::of(&[&[]], &["--fields", fields]);
        let sheet = book.part("xl/worksheets/sheet1.xml");
        let split = match frozen {
            0 => "<pane ySplit=\"1\" topLeftCell=\"A2\"".to_owned(),
            count => format!("<pane xSplit=\"{count}\" ySplit=\"1\""),
        };
        assert!(sheet.contains(&split), "{fields}: {sheet}");
    }
}

/// Returns the workbook with another text in one of its parts.
fn with(book: &[u8], part: &str, changes: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = zip::ZipArchive::new(Cursor::new(book)).unwrap();
    let mut packed = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for place in 0..archive.len() {
        let mut entry = archive.by_index(place).unwrap();
        let name = String::from_utf8(entry.name_raw().to_vec()).unwrap();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        if name == part {
            for (from, to) in changes {
                assert!(text.contains(from), "{from} is not in {text}");
                text = text.replace(from, to);
            }
        }
        let options = zip::write::SimpleFileOptions::default();
        packed.start_file(name, options).unwrap();
        packed.write_all(text.as_bytes()).unwrap();
    }
    packed.finish().unwrap().into_inner()
}

#[test]
fn verify_computes_its_figures_again() {
    const SUMMARY: &str = "xl/worksheets/sheet2.xml";
    // Midnight in Kiritimati is ten hours before that in UTC.
    let late = [("batch_creation_date", "\"2026-05-01T12:00:00Z\"")];
    let zone = ["--time-zone", "Pacific/Kiritimati"];
    let book = Book::of(&[&late, &[("warnings", "true")]], &zone);
    let path = book.path("b.xlsx");
    let verify = |bytes: &[u8], args: &[&str]| {
        fs::write(&path, bytes).unwrap();
        run(&[&["verify", &path], args].concat())
    };
    let against = ["--against", &book.path("a.xlsx")];
    verify(&book.bytes, &[]).expect(0);
    verify(&book.bytes, &against).expect(0);
    let forged = |from: &str, to: &str| with(&book.bytes, SUMMARY, &[(from, to)]);
    for (bytes, shown) in [
        (
            forged("<v>87.5</v>", "<v>1</v>"),
            "shows `1` in F2, but the batches give `87.5`",
        ),
        (
            forged("<v>87.5</v>", ""),
            "shows nothing in F2, but the batches give `87.5`",
        ),
        (
            forged("<v>46144</v>", "<v>46143</v>"),
            "shows `2026-05-01T00:00:00Z` in L2, but the batches give `2026-05-02",
        ),
        (
            forged("All crops", "Every crop"),
            "shows `Every crop` in A3, but the batches give `All crops`",
        ),
        (forged("Change (points)", "Growth"), "shows `Growth` in N1"),
        (forged("Newest week", "Oldest week"), "shows `Oldest week"),
    ] {
        for args in [&[][..], &against] {
            let ended = verify(&bytes, args).expect(7);
            assert!(ended.stderr.contains(shown), "{shown}: {ended:?}");
        }
        let ended = verify(&bytes, &["--against", against[1], "--format", "json"]).expect(7);
        assert_eq!(ended.json()["equal"], json!(false));
        // Only these were asked for.
        verify(&bytes, &["--fields", "batch_id", "--against", against[1]]).expect(0);
    }
    // Remarks beside the table are not figures.
    let remark = forged(
        "</row></sheetData>",
        "</row><row r=\"60\"><c r=\"A60\" t=\"inlineStr\"><is><t>see Jan</t></is></c></row></sheetData>",
    );
    let remark = with(&remark, SUMMARY, &[("<dimension ref=\"A1:O8\"/>", "")]);
    verify(&remark, &against).expect(0);
    // Another version may have had other figures.
    let about = [(
        concat!("trayscan ", env!("CARGO_PKG_VERSION")),
        "trayscan 0.0.9",
    )];
    let older = with(&book.bytes, "xl/worksheets/sheet3.xml", &about);
    let ended = verify(&older, &against).expect(0);
    let why = "the sheet `Summary` was not checked: this version of trayscan did not write it";
    assert!(ended.stderr.contains(why), "{ended:?}");
    // Other batches are listed, whatever the figures are.
    let other = with(
        &book.bytes,
        "xl/worksheets/sheet1.xml",
        &[("<v>87.5</v>", "<v>7</v>")],
    );
    let ended = verify(&other, &against).expect(7);
    assert!(ended.stdout.contains("changed: 2 batches"), "{ended:?}");
    assert!(!ended.stderr.contains("Summary"), "{ended:?}");
    // In another time zone, the first scan was a day before.
    let about = with(
        &book.bytes,
        "xl/worksheets/sheet3.xml",
        &[("Kiritimati", "Honolulu")],
    );
    let ended = verify(&about, &[]).expect(7);
    assert!(
        ended.stderr.contains("shows `2026-05-01T00:00:00Z` in K2"),
        "{ended:?}"
    );
}

#[test]
fn verify_says_why_it_does_not_check_figures() {
    let book = Book::of(&[&[]], &["--fields", "batch_id,crop_type"]);
    let ended = run(&["verify", &book.path("a.xlsx")]).expect(0);
    let why = "the sheet `Summary` was not checked: the workbook lacks `batch_creation_date`";
    assert!(ended.stderr.contains(why), "{ended:?}");
    let invalid = [("crop_type", "7"), ("warnings", "\"true\"")];
    let book = Book::of(&[&invalid], &["--lenient"]);
    let ended = run(&["verify", &book.path("a.xlsx")]).expect(0);
    let why = "the sheet `Summary` was not checked: some values have the wrong type";
    assert!(ended.stderr.contains(why), "{ended:?}");
    // Valid for a figure or not at all.
    let odd = [("crop_type", "7"), ("avg_germination_rate", "\"+5\"")];
    let book = Book::of(&[&odd, &[]], &["--lenient"]);
    let ended = run(&["verify", &book.path("a.xlsx")]).expect(0);
    assert!(!ended.stderr.contains("Summary"), "{ended:?}");
}

#[test]
fn its_rows_are_never_batches() {
    const WORKBOOK: &str = "xl/workbook.xml";
    let book = Book::of(&[&[], &[]], &[]);
    let path = book.path("b.xlsx");
    let verify = |bytes: Vec<u8>| {
        fs::write(&path, bytes).unwrap();
        run(&["verify", &path, "--against", &book.path("a.xlsx")])
    };
    let sheets = "<sheet name=\"Batches\" sheetId=\"1\" r:id=\"rId1\"/><sheet name=\"Summary\" sheetId=\"2\" r:id=\"rId2\"/>";
    let renamed = |to: &str| with(&book.bytes, WORKBOOK, &[(sheets, to)]);
    // The place does not matter: the sheet of batches is found by its name.
    let moved = "<sheet name=\"Summary\" sheetId=\"2\" r:id=\"rId2\"/><sheet name=\"Batches\" sheetId=\"1\" r:id=\"rId1\"/>";
    verify(renamed(moved)).expect(0);
    // Batches on a sheet of that name are not read, be it the first or the only one.
    let swapped = "<sheet name=\"Summary\" sheetId=\"1\" r:id=\"rId1\"/><sheet name=\"Batches\" sheetId=\"2\" r:id=\"rId2\"/>";
    let ended = verify(renamed(swapped)).expect(7);
    assert!(
        ended.stderr.contains("is missing fields: batch_id"),
        "{ended:?}"
    );
    for name in ["Summary", "SUMMARY"] {
        let alone = format!("<sheet name=\"{name}\" sheetId=\"1\" r:id=\"rId1\"/>");
        let ended = verify(renamed(&alone)).expect(7);
        let why = "the spreadsheet has no sheet `Batches`";
        assert!(ended.stderr.contains(why), "{ended:?}");
    }
    // Any other name is one that people gave it.
    let mine = "<sheet name=\"Summary\" sheetId=\"2\" r:id=\"rId2\"/><sheet name=\"Mine\" sheetId=\"1\" r:id=\"rId1\"/>";
    verify(renamed(mine)).expect(0);
}

#[test]
fn each_file_has_the_figures_of_its_own_batches() {
    let server = Server::start(&[]);
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    export(&server, &["-o", &at("{crop_type}.xlsx")]).expect(0);
    let sheet = read(&at("Tomato.xlsx")).worksheet_range("Summary").unwrap();
    let rows = rows(&sheet);
    assert_eq!(rows.keys().collect::<Vec<_>>(), ["All crops", "Tomato"]);
    assert_eq!(rows["Tomato"][..8], rows["All crops"][..8]);
}

#[test]
fn openpyxl_reads_numbers_dates_and_the_layout() {
    const SCRIPT: &str = r#"
import datetime, openpyxl, sys
book = openpyxl.load_workbook(sys.argv[1])
assert book.sheetnames == ["Batches", "Summary", "About"], book.sheetnames
assert book.active.title == "Batches" and book["Batches"].freeze_panes == "C2"
sheet = book["Summary"]
assert sheet.freeze_panes == "B2" and sheet.print_title_rows == "$1:$1"
setup = sheet.page_setup
assert (setup.orientation, int(setup.paperSize), setup.fitToHeight) == ("landscape", 9, None)
assert sheet.sheet_properties.pageSetUpPr.fitToPage
names = []
for row in sheet.iter_rows(min_row=2):
    if row[0].value is None:
        break
    names.append(row[0].value)
    assert row[0].data_type == "s" and row[1].data_type == "n", row
    for cell in row[2:9]:
        assert cell.data_type == "n" and cell.number_format == "0.00", cell
    for cell in row[10:12]:
        assert isinstance(cell.value, datetime.datetime), cell
        assert cell.number_format == "yyyy-mm-dd", cell
assert names[-1] == "All crops" and "Chicorée" in names, names
assert not any(cell.data_type == "f" for row in sheet.iter_rows() for cell in row)
print(len(names), sheet.cell(len(names) + 1, 2).value)
"#;
    let Some(programs) = python("workbooks", "openpyxl", "openpyxl") else {
        return;
    };
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.xlsx").to_str().unwrap().to_owned();
    run(&["export", "--sandbox", "-o", &path]).expect(0);
    let ended = Run::new(Path::new(&programs).join("python"))
        .args(["-c", SCRIPT, &path])
        .output()
        .expect(0);
    assert_eq!(ended.stdout, "9 250\n");
}
