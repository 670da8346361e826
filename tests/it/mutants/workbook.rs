//! Mutants of workbooks: one cell, one link, one member at a time.

use std::fs;
use std::io::{Cursor, Read as _, Write as _};

use fastrand::Rng;
use tempfile::TempDir;
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

use super::{Mutant, one_byte};
use crate::harness::trayscan;

const SHEET: &str = "xl/worksheets/sheet1.xml";
const LINKS: &str = "xl/worksheets/_rels/sheet1.xml.rels";

/// The number of one-cell mutants, and of one-byte mutants of members.
const CELLS: usize = 220;
const MEMBER_BYTES: usize = 180;

/// The members of a workbook, in order.
struct Book(Vec<(String, Vec<u8>)>);

impl Book {
    fn read(bytes: &[u8]) -> Self {
        let mut archive = ZipArchive::new(Cursor::new(bytes)).unwrap();
        let members = (0..archive.len()).map(|place| {
            let mut member = archive.by_index(place).unwrap();
            let mut content = Vec::new();
            member.read_to_end(&mut content).unwrap();
            (member.name().unwrap().into_owned(), content)
        });
        Self(members.collect())
    }

    fn write(&self) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, content) in &self.0 {
            writer
                .start_file(name, SimpleFileOptions::default())
                .unwrap();
            writer.write_all(content).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    /// Returns the data sheet: the one with the first batch.
    fn sheet(&self) -> (String, String) {
        let sheets = self
            .0
            .iter()
            .filter(|(name, _)| name.starts_with("xl/worksheets/sheet"));
        let (name, content) = sheets
            .filter(|(_, content)| memchr::memmem::find(content, b"9b46a450").is_some())
            .max_by_key(|(_, content)| content.len())
            .unwrap();
        (name.clone(), String::from_utf8(content.clone()).unwrap())
    }

    fn text(&self, name: &str) -> Option<String> {
        let member = self.0.iter().find(|(other, _)| other == name)?;
        Some(String::from_utf8(member.1.clone()).unwrap())
    }

    /// Returns the workbook with one member replaced.
    fn with(&self, name: &str, content: impl Into<Vec<u8>>) -> Vec<u8> {
        let content = content.into();
        let members = self.0.iter().map(|(other, old)| {
            let content = if other == name { &content } else { old };
            (other.clone(), content.clone())
        });
        Self(members.collect()).write()
    }
}

pub(super) fn mutants(rng: &mut Rng, original: &[u8]) -> Vec<Mutant> {
    let book = Book::read(original);
    let mut mutants = vec![Mutant::new("member", "packed again", book.write()).same()];
    let (sheet, content) = book.sheet();
    assert!(sheet == SHEET || book.text(&sheet).is_some());
    let mut cells = cell_mutants(&sheet, &content, &book);
    rng.shuffle(&mut cells);
    cells.truncate(CELLS);
    mutants.append(&mut cells);
    mutants.extend(link_mutants(&sheet, &content, &book));
    mutants.extend(parts(&sheet, &content, &book));
    for (what, bytes) in forgeries(&book) {
        mutants.push(Mutant::new("forgery", what, bytes));
    }
    mutants.extend(checksums(original));
    for _ in 0..MEMBER_BYTES {
        let (name, content) = &book.0[rng.usize(..book.0.len())];
        let [mutant] = one_byte(rng, content, 0..content.len(), 1, "byte of a member")
            .try_into()
            .unwrap_or_else(|_| panic!("expected one mutant"));
        let what = format!("{name}, {}", mutant.what);
        mutants.push(Mutant::new(
            "byte of a member",
            what,
            book.with(name, mutant.bytes),
        ));
    }
    mutants
}

/// Returns the XML of each cell.
fn cells(content: &str) -> Vec<&str> {
    let starts = content.match_indices("<c r=\"").map(|(start, _)| start);
    let cell = |start: usize| {
        let rest = &content[start..];
        let end = rest
            .find("</c>")
            .map_or(rest.len(), |end| end + "</c>".len());
        &rest[..end]
    };
    starts
        .map(cell)
        .filter(|cell| !cell[..cell.find('>').unwrap_or(0)].ends_with('/'))
        .collect()
}

