//! Reads one part of a workbook: its cells one by one, and what its tags say.
//!
//! A few kilobytes can unpack to gigabytes. Sheets may have any size, as long as each cell is small; other parts have
//! limits.

use std::collections::HashMap;
use std::io::{self, Read};

use anyhow::{Context as _, Result, anyhow, bail, ensure};

use super::attributes::is_number;
use super::cell_value::{CellType, SharedTexts, SheetCell, plain_text, push_plain};
use super::markup::cell_at;
use super::usual::{self, UsualCell};
use super::xml::{XmlEvent, XmlReader, check_size};

/// The largest table of shared texts, and the largest other part except sheets.
const TEXTS: u64 = 512 << 20;
const PART: u64 = 64 << 20;
/// The most that all sheets may unpack to: a few megabytes may become terabytes.
const ALL: u64 = 16 << 30;
/// The largest cell, tags included. Its text has at most 32,767 characters.
const CELL: u64 = 2 << 20;
/// The memory of a shared text besides its bytes.
const EACH_TEXT: u64 = 40;
/// The memory for all links and references, and that of each besides its bytes.
const KEPT: usize = 64 << 20;
const EACH_KEPT: usize = 100;
/// More bytes than a cell in the usual notation has in nearly all cases.
const USUAL_CELL: usize = 64 << 10;

/// What the tags of a part say.
#[derive(Debug, Default)]
pub(super) struct PackagePart {
    /// The first tag.
    pub(super) root: String,
    /// Sheet: its links, its declared range, and whether cells are merged.
    pub(super) links: Vec<SheetLink>,
    pub(super) dimension: Option<String>,
    pub(super) merged: bool,
    /// Sheet: whether it has a list of rows, and the highest format number of a cell.
    pub(super) has_rows: bool,
    pub(super) last_format: Option<u32>,
    /// Styles: the number format of each cell format, and the codes of number formats.
    pub(super) formats: Vec<u32>,
    pub(super) codes: HashMap<u32, String>,
    /// Shared texts.
    pub(super) texts: SharedTexts,
    /// Relationships.
    pub(super) relations: Vec<Relation>,
    /// Content types: extensions, and parts with their types.
    pub(super) endings: Vec<String>,
    pub(super) types: Vec<(String, String)>,
    /// Workbook: its sheets, its defined names with their definitions, and whether dates are counted from 1904.
    pub(super) sheets: Vec<SheetEntry>,
    pub(super) names: Vec<(String, String)>,
    pub(super) is_1904: bool,
}

/// A link of a sheet.
#[derive(Debug)]
pub(super) struct SheetLink {
    pub(super) cells: String,
    pub(super) relation: Option<String>,
    pub(super) location: Option<String>,
}

/// A reference from one part to another, or to an external target.
#[derive(Debug)]
pub(super) struct Relation {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) target: String,
    pub(super) is_external: bool,
}

/// A sheet in the list of the workbook.
#[derive(Debug)]
pub(super) struct SheetEntry {
    pub(super) name: String,
    pub(super) relation: String,
    pub(super) is_hidden: bool,
}

/// What all parts together may still have: unpacked bytes, and memory for links and references.
pub(super) struct Budget {
    bytes: u64,
    memory: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            bytes: ALL,
            memory: KEPT,
        }
    }
}

impl Budget {
    /// Returns how much a part may unpack to, if it is not one of shared texts.
    fn max_bytes(&self, name: &str) -> u64 {
        if is_sheet(name) { self.bytes } else { PART }
    }

    /// Unpacks a part that is not XML, for its checksum.
    pub(super) fn skip(&mut self, part: impl Read, name: &str) -> Result<PackagePart> {
        let limit = self.max_bytes(name);
        let size = io::copy(&mut part.take(limit + 1), &mut io::sink());
        let size = size.map_err(|error| anyhow!("cannot be unpacked: {error}"))?;
        check_size(size, limit)?;
        self.bytes = self.bytes.saturating_sub(size);
        Ok(PackagePart::default())
    }
}

