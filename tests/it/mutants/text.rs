//! Mutants of JSON and CSV: one cell, one name, one type, one row at a time.

use std::io::{Read as _, Write as _};

use fastrand::Rng;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Map, Value, json};

use super::Mutant;

/// The number of one-cell mutants per format.
const CELLS: usize = 160;

pub(super) fn is_known(name: &str) -> bool {
    let known = [
        "batch_id",
        "batch_name",
        "batch_creation_date",
        "crop_type",
        "number_of_images",
        "total_cells_per_tray",
        "scanned_by_email",
        "analysis_link",
        "comment",
        "warnings",
    ];
    known.contains(&name) || name.starts_with("avg_")
}

/// Returns all values with their row and name.
pub(super) fn cells(rows: &[Value]) -> Vec<(usize, String, Value)> {
    let cells = rows.iter().enumerate().flat_map(|(row, batch)| {
        let fields = batch.as_object().unwrap().clone();
        fields
            .into_iter()
            .map(move |(name, value)| (row, name, value))
    });
    cells.collect()
}

/// Returns another value of the same type that every format accepts, if any.
pub(super) fn another(name: &str, value: &Value) -> Option<Value> {
    Some(match value {
        Value::Null if name.starts_with("avg_") => json!("0.01"),
        Value::Null if name == "total_cells_per_tray" => json!(1),
        Value::Null => json!("x"),
        Value::Bool(flag) => json!(!flag),
        Value::Number(number) => json!(number.as_i64()? + 1),
        Value::String(text) if name == "batch_creation_date" => {
            json!(text.replace("2026-05", "2026-04"))
        }
        Value::String(text) if name.starts_with("avg_") => json!(format!("1{text}")),
        Value::String(text) => json!(format!("{text}x")),
        Value::Object(fields) => {
            let mut fields = fields.clone();
            fields.insert("id".to_owned(), json!(99));
            Value::Object(fields)
        }
        Value::Array(_) => return None,
    })
}

/// Returns other values of any type, each with whether it is equivalent.
fn others(name: &str, value: &Value) -> Vec<(Value, bool)> {
    let is_decimal = name.starts_with("avg_");
    let mut others: Vec<(Value, bool)> = another(name, value)
        .into_iter()
        .map(|v| (v, false))
        .collect();
    let mut add = |value: Value, same: bool| others.push((value, same));
    match value {
        Value::Null => {
            add(json!(""), name == "comment");
            add(json!(false), false);
            add(json!(0), false);
            add(json!([]), false);
        }
        Value::Bool(flag) => {
            add(json!(flag.to_string()), false);
            add(json!(u8::from(*flag)), false);
            add(Value::Null, false);
        }
        Value::Number(number) => {
            add(json!(number.to_string()), is_decimal);
            add(json!(number.as_f64().unwrap() + 0.5), false);
            add(json!(true), false);
            add(Value::Null, false);
        }
        Value::String(text) if is_decimal => {
            add(json!(text.parse::<f64>().unwrap()), true);
            add(json!(format!("{text}0")), true);
            add(json!(text.replace('.', ",")), false);
            add(json!(format!("{text}x")), false);
            add(Value::Null, false);
        }
        Value::String(text) if name == "batch_creation_date" => {
            let plain = text.trim_end_matches("+00:00").trim_end_matches('Z');
            add(json!(format!("{plain}Z")), true);
            add(json!(format!("{plain}+00:00")), true);
            add(json!(format!("{plain}+01:00")), false);
            add(json!(format!("{plain}-00:00")), false);
            add(json!(plain), false);
            add(json!(1_777_615_200), false);
        }
        Value::String(text) => {
            add(json!(text.to_uppercase()), false);
            add(json!(text.trim_end_matches(|_: char| true)), false);
            add(json!([text]), false);
            add(json!(7), false);
            add(json!(format!("{text} ")), false);
            add(Value::Null, false);
        }
        Value::Array(_) | Value::Object(_) => {
            add(json!(value.to_string()), false);
            add(Value::Null, false);
        }
    }
    others
}

/// The text around the batches of a format.
struct Frame {
    format: String,
    /// Lines before and after the batches.
    before: Vec<String>,
    behind: Vec<String>,
}

impl Frame {
    /// Splits a file into its frame and its batches.
    fn open(original: &[u8], format: &str) -> (Self, Vec<Value>) {
        let mut text = String::new();
        match format {
            "ndjson.gz" => GzDecoder::new(original).read_to_string(&mut text).map(drop),
            "ndjson.zst" => {
                text = String::from_utf8(zstd::decode_all(original).unwrap()).unwrap();
                Ok(())
            }
            _ => (&mut &*original).read_to_string(&mut text).map(drop),
        }
        .unwrap();
        let mut frame = Self {
            format: format.to_owned(),
            before: Vec::new(),
            behind: Vec::new(),
        };
        if format == "json" {
            return (frame, serde_json::from_str(&text).unwrap());
        }
        let mut rows = Vec::new();
        for line in text.lines() {
            let value: Value = serde_json::from_str(line).unwrap();
            match value.get("record") {
                Some(record) => rows.push(record.clone()),
                None if format != "singer" => rows.push(value),
                None if rows.is_empty() => frame.before.push(line.to_owned()),
                None => frame.behind.push(line.to_owned()),
            }
        }
        (frame, rows)
    }

