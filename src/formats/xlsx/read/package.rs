//! Checks the parts of a workbook: that all exist, and that their references are consistent.
//!
//! A reader that needs fewer parts than Excel would accept a workbook that Excel refuses, and one that
//! follows other references would read other cells.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::links::Links;
use super::markup::cells_at;
use crate::text;

/// What the tags of a part say.
#[derive(Debug, Default)]
pub(super) struct PackagePart {
    /// The first tag.
    pub(super) root: String,
    /// Sheet: its links, its declared range, and whether cells are merged.
    pub(super) links: Vec<SheetLink>,
    pub(super) dimension: Option<String>,
    pub(super) merged: bool,
    /// Sheet: the highest format number of a cell. Styles: the number of formats.
    pub(super) last_format: Option<u64>,
    pub(super) formats: u64,
    /// Relationships.
    pub(super) relations: Vec<Relation>,
    /// Content types: extensions, and parts with their types.
    pub(super) endings: Vec<String>,
    pub(super) types: Vec<(String, String)>,
    /// Workbook: sheets with their relationships, the relationships of hidden ones, and defined names with their definitions.
    pub(super) sheets: Vec<(String, String)>,
    pub(super) hidden: Vec<String>,
    pub(super) names: Vec<(String, String)>,
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

/// All parts, by their names in lower case.
#[derive(Debug, Default)]
pub(super) struct Package {
    parts: BTreeMap<String, PackagePart>,
}

/// What a sheet of batches may contain.
#[derive(Debug, Default)]
pub(super) struct SheetFacts {
    /// The name of its part in lower case; `None` if readers might look for it elsewhere.
    pub(super) part: Option<String>,
    pub(super) links: Links,
    /// The first and the last cell, if declared.
    pub(super) cells: Option<[(u32, u32); 2]>,
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
    /// Adds a part; an error if its name is taken.
    pub(super) fn add(&mut self, name: &str, part: PackagePart) -> Result<(), String> {
        match self.parts.insert(name.to_owned(), part) {
            None => Ok(()),
            Some(_) => Err("appears twice".to_owned()),
        }
    }

    /// Checks how parts refer to each other. An archive that is not a spreadsheet is left to the reader.
    pub(super) fn check(&self) -> Result<(), String> {
        let is_book = |part: &PackagePart| matches!(part.root.as_str(), "workbook" | "worksheet");
        if !self.parts.values().any(is_book) {
            return Ok(());
        }
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
            for (name, definition) in &part.names {
                check_name(name, definition)?;
            }
        }
        self.check_formats(&book)?;
        self.check_places(&book)?;
        let mut known = HashSet::new();
        for (name, relation) in self.parts.get(&book).map_or(&[][..], |part| &part.sheets) {
            if !known.insert(name.trim().to_lowercase()) {
                return Err(format!(
                    "the spreadsheet has two sheets `{}`",
                    text::brief(name)
                ));
            }
            if self.target(&book, relation).is_none() {
                return Err(format!("the sheet `{}` has no part", text::brief(name)));
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

    /// Returns whether the sheets are where an export has them, and their texts in their cells.
    fn has_usual_layout(&self) -> bool {
        const BOOK: &str = "xl/workbook.xml";
        /// More than any export has. The archive is opened again for each sheet.
        const MAX_PARTS: usize = 1000;
        let is_plain = |relation: &Relation| {
            let mut steps = relation.target.split('/');
            steps.all(|step| !step.is_empty() && !step.starts_with('.') && !step.contains('\\'))
        };
        let has_texts = self.parts.values().any(|part| part.root == "sst");
        self.parts.len() <= MAX_PARTS
            && self.book().as_deref() == Some(BOOK)
            && self.relations(BOOK).iter().all(is_plain)
            && !has_texts
    }

    /// Returns the relationships of `part`.
    fn relations(&self, part: &str) -> &[Relation] {
        let found = self.parts.get(&relations_of(part));
        found.map_or(&[], |found| &found.relations)
    }

    /// Returns the target of a relationship of `part`.
    fn target(&self, part: &str, id: &str) -> Option<String> {
        let mut relations = self.relations(part).iter();
        let relation = relations.find(|relation| relation.id == id)?;
        let target = resolve(part, &relation.target);
        self.parts.contains_key(&target).then_some(target)
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
            if !self.is_as_expected(&target, kind) {
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

    /// Checks that the styles contain the format of every cell.
    fn check_formats(&self, book: &str) -> Result<(), String> {
        let last = self.parts.values().filter_map(|part| part.last_format);
        let mut relations = self.relations(book).iter();
        let styles = relations.find(|relation| relation.kind.ends_with("/styles"));
        let styles = styles.and_then(|styles| self.parts.get(&resolve(book, &styles.target)));
        let formats = styles.map_or(1, |styles| styles.formats);
        if last.max() >= Some(formats) {
            return Err("the spreadsheet lacks the format of a cell".to_owned());
        }
        Ok(())
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

    /// Returns what the sheet `name` may contain.
    pub(super) fn sheet(&self, name: &str) -> Result<SheetFacts, String> {
        let Some(book) = self.book() else {
            return Ok(SheetFacts::default());
        };
        let sheets = &self.parts[&book].sheets;
        let relation = sheets.iter().find(|(known, _)| known == name);
        if relation.is_some_and(|(_, id)| self.parts[&book].hidden.contains(id)) {
            return Err(format!("the sheet `{name}` is hidden"));
        }
        let path = relation.and_then(|(_, relation)| self.target(&book, relation));
        let Some((path, sheet)) = path.and_then(|path| self.parts.get_key_value(&path)) else {
            return Ok(SheetFacts::default());
        };
        if sheet.merged {
            return Err(format!(
                "the sheet `{name}` has merged cells, which hide others"
            ));
        }
        let cells = sheet.dimension.as_deref().map(|range| {
            let invalid = || format!("the sheet `{name}` has an invalid range");
            cells_at(range).ok_or_else(invalid)
        });
        let cells = cells.transpose()?;
        let mut targets = HashMap::new();
        let relations = self.relations(path).iter();
        let relations: HashMap<&str, &Relation> = relations
            .map(|relation| (relation.id.as_str(), relation))
            .collect();
        for link in &sheet.links {
            let relation = link.relation.as_deref().and_then(|id| relations.get(id));
            let relation = relation.filter(|relation| relation.is_external);
            let target = relation.map(|relation| match &link.location {
                Some(location) => format!("{}#{location}", relation.target),
                None => relation.target.clone(),
            });
            let cell = cells_at(&link.cells).filter(|[first, last]| first == last);
            let (Some(target), Some([cell, _])) = (target, cell) else {
                return Err(format!("the sheet `{name}` has a link without a target"));
            };
            if targets.insert(cell, target).is_some() {
                return Err(format!("the sheet `{name}` has two links in one cell"));
            }
        }
        Ok(SheetFacts {
            part: self.has_usual_layout().then(|| path.clone()),
            links: Links::new(targets),
            cells,
        })
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
