//! Checks the parts of a workbook: that all exist, and that their references are consistent.
//!
//! A reader that needs fewer parts than Excel would accept a workbook that Excel refuses, and one that
//! follows other references would read other cells.

use std::collections::{BTreeMap, HashSet};
use std::mem;

use anyhow::{Context as _, Result, ensure};

use super::cell_value::SharedTexts;
use super::number_formats::NumberFormats;
use super::part::{PackagePart, Relation, SheetEntry};
use crate::secret::brief;

/// All parts, by their names in lower case.
#[derive(Debug, Default)]
pub(super) struct Package {
    parts: BTreeMap<String, PackagePart>,
}

const TYPES: &str = "[content_types].xml";
/// Parts that run code, fetch data, or take values from elsewhere.
const REFUSED: [&str; 10] = [
    "externallink",
    "externallinkpath",
    "vbaproject",
    "oleobject",
    "control",
    "xlmacrosheet",
    "xlintlmacrosheet",
    "dialogsheet",
    "connections",
    "querytable",
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
    pub(super) fn check_book(&self) -> Result<()> {
        self.require("[Content_Types].xml")?;
        self.require("_rels/.rels")?;
        let book = self.book();
        let book = book.context("the spreadsheet does not say where its workbook is")?;
        self.require(&relations_of(&book))?;
        self.check_types()?;
        for (name, part) in &self.parts {
            self.check_relations(name, part)?;
        }
        Ok(())
    }

    pub(super) fn require(&self, name: &str) -> Result<()> {
        let is_there = self.parts.contains_key(&name.to_lowercase());
        ensure!(is_there, "the spreadsheet lacks its part `{}`", brief(name));
        Ok(())
    }

    /// Checks that all parts are what others take them for, after the sheets are read.
    pub(super) fn check(&self, formats: &NumberFormats) -> Result<()> {
        let mut last = self.parts.values().filter_map(|part| part.last_format);
        let has_formats = last.all(|last| formats.has(last));
        ensure!(has_formats, "the spreadsheet lacks the format of a cell");
        for (name, part) in &self.parts {
            for (target, relation) in targets(name, part) {
                let is_expected = self.is_as_expected(&target, &relation.kind);
                ensure!(
                    is_expected,
                    "the spreadsheet has the wrong type for its part `{target}`"
                );
            }
            for (name, definition) in &part.names {
                ensure!(
                    is_reference(name, definition),
                    "the spreadsheet defines the name `{}` as a formula",
                    brief(name)
                );
            }
        }
        let book = self.book().unwrap_or_default();
        self.check_places(&book)?;
        let mut known = HashSet::new();
        for sheet in self.sheets() {
            let name = brief(&sheet.name);
            let is_new = known.insert(sheet.name.trim().to_lowercase());
            ensure!(is_new, "the spreadsheet has two sheets `{name}`");
            let is_sheet = |relation: &&Relation| {
                let kind = relation.kind.rsplit('/').next();
                matches!(kind, Some("worksheet" | "chartsheet"))
            };
            let relation = self.relation(&book, &sheet.relation).filter(is_sheet);
            let path = relation.map(|relation| resolve(&book, &relation.target));
            let has_part = path.is_some_and(|path| self.parts.contains_key(&path));
            ensure!(has_part, "the sheet `{name}` has no part");
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
    pub(super) fn path(&self, name: &str) -> Result<String> {
        let book = self.book().unwrap_or_default();
        let sheet = self.sheets().iter().find(|sheet| sheet.name == name);
        let relation = sheet.and_then(|sheet| self.relation(&book, &sheet.relation));
        let path = relation.map(|relation| resolve(&book, &relation.target));
        path.with_context(|| format!("the sheet `{}` has no part", brief(name)))
    }

    fn check_types(&self) -> Result<()> {
        let types = &self.parts[TYPES];
        let mut known = HashSet::new();
        for (name, kind) in &types.types {
            let is_new = known.insert(name);
            ensure!(
                is_new,
                "the spreadsheet has two types for its part `{name}`"
            );
            self.require(name)?;
            let kind = kind.to_lowercase();
            let has_macros = kind.contains("macroenabled") || kind.contains("vbaproject");
            ensure!(!has_macros, "the spreadsheet contains macros");
        }
        for name in self.parts.keys() {
            let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
            let has_type = name == TYPES
                || name.ends_with('/')
                || known.contains(name)
                || types.endings.iter().any(|known| known == ending);
            ensure!(
                has_type,
                "the spreadsheet has no type for its part `{name}`"
            );
        }
        Ok(())
    }

    fn check_relations(&self, name: &str, part: &PackagePart) -> Result<()> {
        let mut ids = HashSet::new();
        for Relation { id, kind, .. } in &part.relations {
            let is_new = ids.insert(id);
            ensure!(
                is_new,
                "`{name}` in the spreadsheet has two references `{id}`"
            );
            let what = kind.rsplit_once('/').map_or("", |(_, what)| what);
            ensure!(
                !REFUSED.contains(&what),
                "the spreadsheet contains a part of type `{what}`, which an export never has"
            );
        }
        let mut external = part
            .relations
            .iter()
            .filter(|relation| relation.is_external);
        ensure!(
            external.all(|relation| relation.kind.ends_with("/hyperlink")),
            "`{name}` in the spreadsheet refers to an external file"
        );
        targets(name, part).try_for_each(|(target, _)| self.require(&target))
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
                let types = self.parts.get(TYPES).map(|part| part.types.iter());
                let content = types.and_then(|mut types| types.find(|(name, _)| name == target));
                content.and_then(|(_, kind)| kind.strip_prefix(CONTENT)) == Some(one.2)
            }
            _ => false,
        }
    }

    /// Checks that texts and formats are where all readers look for them: some go by the name, others by the reference.
    fn check_places(&self, book: &str) -> Result<()> {
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
            ensure!(
                names.chain(targets).all(|name| name == place),
                "the spreadsheet has its `{root}` in another place than `{place}`"
            );
            ensure!(
                !self.parts.contains_key(place) || found.next().is_some(),
                "nothing in the spreadsheet refers to `{place}`"
            );
        }
        Ok(())
    }
}

