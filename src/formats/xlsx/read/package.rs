//! Checks the parts of a workbook: that all exist, and that their references are consistent.
//!
//! A reader that needs fewer parts than Excel would accept a workbook that Excel refuses, and one that
//! follows other references would read other cells.

use std::collections::{BTreeMap, HashSet};
use std::mem;

use super::cell_value::SharedTexts;
use super::number_formats::NumberFormats;
use super::part::{PackagePart, Relation, SheetEntry};
use crate::text;

/// All parts, by their names in lower case.
#[derive(Debug, Default)]
pub(super) struct Package {
    parts: BTreeMap<String, PackagePart>,
}

const TYPES: &str = "[content_types].xml";
/// Parts that run code, fetch data, or take values from elsewhere.
const REFUSED: [&str; 10] = [
    "/externallink",
    "/externallinkpath",
    "/vbaproject",
    "/oleobject",
    "/control",
    "/xlmacrosheet",
    "/xlintlmacrosheet",
    "/dialogsheet",
    "/connections",
    "/querytable",
];
/// The parts that readers need to find the cells: root element, relationship and content type.
const EXPECTED: [(&str, &str, &str); 4] = [
    ("workbook", "officedocument", "sheet.main+xml"),
    ("worksheet", "worksheet", "worksheet+xml"),
    ("styleSheet", "styles", "styles+xml"),
    ("sst", "sharedstrings", "sharedStrings+xml"),
];
const KINDS: [&str; 2] = [
    "http://schemas.openxmlformats.org/officedocument/2006/relationships/",
    "http://purl.oclc.org/ooxml/officedocument/relationships/",
];
const CONTENT: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.";

impl Package {
    /// Adds a part. A sheet may be added again.
    pub(super) fn add(&mut self, name: &str, part: PackagePart) {
        self.parts.insert(name.to_owned(), part);
    }

    pub(super) fn part(&self, name: &str) -> Option<&PackagePart> {
        self.parts.get(name)
    }

    /// Returns whether any of the parts is that of a workbook.
    pub(super) fn has_book(&self) -> bool {
        let is_book = |part: &PackagePart| matches!(part.root.as_str(), "workbook" | "worksheet");
        self.parts.values().any(is_book)
    }

    /// Checks that the parts are there from which the others are found, before the sheets are read.
    pub(super) fn check_book(&self) -> Result<(), String> {
        for (name, shown) in [
            (TYPES, "[Content_Types].xml"),
            ("_rels/.rels", "_rels/.rels"),
        ] {
            if !self.parts.contains_key(name) {
                return Err(format!("the spreadsheet lacks its part `{shown}`"));
            }
        }
        let book = self
            .book()
            .ok_or("the spreadsheet does not say where its workbook is")?;
        let relations = relations_of(&book);
        if !self.parts.contains_key(&relations) {
            return Err(format!("the spreadsheet lacks its part `{relations}`"));
        }
        self.check_types()?;
        for (name, part) in &self.parts {
            self.check_relations(name, part)?;
        }
        Ok(())
    }

    /// Checks that all parts are what others take them for, after the sheets are read.
    pub(super) fn check(&self, formats: &NumberFormats) -> Result<(), String> {
        let mut last = self.parts.values().filter_map(|part| part.last_format);
        if last.any(|last| !formats.has(last)) {
            return Err("the spreadsheet lacks the format of a cell".to_owned());
        }
        for (name, part) in &self.parts {
            self.check_kinds(name, part)?;
            for (name, definition) in &part.names {
                check_name(name, definition)?;
            }
        }
        let book = self.book().unwrap_or_default();
        self.check_places(&book)?;
        let mut known = HashSet::new();
        for sheet in self.sheets() {
            let name = text::brief(&sheet.name);
            if !known.insert(sheet.name.trim().to_lowercase()) {
                return Err(format!("the spreadsheet has two sheets `{name}`"));
            }
            let relation = self.relation(&book, &sheet.relation);
            let is_sheet = |relation: &&Relation| {
                let kind = relation.kind.rsplit('/').next();
                matches!(kind, Some("worksheet" | "chartsheet"))
            };
            let path = relation.filter(is_sheet);
            let path = path.map(|relation| resolve(&book, &relation.target));
            if path.is_none_or(|path| !self.parts.contains_key(&path)) {
                return Err(format!("the sheet `{name}` has no part"));
            }
        }
        Ok(())
    }

    /// Returns the part that is the workbook.
    fn book(&self) -> Option<String> {
        let mut relations = self.parts.get("_rels/.rels")?.relations.iter();
        let is_book = |relation: &&Relation| relation.kind.ends_with("/officedocument");
        let relation = relations.find(is_book)?;
        let book = resolve("", &relation.target);
        (self.parts.get(&book)?.root == "workbook").then_some(book)
    }

    /// Returns the sheets of the workbook.
    pub(super) fn sheets(&self) -> &[SheetEntry] {
        let book = self.book().and_then(|book| self.parts.get(&book));
        book.map_or(&[], |book| &book.sheets)
    }

