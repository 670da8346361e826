//! Workbooks: their parts, checksums, formulas, links and cells.

use std::collections::BTreeMap;
use std::io::{Cursor, Read as _, Write as _};

use super::{Exported, replaced};

/// The parts of a workbook, in order.
struct Parts(Vec<(String, String)>);

impl Parts {
    fn of(book: &[u8]) -> Self {
        let mut archive = zip::ZipArchive::new(Cursor::new(book)).unwrap();
        let mut parts = Vec::new();
        for place in 0..archive.len() {
            let mut part = archive.by_index(place).unwrap();
            let mut text = String::new();
            part.read_to_string(&mut text).unwrap();
            let name = String::from_utf8(part.name_raw().to_vec()).unwrap();
            parts.push((name, text));
        }
        Self(parts)
    }

    fn without(mut self, name: &str) -> Self {
        self.0.retain(|(other, _)| other != name);
        self
    }

    fn with(mut self, name: &str, text: &str) -> Self {
        self.0.push((name.to_owned(), text.to_owned()));
        self
    }

    #[track_caller]
    fn replace(mut self, name: &str, from: &str, to: &str) -> Self {
        let (_, text) = self.0.iter_mut().find(|(other, _)| other == name).unwrap();
        assert!(text.contains(from), "{from} is not in {text}");
        *text = text.replacen(from, to, 1);
        self
    }

    fn pack(&self) -> Vec<u8> {
        let mut packed = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let options = zip::write::SimpleFileOptions::default();
        for (name, text) in &self.0 {
            packed.start_file(name, options).unwrap();
            packed.write_all(text.as_bytes()).unwrap();
        }
        packed.finish().unwrap().into_inner()
    }
}

const SHEET: &str = "xl/worksheets/sheet1.xml";
const LINKS: &str = "xl/worksheets/_rels/sheet1.xml.rels";
const OTHER_SHEET: &str = "<worksheet xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\"><sheetData/></worksheet>";
const BOOK: &str = "xl/workbook.xml";
const BOOK_LINKS: &str = "xl/_rels/workbook.xml.rels";

#[test]
fn a_workbook_must_have_all_parts() {
    let export = Exported::new("a.xlsx", &[]);
    let parts = || Parts::of(&export.bytes);
    export.assert_equal(&parts().pack());
    for (what, altered, why) in [
        (
            "types",
            parts().without("[Content_Types].xml"),
            "lacks its part `[Content_Types].xml`",
        ),
        (
            "references",
            parts().without("_rels/.rels"),
            "lacks its part `_rels/.rels`",
        ),
        (
            "book references",
            parts().without(BOOK_LINKS),
            "lacks its part `xl/_rels/workbook.xml.rels`",
        ),
        (
            "styles",
            parts().without("xl/styles.xml"),
            "lacks its part `xl/styles.xml`",
        ),
        (
            "properties",
            parts().without("docProps/app.xml"),
            "lacks its part `docprops/app.xml`",
        ),
        (
            "twice",
            parts().with("XL/workbook.xml", "<x/>"),
            "appears twice",
        ),
        (
            "no type",
            parts().with("xl/vbaProject.bin", "x"),
            "has no type for its part `xl/vbaproject.bin`",
        ),
        (
            "wrong type",
            parts().replace("[Content_Types].xml", "sheet.main+xml", "template.main+xml"),
            "has the wrong type for its part `xl/workbook.xml`",
        ),
        (
            "macros",
            parts().replace(
                "[Content_Types].xml",
                "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml",
                "application/vnd.ms-excel.sheet.macroEnabled.main+xml",
            ),
            "contains macros",
        ),
        (
            "external",
            parts().replace(
                BOOK_LINKS,
                "relationships/theme",
                "relationships/externalLink",
            ),
            "a part of type `externallink`",
        ),
        (
            "outside",
            parts().replace(LINKS, "relationships/hyperlink", "relationships/image"),
            "refers to an external file",
        ),
    ] {
        export.assert_refused(what, &altered.pack(), why);
    }
}