    /// Joins the JSON texts of batches into a file.
    fn close(&self, rows: &[String]) -> Vec<u8> {
        if self.format == "json" {
            return format!("[\n{}\n]\n", rows.join(",\n")).into_bytes();
        }
        let rows = rows.iter().map(|row| match self.format.as_str() {
            "singer" => format!(r#"{{"type":"RECORD","stream":"batches","record":{row}}}"#),
            _ => row.clone(),
        });
        let before = self.before.iter().cloned();
        let lines: Vec<String> = before
            .chain(rows)
            .chain(self.behind.iter().cloned())
            .collect();
        let text = lines.join("\n") + "\n";
        match self.format.as_str() {
            "ndjson.gz" => {
                let mut packed = GzEncoder::new(Vec::new(), Compression::default());
                packed.write_all(text.as_bytes()).unwrap();
                packed.finish().unwrap()
            }
            "ndjson.zst" => zstd::encode_all(text.as_bytes(), 3).unwrap(),
            _ => text.into_bytes(),
        }
    }
}

pub(super) fn json(rng: &mut Rng, original: &[u8], format: &str) -> Vec<Mutant> {
    let (frame, rows) = Frame::open(original, format);
    let texts: Vec<String> = rows.iter().map(Value::to_string).collect();
    let with = |row: usize, text: String| {
        let mut texts = texts.clone();
        texts[row] = text;
        frame.close(&texts)
    };
    let mut cells = cells(&rows);
    rng.shuffle(&mut cells);
    let mut mutants = Vec::new();
    for (row, name, value) in &cells {
        for (other, same) in others(name, value) {
            let kind = if is_known(name) {
                "cell"
            } else {
                "unknown field"
            };
            let mut batch = rows[*row].clone();
            batch[name] = other.clone();
            let what = format!("`{name}` of row {row}: {value} to {other}");
            let mutant = Mutant::new(kind, what, with(*row, batch.to_string()));
            mutants.push(if same { mutant.same() } else { mutant });
        }
    }
    rng.shuffle(&mut mutants);
    mutants.truncate(CELLS);
    for (row, name, value) in cells.into_iter().take(60) {
        let mut batch = rows[row].as_object().unwrap().clone();
        batch.remove(&name);
        let removed = Value::Object(batch.clone()).to_string();
        mutants.push(Mutant::new(
            "key",
            format!("`{name}` of row {row} removed"),
            with(row, removed),
        ));
        batch.insert(renamed(&name), value.clone());
        let other = Value::Object(batch).to_string();
        mutants.push(Mutant::new(
            "key",
            format!("`{name}` of row {row} renamed"),
            with(row, other),
        ));
        let twice = texts[row].replacen('{', &format!("{{\"{name}\":{value},"), 1);
        mutants.push(Mutant::new(
            "key",
            format!("`{name}` of row {row} twice"),
            with(row, twice),
        ));
    }
    mutants.extend(for_every_row(&frame, &rows));
    for row in 0..rows.len() {
        let added = texts[row].replacen('{', "{\"added\":{\"by\":[\"hand\"]},", 1);
        mutants.push(Mutant::new(
            "unknown field",
            format!("one more in row {row}"),
            with(row, added),
        ));
        let mut fewer = texts.clone();
        let gone = fewer.remove(row);
        mutants.push(Mutant::new(
            "row",
            format!("row {row} removed"),
            frame.close(&fewer),
        ));
        fewer.push(gone);
        mutants.push(Mutant::new("row", format!("row {row} last"), frame.close(&fewer)).same());
        fewer.push(texts[row].clone());
        mutants.push(Mutant::new(
            "row",
            format!("row {row} twice"),
            frame.close(&fewer),
        ));
    }
    mutants
}

fn renamed(name: &str) -> String {
    let (head, last) = name.split_at(name.len() - 1);
    format!("{head}{}", if last == "d" { 'e' } else { 'd' })
}

/// Mutants with a column renamed or removed in every row.
fn for_every_row(frame: &Frame, rows: &[Value]) -> Vec<Mutant> {
    let mut names: Vec<String> = rows
        .iter()
        .flat_map(|row| row.as_object().unwrap().keys().cloned())
        .collect();
    names.sort_unstable();
    names.dedup();
    let mut mutants = Vec::new();
    for name in names {
        let change = |to: Option<&str>| {
            let rows = rows.iter().map(|row| {
                let mut fields: Map<String, Value> = row.as_object().unwrap().clone();
                let value = fields.remove(&name);
                if let (Some(to), Some(value)) = (to, value) {
                    fields.insert(to.to_owned(), value);
                }
                Value::Object(fields).to_string()
            });
            frame.close(&rows.collect::<Vec<_>>())
        };
        mutants.push(Mutant::new(
            "column renamed",
            &name,
            change(Some(&renamed(&name))),
        ));
        mutants.push(Mutant::new("column removed", &name, change(None)));
    }
    mutants
}

/// A table and its CSV dialect.
struct Table {
    delimiter: u8,
    bom: bool,
    crlf: bool,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn read(original: &[u8], delimiter: u8) -> Self {
        let text = String::from_utf8(original.to_vec()).unwrap();
        let plain = text.trim_start_matches('\u{feff}');
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .has_headers(false)
            .from_reader(plain.as_bytes());
        let rows = reader
            .records()
            .map(|row| row.unwrap().iter().map(String::from).collect());
        Self {
            delimiter,
            bom: plain.len() < text.len(),
            crlf: text.contains("\r\n"),
            rows: rows.collect(),
        }
    }

