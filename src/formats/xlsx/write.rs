//! Writes `xlsx`: typed cells, live links, a sheet with the figures of each crop, and one that describes the export.
//!
//! Rows go to an unnamed temporary file next to the output, which is copied at the end, so their number does
//! not affect memory. Text is stored in its cells and not in a shared table, for the same reason.

// The sheets `Summary` and `About`.
mod about;
mod summary;

// The content of a cell: text that XML can carry, links, dates in days, formats and widths.
mod cell;
mod styles;
mod web_address;

// The rows in XML, and the archive.
mod package;
mod piece;
mod rows;
mod xml;

use std::error::Error as _;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rust_xlsxwriter::{
    Color, DocProperties, ExcelDateTime, Format, IgnoreError, Workbook, Worksheet, XlsxError,
};

use crate::batch::filter::Fields;
use crate::batch::{BATCH_NAME, Batch, COLUMNS, FieldType, MEANINGS, Timestamp, WARNINGS};
use crate::error::{self, Failure};
use crate::formats::{
    BatchWriter, ExportInfo, ExportOutcome, Finished, LeftOut, WriterOptions, WriterReport,
};
use crate::secret;
use crate::storage::EncodedOutput;
use crate::terminal;
use cell::{Cell, cell};
use rows::{EndedSheet, SheetRows};
use styles::{CellStyles, HEADER_HEIGHT, Widths, header_format, prepare_printing};
use web_address::WebAddresses;

/// The most rows of a sheet, the header included.
const ROWS: u32 = 1_048_576;
/// The most links of a sheet: beyond this, Excel reports the file as damaged.
const LINKS: u32 = 65_530;
/// The most columns that stay visible at the left. More would leave little room for the others.
const FROZEN: usize = 4;

pub(crate) struct Xlsx {
    book: Workbook,
    path: PathBuf,
    output: EncodedOutput,
    fields: Fields,
    info: Arc<ExportInfo>,
    extracted: String,
    styles: [CellStyles; 2],
    widths: Widths,
    addresses: WebAddresses,
    /// The sheets before the current one.
    ended: Vec<EndedSheet>,
    sheet: SheetRows,
    /// The most rows and links of a sheet.
    limits: (u32, u32),
    /// Links that were written as text, because their sheet has too many.
    plain_links: u32,
    escaped_cells: u64,
    text_dates: u64,
    left_out: LeftOut,
}

impl Xlsx {
    pub(crate) fn new(mut output: EncodedOutput, options: WriterOptions) -> Result<Self, Failure> {
        let path = output.write_by_path()?;
        let mut book = Workbook::new();
        if let Some(folder) = path.parent() {
            let tempdir = book.set_tempdir(folder);
            tempdir.map_err(|error| output.failure(io_error(error)))?;
        }
        let columns = &options.fields.columns;
        let sheet = new_rows(&path, columns).map_err(|error| output.failure(error))?;
        let marked = Format::new().set_background_color(Color::RGB(0xFF_F2_CC));
        let mut new = Self {
            book,
            path,
            output,
            widths: Widths::new(columns),
            fields: options.fields,
            info: options.info,
            extracted: options.extracted,
            styles: [CellStyles::new(&Format::new()), CellStyles::new(&marked)],
            addresses: WebAddresses::default(),
            ended: Vec::new(),
            sheet,
            limits: (ROWS, LINKS),
            plain_links: 0,
            escaped_cells: 0,
            text_dates: 0,
            left_out: LeftOut::default(),
        };
        new.add_header()?;
        Ok(new)
    }