fn between<'a>(text: &'a str, from: &str, to: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(from)?;
    rest.split_once(to).map(|(between, _)| between)
}

fn cell_mutants(sheet: &str, content: &str, book: &Book) -> Vec<Mutant> {
    let mut mutants = Vec::new();
    for cell in cells(content) {
        let name = between(cell, "r=\"", "\"").unwrap();
        let mut add = |kind: &'static str, what: &str, other: String| {
            let content = content.replacen(cell, &other, 1);
            let what = format!("{name}: {what}");
            mutants.push(Mutant::new(kind, what, book.with(sheet, content)));
        };
        add("cell", "removed", String::new());
        let more = format!(
            "{cell}<c r=\"Z{}\" t=\"inlineStr\"><is><t>more</t></is></c>",
            name.trim_start_matches(|letter: char| letter.is_alphabetic())
        );
        if name.starts_with('R') {
            add("extra cell", "one behind it", more);
        }
        if let Some(value) = between(cell, "<v>", "</v>") {
            let whole = format!("<v>{value}</v>");
            add(
                "cell",
                "another number",
                cell.replacen(&whole, &format!("<v>{value}1</v>"), 1),
            );
            add("cell", "no value", cell.replacen(&whole, "", 1));
            add(
                "formula",
                "a formula",
                cell.replacen(&whole, &format!("<f>1+1</f>{whole}"), 1),
            );
            let style = between(cell, "s=\"", "\"").unwrap_or("0");
            let text = format!(
                "<c r=\"{name}\" s=\"{style}\" t=\"inlineStr\"><is><t>{value}</t></is></c>"
            );
            add("type", "text", text);
            add(
                "type",
                "an error",
                format!("<c r=\"{name}\" t=\"e\"><v>#N/A</v></c>"),
            );
            add(
                "type",
                "no style",
                format!("<c r=\"{name}\"><v>{value}</v></c>"),
            );
            add(
                "type",
                "a boolean",
                format!("<c r=\"{name}\" t=\"b\"><v>1</v></c>"),
            );
        } else if let Some(text) = between(cell, "<is>", "</is>") {
            let plain = between(text, ">", "</t>").unwrap_or_default().to_owned();
            add(
                "cell",
                "another text",
                cell.replacen(&plain, &format!("{plain}x"), 1),
            );
            add(
                "formula",
                "a formula",
                format!("<c r=\"{name}\" t=\"str\"><f>\"{plain}\"</f><v>{plain}</v></c>"),
            );
            add(
                "formula",
                "a formula without a value",
                format!("<c r=\"{name}\" t=\"inlineStr\"><f>1+1</f><is>{text}</is></c>"),
            );
            add("type", "a number", format!("<c r=\"{name}\"><v>7</v></c>"));
            add(
                "cell",
                "rich text",
                cell.replacen(
                    &format!("<is>{text}</is>"),
                    &format!("<is><r><t>{plain}</t></r><r><t>!</t></r></is>"),
                    1,
                ),
            );
        }
    }
    mutants
}

fn link_mutants(sheet: &str, content: &str, book: &Book) -> Vec<Mutant> {
    let links = sheet.replace("worksheets/", "worksheets/_rels/") + ".rels";
    let targets = book
        .text(&links)
        .or_else(|| book.text(LINKS))
        .unwrap_or_default();
    let mut mutants = Vec::new();
    for (place, _) in targets.match_indices("https://scan.example.com") {
        let (before, behind) = targets.split_at(place);
        for (what, other) in [
            (
                "another host",
                behind.replacen("scan.example.com", "evil.example.com", 1),
            ),
            (
                "another scheme",
                behind.replacen("https://scan.example.com", "file:///etc/passwd?", 1),
            ),
            ("another page", behind.replacen("9b46a450", "9b46a451", 1)),
        ] {
            mutants.push(Mutant::new(
                "link",
                what,
                book.with(&links, format!("{before}{other}")),
            ));
        }
    }
    for link in content
        .match_indices("<hyperlink ")
        .map(|(start, _)| &content[start..])
    {
        let link = &link[..link.find("/>").unwrap() + 2];
        let gone = content.replacen(link, "", 1);
        mutants.push(Mutant::new(
            "link",
            format!("{link} removed"),
            book.with(sheet, gone),
        ));
        let other = between(link, "r:id=\"", "\"").unwrap();
        let first = if other == "rId1" { "rId2" } else { "rId1" };
        let swapped = content.replacen(
            link,
            &link.replace(&format!("\"{other}\""), &format!("\"{first}\"")),
            1,
        );
        mutants.push(Mutant::new(
            "link",
            format!("{link} to {first}"),
            book.with(sheet, swapped),
        ));
    }
    mutants
}