/// What the next text belongs to.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum TextOf {
    #[default]
    Nothing,
    /// The value of a cell.
    Value,
    /// The formula of a cell.
    Formula,
    /// A cell or a shared text; whether the blanks around it are part of it.
    Text { keeps_blanks: bool },
    /// A defined name.
    Name,
}

/// Reads a part.
pub(super) struct PartReader<'a, R> {
    xml: XmlReader<R>,
    part: PackagePart,
    budget: &'a mut Budget,
    /// Where the current cell or row starts; `None` after the last one, and in other parts.
    cell_start: Option<u64>,
    /// The number of the current row, from 1; 0 before the first. And the next column, from 0.
    row: u32,
    column: u32,
    /// The open cell, without its text; and the value of its formula.
    cell: Option<SheetCell<'static>>,
    formula: Option<&'static str>,
    /// The value of the cell, the shared text or the definition of a name, and where its last piece starts.
    text: String,
    piece: usize,
    text_of: TextOf,
    /// The number of pieces without formats in a text; `None` outside of a text.
    plain_pieces: Option<u32>,
    /// Whether the current list is that of cell formats.
    in_formats: bool,
}

impl<'a, R: Read> PartReader<'a, R> {
    /// Starts to read the part `name`, which says to have this size.
    pub(super) fn new(part: R, name: &str, size: u64, budget: &'a mut Budget) -> Result<Self> {
        let is_sheet = is_sheet(name);
        let max_bytes = if name.ends_with("sharedstrings.xml") {
            TEXTS
        } else {
            budget.max_bytes(name)
        };
        check_size(size, max_bytes)?;
        let max_text = if is_sheet { CELL } else { max_bytes };
        Ok(Self {
            xml: XmlReader::new(part, max_bytes, (max_text, "a cell")),
            part: PackagePart::default(),
            budget,
            cell_start: is_sheet.then_some(0),
            row: 0,
            column: 0,
            cell: None,
            formula: None,
            text: String::new(),
            piece: 0,
            text_of: TextOf::Nothing,
            plain_pieces: None,
            in_formats: false,
        })
    }

    /// Reads to the end; returns what the tags say.
    pub(super) fn finish(mut self) -> Result<PackagePart> {
        while self.next_cell()?.is_some() {}
        self.budget.bytes = self.budget.bytes.saturating_sub(self.xml.bytes);
        Ok(self.part)
    }