    /// Adds a sheet to the workbook. All but its header is written elsewhere.
    fn add_header(&mut self) -> Result<(), Failure> {
        let name = match self.ended.len() {
            0 => "Batches".to_owned(),
            before => format!("Batches {}", before + 1),
        };
        let columns = &self.fields.columns;
        let (styles, book) = (&self.styles, &mut self.book);
        let begun = checked(|| {
            let sheet = book.add_worksheet_with_constant_memory()?;
            // Formats are numbered in the order of their first use.
            for format in styles.iter().flat_map(|styles| &styles.0) {
                sheet.write_blank(0, 0, format)?;
            }
            sheet
                .set_name(name)?
                .set_freeze_panes(1, frozen_columns(columns))?;
            sheet.set_row_height(0, HEADER_HEIGHT)?;
            for (place, &column) in (0..).zip(columns) {
                let format = header_format(&MEANINGS[column].heading());
                sheet.write_string_with_format(0, place, COLUMNS[column].name, &format)?;
                sheet.set_column_format(place, styles[0].usual(COLUMNS[column].kind))?;
            }
            Ok(())
        });
        begun.map_err(|error| self.output.failure(error))
    }

    fn begin_sheet(&mut self) -> Result<(), Failure> {
        let next = new_rows(&self.path, &self.fields.columns);
        let ended = next.and_then(|next| std::mem::replace(&mut self.sheet, next).end());
        let ended = ended.map_err(|error| self.output.failure(error))?;
        self.ended.push(ended);
        self.add_header()
    }

    fn refused(batch: &Batch, why: &str) -> Failure {
        let id = batch.id();
        let message = format!("batch `{}`: {why}", secret::brief(&id));
        let hint =
            "leave the field out with `--fields`, or write json or csv, which keep everything";
        Failure::new(error::Kind::Protocol, message).hint(hint)
    }

    /// Writes all sheets to one file.
    fn pack(mut self, outcome: &ExportOutcome<'_>) -> Result<EncodedOutput, Failure> {
        let packed = self.sheet.end().and_then(|sheet| {
            self.ended.push(sheet);
            let links = match self.plain_links {
                0 => String::new(),
                more => format!(
                    "Excel takes {} live links in a sheet: the {more} beyond are text",
                    self.limits.1
                ),
            };
            let columns = &self.fields.columns;
            let ([styles, _], book) = (&self.styles, &mut self.book);
            checked(|| {
                if let Some(summary) = outcome.summary {
                    summary::write(book, summary)?;
                }
                let (info, extracted) = (&self.info, &self.extracted);
                about::write(book, styles, info, extracted, outcome, &links, columns)?;
                for (index, sheet) in self.ended.iter().enumerate() {
                    let page = book.worksheet_from_index(index)?;
                    describe(page, sheet, columns, &self.widths)?;
                }
                book.worksheet_from_index(0)?.set_active(true);
                if let Some(made) = Timestamp::parse(&self.extracted) {
                    let made = ExcelDateTime::from_timestamp(made.second)?;
                    let properties = DocProperties::new().set_title("Tray scan batches");
                    book.set_properties(&properties.set_creation_datetime(&made));
                }
                Ok(())
            })?;
            let book = checked(|| book.save_to_buffer())?;
            // The file is not created again: it already has its owner and mode.
            let file = File::options()
                .write(true)
                .truncate(true)
                .open(&self.path)?;
            package::write(book, self.ended, file)
        });
        match packed {
            Ok(()) => Ok(self.output),
            Err(error) => Err(self.output.failure(error)),
        }
    }
}

impl BatchWriter for Xlsx {
    fn write(&mut self, batch: &Batch) -> Result<(), Failure> {
        if self.sheet.count == self.limits.0 {
            self.begin_sheet()?;
        }
        let is_marked = batch.typed(WARNINGS).as_deref() == Some("true");
        self.sheet.begin_row(is_marked);
        for (place, &column) in self.fields.columns.iter().enumerate() {
            let cell = cell(batch, column, &mut self.addresses);
            let mut cell = cell.map_err(|why| Self::refused(batch, &why))?;
            self.widths.fit(place, &cell);
            if let Cell::Escaped { has_foreign, .. } = cell {
                self.escaped_cells += u64::from(has_foreign);
            } else if let Cell::Link { text, .. } = &mut cell
                && self.sheet.links == self.limits.1
            {
                self.plain_links += 1;
                cell = Cell::Text(std::mem::take(text));
            } else if matches!(cell, Cell::Text(_)) && COLUMNS[column].kind == FieldType::Date {
                self.text_dates += 1;
            }
            let added = self.sheet.add(place, &cell);
            added.map_err(|error| self.output.failure(error))?;
        }
        let written = self.sheet.end_row();
        written.map_err(|error| self.output.failure(error))?;
        self.left_out.note(batch, &self.fields);
        Ok(())
    }

