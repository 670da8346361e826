//! Measures the parts of a workbook while unpacking them, before calamine loads any.
//!
//! A few kilobytes can unpack to gigabytes. Sheets are read cell by cell and may have any size, as long as
//! each cell is small; other parts are loaded as a whole and have limits.

use std::io::{self, Read, Seek};

use memchr::{memchr, memchr3};
use zip::ZipArchive;
use zip::read::ZipFile;

use super::markup::{attribute, cell_at};
use super::package::{Package, PackagePart, Relation, SheetLink};
use super::usual::{self, UsualCell, UsualContent};
use super::values;
use super::wellformed::WellFormed;
use super::zip_structure;
use crate::formats::record::ReadError;
use crate::text;

/// The largest table of shared texts, and the largest other part except sheets.
const TEXTS: u64 = 512 << 20;
const PART: u64 = 64 << 20;
/// The largest workbook: a few megabytes may unpack to terabytes.
const ALL: u64 = 16 << 30;
/// The largest cell, tags included. Its text has at most 32,767 characters.
const CELL: u64 = 2 << 20;
/// The memory of a shared text besides its bytes.
const EACH_TEXT: u64 = 40;
/// The longest tag, and the longest number.
const TAG: usize = 64 << 10;
const NUMBER: usize = 1 << 10;

/// The memory for all links and references, and that of each besides its bytes.
const KEPT: usize = 64 << 20;
const EACH_KEPT: usize = 100;

/// Reads every part to its end. Rejects a workbook that would not fit into memory, has wrong checksums, or
/// contains formulas. Returns the references between its parts. A file that is not a zip archive is left to the
/// reader.
pub(super) fn check(mut bytes: impl Read + Seek) -> Result<Package, ReadError> {
    let mut package = Package::default();
    let hint = "the file is not an export, or was modified: export it again";
    let broken = |why: String| ReadError::broken(None, why, hint);
    zip_structure::check(&mut bytes).map_err(broken)?;
    let Ok(mut archive) = ZipArchive::new(bytes) else {
        return Ok(package);
    };
    let (mut total, mut kept) = (ALL, KEPT);
    for place in 0..archive.len() {
        let part = archive
            .by_index(place)
            .map_err(|error| broken(format!("the spreadsheet cannot be unpacked: {error}")))?;
        let name = normalized(part.name_raw());
        let is_sheet = name.contains("worksheets/") && !name.contains("/_rels/");
        let limits = ZipLimits {
            bytes: if is_sheet { total } else { PART },
            texts: name.ends_with("sharedstrings.xml"),
            cells: is_sheet,
            tags: matches!(name.rsplit_once('.'), Some((_, "xml" | "rels"))),
        };
        let mut measure = Measure {
            room: kept,
            ..Measure::default()
        };
        let read = measure.read(part, &limits);
        total = total.saturating_sub(measure.bytes);
        kept = measure.room;
        let added = read.and_then(|()| package.add(&name, measure.part));
        added
            .map_err(|why| broken(format!("`{}` in the spreadsheet {why}", text::brief(&name))))?;
    }
    package.check().map_err(broken)?;
    Ok(package)
}

/// Returns the name of a part in lower case.
fn normalized(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    name.to_lowercase().replace('\\', "/")
}

/// Opens the part whose name in lower case is `name`.
pub(super) fn find_part<'a, R: Read + Seek>(
    archive: &'a mut ZipArchive<R>,
    name: &str,
) -> Option<ZipFile<'a, R>> {
    let mut names = archive.file_names_raw();
    let place = names.position(|raw| normalized(raw) == name)?;
    drop(names);
    archive.by_index(place).ok()
}

struct ZipLimits {
    bytes: u64,
    /// Whether it contains the shared texts.
    texts: bool,
    /// Whether it is read cell by cell.
    cells: bool,
    /// Whether it is XML, whose tags refer to other parts.
    tags: bool,
}