/// Returns whether a defined name is no formula. Those for filters and printed titles are plain references.
fn is_reference(name: &str, definition: &str) -> bool {
    let is_cell = |letter: char| letter.is_ascii_alphanumeric() || "$:".contains(letter);
    let cells = definition.split_once('!').map(|(_, cells)| cells);
    let is_usual =
        name.starts_with("_xlnm.") || cells.is_some_and(|cells| cells.chars().all(is_cell));
    is_usual && !definition.contains(['(', '|', '['])
}

/// Returns the parts that the part `name` refers to, without links to elsewhere and to places in the workbook.
fn targets<'a>(
    name: &str,
    part: &'a PackagePart,
) -> impl Iterator<Item = (String, &'a Relation)> + use<'a> {
    let source = source_of(name).unwrap_or_default();
    let relations = part.relations.iter();
    let inside =
        relations.filter(|relation| !relation.is_external && !relation.target.starts_with('#'));
    inside.map(move |relation| (resolve(&source, &relation.target), relation))
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
            assert!(is_reference(name, definition), "{definition}");
        }
        for (name, definition) in [
            ("mine", "1+1"),
            ("mine", "CALL(\"x\")"),
            ("mine", "cmd|'/c calc'!A1"),
            ("_xlnm.Print_Area", "OFFSET(Batches!$A$1,0,0)"),
            ("mine", "[1]Sheet1!$A$1"),
            ("Auto_Open", "Macro1!$A$1+1"),
        ] {
            assert!(!is_reference(name, definition), "{definition}");
        }
    }
}