    /// Returns the next cell of a sheet; `None` at the end of the part.
    pub(super) fn next_cell(&mut self) -> Result<Option<SheetCell<'_>>> {
        let cell = loop {
            if self.xml.is_in_row()
                && let Some(usual) = self.usual_cell()?
            {
                self.xml.skip(usual.length);
                let text = std::str::from_utf8(&self.xml.last()[usual.text]).unwrap_or_default();
                let text = match usual.cell.kind {
                    CellType::Text => plain_text(text, usual.keeps_blanks),
                    _ => text.into(),
                };
                return Ok(Some(SheetCell { text, ..usual.cell }));
            }
            match self.xml.next()? {
                XmlEvent::Start => self.start()?,
                XmlEvent::End => {
                    if let Some(cell) = self.end()? {
                        break cell;
                    }
                }
                event @ (XmlEvent::Text | XmlEvent::Cdata) => {
                    if self.text_of != TextOf::Nothing {
                        self.text.push_str(&self.xml.text(event));
                    }
                }
                XmlEvent::Comment | XmlEvent::Instruction => ensure!(
                    self.text_of == TextOf::Nothing,
                    "has a comment inside a value: some programs stop reading there"
                ),
                XmlEvent::Done => return Ok(None),
            }
            self.check_cell_size()?;
        };
        let text = self.text.as_str().into();
        Ok(Some(SheetCell { text, ..cell }))
    }

    /// Recognises the next cell, if it is in the usual notation; passes over the tags of rows before it.
    fn usual_cell(&mut self) -> Result<Option<UsualCell>> {
        loop {
            let rest = self.xml.rest();
            if let Some(cell) = UsualCell::parse(rest).filter(|cell| cell.length as u64 <= CELL) {
                self.start_cell(Some(cell.cell.place), cell.cell.format)?;
                return Ok(Some(cell));
            }
            if let Some((row, length)) = usual::next_row(rest) {
                self.start_row(Some(row))?;
                self.xml.skip(length);
            } else if rest.len() < USUAL_CELL && !self.xml.is_at_end {
                self.xml.fill()?;
            } else {
                return Ok(None);
            }
        }
    }

    /// Starts a row with this number; without one, it is the row after the last.
    fn start_row(&mut self, number: Option<u32>) -> Result<()> {
        let row = number.unwrap_or(self.row.saturating_add(1));
        ensure!(row > self.row, "has repeated or unordered rows");
        (self.row, self.column) = (row, 0);
        self.start_measure();
        Ok(())
    }

    /// Starts a cell; without a place, it is the one after the last. Returns its place.
    fn start_cell(&mut self, place: Option<(u32, u32)>, format: u32) -> Result<(u32, u32)> {
        let place = place.unwrap_or((self.row.saturating_sub(1), self.column));
        // Some readers go by its own reference, others by that of the row.
        let is_in_row = place.0.checked_add(1) == Some(self.row);
        ensure!(is_in_row, "has a cell that belongs to another row");
        self.column = place.1.saturating_add(1);
        self.part.last_format = self.part.last_format.max(Some(format));
        self.start_measure();
        Ok(place)
    }

    fn start_measure(&mut self) {
        self.cell_start = self.cell_start.map(|_| self.xml.position());
    }

    fn check_cell_size(&self) -> Result<()> {
        let size = self.cell_start.map(|start| self.xml.position() - start);
        let is_small = size.is_none_or(|size| size <= CELL);
        ensure!(is_small, "has a cell of more than {} MiB", CELL >> 20);
        Ok(())
    }

    fn take_memory(&mut self, size: usize) -> Result<()> {
        let rest = self.budget.memory.checked_sub(size + EACH_KEPT);
        self.budget.memory = rest.context("has too many links or references")?;
        Ok(())
    }

    /// Handles a start tag.
    fn start(&mut self) -> Result<()> {
        let xml = &self.xml;
        let name = xml.name();
        if self.part.root.is_empty() {
            self.part.root = String::from_utf8_lossy(name).into_owned();
        }
        match (self.part.root.as_str(), name) {
            ("worksheet", b"f") if self.may_be_constant() => {
                self.text_of = TextOf::Formula;
                Ok(())
            }
            ("worksheet", b"f" | b"formula" | b"formula1" | b"formula2") => bail!("has a formula"),
            ("worksheet", b"row") if xml.check.is_own() => {
                let number = xml.attribute("r").map(|number| {
                    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
                    let row = number.parse().ok().filter(|row| is_number && *row > 0);
                    row.context("has a row without a number")
                });
                self.start_row(number.transpose()?)
            }
            ("worksheet", b"c") if xml.check.is_own() => self.open_cell(),
            ("worksheet", b"v") if xml.check.is_own() => {
                self.text_of = TextOf::Value;
                Ok(())
            }
            ("worksheet" | "sst", b"is" | b"si") => self.start_text(),
            ("worksheet" | "sst", b"t") if self.plain_pieces.is_some() => self.start_piece(),
            ("worksheet", _) if self.cell.is_some() && self.plain_pieces.is_none() => {
                bail!("has a cell with an unknown element")
            }
            _ => self.keep_tag(),
        }
    }

    /// Returns whether this tag may be that of `TRUE()` or `FALSE()`, which LibreOffice writes instead of a value.
    fn may_be_constant(&self) -> bool {
        let is_boolean = |cell: &SheetCell<'_>| cell.kind == CellType::Boolean;
        self.xml.check.is_own()
            && self.cell.as_ref().is_some_and(is_boolean)
            && self.formula.is_none()
            && self.text.is_empty()
            && self.xml.attributes().all(|(name, _)| name == b"aca")
    }

    /// Starts a cell, and rejects unknown types and results of formulas.
    fn open_cell(&mut self) -> Result<()> {
        let mut cell = SheetCell::default();
        let mut place = None;
        for (name, value) in self.xml.attributes() {
            let value = std::str::from_utf8(value).unwrap_or_default();
            match name {
                b"t" => {
                    cell.kind = match value {
                        "n" => CellType::Number,
                        "b" => CellType::Boolean,
                        "d" => CellType::IsoDate,
                        "e" => CellType::Error,
                        "s" => CellType::Shared,
                        "inlineStr" => CellType::Text,
                        "str" => bail!("has the result of a formula"),
                        _ => bail!("has a cell of an unknown type"),
                    }
                }
                b"r" => {
                    let found = cell_at(value).filter(|_| !value.contains('$'));
                    place = Some(found.context("has a cell that belongs to another row")?);
                }
                b"s" => {
                    let format = value.parse().ok();
                    cell.format = format.context("has a cell without a format")?;
                }
                _ => {}
            }
        }
        cell.place = self.start_cell(place, cell.format)?;
        self.cell = Some(cell);
        self.text.clear();
        Ok(())
    }

    /// Starts the text of a cell, or a shared one.
    fn start_text(&mut self) -> Result<()> {
        let is_text = |cell: &SheetCell<'_>| cell.kind == CellType::Text;
        let is_right = self.xml.name() == b"si" || self.cell.as_ref().is_some_and(is_text);
        ensure!(is_right, "has text in a cell of another type");
        self.plain_pieces = Some(0);
        self.text.clear();
        if self.part.root == "sst" {
            check_size(
                self.part.texts.len() as u64 * EACH_TEXT + self.xml.bytes,
                TEXTS,
            )?;
        }
        Ok(())
    }

    /// Starts a piece of a text. Rejects several pieces without formats: readers take different ones.
    fn start_piece(&mut self) -> Result<()> {
        match self.xml.check.parent() {
            b"r" => {}
            // It only says how to read the others.
            b"rPh" => return Ok(()),
            _ => self.plain_pieces = self.plain_pieces.map(|pieces| pieces + 1),
        }
        let is_kept = |pair| pair == (&b"xml:space"[..], &b"preserve"[..]);
        let keeps_blanks = self.xml.attributes().any(is_kept);
        self.text_of = TextOf::Text { keeps_blanks };
        self.piece = self.text.len();
        ensure!(self.plain_pieces <= Some(1), "has a text in several parts");
        Ok(())
    }

    /// Keeps what a tag says about the workbook.
    fn keep_tag(&mut self) -> Result<()> {
        let xml = &self.xml;
        let get = |name: &str| xml.attribute(name);
        let text = |name: &str| get(name).with_context(|| format!("lacks an attribute `{name}`"));
        let number = |name: &str| get(name).and_then(|number| number.parse().ok());
        let part = &mut self.part;
        match (part.root.as_str(), xml.name()) {
            ("worksheet", b"sheetData") => {
                part.has_rows = true;
                return Ok(());
            }
            ("worksheet", b"hyperlink") => part.links.push(SheetLink {
                cells: text("ref")?,
                relation: get("id"),
                location: get("location"),
            }),
            ("worksheet", b"mergeCell") => part.merged = true,
            ("worksheet", b"dimension") => part.dimension = Some(text("ref")?),
            ("styleSheet", b"cellXfs") => {
                self.in_formats = true;
                return Ok(());
            }
            // Some readers would not know them yet.
            ("styleSheet", b"numFmts") if !part.formats.is_empty() => {
                bail!("has number formats after those of cells");
            }
            // Under a condition, it may show any number.
            ("styleSheet", b"numFmt") if xml.check.parent() == b"dxf" => {
                let is_plain = get("formatCode").is_some_and(|code| code == "General");
                ensure!(is_plain, "has a number format under a condition");
                return Ok(());
            }
            ("styleSheet", b"numFmt") if xml.check.is_own() => {
                if let Some(id) = number("numFmtId") {
                    part.codes.insert(id, text("formatCode")?);
                }
            }
            ("styleSheet", b"xf") if self.in_formats => {
                part.formats.push(number("numFmtId").unwrap_or_default());
            }
            ("Relationships", b"Relationship") => part.relations.push(Relation {
                id: text("Id")?,
                kind: text("Type")?.to_lowercase(),
                target: text("Target")?,
                is_external: get("TargetMode")
                    .is_some_and(|mode| mode.eq_ignore_ascii_case("external")),
            }),
            ("Types", b"Default") => {
                text("ContentType")?;
                part.endings.push(text("Extension")?.to_lowercase());
            }
            ("Types", b"Override") => {
                let name = text("PartName")?.to_lowercase();
                let name = name.trim_start_matches('/').to_owned();
                part.types.push((name, text("ContentType")?));
            }
            ("workbook", b"workbookPr") => {
                part.is_1904 |= get("date1904").is_some_and(|is| matches!(&*is, "1" | "true"));
            }
            ("workbook", b"sheet") => part.sheets.push(SheetEntry {
                relation: text("id")?,
                is_hidden: get("state").is_some_and(|state| state != "visible"),
                name: text("name")?,
            }),
            ("workbook", b"definedName") => {
                part.names.push((text("name")?, String::new()));
                self.text.clear();
                self.text_of = TextOf::Name;
            }
            _ => return Ok(()),
        }
        self.take_memory(self.xml.last().len())
    }

    /// Handles an end tag; returns the cell that ends there.
    fn end(&mut self) -> Result<Option<SheetCell<'static>>> {
        match std::mem::take(&mut self.text_of) {
            TextOf::Nothing => {}
            TextOf::Value => self.end_value()?,
            TextOf::Formula => {
                self.formula = Some(match &*self.text {
                    "TRUE()" => "1",
                    "FALSE()" => "0",
                    _ => bail!("has a formula"),
                });
                self.text.clear();
            }
            TextOf::Text { keeps_blanks } => {
                let piece = self.text.split_off(self.piece);
                push_plain(&mut self.text, &piece, keeps_blanks);
            }
            TextOf::Name => {
                self.take_memory(self.text.len())?;
                if let Some((_, definition)) = self.part.names.last_mut() {
                    definition.clone_from(&self.text);
                }
            }
        }
        match self.xml.name() {
            b"c" => {
                let formula = self.formula.take();
                let is_right = formula.is_none_or(|value| value == self.text);
                ensure!(is_right, "has a formula with another value");
                return Ok(self.cell.take());
            }
            b"is" => self.plain_pieces = None,
            b"si" if self.plain_pieces.take().is_some() => self.part.texts.push(&self.text),
            b"cellXfs" => self.in_formats = false,
            // The rest has no cells.
            b"sheetData" => {
                self.cell_start = None;
                self.xml.max_text = (PART, "a text");
            }
            _ => {}
        }
        Ok(None)
    }

    /// Checks the value of a cell.
    fn end_value(&mut self) -> Result<()> {
        match self.cell.as_ref().map(|cell| cell.kind) {
            Some(CellType::Number) => {
                let number = self.text.trim();
                let is_number = self.text.is_empty() || is_number(number);
                ensure!(is_number, "has a number that is not one");
                if number.len() < self.text.len() {
                    self.text = number.to_owned();
                }
            }
            // Its text is in another element.
            Some(CellType::Text) => self.text.clear(),
            _ => {}
        }
        Ok(())
    }
}