    fn write(&self, rows: &[Vec<String>]) -> Vec<u8> {
        let mut writer = csv::WriterBuilder::new()
            .delimiter(self.delimiter)
            .terminator(if self.crlf {
                csv::Terminator::CRLF
            } else {
                csv::Terminator::Any(b'\n')
            })
            .from_writer(if self.bom {
                "\u{feff}".as_bytes().to_vec()
            } else {
                Vec::new()
            });
        for row in rows {
            writer.write_record(row).unwrap();
        }
        writer.into_inner().unwrap()
    }

    /// Returns the table with another text in one cell.
    fn with(&self, row: usize, column: usize, text: String) -> Vec<u8> {
        let mut rows = self.rows.clone();
        rows[row][column] = text;
        self.write(&rows)
    }
}

pub(super) fn csv(rng: &mut Rng, original: &[u8], delimiter: u8) -> Vec<Mutant> {
    let table = Table::read(original, delimiter);
    let (rows, columns) = (table.rows.len(), table.rows[0].len());
    let mut mutants = Vec::new();
    for row in 1..rows {
        for column in 0..columns {
            let (name, cell) = (&table.rows[0][column], &table.rows[row][column]);
            for other in other_texts(name, cell) {
                let what = format!("`{name}` of row {row}: {cell:?} to {other:?}");
                let same =
                    name.starts_with("avg_") && !cell.is_empty() && other == format!("{cell}0");
                let mutant = Mutant::new("cell", what, table.with(row, column, other));
                mutants.push(if same { mutant.same() } else { mutant });
            }
        }
    }
    rng.shuffle(&mut mutants);
    mutants.truncate(CELLS);
    for row in 1..rows {
        let comment = columns - 2;
        let cell = &table.rows[row][comment];
        if let Some(bare) = cell.strip_prefix('\'') {
            let mutant = table.with(row, comment, bare.to_owned());
            mutants.push(Mutant::new(
                "apostrophe",
                format!("{cell:?} to {bare:?}"),
                mutant,
            ));
        }
        let mut fewer = table.rows.clone();
        let gone = fewer.remove(row);
        mutants.push(Mutant::new(
            "row",
            format!("row {row} removed"),
            table.write(&fewer),
        ));
        fewer.push(gone.clone());
        mutants.push(Mutant::new("row", format!("row {row} last"), table.write(&fewer)).same());
        fewer.push(gone);
        mutants.push(Mutant::new(
            "row",
            format!("row {row} twice"),
            table.write(&fewer),
        ));
    }
    for column in 0..columns {
        let name = table.rows[0][column].clone();
        let every = |change: &dyn Fn(&mut Vec<String>)| {
            let mut rows = table.rows.clone();
            rows.iter_mut().for_each(change);
            table.write(&rows)
        };
        for other in [
            renamed(&name),
            String::new(),
            name.to_uppercase(),
            format!("{name} "),
        ] {
            let mutant = table.with(0, column, other.clone());
            mutants.push(Mutant::new(
                "column renamed",
                format!("{name} to {other:?}"),
                mutant,
            ));
        }
        let removed = every(&|row| drop(row.remove(column)));
        mutants.push(Mutant::new("column removed", &name, removed));
        let added = every(&|row| row.insert(column, "note".to_owned()));
        mutants.push(Mutant::new("column added", format!("before {name}"), added));
        let first = every(&|row| row.truncate(column + 1));
        mutants.push(Mutant::new(
            "column removed",
            format!("all behind {name}"),
            first,
        ));
    }
    mutants
}

fn other_texts(name: &str, cell: &str) -> Vec<String> {
    let mut others = vec![
        format!("{cell}0"),
        format!("{cell}x"),
        format!("{cell} "),
        format!(" {cell}"),
        format!("'{cell}"),
        format!("={cell}"),
        cell.to_uppercase(),
        cell.replace('.', ","),
        cell.replace('5', "6"),
        String::new(),
    ];
    if name == "warnings" {
        others.extend(["0", "1", "FALSE", "no"].map(String::from));
    }
    others.retain(|other| other != cell);
    others
}