#[test]
fn readers_must_find_the_same_texts_formats_and_sheets() {
    const STYLES: &str = "xl/styles.xml";
    let export = Exported::new("a.xlsx", &[]);
    let parts = || Parts::of(&export.bytes);
    let styles = parts().0.into_iter().find(|(name, _)| name == STYLES);
    let (_, styles) = styles.unwrap();
    let types = "[Content_Types].xml";
    let moved = parts()
        .replace(BOOK_LINKS, "styles.xml", "other.xml")
        .replace(types, "/xl/styles.xml", "/xl/other.xml")
        .without(STYLES)
        .with("xl/other.xml", &styles);
    let place = "has its `styleSheet` in another place than `xl/styles.xml`";
    export.assert_refused("styles", &moved.pack(), place);
    let hidden = "name=\"Batches\" sheetId=\"1\" state=\"veryHidden\"";
    let hidden = parts().replace(BOOK, "name=\"Batches\" sheetId=\"1\"", hidden);
    export.assert_refused("hidden", &hidden.pack(), "the sheet `Batches` is hidden");
    let decoy = parts().replace(BOOK, "name=\"Summary\"", "name=\"Batches \"");
    export.assert_refused("decoy", &decoy.pack(), "has two sheets `Batches");
    let split = parts().replace(SHEET, "<t>Tray</t>", "<t>Tr</t><t>ay</t>");
    export.assert_refused("split", &split.pack(), "has a text in several parts");
}

#[test]
fn people_see_the_values_of_a_workbook() {
    const STYLES: &str = "xl/styles.xml";
    let export = Exported::new("a.xlsx", &[]);
    let styles = |from: &str, to: &str| {
        let altered = Parts::of(&export.bytes).replace(STYLES, from, to);
        altered.pack()
    };
    let code = |code: &str| format!("formatCode=\"{code}\"");
    let why = "on the sheet `Batches` shows something else than its value";
    for (from, to) in [
        ("yyyy-mm-dd hh:mm:ss", "&quot;2020&quot;-mm-dd hh:mm:ss"),
        (";;;&quot;Crop&quot;", ";;;&quot;Comment&quot;"),
        (";;;&quot;Crop&quot;", ";;;"),
        ("0.00", "0.00%"),
        ("0.00", "0"),
        ("0.00", "0;-0.00"),
        ("0.00", "0E+00"),
    ] {
        export.assert_refused(to, &styles(&code(from), &code(to)), why);
    }
    let other_signs = "yyyy\\-mm\\-dd\\ hh:mm:ss;@";
    export.assert_equal(&styles(&code("yyyy-mm-dd hh:mm:ss"), &code(other_signs)));
    for other in ["#,##0.00", "General", "0.000"] {
        export.assert_equal(&styles(&code("0.00"), &code(other)));
    }
}

#[test]
fn the_first_sheet_is_one_of_the_export() {
    let export = Exported::new("a.xlsx", &[]);
    let kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet";
    let link = format!(
        "<Relationship Id=\"rId99\" Type=\"{kind}\" Target=\"worksheets/sheet9.xml\"/></Relationships>"
    );
    let name = "<Override PartName=\"/xl/worksheets/sheet9.xml\" ContentType=\"application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml\"/></Types>";
    let added = || {
        Parts::of(&export.bytes)
            .replace(BOOK_LINKS, "</Relationships>", &link)
            .replace("[Content_Types].xml", "</Types>", name)
            .with("xl/worksheets/sheet9.xml", OTHER_SHEET)
    };
    let sheet = "<sheet name=\"Data\" sheetId=\"9\" r:id=\"rId99\"/>";
    let first = added().replace(BOOK, "<sheets>", &format!("<sheets>{sheet}"));
    let last = added().replace(BOOK, "</sheets>", &format!("{sheet}</sheets>"));
    export.assert_equal(&last.pack());
    let why = "the sheet `Data` is before the sheet `Batches`";
    export.assert_refused("first", &first.pack(), why);
}

