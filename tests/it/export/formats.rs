//! Formats: the output of each, read back.

use std::fs::{self, File};
use std::io::{BufReader, Read as _};
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use super::selection::text;
use super::{OutputFile, assert_same, batch, texts, with, written};
use crate::data::moment;
use crate::fake::{FIELDS, FakeService};
use crate::harness::{Server, export, trayscan};

#[test]
fn unknown_fields_are_kept_in_ndjson() {
    for size in ["7", "500"] {
        let server = with(&["--page-size", size], &["unknown-fields"]);
        let expected = texts(&server, "");
        assert!(expected[0].contains("\"scanner\":{"));
        assert_same(&export(&server, &["-f", "ndjson"]), &expected, size);
        let v1 = export(&server, &["-f", "ndjson", "--api", "v1"]);
        assert_same(&v1, &expected, "version 1");
    }
}

#[test]
fn only_whitespace_between_json_tokens_is_removed() {
    let odd = r#","odd":{"big":123456789012345678901234567890.50,"e":1E+5,"text":" a \u00e9\/ \"b , : ","list":[true,null,-0.0]}"#;
    let one = batch("one", odd);
    let wide = one.replace("\":", "\" \t:\r\n ").replace(",\"", " ,\n \"");
    let ended = export(
        &FakeService::with(&[format!(" {wide} \n")]),
        &["-f", "ndjson"],
    )
    .expect(0);
    assert_eq!(ended.stdout, format!("{one}\n"));
}

#[test]
fn an_absent_nullable_field_counts_as_null_with_one_warning() {
    let less = |id| batch(id, "").replace("\"comment\":\"x\",", "");
    let stub = FakeService::with(&[less("one"), less("two"), batch("three", "")]);
    let flags = ["-f", "csv", "--fields", "batch_id", "--where", "comment="];
    let ended = export(&stub, &flags).expect(0);
    assert_eq!(ended.stdout, "batch_id\none\ntwo\n");
    assert_eq!(ended.stderr.matches("warning: ").count(), 1, "{ended:?}");
    assert!(ended.stderr.contains("`comment`"), "{ended:?}");
    let lines = export(
        &stub,
        &["--fields", "comment", "-f", "ndjson", "--limit", "1"],
    )
    .expect(0);
    assert_eq!(lines.stdout, "{\"comment\":null}\n");
}

#[test]
fn json_is_one_array_of_the_received_batches() {
    let server = with(&["--page-size", "33"], &["unknown-fields"]);
    let all = texts(&server, "");
    let array = written(&server, &["-f", "json"]);
    assert_eq!(array, format!("[\n{}\n]\n", all.join(",\n")));
    assert_eq!(
        written(&server, &["-f", "json", "--limit", "1"]),
        format!("[\n{}\n]\n", all[0])
    );
}

#[test]
fn ndjson_is_the_default_for_a_pipe() {
    let server = Server::start(&[]);
    let lines = written(&server, &[]);
    assert_eq!(lines, texts(&server, "").join("\n") + "\n");
    assert_eq!(written(&server, &["-o", "-"]), lines);
}

#[test]
fn numbers_keep_their_digits_and_position() {
    let server = with(&[], &["unknown-fields"]);
    let expected: Vec<String> = texts(&server, "")
        .into_iter()
        .map(|whole| {
            let batch: Value = serde_json::from_str(&whole).unwrap();
            let decimals = FIELDS.iter().filter(|field| field.starts_with("avg_"));
            decimals.fold(whole, |whole, field| match text(&batch, field) {
                Some(digits) => {
                    let string = format!("\"{field}\":\"{digits}\"");
                    assert!(whole.contains(&string));
                    whole.replace(&string, &format!("\"{field}\":{digits}"))
                }
                None => whole,
            })
        })
        .collect();
    assert!(expected[0].contains("\"avg_germination_rate\":93.79,"));
    let lines = written(&server, &["-f", "ndjson", "--numbers"]);
    assert!(lines.lines().eq(expected.iter().map(String::as_str)));
    let array = written(&server, &["-f", "json", "--numbers"]);
    assert_eq!(array, format!("[\n{}\n]\n", expected.join(",\n")));
    export(&server, &["-f", "csv", "--numbers"]).expect(2);
}

