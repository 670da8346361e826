//! Writes `xlsx`: typed cells, live links, a sheet with the figures of each crop, and one that describes the export.
//!
//! Rows go to an unnamed temporary file next to the output, which is packed at the end, so their number does
//! not affect memory. Text is stored in its cells and not in a shared table, for the same reason.

// The sheets `Summary` and `About`.
mod about;
mod summary;

// The content of a cell: text that XML can carry, dates in days, formats and widths.
mod cell;
mod escapes;
mod excel_date;
mod styles;

use std::borrow::Cow;
use std::error::Error as _;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rust_xlsxwriter::{
    Color, DocProperties, ExcelDateTime, Format, IgnoreError, Workbook, XlsxError,
};

use crate::batch::filter::Fields;
use crate::batch::{BATCH_NAME, Batch, COLUMNS, FieldType, MEANINGS, Timestamp, WARNINGS};
use crate::error::{self, Failure};
use crate::formats::{
    BatchWriter, ExportInfo, ExportOutcome, LeftOut, WriterOptions, WriterReport,
};
use crate::storage::EncodedOutput;
use crate::terminal;
use crate::text;
use about::AboutInfo;
use cell::{Cell, cell};
use styles::{CellStyles, HEADER_HEIGHT, Widths, header_format, prepare_printing};

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
    sheets: Vec<Sheet>,
    /// The most rows and links of a sheet.
    limits: (u32, u32),
    escaped_cells: u64,
    left_out: LeftOut,
}

/// What has been written to a sheet.
struct Sheet {
    rows: u32,
    links: u32,
    /// Links that were written as text, because the sheet has too many.
    plain_links: u32,
}

impl Xlsx {
    pub(crate) fn new(mut output: EncodedOutput, options: WriterOptions) -> Result<Self, Failure> {
        let path = output.write_by_path()?;
        let mut book = Workbook::new();
        if let Some(folder) = path.parent() {
            let tempdir = book.set_tempdir(folder);
            tempdir.map_err(|error| output.failure(io_error(error)))?;
        }
        let marked = Format::new().set_background_color(Color::RGB(0xFF_F2_CC));
        let mut new = Self {
            book,
            path,
            output,
            widths: Widths::new(&options.fields.columns),
            fields: options.fields,
            info: options.info,
            extracted: options.extracted,
            styles: [CellStyles::new(&Format::new()), CellStyles::new(&marked)],
            sheets: Vec::new(),
            limits: (ROWS, LINKS),
            escaped_cells: 0,
            left_out: LeftOut::default(),
        };
        new.begin_sheet()?;
        Ok(new)
    }

    fn begin_sheet(&mut self) -> Result<(), Failure> {
        let name = match self.sheets.len() {
            0 => "Batches".to_owned(),
            before => format!("Batches {}", before + 1),
        };
        let columns = &self.fields.columns;
        let ([styles, _], book) = (&self.styles, &mut self.book);
        let begun = checked(|| {
            let sheet = book.add_worksheet_with_constant_memory()?;
            sheet
                .set_name(name)?
                .set_freeze_panes(1, frozen_columns(columns))?;
            sheet.set_row_height(0, HEADER_HEIGHT)?;
            for (place, &column) in (0..).zip(columns) {
                let format = header_format(&MEANINGS[column].heading());
                sheet.write_string_with_format(0, place, COLUMNS[column].name, &format)?;
                sheet.set_column_format(place, styles.usual(COLUMNS[column].kind))?;
            }
            Ok(())
        });
        begun.map_err(|error| self.output.failure(error))?;
        self.sheets.push(Sheet {
            rows: 1,
            links: 0,
            plain_links: 0,
        });
        Ok(())
    }

    fn refused(batch: &Batch, why: &str) -> Failure {
        let id = batch.id();
        let message = format!("batch `{}`: {why}", text::brief(&id));
        let hint =
            "leave the field out with `--fields`, or write json or csv, which keep everything";
        Failure::new(error::Kind::Protocol, message).hint(hint)
    }