    /// Returns whether dates are counted from 1904.
    pub(super) fn is_1904(&self) -> bool {
        self.parts.values().any(|part| part.is_1904)
    }

    /// Takes the number formats and the shared texts.
    pub(super) fn take_values(&mut self) -> (NumberFormats, SharedTexts) {
        let mut values = <(NumberFormats, SharedTexts)>::default();
        let book = self.book().unwrap_or_default();
        let relations = self.relations(&book).iter();
        let targets = relations.map(|relation| resolve(&book, &relation.target));
        for target in targets.collect::<Vec<_>>() {
            match self.parts.get_mut(&target) {
                Some(part) if part.root == "styleSheet" => {
                    values.0 = NumberFormats::new(&part.formats, &part.codes);
                }
                Some(part) if part.root == "sst" => values.1 = mem::take(&mut part.texts),
                _ => {}
            }
        }
        values
    }

    /// Returns the relationships of `part`.
    pub(super) fn relations(&self, part: &str) -> &[Relation] {
        let found = self.parts.get(&relations_of(part));
        found.map_or(&[], |found| &found.relations)
    }

    fn relation(&self, part: &str, id: &str) -> Option<&Relation> {
        let mut relations = self.relations(part).iter();
        relations.find(|relation| relation.id == id)
    }

    /// Returns the part of the sheet `name`.
    pub(super) fn path(&self, name: &str) -> Result<String, String> {
        let book = self.book().unwrap_or_default();
        let sheet = self.sheets().iter().find(|sheet| sheet.name == name);
        let relation = sheet.and_then(|sheet| self.relation(&book, &sheet.relation));
        let path = relation.map(|relation| resolve(&book, &relation.target));
        path.ok_or_else(|| format!("the sheet `{}` has no part", text::brief(name)))
    }

    fn content_type(&self, part: &str) -> Option<&str> {
        let types = &self.parts.get(TYPES)?.types;
        let found = types.iter().find(|(name, _)| name == part);
        found.map(|(_, kind)| kind.as_str())
    }

    fn check_types(&self) -> Result<(), String> {
        let types = &self.parts[TYPES];
        let mut known = HashSet::new();
        for (name, kind) in &types.types {
            if !known.insert(name) {
                return Err(format!(
                    "the spreadsheet has two types for its part `{name}`"
                ));
            }
            if !self.parts.contains_key(name) {
                return Err(format!("the spreadsheet lacks its part `{name}`"));
            }
            let kind = kind.to_lowercase();
            if kind.contains("macroenabled") || kind.contains("vbaproject") {
                return Err("the spreadsheet contains macros".to_owned());
            }
        }
        let has_type = |name: &String| {
            let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
            name == TYPES
                || name.ends_with('/')
                || known.contains(name)
                || types.endings.iter().any(|known| known == ending)
        };
        match self.parts.keys().find(|name| !has_type(name)) {
            Some(name) => Err(format!("the spreadsheet has no type for its part `{name}`")),
            None => Ok(()),
        }
    }

    fn check_relations(&self, name: &str, part: &PackagePart) -> Result<(), String> {
        if part.relations.is_empty() {
            return Ok(());
        }
        let mut ids = HashSet::new();
        let source = source_of(name).unwrap_or_default();
        for relation in &part.relations {
            let kind = &relation.kind;
            if !ids.insert(&relation.id) {
                return Err(format!(
                    "`{name}` in the spreadsheet has two references `{}`",
                    relation.id
                ));
            }
            if REFUSED.iter().any(|refused| kind.ends_with(refused)) {
                let what = kind.rsplit_once('/').map_or("", |(_, what)| what);
                return Err(format!(
                    "the spreadsheet contains a part of type `{what}`, which an export never has"
                ));
            }
            if relation.is_external {
                if kind.ends_with("/hyperlink") {
                    continue;
                }
                return Err(format!(
                    "`{name}` in the spreadsheet refers to an external file"
                ));
            }
            let target = resolve(&source, &relation.target);
            // A location in the workbook itself.
            if relation.target.starts_with('#') {
                continue;
            }
            if !self.parts.contains_key(&target) {
                return Err(format!("the spreadsheet lacks its part `{target}`"));
            }
        }
        Ok(())
    }

    fn check_kinds(&self, name: &str, part: &PackagePart) -> Result<(), String> {
        let source = source_of(name).unwrap_or_default();
        for relation in &part.relations {
            let target = resolve(&source, &relation.target);
            let is_here = !relation.is_external && !relation.target.starts_with('#');
            if is_here && !self.is_as_expected(&target, &relation.kind) {
                return Err(format!(
                    "the spreadsheet has the wrong type for its part `{target}`"
                ));
            }
        }
        Ok(())
    }

    /// Returns whether a part has the relationship and the content type of its root element.
    fn is_as_expected(&self, target: &str, kind: &str) -> bool {
        let root = self.parts.get(target).map_or("", |part| part.root.as_str());
        let kind = KINDS.iter().find_map(|base| kind.strip_prefix(base));
        let of_root = EXPECTED.iter().find(|(known, ..)| *known == root);
        let of_kind = EXPECTED.iter().find(|(_, known, _)| Some(*known) == kind);
        match (of_root, of_kind) {
            (None, None) => true,
            (Some(one), Some(other)) if one == other => {
                let content = self.content_type(target);
                content.and_then(|content| content.strip_prefix(CONTENT)) == Some(one.2)
            }
            _ => false,
        }
    }