    fn finish(mut self: Box<Self>, outcome: &ExportOutcome<'_>) -> Finished {
        let report = WriterReport {
            escaped_cells: self.escaped_cells,
            text_dates: self.text_dates,
            left_out: std::mem::take(&mut self.left_out).names(),
            ..WriterReport::default()
        };
        Ok((self.pack(outcome)?, report))
    }
}

/// Begins the rows of a sheet of the workbook at `path`.
fn new_rows(path: &Path, columns: &[usize]) -> io::Result<SheetRows> {
    SheetRows::new(path.parent().unwrap_or(Path::new(".")), columns.len())
}

/// Prepares the page of `sheet` for its rows.
fn describe(
    page: &mut Worksheet,
    sheet: &EndedSheet,
    columns: &[usize],
    widths: &Widths,
) -> Result<(), XlsxError> {
    let last_row = sheet.count - 1;
    let last_column = u16::try_from(columns.len().saturating_sub(1)).unwrap_or(u16::MAX);
    if last_row > 0 {
        // Replaced by the rows and links, whose extent and place it shows.
        page.write_blank(last_row, last_column, &Format::new())?;
        if sheet.has_links {
            page.write_url(last_row, 0, "https://example.org")?;
        }
    }
    page.autofilter(0, 0, last_row, last_column)?;
    for (place, width) in (0..).zip(widths.columns()) {
        page.set_column_width(place, width)?;
    }
    prepare_printing(page).set_repeat_rows(0, 0)?;
    for (place, &column) in (0..).zip(columns) {
        // Otherwise, Excel marks each `007` as an error.
        if COLUMNS[column].kind == FieldType::Text && last_row > 0 {
            let doubt = IgnoreError::NumberStoredAsText;
            page.ignore_error_range(1, place, last_row, place, doubt)?;
        }
    }
    Ok(())
}

/// Returns the number of columns that stay visible at the left: up to and with the name of the batch.
fn frozen_columns(columns: &[usize]) -> u16 {
    let place = columns.iter().position(|&column| column == BATCH_NAME);
    let frozen = place.map_or(0, |place| place + 1);
    u16::try_from(frozen)
        .ok()
        .filter(|_| frozen <= FROZEN)
        .unwrap_or(0)
}

/// Runs `work` on the workbook. If a file cannot be written, for example on a full disk, rust_xlsxwriter
/// panics.
fn checked<T>(work: impl FnOnce() -> Result<T, XlsxError>) -> io::Result<T> {
    match terminal::caught(work) {
        Ok(done) => done.map_err(io_error),
        Err(what) => {
            let kinds = [
                ("StorageFull", io::ErrorKind::StorageFull),
                ("QuotaExceeded", io::ErrorKind::QuotaExceeded),
                ("FileTooLarge", io::ErrorKind::FileTooLarge),
            ];
            let known = kinds.iter().find(|(name, _)| what.contains(name));
            Err(known.map_or_else(
                || io::Error::other(what.as_str()),
                |(_, kind)| (*kind).into(),
            ))
        }
    }
}