    /// Packs all sheets into one file.
    fn pack(&mut self, outcome: &ExportOutcome<'_>) -> io::Result<()> {
        let width = u16::try_from(self.fields.columns.len()).unwrap_or(u16::MAX);
        let info = AboutInfo {
            export: &self.info,
            version: outcome.version.unwrap_or_default(),
            extracted: &self.extracted,
            digest: outcome.digest,
            columns: &self.fields.columns,
            link_limit: self.limits.1,
            plain_links: self.sheets.iter().map(|sheet| sheet.plain_links).sum(),
        };
        let ([styles, _], book) = (&self.styles, &mut self.book);
        checked(|| {
            if let Some(summary) = outcome.summary {
                summary::write(book, summary)?;
            }
            about::write(book, &info, styles)
        })?;
        let (book, sheets, path) = (&mut self.book, &self.sheets, &self.path);
        let (widths, columns) = (&self.widths, &self.fields.columns);
        checked(|| {
            for (index, sheet) in sheets.iter().enumerate() {
                let page = book.worksheet_from_index(index)?;
                page.autofilter(0, 0, sheet.rows - 1, width.saturating_sub(1))?;
                for (place, width) in (0..).zip(widths.columns()) {
                    page.set_column_width(place, width)?;
                }
                prepare_printing(page).set_repeat_rows(0, 0)?;
                for (place, &column) in (0..).zip(columns) {
                    // Otherwise, Excel marks each `007` as an error.
                    if COLUMNS[column].kind == FieldType::Text && sheet.rows > 1 {
                        let doubt = IgnoreError::NumberStoredAsText;
                        page.ignore_error_range(1, place, sheet.rows - 1, place, doubt)?;
                    }
                }
            }
            book.worksheet_from_index(0)?.set_active(true);
            if let Some(made) = Timestamp::parse(&self.extracted) {
                let made = ExcelDateTime::from_timestamp(made.second)?;
                let properties = DocProperties::new().set_title("Tray scan batches");
                book.set_properties(&properties.set_creation_datetime(&made));
            }
            // The file is not created again: it already has its owner and mode.
            book.save_to_writer(File::options().write(true).truncate(true).open(path)?)
        })
    }
}

impl BatchWriter for Xlsx {
    fn write(&mut self, batch: &Batch) -> Result<(), Failure> {
        if self
            .sheets
            .last()
            .is_none_or(|sheet| sheet.rows == self.limits.0)
        {
            self.begin_sheet()?;
        }
        let cells = self
            .fields
            .columns
            .iter()
            .map(|&column| cell(batch, column));
        let mut cells = cells
            .collect::<Result<Vec<_>, _>>()
            .map_err(|why| Self::refused(batch, &why))?;
        let index = self.sheets.len() - 1;
        let sheet = &mut self.sheets[index];
        for (place, cell) in cells.iter_mut().enumerate() {
            self.widths.fit(place, cell.width());
            if let Cell::Link { text, .. } = cell {
                if sheet.links == self.limits.1 {
                    sheet.plain_links += 1;
                    *cell = Cell::Text(std::mem::take(text));
                } else {
                    sheet.links += 1;
                }
            } else if let Cell::Escaped { text, has_foreign } = cell {
                self.escaped_cells += u64::from(*has_foreign);
                *cell = Cell::Text(Cow::Owned(std::mem::take(text)));
            }
        }
        let is_marked = batch.typed(WARNINGS).as_deref() == Some("true");
        let styles = &self.styles[usize::from(is_marked)];
        let row = sheet.rows;
        let (book, columns) = (&mut self.book, &self.fields.columns);
        let written = checked(|| {
            let page = book.worksheet_from_index(index)?;
            for ((place, cell), &column) in (0..).zip(&cells).zip(columns) {
                let kind = COLUMNS[column].kind;
                cell.write(page, (row, place), kind, styles, is_marked)?;
            }
            Ok(())
        });
        written.map_err(|error| self.output.failure(error))?;
        sheet.rows += 1;
        self.left_out.note(batch, &self.fields);
        Ok(())
    }

    fn finish(
        mut self: Box<Self>,
        outcome: &ExportOutcome<'_>,
    ) -> Result<(EncodedOutput, WriterReport), Failure> {
        let packed = self.pack(outcome);
        packed.map_err(|error| self.output.failure(error))?;
        let report = WriterReport {
            escaped_cells: self.escaped_cells,
            left_out: self.left_out.names(),
            ..WriterReport::default()
        };
        Ok((self.output, report))
    }
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
    use crate::formats::csv::CsvOptions;
    use crate::storage::{Compression, Location, Storage};
    use calamine::Reader as _;

    fn batch(number: u32) -> Batch {
        let text = format!(
            r#"{{"batch_id":"{number}","batch_name":"n","batch_creation_date":"2026-05-01T06:00:00Z","number_of_images":1,"analysis_link":"https://example.org/{number}","warnings":false}}"#
        );
        Batch::read(&text).batch.expect("a batch")
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
        let options = WriterOptions {
            fields: Fields::all(),
            numbers: false,
            csv: CsvOptions::default(),
            width: None,
            color: false,
            extracted: "2026-05-02T00:00:00Z".to_owned(),
            bookmark: None,
            info: Arc::default(),
        };
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
    }
}