/// The position of a byte in XML.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum XmlState {
    #[default]
    Text,
    /// In a tag, which is kept.
    Tag,
    /// In a tag, inside these quotes.
    Quoted(u8),
    /// In a comment, CDATA section or instruction, until this.
    Until(&'static [u8]),
}

/// What a cell contains: its number, its text, or something else.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum CellContent {
    Number,
    Text,
    #[default]
    Other,
}

#[derive(Default)]
struct Measure {
    state: XmlState,
    /// The current tag, or the end of a comment.
    kept: Vec<u8>,
    bytes: u64,
    texts: u64,
    /// The declared number of texts.
    declared: u64,
    /// The start of the current cell; `None` after the last one.
    cell: Option<u64>,
    /// The number of the current row, from 1; 0 before the first.
    row: u32,
    /// What its tags say.
    part: PackagePart,
    /// How many more bytes of it may be kept.
    room: usize,
    /// Whether text is the definition of a name.
    in_name: bool,
    content: CellContent,
    /// Whether text is the value of a number, and that value.
    in_number: bool,
    number: Vec<u8>,
    /// Whether the current list is that of cell formats.
    in_formats: bool,
    texts_in_cell: CellTexts,
    xml: WellFormed,
}

/// The parts of the current text.
#[derive(Default)]
struct CellTexts {
    /// The number of those without formats; `None` outside of a text.
    plain: Option<u32>,
    /// Whether the next part has formats.
    in_run: bool,
}

impl CellTexts {
    /// Rejects a text in several parts without formats: readers take different ones.
    fn add(&mut self, tag: &[u8], local: &[u8]) -> Result<(), String> {
        match local {
            b"is" | b"si" => {
                self.plain = Some(0);
                self.in_run = false;
            }
            b"/is" | b"/si" => self.plain = None,
            b"r" | b"rPh" => self.in_run = !tag.ends_with(b"/>"),
            b"/r" | b"/rPh" => self.in_run = false,
            b"t" if !self.in_run => self.plain = self.plain.map(|plain| plain + 1),
            _ => {}
        }
        if self.plain > Some(1) {
            return Err("has a text in several parts".to_owned());
        }
        Ok(())
    }
}