    /// Checks that texts and formats are where all readers look for them: some go by the name, others by the reference.
    fn check_places(&self, book: &str) -> Result<(), String> {
        for (root, kind, place) in [
            ("sst", "/sharedstrings", "xl/sharedstrings.xml"),
            ("styleSheet", "/styles", "xl/styles.xml"),
        ] {
            let parts = self.parts.iter().filter(|(_, part)| part.root == root);
            let names = parts.map(|(name, _)| name.clone());
            let found = self.relations(book).iter();
            let mut found = found.filter(|relation| relation.kind.ends_with(kind));
            let targets = found
                .clone()
                .map(|relation| resolve(book, &relation.target));
            if names.chain(targets).any(|name| name != place) {
                return Err(format!(
                    "the spreadsheet has its `{root}` in another place than `{place}`"
                ));
            }
            if self.parts.contains_key(place) && found.next().is_none() {
                return Err(format!("nothing in the spreadsheet refers to `{place}`"));
            }
        }
        Ok(())
    }
}

/// Rejects defined names that are formulas. Those for filters and printed titles are plain references.
fn check_name(name: &str, definition: &str) -> Result<(), String> {
    let is_reference = definition.split_once('!').is_some_and(|(_, cells)| {
        let is_cell = |letter: char| letter.is_ascii_alphanumeric() || "$:".contains(letter);
        cells.chars().all(is_cell)
    });
    let is_usual = name.starts_with("_xlnm.") || is_reference;
    if is_usual && !definition.contains(['(', '|', '[']) {
        return Ok(());
    }
    Err(format!(
        "the spreadsheet defines the name `{}` as a formula",
        text::brief(name)
    ))
}

/// Returns the part with the relationships of `part`.
fn relations_of(part: &str) -> String {
    let (folder, name) = part.rsplit_once('/').unwrap_or(("", part));
    let slash = if folder.is_empty() { "" } else { "/" };
    format!("{folder}{slash}_rels/{name}.rels")
}

/// Returns the part whose relationships are in the part `name`.
fn source_of(name: &str) -> Option<String> {
    let (folder, name) = name.rsplit_once("_rels/")?;
    Some(format!("{folder}{}", name.strip_suffix(".rels")?))
}

/// Resolves `target` relative to the part `source`.
fn resolve(source: &str, target: &str) -> String {
    let target = target.to_lowercase().replace('\\', "/");
    let mut folders: Vec<&str> = match target.strip_prefix('/') {
        Some(_) => Vec::new(),
        None => source
            .rsplit_once('/')
            .map_or_else(Vec::new, |(folder, _)| folder.split('/').collect()),
    };
    for step in target.split('/') {
        match step {
            "" | "." => {}
            ".." => drop(folders.pop()),
            name => folders.push(name),
        }
    }
    folders.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_resolved_relative_to_their_part() {
        for (source, target, expected) in [
            ("", "xl/workbook.xml", "xl/workbook.xml"),
            (
                "xl/workbook.xml",
                "worksheets/Sheet1.xml",
                "xl/worksheets/sheet1.xml",
            ),
            ("xl/workbook.xml", "/xl/styles.xml", "xl/styles.xml"),
            (
                "xl/worksheets/a.xml",
                "../drawings/b.xml",
                "xl/drawings/b.xml",
            ),
            ("xl/workbook.xml", "../../../x.xml", "x.xml"),
        ] {
            assert_eq!(resolve(source, target), expected);
        }
        assert_eq!(
            relations_of("xl/workbook.xml"),
            "xl/_rels/workbook.xml.rels"
        );
        assert_eq!(relations_of("a.xml"), "_rels/a.xml.rels");
        assert_eq!(
            source_of("xl/_rels/workbook.xml.rels").as_deref(),
            Some("xl/workbook.xml")
        );
        assert_eq!(source_of("_rels/.rels").as_deref(), Some(""));
    }

    #[test]
    fn names_must_not_be_formulas() {
        for (name, definition) in [
            ("_xlnm._FilterDatabase", "Batches!$A$1:$R$251"),
            ("_xlnm.Print_Titles", "'Batches 2'!$1:$1,Batches!$A:$B"),
            ("mine", "Batches!$A$1"),
        ] {
            assert_eq!(check_name(name, definition), Ok(()), "{definition}");
        }
        for (name, definition) in [
            ("mine", "1+1"),
            ("mine", "CALL(\"x\")"),
            ("mine", "cmd|'/c calc'!A1"),
            ("_xlnm.Print_Area", "OFFSET(Batches!$A$1,0,0)"),
            ("mine", "[1]Sheet1!$A$1"),
            ("Auto_Open", "Macro1!$A$1+1"),
        ] {
            assert!(check_name(name, definition).is_err(), "{definition}");
        }
    }
}
