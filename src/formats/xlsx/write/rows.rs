//! The rows of a sheet, in XML. They are compressed while they arrive, in a temporary file; the links of the
//! sheet stay in memory, compressed as well.
//!
//! rust_xlsxwriter writes the rest of the sheet, and `package` adds these rows. It could write them, too, but
//! would take several times as long, and keep several copies of each link in memory.

use std::fs::File;
use std::io::{self, Cursor};
use std::path::Path;

use rust_xlsxwriter::utility::column_number_to_name;

use super::cell::Cell;
use super::piece::{Piece, PieceWriter};
use super::styles::Style;
use super::xml::{put_attribute, put_text};

/// The type of a relationship that is a link.
const LINK: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/hyperlink";

/// The rows of a sheet that is being written.
pub(super) struct SheetRows {
    /// The number of rows, the header included.
    pub(super) count: u32,
    pub(super) links: u32,
    content: PieceWriter<File>,
    link_elements: PieceWriter<Cursor<Vec<u8>>>,
    relationships: PieceWriter<Cursor<Vec<u8>>>,
    /// The names of the columns, from `A` on.
    columns: Vec<String>,
    /// The current row: its XML, its number, and whether it is marked.
    row: Vec<u8>,
    number: String,
    is_marked: bool,
}

/// The rows of a complete sheet.
pub(super) struct EndedSheet {
    pub(super) count: u32,
    pub(super) has_links: bool,
    pub(super) rows: Piece,
    /// The elements in the sheet.
    pub(super) links: Piece,
    /// Their addresses.
    pub(super) relationships: Piece,
}

impl SheetRows {
    /// Begins the rows after the header. The temporary file is in `folder`.
    pub(super) fn new(folder: &Path, columns: usize) -> io::Result<Self> {
        let columns = u16::try_from(columns).unwrap_or(u16::MAX);
        Ok(Self {
            count: 1,
            links: 0,
            content: PieceWriter::in_file(folder)?,
            link_elements: PieceWriter::in_memory(),
            relationships: PieceWriter::in_memory(),
            columns: (0..columns).map(column_number_to_name).collect(),
            row: Vec::new(),
            number: String::new(),
            is_marked: false,
        })
    }

    pub(super) fn begin_row(&mut self, is_marked: bool) {
        self.count += 1;
        self.number = self.count.to_string();
        self.is_marked = is_marked;
        self.row.clear();
        self.row.extend_from_slice(b"<row r=\"");
        self.row.extend_from_slice(self.number.as_bytes());
        self.row.extend_from_slice(b"\">");
    }

    pub(super) fn end_row(&mut self) -> io::Result<()> {
        self.row.extend_from_slice(b"</row>");
        self.content.write_all(&self.row)
    }

    /// Adds the cell at `place` to the current row.
    pub(super) fn add(&mut self, place: usize, cell: &Cell<'_>) -> io::Result<()> {
        match cell {
            // The first cell is always written, so that no row is lost.
            Cell::Empty if self.is_marked || place == 0 => {
                self.begin_cell(place, Style::Text, "/>");
            }
            Cell::Empty => {}
            Cell::Text(text) | Cell::Escaped { text, .. } => {
                let has_lines = text.contains('\n');
                let style = if has_lines { Style::Lines } else { Style::Text };
                self.add_text(place, text, style);
            }
            Cell::Link { text, address } => {
                self.add_text(place, text, Style::Link);
                self.add_link(place, address.as_deref().unwrap_or(text))?;
            }
            Cell::Integer(number) => self.add_value(place, Style::Integer, "", &number.digits()),
            Cell::Decimal(number) => self.add_value(place, Style::Decimal, "", &number.digits()),
            Cell::Boolean(yes) => {
                let digit = if *yes { "1" } else { "0" };
                self.add_value(place, Style::Boolean, " t=\"b\"", digit);
            }
            Cell::Moment(moment) => {
                let has_fraction = moment.has_fraction;
                let style = if has_fraction {
                    Style::Fraction
                } else {
                    Style::Second
                };
                self.add_value(place, style, "", &moment.days.to_string());
            }
        }
        Ok(())
    }

    /// Adds the start of a cell, up to the attribute of its style, and `rest`.
    fn begin_cell(&mut self, place: usize, style: Style, rest: &str) {
        let style = style.number(self.is_marked);
        self.row.extend_from_slice(b"<c r=\"");
        self.row.extend_from_slice(self.columns[place].as_bytes());
        self.row.extend_from_slice(self.number.as_bytes());
        self.row.extend_from_slice(b"\" s=\"");
        self.row.extend_from_slice(style.as_bytes());
        self.row.push(b'"');
        self.row.extend_from_slice(rest.as_bytes());
    }

    fn add_text(&mut self, place: usize, text: &str, style: Style) {
        const SPACE: [char; 3] = ['\t', '\n', ' '];
        let is_padded = text.starts_with(SPACE) || text.ends_with(SPACE);
        self.begin_cell(place, style, " t=\"inlineStr\"><is><t");
        if is_padded {
            self.row.extend_from_slice(b" xml:space=\"preserve\"");
        }
        self.row.push(b'>');
        put_text(&mut self.row, text);
        self.row.extend_from_slice(b"</t></is></c>");
    }

    fn add_value(&mut self, place: usize, style: Style, kind: &str, digits: &str) {
        self.begin_cell(place, style, kind);
        for part in ["><v>", digits, "</v></c>"] {
            self.row.extend_from_slice(part.as_bytes());
        }
    }

    /// Links the cell at `place` to `address`.
    fn add_link(&mut self, place: usize, address: &str) -> io::Result<()> {
        self.links += 1;
        let (target, location) = address.split_once('#').unwrap_or((address, ""));
        let (column, row, id) = (&self.columns[place], &self.number, self.links);
        let mut element = format!("<hyperlink ref=\"{column}{row}\" r:id=\"rId{id}\"").into_bytes();
        if !location.is_empty() {
            element.extend_from_slice(b" location=\"");
            put_attribute(&mut element, location);
            element.push(b'"');
        }
        element.extend_from_slice(b"/>");
        self.link_elements.write_all(&element)?;
        let start = format!("<Relationship Id=\"rId{id}\" Type=\"{LINK}\" Target=\"");
        let mut relationship = start.into_bytes();
        put_attribute(&mut relationship, target);
        relationship.extend_from_slice(b"\" TargetMode=\"External\"/>");
        self.relationships.write_all(&relationship)
    }

    /// Completes the sheet.
    pub(super) fn end(self) -> io::Result<EndedSheet> {
        Ok(EndedSheet {
            count: self.count,
            has_links: self.links > 0,
            rows: self.content.end()?,
            links: self.link_elements.end()?,
            relationships: self.relationships.end()?,
        })
    }
}