impl Measure {
    fn read(&mut self, mut part: impl Read, limits: &ZipLimits) -> Result<(), String> {
        self.cell = limits.cells.then_some(0);
        let mut room = vec![0; 64 * 1024];
        loop {
            let length = match part.read(&mut room) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(format!("cannot be unpacked: {error}")),
            };
            if limits.tags {
                self.xml.characters(&room[..length])?;
            }
            if limits.cells || limits.texts || limits.tags {
                self.scan(&room[..length], limits)?;
            } else {
                self.bytes += length as u64;
            }
            self.check_size(limits)?;
        }
        if self.declared > self.texts.saturating_mul(4).saturating_add(1 << 16) {
            return Err("declares far more texts than it has".to_owned());
        }
        if limits.tags {
            self.xml.finish()?;
        }
        Ok(())
    }

    fn check_size(&self, limits: &ZipLimits) -> Result<(), String> {
        let (size, limit) = if limits.texts {
            (self.bytes + self.texts * EACH_TEXT, TEXTS)
        } else {
            (self.bytes, limits.bytes)
        };
        if size > limit {
            return Err(format!("unpacks to more than {} MiB", limit >> 20));
        }
        self.check_cell(self.bytes)
    }

    /// Scans some bytes, tag by tag.
    fn scan(&mut self, bytes: &[u8], limits: &ZipLimits) -> Result<(), String> {
        let start = self.bytes;
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            match self.state {
                XmlState::Text if limits.tags && self.xml.is_in_row() => {
                    let usual = self.scan_usual(rest, start + at as u64)?;
                    at += usual;
                    if usual == 0 {
                        at += self.scan_text(rest, limits)?;
                    }
                }
                XmlState::Text => at += self.scan_text(rest, limits)?,
                XmlState::Tag => at += self.scan_tag(rest, start + at as u64, limits)?,
                XmlState::Quoted(quote) => {
                    let Some(found) = memchr(quote, rest) else {
                        self.keep(rest);
                        break;
                    };
                    self.keep(&rest[..=found]);
                    at += found + 1;
                    self.state = XmlState::Tag;
                }
                XmlState::Until(end) => {
                    self.kept.push(rest[0]);
                    at += 1;
                    if self.kept.ends_with(end) {
                        self.state = XmlState::Text;
                        if end == b"?>" && limits.tags {
                            self.xml.instruction(&self.kept)?;
                        }
                    } else if self.kept.len() > 512 {
                        self.kept.drain(..self.kept.len() - end.len());
                    }
                }
            }
        }
        self.bytes = start + bytes.len() as u64;
        Ok(())
    }

    /// Continues in text, up to the next tag; returns the number of bytes.
    fn scan_text(&mut self, rest: &[u8], limits: &ZipLimits) -> Result<usize, String> {
        let Some(found) = memchr(b'<', rest) else {
            self.keep_text(rest, limits)?;
            return Ok(rest.len());
        };
        self.keep_text(&rest[..found], limits)?;
        self.state = XmlState::Tag;
        self.kept.clear();
        Ok(found + 1)
    }

    /// Passes over cells and rows in the usual notation, which need no closer look; returns the number of bytes.
    fn scan_usual(&mut self, bytes: &[u8], place: u64) -> Result<usize, String> {
        let mut at = 0;
        loop {
            let rest = &bytes[at..];
            let (tag_end, length) = if let Some(cell) = UsualCell::parse(rest) {
                // References are checked one by one.
                if memchr(b'&', &rest[cell.value.clone()]).is_some() {
                    return Ok(at);
                }
                self.content = match cell.content {
                    UsualContent::Empty | UsualContent::Number => CellContent::Number,
                    UsualContent::Boolean => CellContent::Other,
                    UsualContent::Text { .. } => CellContent::Text,
                };
                self.check_cell_row(Some(cell.place))?;
                self.part.last_format = self.part.last_format.max(cell.format.map(u64::from));
                (cell.tag_end, cell.length)
            } else if let Some((row, length)) = usual::next_row(rest) {
                self.start_row(Some(row))?;
                (length - 1, length)
            } else {
                return Ok(at);
            };
            self.start_cell(place + (at + tag_end) as u64)?;
            at += length;
        }
    }

    /// Starts a row with this number; without one, it is the row after the last.
    fn start_row(&mut self, number: Option<u32>) -> Result<(), String> {
        let row = number.unwrap_or(self.row.saturating_add(1));
        if row <= self.row {
            return Err("has repeated or unordered rows".to_owned());
        }
        self.row = row;
        Ok(())
    }

    /// Checks that a cell is in the current row: some readers go by its own reference, others by that of the row.
    fn check_cell_row(&self, place: Option<(u32, u32)>) -> Result<(), String> {
        match place {
            Some((row, _)) if row.checked_add(1) == Some(self.row) => Ok(()),
            _ => Err("has a cell that belongs to another row".to_owned()),
        }
    }

    /// Checks the size of what ends with a tag at `place`, which is the first of a cell or a row.
    fn start_cell(&mut self, place: u64) -> Result<(), String> {
        self.check_cell(place)?;
        self.cell = self.cell.and(Some(place));
        Ok(())
    }

    /// Checks the size of the current cell, which reaches to `place`.
    fn check_cell(&self, place: u64) -> Result<(), String> {
        match self.cell {
            Some(start) if place - start > CELL => {
                Err(format!("has a cell of more than {} MiB", CELL >> 20))
            }
            _ => Ok(()),
        }
    }

    /// Continues in a tag; returns the number of bytes.
    fn scan_tag(&mut self, rest: &[u8], place: u64, limits: &ZipLimits) -> Result<usize, String> {
        // Comments and CDATA sections may contain anything: they are recognised by their start.
        if matches!(self.kept.first(), None | Some(b'!')) && self.kept.len() < 8 {
            self.kept.push(rest[0]);
            let until: Option<&[u8]> = match &self.kept[..] {
                b"!--" => Some(b"-->"),
                b"![CDATA[" => Some(b"]]>"),
                b"?" => Some(b"?>"),
                [.., b'>'] => {
                    self.end_tag(place, limits)?;
                    None
                }
                _ => None,
            };
            if let Some(end) = until {
                self.state = XmlState::Until(end);
                self.kept.clear();
            }
            return Ok(1);
        }
        let Some(found) = memchr3(b'"', b'\'', b'>', rest) else {
            self.keep(rest);
            return Ok(rest.len());
        };
        self.keep(&rest[..=found]);
        match rest[found] {
            b'>' => self.end_tag(place + found as u64, limits)?,
            quote => self.state = XmlState::Quoted(quote),
        }
        Ok(found + 1)
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = TAG.saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Checks text between tags, and keeps the definitions of names.
    fn keep_text(&mut self, bytes: &[u8], limits: &ZipLimits) -> Result<(), String> {
        if limits.tags {
            self.xml.text(bytes)?;
        }
        if self.in_name {
            self.take_room(bytes.len())?;
            if let Some((_, definition)) = self.part.names.last_mut() {
                definition.push_str(&String::from_utf8_lossy(bytes));
            }
        }
        if self.in_number {
            let room = NUMBER.saturating_sub(self.number.len());
            self.number
                .extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        Ok(())
    }

    /// Checks the value of a number: calamine would read another one as text.
    fn check_number(&mut self) -> Result<(), String> {
        let is_checked = std::mem::take(&mut self.in_number);
        let number = std::str::from_utf8(&self.number).unwrap_or("?").trim();
        if is_checked && !number.is_empty() && !values::is_number(number) {
            return Err("has a number that is not one".to_owned());
        }
        Ok(())
    }

    fn take_room(&mut self, size: usize) -> Result<(), String> {
        let rest = self.room.checked_sub(size + EACH_KEPT);
        self.room = rest.ok_or("has too many links or references")?;
        Ok(())
    }

    /// Keeps the references of a tag to other parts, and rejects formulas.
    fn keep_tag(&mut self, tag: &[u8], local: &[u8]) -> Result<(), String> {
        self.in_name = false;
        if self.part.root.is_empty() && !local.is_empty() && !b"?/!".contains(&local[0]) {
            self.part.root = String::from_utf8_lossy(local).into_owned();
        }
        if matches!(self.part.root.as_str(), "worksheet" | "sst") {
            self.texts_in_cell.add(tag, local)?;
        }
        let get = |name: &str| attribute(tag, self.xml.attributes(), name);
        let text = |name: &str| get(name).ok_or_else(|| format!("lacks an attribute `{name}`"));
        let is_open = !tag.ends_with(b"/>");
        let part = &mut self.part;
        match (part.root.as_str(), local) {
            ("worksheet", b"f" | b"formula" | b"formula1" | b"formula2") => {
                return Err("has a formula".to_owned());
            }
            ("worksheet", b"sheetData") => {
                self.row = 0;
                return Ok(());
            }
            ("worksheet", b"row") => {
                let number =
                    get("r").map(|number| row_number(&number).ok_or("has a row without a number"));
                return self.start_row(number.transpose()?);
            }
            ("worksheet", b"c") => return self.keep_cell(tag),
            ("worksheet", b"v") => {
                self.in_number = self.content == CellContent::Number && is_open;
                self.number.clear();
                return Ok(());
            }
            ("worksheet", b"/v") => return self.check_number(),
            ("worksheet", b"is") if self.content != CellContent::Text => {
                return Err("has text in a cell of another type".to_owned());
            }
            ("worksheet", b"hyperlink") => part.links.push(SheetLink {
                cells: text("ref")?,
                relation: get("id"),
                location: get("location"),
            }),
            ("worksheet", b"mergeCell") => part.merged = true,
            ("worksheet", b"dimension") => part.dimension = get("ref"),
            ("styleSheet", b"cellXfs" | b"/cellXfs") => {
                self.in_formats = local == b"cellXfs" && is_open;
                return Ok(());
            }
            ("styleSheet", b"xf") => {
                part.formats += u64::from(self.in_formats);
                return Ok(());
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
            ("workbook", b"sheet") => {
                let id = text("id")?;
                if get("state").is_some_and(|state| state != "visible") {
                    part.hidden.push(id.clone());
                }
                part.sheets.push((text("name")?, id));
            }
            ("workbook", b"definedName") => {
                part.names.push((text("name")?, String::new()));
                self.in_name = is_open;
            }
            _ => return Ok(()),
        }
        self.take_room(tag.len())
    }

    /// Keeps the format of a cell, and rejects unknown types and results of formulas.
    fn keep_cell(&mut self, tag: &[u8]) -> Result<(), String> {
        self.content = CellContent::Number;
        for attribute in self.xml.attributes() {
            let value = attribute.value(tag);
            match attribute.name(tag) {
                b"t" => {
                    self.content = match value {
                        b"n" => CellContent::Number,
                        b"b" | b"d" | b"e" | b"s" => CellContent::Other,
                        b"inlineStr" => CellContent::Text,
                        b"str" => return Err("has the result of a formula".to_owned()),
                        _ => return Err("has a cell of an unknown type".to_owned()),
                    }
                }
                b"r" => {
                    let place = std::str::from_utf8(value).ok().and_then(cell_at);
                    self.check_cell_row(place)?;
                }
                b"s" => {
                    let format = std::str::from_utf8(value)
                        .ok()
                        .and_then(|text| text.parse().ok());
                    let format: u64 = format.ok_or("has a cell without a format")?;
                    self.part.last_format = self.part.last_format.max(Some(format));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn end_tag(&mut self, place: u64, limits: &ZipLimits) -> Result<(), String> {
        self.state = XmlState::Text;
        let tag = std::mem::take(&mut self.kept);
        let local = local_name(&tag);
        // Checked at each tag, because one read may contain many cells.
        self.check_cell(place)?;
        match local {
            b"c" | b"row" => self.start_cell(place)?,
            // The rest is not read cell by cell.
            _ if local.ends_with(b"sheetData") && local[0] == b'/' => self.cell = None,
            _ => {}
        }
        if limits.texts {
            match local {
                b"si" => self.texts += 1,
                b"sst" => self.declared = self.declared.max(declared(&tag)),
                _ => {}
            }
        }
        if limits.tags {
            if tag.len() >= TAG {
                return Err(format!("has a tag of more than {} KiB", TAG >> 10));
            }
            if tag.starts_with(b"!") {
                return Err("declares entities".to_owned());
            }
            self.xml.tag(&tag)?;
            self.keep_tag(&tag, local)?;
        }
        self.kept = tag;
        Ok(())
    }
}

/// Returns the name of a tag without its prefix; the name of an end tag starts with a slash.
fn local_name(tag: &[u8]) -> &[u8] {
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"/>".contains(byte) && *byte != tag[0];
    let end = tag.iter().position(is_end);
    let name = &tag[..end.unwrap_or(tag.len())];
    match memchr(b':', name) {
        Some(colon) if name.first() != Some(&b'/') => &name[colon + 1..],
        _ => name,
    }
}

/// Parses the number of a row, from 1.
fn row_number(text: &str) -> Option<u32> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|row| is_number && *row > 0)
}

/// Returns the number of texts that a tag declares; the maximum if it cannot be read.
fn declared(tag: &[u8]) -> u64 {
    let tag = String::from_utf8_lossy(tag);
    if tag.len() >= TAG {
        return u64::MAX;
    }
    let Some((_, rest)) = tag.split_once("uniqueCount") else {
        return 0;
    };
    let rest = rest.trim_start_matches(['=', ' ', '"', '\'']);
    let end = rest.find(|letter: char| !letter.is_ascii_digit());
    let digits = &rest[..end.unwrap_or(rest.len())];
    if digits.is_empty() {
        0
    } else {
        digits.parse().unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHEET: ZipLimits = ZipLimits {
        bytes: u64::MAX,
        texts: false,
        cells: true,
        tags: false,
    };
    const TEXT: ZipLimits = ZipLimits {
        bytes: PART,
        texts: true,
        cells: false,
        tags: false,
    };

    fn measured(text: &str, limits: &ZipLimits) -> Result<Measure, String> {
        // In pieces of any size, as unpacking returns them.
        let mut measure = Measure::default();
        measure.read(text.as_bytes(), limits)?;
        for size in [1, 3, 7] {
            let mut again = Measure {
                cell: limits.cells.then_some(0),
                ..Measure::default()
            };
            for piece in text.as_bytes().chunks(size) {
                again.scan(piece, limits)?;
            }
            assert_eq!(again.texts, measure.texts);
            assert_eq!(again.cell.is_some(), measure.cell.is_some());
        }
        Ok(measure)
    }

    #[test]
    fn cells_and_everything_between_them_are_measured() {
        let long = "x".repeat(5 << 20);
        let cells = "<c r=\"A1\"><v>1</v></c>".repeat(1 << 18);
        let sheet = |inside: &str| format!("<worksheet><sheetData><row>{inside}</row></sheetData>");
        for (inside, fits) in [
            (cells.clone(), true),
            (format!("<c><is><t>{long}</t></is></c>"), false),
            (format!("<x:c t=\"{long}\"/>"), false),
            (format!("<!-- {} -->", "<c>".repeat(1 << 20)), false),
            (format!("<y z='{}'/>", "<c>".repeat(1 << 20)), false),
            (format!("<![CDATA[{}]]>", "<c>".repeat(1 << 20)), false),
            (format!("<?pi {}?>", "<c>".repeat(1 << 20)), false),
            (
                format!("<c><is>{}</is></c>", "<r><t>long</t></r>".repeat(1 << 18)),
                false,
            ),
        ] {
            let found = measured(&sheet(&inside), &SHEET).is_ok();
            assert_eq!(found, fits, "{}", &inside[..20]);
        }
        // Links after the cells are not measured.
        assert!(measured(&format!("{}{long}", sheet("<c/>")), &SHEET).is_ok());
    }

    #[test]
    fn rows_ascend_and_contain_their_own_cells() {
        let limits = ZipLimits {
            tags: true,
            ..SHEET
        };
        let check = |rows: &str| {
            let sheet = format!(
                "<worksheet xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\">\
                 <sheetData>{rows}</sheetData></worksheet>"
            );
            measured(&sheet, &limits).map(drop)
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
                assert_eq!(check(&rows(numbers)), Ok(()), "{numbers:?}");
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
                assert!(check(&rows(numbers)).is_err(), "{numbers:?}");
            }
        }
        let skipped = format!("<row r=\"2\"/><row>{}</row><row r=\"7\"/>", cell("A3"));
        assert_eq!(check(&skipped), Ok(()));
        assert!(check("<row r=\"2\"/><row r=\"2\"/>").is_err());
        assert!(check("<row><c r=\"A\"/></row>").is_err());
        assert_eq!(check("<row><c/><c r=\"B1\"/></row>"), Ok(()));
    }

    #[test]
    fn texts_are_counted_and_compared_with_the_declared_number() {
        let texts = "<si><t>a</t></si>".repeat(100);
        let found = measured(&format!("<sst uniqueCount=\"100\">{texts}</sst>"), &TEXT);
        assert_eq!(found.map(|found| found.texts), Ok(100));
        for count in ["9999999999", "99999999999999999999999"] {
            let text = format!("<sst count='1' uniqueCount = '{count}'>{texts}</sst>");
            assert!(measured(&text, &TEXT).is_err(), "{count}");
        }
    }
}