/// Mutants with members that are missing, repeated or inconsistent with the sheets.
fn parts(sheet: &str, content: &str, book: &Book) -> Vec<Mutant> {
    let mut mutants = Vec::new();
    for place in 0..book.0.len() {
        let name = &book.0[place].0;
        let mut members = book.0.clone();
        members.remove(place);
        let without = Book(members).write();
        mutants.push(Mutant::new("member", format!("{name} removed"), without));
        mutants.push(Mutant::new(
            "member",
            format!("{name} empty"),
            book.with(name, ""),
        ));
        let content = &book.0[place].1;
        let half = content[..content.len() / 2].to_vec();
        mutants.push(Mutant::new(
            "member",
            format!("{name} cut"),
            book.with(name, half),
        ));
    }
    let merged = "</sheetData><mergeCells count=\"1\"><mergeCell ref=\"A2:B9\"/></mergeCells>";
    let merged = content.replacen("</sheetData>", merged, 1);
    mutants.push(Mutant::new(
        "sheet",
        "merged cells",
        book.with(sheet, merged),
    ));
    let workbook = book.text("xl/workbook.xml").unwrap();
    for (what, from, to) in [
        (
            "dates count from 1904",
            "<workbookPr ",
            "<workbookPr date1904=\"1\" ",
        ),
        ("renamed", "name=\"Batches\"", "name=\"Batchez\""),
    ] {
        let other = workbook.replacen(from, to, 1);
        mutants.push(Mutant::new(
            "sheet",
            what,
            book.with("xl/workbook.xml", other),
        ));
    }
    mutants
}

/// Flips a bit in each checksum, in the local header and in the central directory.
fn checksums(original: &[u8]) -> Vec<Mutant> {
    let mut mutants = Vec::new();
    for (signature, offset) in [(b"PK\x03\x04", 14), (b"PK\x01\x02", 16)] {
        for place in memchr::memmem::find_iter(original, signature) {
            let mut bytes = original.to_vec();
            bytes[place + offset] ^= 1;
            mutants.push(Mutant::new(
                "checksum",
                format!("at {}", place + offset),
                bytes,
            ));
        }
    }
    mutants
}

const BOOK: &str = "xl/workbook.xml";
const TARGETS: &str = "xl/_rels/workbook.xml.rels";
const RULE: &str = "</sheetData><conditionalFormatting sqref=\"A1\"><cfRule type=\"expression\" priority=\"1\">\
    <formula>WEBSERVICE(A1)</formula></cfRule></conditionalFormatting>";
const CHOICE: &str = "</sheetData><dataValidations><dataValidation sqref=\"A1\"><formula1>A1</formula1>\
    </dataValidation></dataValidations>";
const MORE: &str = "<extLst><ext uri=\"x\"><sheetData><row r=\"99\"><c r=\"A99\"><v>1</v></c></row></sheetData>\
    </ext></extLst></worksheet>";