/// Returns a value as the text of a cell.
fn cell(batch: &Value, field: &str) -> String {
    match &batch[field] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Reads all cells, including the header.
fn cells(text: &str, delimiter: u8) -> Vec<Vec<String>> {
    csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .from_reader(text.as_bytes())
        .records()
        .map(|record| record.unwrap().iter().map(String::from).collect())
        .collect()
}

/// Returns the cells that `cells` should find, with each cell changed by `change`.
fn expected_cells(batches: &[Value], change: impl Fn(&str, String) -> String) -> Vec<Vec<String>> {
    let header = FIELDS.map(String::from).to_vec();
    let row = |batch: &Value| {
        FIELDS
            .iter()
            .map(|field| change(field, cell(batch, field)))
            .collect()
    };
    std::iter::once(header)
        .chain(batches.iter().map(row))
        .collect()
}

fn is_formula(cell: &str) -> bool {
    cell.starts_with(['=', '+', '-', '@'])
}

fn with_comma(field: &str, cell: String) -> String {
    if field.starts_with("avg_") {
        cell.replace('.', ",")
    } else {
        cell
    }
}

#[test]
fn csv_cells_read_back_equal_the_fields() {
    let server = Server::start(&["--batches", "1000"]);
    let all = server.flat("");
    let exact = expected_cells(&all, |_, cell| cell);
    let formulas = all.iter().filter(|b| is_formula(&cell(b, "comment")));
    let formulas = formulas.count();
    assert!(formulas > 5, "the data has formulas");
    for (format, delimiter) in [("csv", b','), ("tsv", b'\t')] {
        let ended = export(&server, &["-f", format]).expect(0);
        assert!(!ended.stdout.contains('\r') && !ended.stdout.starts_with('\u{feff}'));
        assert!(ended.stdout.ends_with('\n'));
        assert!(cells(&ended.stdout, delimiter) == exact, "{format}");
        let note = format!("note: {formulas} text cells would run as formulas in a spreadsheet");
        assert_eq!(ended.stderr.matches("formulas").count(), 1, "{ended:?}");
        assert!(ended.stderr.contains(&note), "{formulas}: {}", ended.stderr);
    }
    let lines = written(&server, &["-f", "csv", "--no-header"]);
    assert!(cells(&lines, b',') == exact[1..]);
}

#[test]
fn csv_options_change_only_what_they_name() {
    let server = Server::start(&["--batches", "1000"]);
    let all = server.flat("");
    let exact = expected_cells(&all, |_, cell| cell);
    let comma = expected_cells(&all, with_comma);
    let get = |format: &str, flags: &[&str]| written(&server, &[&["-f", format], flags].concat());

    assert!(cells(&get("csv", &["--delimiter", "|"]), b'|') == exact);
    assert!(cells(&get("csv", &["--delimiter", ";"]), b';') == exact);
    assert!(cells(&get("csv", &["--delimiter", "\\t"]), b'\t') == exact);
    assert!(cells(&get("csv", &["--decimal-comma"]), b';') == comma);
    assert!(cells(&get("csv", &["--decimal-comma", "--delimiter", ","]), b',') == comma);
    assert!(cells(&get("tsv", &["--decimal-comma"]), b'\t') == comma);
    let plain = get("csv", &[]);
    assert_eq!(get("csv", &["--bom"]), format!("\u{feff}{plain}"));
    assert!(
        get("csv", &["--bom", "--no-header"])
            .starts_with(&format!("\u{feff}{}", all[0]["batch_id"].as_str().unwrap()))
    );
    for wrong in ["", ";;", "\"", "\n", "é"] {
        let ended = export(&server, &["-f", "csv", "--delimiter", wrong]);
        assert_eq!(ended.code, Some(2), "{wrong:?}: {ended:?}");
    }
}

#[test]
fn excel_csv_opens_with_a_double_click() {
    let server = Server::start(&["--batches", "1000"]);
    let all = server.flat("");
    let harmless = |field: &str, cell: String| match field {
        "comment" | "batch_name" if is_formula(&cell) => format!("'{cell}"),
        "batch_creation_date" => cell
            .replace('T', " ")
            .replace('Z', "")
            .replace("+00:00", ""),
        _ => cell,
    };
    let ended = export(&server, &["-f", "csv", "--excel"]).expect(0);
    let text = ended.stdout.strip_prefix('\u{feff}').unwrap();
    assert!(cells(text, b',') == expected_cells(&all, harmless));
    // Outside quotes every line ends with CRLF; inside, the text is unchanged.
    let mut quoted = false;
    for line in text.split_inclusive('\n') {
        quoted ^= line.matches('"').count() % 2 == 1;
        assert_eq!(line.ends_with("\r\n"), !quoted, "{line:?}");
    }
    assert!(!ended.stderr.contains("formulas"), "{ended:?}");
    let both = written(&server, &["-f", "csv", "--excel", "--decimal-comma"]);
    assert!(
        cells(both.strip_prefix('\u{feff}').unwrap(), b';')
            == expected_cells(&all, |field, cell| {
                let cell = with_comma(field, harmless(field, cell));
                match field {
                    // The fraction has a decimal comma, too.
                    "batch_creation_date" => cell.replace('.', ","),
                    _ => cell,
                }
            })
    );
}

#[test]
fn a_column_of_nulls_still_has_its_rows() {
    let server = Server::start(&[]);
    let all = server.flat("");
    assert!(all.iter().any(|batch| batch["comment"].is_null()));
    let lines = written(&server, &["-f", "csv", "--fields", "comment"]);
    let found: Vec<String> = cells(&lines, b',').concat();
    let expected = all.iter().map(|batch| cell(batch, "comment"));
    assert!(
        found
            .into_iter()
            .eq(std::iter::once("comment".to_owned()).chain(expected))
    );
}

#[test]
fn fields_without_a_column_are_named_in_one_warning() {
    let server = with(&["--page-size", "10"], &["unknown-fields"]);
    for format in ["csv", "tsv"] {
        let ended = export(&server, &["-f", format]).expect(0);
        let warnings: Vec<&str> = ended
            .stderr
            .lines()
            .filter(|line| line.starts_with("warning: "))
            .collect();
        assert_eq!(warnings.len(), 1, "{ended:?}");
        assert!(warnings[0].contains("`scanner`, `tray_material`"));
        assert!(!ended.stdout.contains("peat-free"));
        assert!(!ended.stdout.lines().next().unwrap().contains("scanner"));
    }
    let table = export(&server, &["-f", "table"]).expect(0);
    assert!(!table.stderr.contains("warning"), "{}", table.stderr);
    let named = export(&server, &["-f", "csv", "--fields", "batch_id"]).expect(0);
    assert!(!named.stderr.contains("warning"), "{named:?}");
}

#[test]
fn a_table_is_aligned_and_shows_readable_dates() {
    let server = Server::start(&[]);
    let all = server.flat("");
    let fields = "batch_creation_date,number_of_images,avg_germination_rate,crop_type";
    let table = written(&server, &["-f", "table", "--fields", fields]);
    let mut lines = table.lines();
    assert_eq!(
        lines.next(),
        Some("created (UTC)        images  germ. %  crop")
    );
    let rule = lines.next().unwrap();
    assert!(rule.chars().all(|letter| matches!(letter, '─' | ' ')));
    for batch in &all {
        let line = format!(
            "{}  {:>6}  {:>7}  {}",
            moment(batch)[..19].replace('T', " "),
            cell(batch, "number_of_images"),
            cell(batch, "avg_germination_rate"),
            cell(batch, "crop_type"),
        );
        assert_eq!(lines.next(), Some(line.trim_end()));
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn a_table_of_all_fields_has_one_line_per_batch() {
    let server = Server::start(&["--batches", "1000"]);
    let all = server.flat("");
    let breaks = |batch: &&Value| cell(batch, "comment").contains(['\n', '\t']);
    assert!(
        all.iter().any(|batch| breaks(&batch)),
        "the data has line breaks"
    );
    let table = written(&server, &["-f", "table"]);
    assert_eq!(table.lines().count(), 1002);
    assert!(
        !table
            .chars()
            .any(|letter| letter.is_control() && letter != '\n')
    );
    for (line, batch) in table.lines().skip(2).zip(&all) {
        assert!(line.starts_with(batch["batch_id"].as_str().unwrap()));
    }
}

#[test]
fn an_empty_result_is_a_complete_file_in_every_format() {
    let server = Server::start(&[]);
    let header = FIELDS.join(",") + "\n";
    let none = ["--start", "1999", "--end", "1999"];
    for (flags, expected) in [
        (&["-f", "json"][..], "[]\n"),
        (&["-f", "json", "--numbers"], "[]\n"),
        (&["-f", "ndjson"], ""),
        (&["-f", "csv"], &header),
        (&["-f", "tsv"], &header.replace(',', "\t")),
        (&["-f", "csv", "--no-header"], ""),
        (&["-f", "csv", "--bom", "--no-header"], "\u{feff}"),
        (
            &["-f", "csv", "--excel"],
            &format!("\u{feff}{}\r\n", header.trim_end()),
        ),
        (
            &["-f", "table", "--fields", "batch_id,warnings"],
            "id  warn\n──  ────\n",
        ),
    ] {
        for range in [
            &none[..],
            &["--where", "crop_type=Nothing"],
            &["--limit", "0"],
        ] {
            let ended = export(&server, &[flags, range].concat()).expect(0);
            assert_eq!(ended.stdout, expected, "{flags:?} {range:?}");
            let last = ended.stderr.lines().last().unwrap();
            assert!(last.starts_with("0 batches ("), "{ended:?}");
        }
    }
}

/// Reads a file, decompressing it according to its extension.
fn unpacked(path: &str) -> String {
    let file = File::open(path).unwrap();
    let mut text = String::new();
    match Path::new(path).extension().unwrap().to_str().unwrap() {
        "gz" => flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text),
        "zst" => zstd::Decoder::new(file).unwrap().read_to_string(&mut text),
        _ => BufReader::new(file).read_to_string(&mut text),
    }
    .unwrap();
    text
}

#[test]
fn a_file_equals_standard_output_in_the_format_of_its_extension() {
    let server = Server::start(&["--page-size", "100"]);
    let none = ["--start", "1999", "--end", "1999"];
    for (ending, format) in [
        ("json", "json"),
        ("ndjson", "ndjson"),
        ("jsonl", "ndjson"),
        ("csv", "csv"),
        ("tsv", "tsv"),
    ] {
        for packed in ["", ".gz", ".zst"] {
            for range in [&[][..], &none] {
                let place = OutputFile::new(&format!("a b.{ending}{packed}"));
                let to_file = [range, &["-o", &place.path]].concat();
                let ended = export(&server, &to_file).expect(0);
                assert_eq!(ended.stdout, "", "{:?}", place.path);
                let printed = written(&server, &[range, &["-f", format]].concat());
                assert!(unpacked(&place.path) == printed, "{:?}", place.path);
                assert_eq!(place.names().len(), 1, "no temporary files are left");
                let last = ended.stderr.lines().last().unwrap();
                assert!(last.contains(&format!("to `{}` in ", place.path)), "{last}");
            }
        }
    }
}

#[test]
fn an_extension_that_says_nothing_needs_a_format() {
    let server = Server::start(&[]);
    for (name, format) in [("a.txt", "csv"), ("a.gz", "ndjson"), ("a", "table")] {
        let place = OutputFile::new(name);
        export(&server, &["-o", &place.path, "-f", format]).expect(0);
        let printed = written(&server, &["-f", format]);
        let found = match name {
            "a" => fs::read_to_string(&place.path).unwrap(),
            _ => unpacked(&place.path),
        };
        assert!(found == printed, "{name} {format}");
    }
}

#[test]
fn a_name_of_another_format_is_refused_before_any_request() {
    let stub = FakeService::empty();
    for (command, format, name) in [
        ("export", "csv", "a.xlsx"),
        ("export", "csv", "a.json.gz"),
        ("export", "parquet", "{year}/a.csv"),
        ("export", "singer", "a.csv"),
        ("summary", "json", "a.csv"),
        ("summary", "csv", "a.json.zst"),
        ("summary", "table", "a.csv"),
    ] {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join(name).display().to_string();
        let ended = trayscan(&[command, "-f", format, "-o", &path])
            .service(&stub)
            .output();
        assert_eq!(ended.code, Some(2), "{format} {name}: {ended:?}");
        assert!(ended.stderr.contains("but the format is"), "{ended:?}");
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }
    assert!(stub.lines().is_empty());
}