#[test]
fn every_part_of_a_workbook_must_match_its_checksum() {
    let export = Exported::new("a.xlsx", &[]);
    let crc = |name: &str| {
        let mut archive = zip::ZipArchive::new(Cursor::new(&export.bytes)).unwrap();
        let part = archive.by_name(name).unwrap();
        part.crc32().to_le_bytes()
    };
    // Changed in both headers, and in only one.
    for name in ["docProps/app.xml", "xl/theme/theme1.xml", SHEET] {
        let (right, mut wrong) = (crc(name), crc(name));
        wrong[0] ^= 1;
        let one = replaced(&export.bytes, 0, &right, &wrong);
        export.assert_refused(name, &one, "readers could see different parts");
        let both = replaced(&one, 0, &right, &wrong);
        let why = format!(
            "`{}` in the spreadsheet cannot be unpacked",
            name.to_lowercase()
        );
        export.assert_refused(name, &both, &why);
    }
}

#[test]
fn a_workbook_must_be_an_unambiguous_zip() {
    let export = Exported::new("a.xlsx", &[]);
    let differently = "readers could see different parts";
    let before = [b"PK\x03\x04 and so on", &export.bytes[..]].concat();
    export.assert_refused("before", &before, differently);
    let name = replaced(
        &export.bytes,
        0,
        SHEET.as_bytes(),
        b"xl/worksheets/sheet9.xml",
    );
    export.assert_refused("name", &name, differently);
    let behind = [&export.bytes[..], b"more"].concat();
    for ended in export.verify(&behind) {
        assert_eq!(ended.code, Some(7), "{ended:?}");
    }
}

#[test]
fn a_workbook_must_not_contain_formulas() {
    let export = Exported::new("a.xlsx", &[]);
    let parts = || Parts::of(&export.bytes);
    let cell = "<is><t>=1+1</t></is></c>";
    let name = "<definedNames><definedName name=\"mine\">CALL(\"x\")</definedName>";
    for (what, altered, why) in [
        (
            "formula",
            parts().replace(SHEET, cell, "<f>1+1</f><v>=1+1</v></c>"),
            "`xl/worksheets/sheet1.xml` in the spreadsheet has a formula",
        ),
        (
            "formula elsewhere",
            parts().replace(
                "xl/worksheets/sheet2.xml",
                "<c ",
                "<c r=\"A1\"><f>1</f></c><c ",
            ),
            "`xl/worksheets/sheet2.xml` in the spreadsheet has a formula",
        ),
        (
            "name",
            parts().replace(BOOK, "<definedNames>", name),
            "defines the name `mine` as a formula",
        ),
        (
            "entities",
            parts().replace(
                SHEET,
                "<worksheet",
                "<!DOCTYPE x [<!ENTITY a \"b\">]><worksheet",
            ),
            "declares entities",
        ),
    ] {
        export.assert_refused(what, &altered.pack(), why);
    }
    let at = parts()
        .0
        .iter()
        .find(|(name, _)| name == SHEET)
        .unwrap()
        .1
        .clone();
    let at = at
        .split(cell)
        .next()
        .unwrap()
        .rsplit("<c ")
        .next()
        .unwrap()
        .to_owned();
    let typed = format!("<c {}<v>=1+1</v></c>", at.replace("inlineStr", "str"));
    let result = parts().replace(SHEET, &format!("<c {at}{cell}"), &typed);
    export.assert_refused("result", &result.pack(), "has the result of a formula");
}