/// Names in another namespace or in another place, which other programs do not take for what they seem: what it is,
/// the member, and what is replaced by what.
const FORGERIES: [(&str, &str, &str, &str); 22] = [
    (
        "a row in another namespace",
        SHEET,
        "<row r=\"3\"",
        "<row xmlns=\"urn:y\" r=\"3\"",
    ),
    (
        "a cell in another namespace",
        SHEET,
        "<c r=\"B2\"",
        "<c xmlns=\"urn:y\" r=\"B2\"",
    ),
    (
        "a cell with a prefix",
        SHEET,
        "<c r=\"B2\"",
        "<y:c xmlns:y=\"urn:y\"/><c r=\"B2\"",
    ),
    ("two values", SHEET, "<v>", "<v>777</v><v>"),
    (
        "a value with a prefix",
        SHEET,
        "<v>",
        "<y:v xmlns:y=\"urn:y\">777</y:v><v>",
    ),
    (
        "a value in another namespace",
        SHEET,
        "<v>",
        "<v xmlns=\"urn:y\">",
    ),
    (
        "a text in another namespace",
        SHEET,
        "<t>",
        "<t xmlns=\"urn:y\">",
    ),
    ("more rows elsewhere", SHEET, "</worksheet>", MORE),
    (
        "two lists of rows",
        SHEET,
        "</sheetData>",
        "</sheetData><sheetData/>",
    ),
    ("a rule with a formula", SHEET, "</sheetData>", RULE),
    ("a choice with a formula", SHEET, "</sheetData>", CHOICE),
    (
        "a link without its namespace",
        SHEET,
        "r:id=",
        "xmlns:y=\"urn:y\" y:id=",
    ),
    ("a link without a prefix", SHEET, "r:id=", "id="),
    (
        "a link with another meaning of r",
        SHEET,
        "r:id=",
        "xmlns:r=\"urn:y\" r:id=",
    ),
    (
        "a link with two places",
        SHEET,
        "<hyperlink ref=",
        "<hyperlink xmlns:y=\"urn:y\" y:ref=\"A3\" ref=",
    ),
    (
        "a link with two targets",
        LINKS,
        " Target=",
        " xmlns:y=\"urn:y\" y:Target=\"https://evil.example/\" Target=",
    ),
    (
        "a sheet with two targets",
        TARGETS,
        " Target=",
        " xmlns:y=\"urn:y\" y:Target=\"worksheets/sheet9.xml\" Target=",
    ),
    (
        "a sheet with two parts",
        BOOK,
        " r:id=",
        " xmlns:y=\"urn:y\" y:id=\"rId2\" r:id=",
    ),
    (
        "another epoch, on",
        BOOK,
        "<workbookPr ",
        "<workbookPr date1904=\"on\" ",
    ),
    (
        "another epoch, 2",
        BOOK,
        "<workbookPr ",
        "<workbookPr date1904=\"2\" ",
    ),
    (
        "another epoch, as a reference",
        BOOK,
        "<workbookPr ",
        "<workbookPr date1904=\"&#49;\" ",
    ),
    (
        "another epoch, with a prefix",
        BOOK,
        "<workbookPr ",
        "<workbookPr xmlns:y=\"urn:y\" y:date1904=\"0\" ",
    ),
];

fn forgeries(book: &Book) -> Vec<(&'static str, Vec<u8>)> {
    let forged = FORGERIES.map(|(what, member, from, to)| {
        let text = book.text(member).unwrap();
        assert!(text.contains(from), "{what}: {from}");
        (what, book.with(member, text.replacen(from, to, 1)))
    });
    forged.into()
}

#[test]
fn forged_names_are_found() {
    let folder = TempDir::new().unwrap();
    for name in ["a.xlsx", "a.ndjson"] {
        let args = ["export", "--sandbox", "--limit", "20", "-q", "-o", name];
        let ended = trayscan(&args).current_dir(folder.path()).output();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    }
    let book = Book::read(&fs::read(folder.path().join("a.xlsx")).unwrap());
    let same = ("the same", book.write());
    for (what, bytes) in forgeries(&book).into_iter().chain([same]) {
        fs::write(folder.path().join("b.xlsx"), bytes).unwrap();
        let args = ["verify", "b.xlsx", "--against", "a.ndjson"];
        let ended = trayscan(&args).current_dir(folder.path()).output();
        let code = if what == "the same" { 0 } else { 7 };
        assert_eq!(ended.code, Some(code), "{what}: {}", ended.stderr);
        assert!(
            !ended.stderr.contains("well-formed"),
            "{what}: {}",
            ended.stderr
        );
    }
}