/// Returns whether the part `name` is a sheet.
pub(super) fn is_sheet(name: &str) -> bool {
    name.contains("worksheets/") && !name.contains("/_rels/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::xlsx::read::number_formats::NumberFormats;

    const MAIN: &str = "xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\"";
    const SHEET: &str = "xl/worksheets/sheet1.xml";

    /// Returns a few bytes at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = buffer.len().min(7);
            self.0.read(&mut buffer[..length])
        }
    }

    type TestCell = ((u32, u32), String);

    /// Reads the part `name`: the places and texts of its cells, and what its tags say.
    fn read(name: &str, text: &str) -> Result<(Vec<TestCell>, PackagePart)> {
        let mut budget = Budget::default();
        let size = text.len() as u64;
        let mut reader = PartReader::new(Slow(text.as_bytes()), name, size, &mut budget)?;
        let mut cells = Vec::new();
        while let Some(cell) = reader.next_cell()? {
            cells.push((cell.place, cell.text.into_owned()));
        }
        Ok((cells, reader.finish()?))
    }

    fn sheet(rows: &str) -> String {
        format!("<worksheet {MAIN}><sheetData>{rows}</sheetData></worksheet>")
    }

    #[test]
    fn cells_and_everything_between_them_are_measured() {
        let long = "x".repeat(5 << 20);
        let cells =
            (1..=1 << 16).map(|row| format!("<row r=\"{row}\"><c r=\"A{row}\"><v>1</v></c></row>"));
        let cells: String = cells.collect();
        let row = |inside: &str| sheet(&format!("<row r=\"1\">{inside}</row>"));
        for (inside, why) in [
            (sheet(&cells), None),
            (
                row(&format!("<c t=\"inlineStr\"><is><t>{long}</t></is></c>")),
                Some("a cell of more than 2 MiB"),
            ),
            (
                row(&format!("<c t=\"{long}\"/>")),
                Some("a tag of more than 64 KiB"),
            ),
            (
                row(&format!("<!-- {} -->", "<c>".repeat(1 << 20))),
                Some("a cell of more than 2 MiB"),
            ),
            (
                row(&format!("<![CDATA[{}]]>", "<c>".repeat(1 << 20))),
                Some("a cell of more than 2 MiB"),
            ),
            (
                row(&format!(
                    "<c t=\"inlineStr\"><is>{}</is></c>",
                    "<r><t>long</t></r>".repeat(1 << 18)
                )),
                Some("a cell of more than 2 MiB"),
            ),
            // Links after the cells are not measured.
            (
                sheet("").replace("</worksheet>", &format!("{long}</worksheet>")),
                None,
            ),
        ] {
            let found = read(SHEET, &inside).err().map(|error| error.to_string());
            let why = why.map(|why| format!("has {why}"));
            assert_eq!(found, why, "{}", &inside[..120]);
        }
    }

    #[test]
    fn cells_are_read_across_the_ends_of_the_buffer() {
        let long = "é".repeat(20_000);
        for (space, end) in [("", ""), (" ", ""), ("", "<!-- -->")] {
            let rows = (2..30).map(|row| {
                format!(
                    "<row r=\"{row}\"><c {space}r=\"A{row}\" t=\"inlineStr\"><is><t>{long}</t></is></c></row>"
                )
            });
            let rows: String = rows.collect();
            let (cells, part) = read(SHEET, &sheet(&format!("{rows}{end}"))).expect("cells");
            let expected = (1..29).map(|row| ((row, 0), long.clone()));
            assert!(cells.into_iter().eq(expected));
            assert!(part.has_rows);
        }
    }

    #[test]
    fn rows_ascend_and_contain_their_own_cells() {
        let count = |rows: &str| {
            let read = read(SHEET, &sheet(rows)).ok();
            read.map(|(cells, _)| cells.len())
        };
        let cell = |place: &str| format!("<c r=\"{place}\"><v>1</v></c>");
        let spaced = |place: &str| format!("<c  r=\"{place}\"><v>1</v></c>");
        for cell in [cell, spaced] {
            let (first, second) = (cell("A1"), cell("B2"));
            let rows = |numbers: [&str; 2]| {
                let [one, two] = numbers;
                format!("<row{one}>{first}</row><row{two}>{second}</row>")
            };
            for numbers in [
                [" r=\"1\"", " r=\"2\""],
                ["", ""],
                [" r=\"1\" ht=\"9\"", ""],
            ] {
                assert_eq!(count(&rows(numbers)), Some(2), "{numbers:?}");
            }
            for numbers in [
                [" r=\"1\"", " r=\"1\""],
                [" r=\"1\"", " r=\"1\" ht=\"9\""],
                [" r=\"1\"", " r=\"3\""],
                [" r=\"1\"", " r=\"3\" ht=\"9\""],
                [" r=\"2\"", " r=\"2\""],
                [" r=\"2\"", ""],
                [" r=\"0\"", ""],
                [" r=\"+1\"", ""],
                [" r=\"1\"", " r=\"2.0\""],
                [" r=\"1\"", " r=\"\""],
            ] {
                assert_eq!(count(&rows(numbers)), None, "{numbers:?}");
            }
        }
        let skipped = format!("<row r=\"2\"/><row>{}</row><row r=\"7\"/>", cell("A3"));
        assert_eq!(count(&skipped), Some(1));
        assert_eq!(count("<row r=\"2\"/><row r=\"2\"/>"), None);
        assert_eq!(count("<row><c r=\"A\"/></row>"), None);
        assert_eq!(count("<row><c/><c r=\"B1\"/></row>"), Some(2));
    }

    #[test]
    fn the_text_of_a_cell_is_that_of_its_pieces() {
        const COMMENT: &str = "a comment inside a value: some programs stop reading there";
        for (cell, expected) in [
            ("<c><v> 5 </v></c>", Ok("5")),
            ("<c><!-- 4 --><v>5</v></c>", Ok("5")),
            ("<c><v>5<!-- 4 -->6</v></c>", Err(COMMENT)),
            (
                "<c t=\"inlineStr\"><is><t>a<!-- b --></t></is></c>",
                Err(COMMENT),
            ),
            ("<c><v><![CDATA[5]]>6</v></c>", Ok("56")),
            ("<c t=\"b\"><v>1</v></c>", Ok("1")),
            ("<c t=\"d\"><v>a&#33;</v></c>", Ok("a!")),
            ("<c t=\"inlineStr\"><v>5</v></c>", Ok("")),
            ("<c t=\"inlineStr\"><is> <t> a </t> </is></c>", Ok("a")),
            (
                "<c t=\"inlineStr\"><is><r><t>a</t></r><r><t xml:space=\"preserve\"> b</t></r></is></c>",
                Ok("a b"),
            ),
            (
                "<c t=\"inlineStr\"><is><t>a</t><rPh sb=\"0\" eb=\"1\"><t>b</t></rPh></is></c>",
                Ok("a"),
            ),
            (
                "<c t=\"inlineStr\"><is><t>a<![CDATA[&amp;]]>b\r\n</t></is></c>",
                Ok("a&amp;b"),
            ),
            ("<c><v> </v></c>", Err("a number that is not one")),
            ("<c><v>inf</v></c>", Err("a number that is not one")),
            ("<c><f>1</f></c>", Err("a formula")),
            (
                "<c t=\"b\"><f aca=\"false\">TRUE()</f><v>1</v></c>",
                Ok("1"),
            ),
            ("<c t=\"b\"><f>FALSE()</f><v>0</v></c>", Ok("0")),
            (
                "<c t=\"b\"><f>FALSE()</f><v>1</v></c>",
                Err("a formula with another value"),
            ),
            (
                "<c t=\"b\"><f>TRUE()</f></c>",
                Err("a formula with another value"),
            ),
            ("<c t=\"b\"><f>NOT(A1)</f><v>1</v></c>", Err("a formula")),
            ("<c t=\"b\"><f/><v>1</v></c>", Err("a formula")),
            (
                "<c t=\"b\"><f t=\"shared\" si=\"0\">TRUE()</f><v>1</v></c>",
                Err("a formula"),
            ),
            ("<c t=\"b\"><v>1</v><f>TRUE()</f></c>", Err("a formula")),
            ("<c><f>TRUE()</f><v>1</v></c>", Err("a formula")),
            ("<c t=\"str\"><v>1</v></c>", Err("the result of a formula")),
            ("<c t=\"x\"/>", Err("a cell of an unknown type")),
            ("<c><extLst/></c>", Err("a cell with an unknown element")),
            ("<c><r/></c>", Err("a cell with an unknown element")),
            ("<c s=\"x\"/>", Err("a cell without a format")),
            ("<c r=\"$A$1\"/>", Err("a cell that belongs to another row")),
            (
                "<c><is><t>a</t></is></c>",
                Err("text in a cell of another type"),
            ),
            (
                "<c t=\"inlineStr\"><is><t>a</t><t>b</t></is></c>",
                Err("a text in several parts"),
            ),
        ] {
            let found = read(SHEET, &sheet(&format!("<row>{cell}</row>")));
            let found = found.map(|(cells, _)| cells[0].1.clone());
            let found = found.map_err(|error| error.to_string());
            let expected = expected.map(str::to_owned);
            let expected = expected.map_err(|why| format!("has {why}"));
            assert_eq!(found, expected, "{cell}");
        }
    }

    #[test]
    fn a_cell_has_a_value_of_its_type() {
        let texts = format!("<sst {MAIN}><si><t>a</t></si><si/><si><r><t>b</t></r></si></sst>");
        let (_, part) = read("xl/sharedstrings.xml", &texts).expect("texts");
        let value = |cell: &str| {
            let mut budget = Budget::default();
            let sheet = sheet(&format!("<row>{cell}</row>"));
            let reader = PartReader::new(sheet.as_bytes(), SHEET, 0, &mut budget);
            let mut reader = reader.expect("small");
            let cell = reader.next_cell().expect("well-formed").expect("a cell");
            let value = cell.value(&NumberFormats::default(), &part.texts);
            value.map(|value| format!("{value:?}")).ok()
        };
        for (cell, expected) in [
            ("<c t=\"s\"><v>0</v></c>", Some("Text(\"a\")")),
            ("<c r=\"A1\" t=\"s\"><v>1</v></c>", Some("Text(\"\")")),
            ("<c r=\"A1\" t=\"s\"><v>2</v></c>", Some("Text(\"b\")")),
            ("<c r=\"A1\" t=\"s\"><v>3</v></c>", None),
            ("<c t=\"s\"><v>x</v></c>", None),
            ("<c t=\"b\"><v> True </v></c>", Some("Boolean(true)")),
            ("<c t=\"b\"><v>0</v></c>", Some("Boolean(false)")),
            ("<c t=\"b\"><v>2</v></c>", None),
            ("<c t=\"b\"/>", Some("Empty")),
            ("<c><v>1e3</v></c>", Some("Number(\"1e3\")")),
            ("<c t=\"e\"><v>#N/A</v></c>", Some("Error(\"#N/A\")")),
            ("<c t=\"e\"><v>71.5</v></c>", None),
        ] {
            assert_eq!(value(cell).as_deref(), expected, "{cell}");
        }
    }

    #[test]
    fn parts_have_limits() {
        let text = format!("<a>{}</a>", " ".repeat(1000));
        let mut budget = Budget::default();
        let too_large = PartReader::new(text.as_bytes(), "a.xml", PART + 1, &mut budget);
        let why = too_large.err().expect("too large");
        assert_eq!(why.to_string(), "unpacks to more than 64 MiB");
        budget.bytes = 100;
        let sheet = sheet(&" ".repeat(200));
        let reader = PartReader::new(sheet.as_bytes(), SHEET, 0, &mut budget).expect("unknown");
        assert!(reader.finish().is_err());
        assert!(
            budget
                .skip(sheet.as_bytes(), "xl/worksheets/a.bin")
                .is_err()
        );
        assert!(budget.skip(sheet.as_bytes(), "a.bin").is_ok());
        assert!(budget.skip(&b"a"[..], "xl/worksheets/a.bin").is_err());
    }
}