#[test]
fn links_must_match_their_cells() {
    let export = Exported::new("a.xlsx", &[]);
    let parts = || Parts::of(&export.bytes);
    let host = parts().replace(
        LINKS,
        "https://scan.example.com",
        "https://scan.example.org",
    );
    let why = "of the sheet `Batches` does not lead to the address in the cell";
    export.assert_refused("host", &host.pack(), why);
    let swapped = parts().replace(SHEET, "r:id=\"rId1\"", "r:id=\"rId2\"");
    export.assert_refused("swapped", &swapped.pack(), why);
    let place = parts().replace(SHEET, "r:id=\"rId1\"", "r:id=\"rId1\" location=\"x\"");
    export.assert_refused("location", &place.pack(), why);
    let inside = parts().replace(SHEET, "r:id=\"rId1\"", "location=\"About!A1\"");
    export.assert_refused("inside", &inside.pack(), "has a link without a target");
    let lost = parts().replace(SHEET, "ref=\"P2\" r:id", "ref=\"P99\" r:id");
    export.assert_refused(
        "lost",
        &lost.pack(),
        "the link in P99 of the sheet `Batches` does not lead to the address in the cell",
    );
    // A cell without its link still has its text.
    let dead = parts().replace(SHEET, "<hyperlink ref=\"P2\" r:id=\"rId1\"/>", "");
    export.assert_equal(&dead.pack());
}

#[test]
fn filters_rules_and_views_of_excel_change_no_batch() {
    let export = Exported::new("a.xlsx", &[]);
    let filter = "<autoFilter ref=\"A1:R4\"><filterColumn colId=\"3\"><filters blank=\"1\">\
        <filter val=\"Basil\"/></filters></filterColumn><filterColumn colId=\"8\">\
        <customFilters and=\"1\"><customFilter operator=\"greaterThan\" val=\"20\"/>\
        <customFilter operator=\"lessThan\" val=\"90\"/></customFilters></filterColumn>\
        <filterColumn colId=\"2\"><dynamicFilter type=\"lastMonth\" valIso=\"2026-04-01T00:00:00\" \
        maxValIso=\"2026-05-01T00:00:00\"/></filterColumn></autoFilter>";
    let rule = "<conditionalFormatting sqref=\"I2:I4\"><cfRule type=\"aboveAverage\" priority=\"1\" \
        aboveAverage=\"0\"/></conditionalFormatting><pageMargins";
    let view = "<customWorkbookViews><customWorkbookView name=\"x\" \
        guid=\"{00000000-0000-0000-0000-000000000001}\" maximized=\"1\" windowWidth=\"1\" \
        windowHeight=\"1\" activeSheetId=\"1\"/></customWorkbookViews><pivotCaches>\
        <pivotCache cacheId=\"1\"/></pivotCaches></workbook>";
    let edited = Parts::of(&export.bytes)
        .replace(SHEET, "<autoFilter ref=\"A1:R4\"/>", filter)
        .replace(SHEET, "<pageMargins", rule)
        .replace("xl/workbook.xml", "</workbook>", view);
    export.assert_equal(&edited.pack());
}

#[test]
fn a_sheet_must_not_have_cells_outside_its_table() {
    let export = Exported::new("a.xlsx", &[]);
    let parts = || Parts::of(&export.bytes);
    let more = |cell: &str| {
        parts().replace(
            SHEET,
            "</row></sheetData>",
            &format!("{cell}</row></sheetData>"),
        )
    };
    let wide = |parts: Parts| parts.replace(SHEET, "A1:R4", "A1:Z9");
    for (what, altered, why) in [
        (
            "beside",
            wide(more("<c r=\"Z4\"><v>1</v></c>")),
            "has a value in Z4, which is not in a column of the header",
        ),
        (
            "below",
            wide(parts().replace(
                SHEET,
                "</sheetData>",
                "<row r=\"7\"><c r=\"Z7\"><v>1</v></c></row></sheetData>",
            )),
            "has a value in Z7, which is not in a column of the header",
        ),
        (
            "twice",
            more("<c r=\"R4\" t=\"b\"><v>0</v></c>"),
            "has repeated or unordered cells, at R4",
        ),
        (
            "row twice",
            parts().replace(SHEET, "<row r=\"3\"", "<row r=\"2\""),
            "has repeated or unordered rows",
        ),
        (
            "other row",
            parts().replace(SHEET, "<row r=\"4\"", "<row r=\"5\""),
            "has a cell that belongs to another row",
        ),
        (
            "range",
            parts().replace(SHEET, "A1:R4", "A1:R3"),
            "a cell outside its declared range: R4",
        ),
        (
            "merged",
            parts().replace(
                SHEET,
                "</sheetData>",
                "</sheetData><mergeCells count=\"1\"><mergeCell ref=\"A2:R4\"/></mergeCells>",
            ),
            "has merged cells",
        ),
    ] {
        export.assert_refused(what, &altered.pack(), why);
    }
}