fn io_error(error: XlsxError) -> io::Error {
    match error {
        XlsxError::IoError(error) => error,
        other => {
            let mut causes = std::iter::successors(other.source(), |cause| (*cause).source());
            let cause = causes.find_map(|cause| cause.downcast_ref::<io::Error>());
            let kind = cause.map_or(io::ErrorKind::Other, io::Error::kind);
            io::Error::new(kind, other.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::CropSummary;
    use crate::storage::{Compression, Location, Storage};
    use calamine::Reader as _;
    use styles::Style;

    fn batch(number: u32) -> Batch {
        let link = format!(r#","analysis_link":"https://example.org/{number}""#);
        crate::batch::minimal(&number.to_string(), &link)
    }

    #[test]
    fn a_panic_about_the_disk_keeps_its_kind() {
        for kind in [
            io::ErrorKind::StorageFull,
            io::ErrorKind::QuotaExceeded,
            io::ErrorKind::FileTooLarge,
        ] {
            let write = || -> io::Result<()> { Err(kind.into()) };
            let error = checked(|| {
                write().expect("written");
                Ok(())
            });
            assert_eq!(error.expect_err("a panic").kind(), kind);
        }
    }

    #[test]
    fn rows_beyond_the_limit_go_to_another_sheet() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("a.xlsx");
        let output =
            Storage::default().create(&Location::File(path.clone()), Compression::None, false);
        let output = output.expect("an output");
        let options = WriterOptions::of(Fields::all());
        let mut writer = Box::new(Xlsx::new(output, options).expect("a writer"));
        writer.limits = (4, 2);
        for number in 0..7 {
            writer.write(&batch(number)).expect("written");
        }
        let outcome = ExportOutcome {
            summary: Some(&CropSummary::default()),
            ..ExportOutcome::default()
        };
        let (output, _) = writer.finish(&outcome).expect("finished");
        output.publish().expect("published");

        let mut book: calamine::Xlsx<_> = calamine::open_workbook(&path).expect("a workbook");
        assert_eq!(
            book.sheet_names(),
            ["Batches", "Batches 2", "Batches 3", "Summary", "About"]
        );
        for (sheet, rows, links) in [("Batches", 4, 2), ("Batches 2", 4, 2), ("Batches 3", 2, 1)] {
            let range = book.worksheet_range(sheet).expect("a sheet");
            assert_eq!(range.height(), rows, "{sheet}");
            assert_eq!(range[(0, 0)].to_string(), "batch_id");
            let live = book.hyperlinks_by_sheet_name(sheet).expect("links");
            assert_eq!(live.len(), links, "{sheet}");
        }
        let about = book.worksheet_range("About").expect("a sheet");
        let mut rows = about.rows();
        let links = rows.find(|row| row[0] == "Links").expect("a row");
        assert!(links[1].to_string().contains("the 2 beyond"), "{links:?}");

        let mut ids = Vec::new();
        let mut source =
            crate::verify::source::RecordSource::open(&path, &Storage::default()).expect("a file");
        let read = source.read(None, &mut |record| {
            ids.push(record.values.plain(0).unwrap_or_default().into_owned());
            Ok(std::ops::ControlFlow::Continue(()))
        });
        read.expect("batches");
        assert_eq!(ids, ["0", "1", "2", "3", "4", "5", "6"]);

        let file = File::open(&path).expect("a file");
        let mut archive = zip::ZipArchive::new(file).expect("an archive");
        let mut part = |name: &str| {
            let mut part = archive.by_name(name).expect(name);
            io::read_to_string(&mut part).expect("text")
        };
        for (number, rows) in [(1, "A1:R4"), (2, "A1:R4"), (3, "A1:R2")] {
            let sheet = part(&format!("xl/worksheets/sheet{number}.xml"));
            assert!(
                sheet.contains(&format!("<dimension ref=\"{rows}\"/>")),
                "{sheet}"
            );
            assert!(!sheet.contains("example.org\""), "{sheet}");
        }
        let styles = part("xl/styles.xml");
        let formats = styles.split("<cellXfs").nth(1).expect("formats");
        let formats: Vec<&str> = formats.split("<xf ").skip(1).collect();
        let code = |code: &str| {
            let (before, _) = styles
                .split_once(&format!("formatCode=\"{code}\""))
                .expect(code);
            let (_, id) = before.rsplit_once("<numFmt ").expect("a format");
            id.trim().to_owned()
        };
        let second = code("yyyy-mm-dd hh:mm:ss");
        let fraction = code("yyyy-mm-dd hh:mm:ss.000");
        for (style, code) in [(Style::Second, second), (Style::Fraction, fraction)] {
            for is_marked in [false, true] {
                let number: usize = style.number(is_marked).parse().expect("a number");
                let format = formats[number];
                assert!(format.contains(&code), "{format} {code}");
                let is_filled = !format.contains("fillId=\"0\"");
                assert_eq!(is_filled, is_marked, "{format}");
            }
        }
    }
}
