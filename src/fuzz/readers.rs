//! Files that `verify` reads: never a panic, and never more time or memory than the file deserves.

use std::fs::File;
use std::io::{Cursor, Read, Seek as _, Write as _};
use std::ops::ControlFlow;

use memchr::memmem;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::batch::COLUMNS;
use crate::formats::record::{FileInfo, ReadError, RecordHandler};
use crate::formats::{self, record};
use crate::verify::workbook;

/// Records to read from one file: a few bytes may stand for millions.
const MAX_RECORDS: usize = 5000;
/// Bytes from which the dialect is detected.
const HEAD: usize = 4096;

/// Reads all records; returns their values, and how reading ended.
fn records(
    read: impl FnOnce(&mut RecordHandler<'_>) -> Result<FileInfo, ReadError>,
) -> (Vec<Vec<u8>>, Result<String, String>) {
    let mut records = Vec::new();
    let end = read(&mut |record: &record::Record<'_>| {
        let mut form = Vec::new();
        for column in 0..COLUMNS.len() {
            record.values.encode(column, &mut form);
        }
        form.extend_from_slice(
            record
                .values
                .unknown_fields()
                .unwrap_or_default()
                .as_bytes(),
        );
        records.push(form);
        Ok(if records.len() < MAX_RECORDS {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        })
    });
    let end = match end {
        Ok(info) => Ok(format!("{:?} {:?}", info.columns, info.unknown)),
        Err(error) => Err(error.into_failure("the file").to_string()),
    };
    (records, end)
}

/// A csv file has the same records however its bytes arrive.
pub fn csv(data: &[u8]) {
    /// Returns a few bytes at a time.
    struct Slow<'a>(&'a [u8], usize);
    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let length = buffer.len().min(self.1);
            self.0.read(&mut buffer[..length])
        }
    }
    let head = &data[..data.len().min(HEAD)];
    let default_delimiter = if data.contains(&b'\t') { b'\t' } else { b',' };
    let read = |bytes: Slow<'_>| {
        records(|each| formats::csv::read(head, bytes, default_delimiter, None, each))
    };
    let whole = read(Slow(data, usize::MAX));
    for size in [1, 60] {
        let slow = read(Slow(data, size));
        if whole.1.is_ok() || slow.1.is_ok() {
            assert_eq!(slow, whole, "{size} bytes at a time");
        }
        // Which of several errors is reported depends on how far the lines were checked.
        let common = slow.0.len().min(whole.0.len());
        assert_eq!(slow.0[..common], whole.0[..common]);
    }
}

/// A workbook never causes a panic, and has the same records if its cells are not in the notation of an export. Input
/// that is no zip archive becomes the sheet of a workbook.
pub fn xlsx(data: &[u8]) {
    let read = |book: Vec<u8>| records(|each| workbook::read(Cursor::new(book), each));
    if data.starts_with(b"PK") {
        let _ = read(data.to_vec());
        return;
    }
    let found = read(workbook(data));
    // In a comment or a CDATA section, a blank would be a change.
    if memmem::find(data, b"<!").is_none() {
        let mut other = data.to_vec();
        let cells: Vec<usize> = memmem::find_iter(data, b"<c r=").collect();
        for cell in cells.into_iter().rev() {
            other.insert(cell + 2, b' ');
        }
        assert_eq!(read(workbook(&other)), found);
    }
}

/// Returns a workbook with this sheet, with a second cell format for dates as in an export, and a third for others.
fn workbook(sheet: &[u8]) -> Vec<u8> {
    const XMLNS: &str = "http://schemas.openxmlformats.org";
    const MAIN: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml";
    let xml = |body: &str| format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>{body}");
    let relations = |relations: &[(&str, &str)]| {
        let relations = relations.iter().enumerate().map(|(id, (kind, target))| {
            format!("<Relationship Id=\"r{id}\" Type=\"{XMLNS}/officeDocument/2006/relationships/{kind}\" Target=\"{target}\"/>")
        });
        let relations: String = relations.collect();
        xml(&format!(
            "<Relationships xmlns=\"{XMLNS}/package/2006/relationships\">{relations}</Relationships>"
        ))
    };
    let types = [
        ("workbook", "sheet.main"),
        ("worksheets/sheet1", "worksheet"),
        ("styles", "styles"),
    ];
    let types = types.map(|(part, kind)| {
        format!("<Override PartName=\"/xl/{part}.xml\" ContentType=\"{MAIN}.{kind}+xml\"/>")
    });
    let parts = [
        (
            "[Content_Types].xml",
            xml(&format!(
                "<Types xmlns=\"{XMLNS}/package/2006/content-types\"><Default Extension=\"rels\" ContentType=\"application/vnd.openxmlformats-package.relationships+xml\"/><Default Extension=\"xml\" ContentType=\"application/xml\"/>{}</Types>",
                types.concat()
            )),
        ),
        (
            "_rels/.rels",
            relations(&[("officeDocument", "xl/workbook.xml")]),
        ),
        (
            "xl/workbook.xml",
            xml(&format!(
                "<workbook xmlns=\"{XMLNS}/spreadsheetml/2006/main\" xmlns:r=\"{XMLNS}/officeDocument/2006/relationships\"><sheets><sheet name=\"Batches\" sheetId=\"1\" r:id=\"r0\"/></sheets></workbook>"
            )),
        ),
        (
            "xl/_rels/workbook.xml.rels",
            relations(&[
                ("worksheet", "worksheets/sheet1.xml"),
                ("styles", "styles.xml"),
            ]),
        ),
        (
            "xl/styles.xml",
            xml(&format!(
                "<styleSheet xmlns=\"{XMLNS}/spreadsheetml/2006/main\"><numFmts count=\"1\"><numFmt numFmtId=\"164\" formatCode=\"yyyy-mm-dd hh:mm:ss\"/></numFmts><cellXfs count=\"3\"><xf numFmtId=\"0\"/><xf numFmtId=\"164\"/><xf numFmtId=\"22\"/></cellXfs></styleSheet>"
            )),
        ),
    ];
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let parts = parts.iter().map(|(name, text)| (*name, text.as_bytes()));
    for (name, bytes) in parts.chain([("xl/worksheets/sheet1.xml", sheet)]) {
        zip.start_file(name, SimpleFileOptions::default())
            .expect("a part");
        zip.write_all(bytes).expect("memory");
    }
    zip.finish().expect("an archive").into_inner()
}

/// A parquet file never causes a panic.
pub fn parquet(data: &[u8]) {
    let _ = records(|each| formats::parquet::read(file(data), each));
}

fn file(data: &[u8]) -> File {
    let mut file = tempfile::tempfile().expect("a temporary file");
    file.write_all(data).expect("space");
    file.rewind().expect("a file");
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::tests::seed;

    #[test]
    fn seeds_are_read_to_the_end() {
        let count = |(records, end): (Vec<_>, Result<String, String>)| {
            end.expect("a readable seed");
            records.len()
        };
        let Some(csv) = seed("csv/usual.csv") else {
            return;
        };
        let read = records(|each| formats::csv::read(&csv, &csv[..], b',', None, each));
        assert_eq!(count(read), 4);
        let sheet = seed("xlsx/types.xml").expect("a seed");
        let sheet = Cursor::new(workbook(&sheet));
        assert_eq!(count(records(|each| workbook::read(sheet, each))), 1);
        let parquet = file(&seed("parquet/usual.parquet").expect("a seed"));
        let read = records(|each| formats::parquet::read(parquet, each));
        assert_eq!(count(read), 2);
    }
}