#[test]
fn cells_of_a_workbook_have_the_types_of_their_columns() {
    let export = Exported::new("a.xlsx", &[]);
    let parts = || Parts::of(&export.bytes);
    let sheet = parts()
        .0
        .into_iter()
        .find(|(name, _)| name == SHEET)
        .unwrap()
        .1;
    let cells: BTreeMap<&str, &str> = sheet
        .split("<c ")
        .skip(1)
        .map(|cell| {
            let (cell, _) = cell.split_once("</c>").unwrap_or((cell, ""));
            (cell.split('"').nth(1).unwrap(), cell)
        })
        .collect();
    let altered = |place: &str, to: &str| {
        let cell = cells[place];
        let (attributes, _) = cell.split_once('>').unwrap();
        let style = attributes
            .split("s=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        let to = to.replace("STYLE", style);
        let altered = parts().replace(
            SHEET,
            &format!("<c {cell}</c>"),
            &format!("<c r=\"{place}\" {to}</c>"),
        );
        altered.pack()
    };
    let text = |text: &str| format!("s=\"STYLE\" t=\"inlineStr\"><is><t>{text}</t></is>");
    for (place, to, why) in [
        (
            "E2",
            text("12"),
            "`number_of_images` in E2 of the sheet `Batches` is text",
        ),
        (
            "I2",
            text("87.5"),
            "`avg_germination_rate` in I2 of the sheet `Batches` is text",
        ),
        (
            "C2",
            text("2026-05-01T06:00:00Z"),
            "`batch_creation_date` in C2 of the sheet `Batches` is text",
        ),
        (
            "R2",
            text("false"),
            "`warnings` in R2 of the sheet `Batches` is text",
        ),
    ] {
        export.assert_mistyped(place, &altered(place, &to), why);
    }
    let number = altered("C2", "><v>46143.25</v>");
    export.assert_refused("C2", &number, "is not formatted as a date");
}

#[test]
fn parts_of_a_workbook_must_be_valid_xml() {
    let export = Exported::new("a.xlsx", &[]);
    let parts = || Parts::of(&export.bytes);
    let core = "docProps/core.xml";
    let malformed = "is not well-formed XML";
    for (what, altered, why) in [
        (
            "end tag",
            parts().replace(core, "</cp:lastModifiedBy>", "</cp:lastModifiedCy>"),
            malformed,
        ),
        (
            "declaration",
            parts().replace(core, "standalone=\"yes\"", "standalone=&yes\""),
            malformed,
        ),
        (
            "attribute",
            parts().replace(SHEET, " s=\"", " .=\""),
            malformed,
        ),
        (
            "namespace",
            parts().replace(BOOK, "officeDocument/2006/relationships\"", "x\""),
            malformed,
        ),
        (
            "before",
            parts().replace("[Content_Types].xml", "?>\n<Types", "?>M<Types"),
            malformed,
        ),
        (
            "unknown type",
            parts().replace(SHEET, "inlineStr", "mnlineStr"),
            "has a cell of an unknown type",
        ),
        (
            "no type",
            parts().replace(SHEET, " t=\"inlineStr\"", ""),
            "has text in a cell of another type",
        ),
        (
            "format",
            parts().replace(SHEET, " s=\"", " s=\"999"),
            "lacks the format of a cell",
        ),
        (
            "element in a text",
            parts().replace(SHEET, "<t>Tray</t>", "<t>Tr<extLst/>ay</t>"),
            "has an element, an attribute or a value that an export never has there",
        ),
        (
            "two sheets",
            parts().replace(BOOK, "name=\"About\"", "name=\"BATCHES\""),
            "has two sheets",
        ),
    ] {
        export.assert_refused(what, &altered.pack(), why);
    }
}
