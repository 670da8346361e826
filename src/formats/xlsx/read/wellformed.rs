//! Checks that a part is well-formed XML, and has what readers look for only in its namespace and in its place. Some
//! look for a name alone, wherever it is: they would read other cells than the rest.

use anyhow::{Context as _, Result, ensure};
use chrono::{DateTime, NaiveDate};
use memchr::memmem;

use super::attributes;
use super::markup::{Attribute, character, find_attributes, local};

/// The deepest nesting of elements, and the most prefixes in a part and attributes in a tag: they are searched one by
/// one.
const DEPTH: usize = 256;
const PREFIXES: usize = 64;
const ATTRIBUTES: usize = 256;

const MAIN: [&str; 2] = [
    "http://schemas.openxmlformats.org/spreadsheetml/2006/main",
    "http://purl.oclc.org/ooxml/spreadsheetml/main",
];
const RELATIONS: [&str; 2] = [
    "http://schemas.openxmlformats.org/officeDocument/2006/relationships",
    "http://purl.oclc.org/ooxml/officeDocument/relationships",
];

/// The elements of the parts that tell where the cells are, and what they contain: each with its parent (empty for
/// any), its depth, and whether there may be several.
const PLACED: [(&str, &str, usize, bool); 23] = [
    ("sheetData", "worksheet", 1, ONE),
    ("row", "sheetData", 2, SEVERAL),
    ("c", "row", 3, SEVERAL),
    ("v", "c", 4, SEVERAL),
    ("is", "c", 4, SEVERAL),
    ("dimension", "worksheet", 1, ONE),
    ("hyperlinks", "worksheet", 1, ONE),
    ("hyperlink", "hyperlinks", 2, SEVERAL),
    ("mergeCells", "worksheet", 1, ONE),
    ("mergeCell", "mergeCells", 2, SEVERAL),
    ("workbookPr", "workbook", 1, ONE),
    ("sheets", "workbook", 1, ONE),
    ("sheet", "sheets", 2, SEVERAL),
    ("definedNames", "workbook", 1, ONE),
    ("definedName", "definedNames", 2, SEVERAL),
    ("si", "sst", 1, SEVERAL),
    ("numFmts", "styleSheet", 1, ONE),
    ("cellXfs", "styleSheet", 1, ONE),
    ("xf", "", 2, SEVERAL),
    ("Relationship", "Relationships", 1, SEVERAL),
    ("Default", "Types", 1, SEVERAL),
    ("Override", "Types", 1, SEVERAL),
    ("calcPr", "workbook", 1, ONE),
];
const ONE: bool = false;
const SEVERAL: bool = true;

/// The elements whose cells and texts readers take from names alone.
const CONTENT: [&[u8]; 3] = [b"sheetData", b"sheets", b"si"];

/// Checks a part tag by tag.
#[derive(Debug, Default)]
pub(super) struct WellFormed {
    /// The names of the open elements, one after another, and where each starts.
    names: Vec<u8>,
    open: Vec<usize>,
    /// Where the part starts: after its byte order mark.
    first: u64,
    /// The prefixes that are declared, with their namespaces.
    prefixes: Vec<(Vec<u8>, Vec<u8>)>,
    /// The prefix of the first element, and the namespace without a prefix.
    own_prefix: Vec<u8>,
    own_namespace: Vec<u8>,
    /// The attributes of the last start tag.
    pub(super) attributes: Vec<Attribute>,
    /// Whether the next tag or text is directly in a row of a sheet.
    pub(super) is_in_row: bool,
    /// What the part is for; `None` before its first element.
    kind: Option<PartKind>,
    /// Which of the placed elements were there, and whether the current cell has a value.
    seen: u32,
    has_value: bool,
    /// Whether a name or a value is not one of a workbook.
    has_unknown: bool,
}

/// What a part is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartKind {
    Other,
    /// Where other parts are, and what they are.
    Relations,
    /// SpreadsheetML, whose attributes are known.
    Spreadsheet,
}

impl WellFormed {
    /// Returns whether the next tag or text is inside an element.
    pub(super) fn is_inside(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns whether every element is closed.
    pub(super) fn is_done(&self) -> bool {
        self.kind.is_some() && self.open.is_empty()
    }

    /// Returns whether the last start tag has the prefix of the first one.
    pub(super) fn is_own(&self) -> bool {
        let start = self.open.last().copied().unwrap_or_default();
        prefix(&self.names[start..]) == self.own_prefix
    }

    /// Returns the name of the element around the last start tag, without its prefix.
    pub(super) fn parent(&self) -> &[u8] {
        match self.open[..] {
            [.., parent, element] => local(&self.names[parent..element]),
            _ => &[],
        }
    }

    /// Checks text between tags at this position of the part: each `&` must start a valid reference.
    pub(super) fn text(&mut self, bytes: &[u8], position: u64) -> Result<()> {
        let Some(&element) = self.open.last() else {
            let marked = bytes.strip_prefix(MARK).filter(|_| position == 0);
            self.first = marked.map_or(self.first, |_| MARK.len() as u64);
            return expect(marked.unwrap_or(bytes).trim_ascii().is_empty());
        };
        let is_stamp = matches!(
            &self.names[element..],
            b"dcterms:created" | b"dcterms:modified"
        );
        expect(is_text(bytes) && (!is_stamp || is_date(bytes)))
    }

    /// Checks an end tag with this name; `None` if it is that of the element.
    pub(super) fn end(&mut self, name: Option<&[u8]>) -> Result<()> {
        let start = self.open.pop().context(BROKEN)?;
        let is_same = name.is_none_or(|name| self.names[start..] == *name.trim_ascii_end());
        self.names.truncate(start);
        self.set_in_row();
        expect(is_same)
    }

    /// Checks a start tag, without its `<`, `>` and `/>`.
    pub(super) fn start(&mut self, tag: &[u8]) -> Result<()> {
        self.check(tag).context(BROKEN)?;
        ensure!(
            !self.has_unknown,
            "has an element, an attribute or a value that an export never has there"
        );
        Ok(())
    }

    fn check(&mut self, tag: &[u8]) -> Option<()> {
        let end = tag.iter().position(u8::is_ascii_whitespace);
        let name = &tag[..end.unwrap_or(tag.len())];
        if !is_name(name) || self.is_done() || self.open.len() > DEPTH {
            return None;
        }
        find_attributes(tag, &mut self.attributes)?;
        if self.attributes.len() > ATTRIBUTES {
            return None;
        }
        for (place, attribute) in self.attributes.iter().enumerate() {
            let name = attribute.name(tag);
            let is_again = |other: &Attribute| other.name(tag) == name;
            let is_sound = is_name(name)
                && is_value(attribute.value(tag))
                && !self.attributes[..place].iter().any(is_again);
            if !is_sound {
                return None;
            }
            if let Some(prefix) = name.strip_prefix(b"xmlns:") {
                if !attributes::is_namespace(attribute.value(tag)) {
                    return None;
                }
                self.has_unknown |= !declare(&mut self.prefixes, prefix, attribute.value(tag));
            } else if name == b"xmlns" && self.kind.is_none() {
                self.own_namespace = attribute.value(tag).to_vec();
            } else if name == b"xmlns" && self.kind != Some(PartKind::Other) {
                self.has_unknown |= self.own_namespace != attribute.value(tag);
            }
        }
        if self.kind.is_none() {
            check_namespaces(name, tag, &self.attributes)?;
            self.kind = Some(match local(name) {
                b"workbook" | b"worksheet" | b"styleSheet" | b"sst" => PartKind::Spreadsheet,
                b"Relationships" | b"Types" => PartKind::Relations,
                _ => PartKind::Other,
            });
            self.own_prefix = prefix(name).to_vec();
        }
        if self.kind != Some(PartKind::Other) {
            self.has_unknown |= self.is_placed(tag, name).is_none();
        }
        if self.kind == Some(PartKind::Spreadsheet) && !name.contains(&b':') {
            let is_known = |attribute: &Attribute| {
                let (attribute, value) = (attribute.name(tag), attribute.value(tag));
                attributes::is_known(attribute) && attributes::is_sound(name, attribute, value)
            };
            self.has_unknown |= !self.attributes.iter().all(is_known);
        }
        let attributes = self.attributes.iter().map(|attribute| attribute.name(tag));
        if !attributes.chain([name]).all(|name| self.is_declared(name)) {
            return None;
        }
        self.open.push(self.names.len());
        self.names.extend_from_slice(name);
        self.set_in_row();
        Some(())
    }

    fn set_in_row(&mut self) {
        self.is_in_row = self.open == [0, 9, 18] && self.names == b"worksheetsheetDatarow";
    }

    fn is_declared(&self, name: &[u8]) -> bool {
        match prefix(name) {
            b"" | b"xml" | b"xmlns" => true,
            prefix => self.prefixes.iter().any(|(known, _)| known == prefix),
        }
    }

    /// Checks that the last tag, an element with this name, is what readers take it for.
    fn is_placed(&mut self, tag: &[u8], name: &[u8]) -> Option<()> {
        for attribute in &self.attributes {
            let attribute = attribute.name(tag);
            let is_relation = match prefix(attribute) {
                b"" => false,
                b"xml" | b"xmlns" => continue,
                prefix => self.prefixes.iter().any(|(known, namespace)| {
                    let namespace = std::str::from_utf8(namespace).unwrap_or_default();
                    known == prefix && RELATIONS.contains(&namespace)
                }),
            };
            let has_prefix = attribute.contains(&b':');
            let is_sound = match local(attribute) {
                b"id" => {
                    is_relation || !has_prefix && !matches!(local(name), b"sheet" | b"hyperlink")
                }
                // Excel writes it with a prefix.
                b"dyDescent" => true,
                local => {
                    !has_prefix
                        || self.kind == Some(PartKind::Spreadsheet) && !attributes::is_known(local)
                }
            };
            is_sound.then_some(())?;
        }
        self.has_place(name)
    }

    /// Checks that an element with this name may be in the last open one.
    fn has_place(&mut self, name: &[u8]) -> Option<()> {
        let mut parents = (0..self.open.len()).map(|place| {
            let end = self.open.get(place + 1).copied();
            local(&self.names[self.open[place]..end.unwrap_or(self.names.len())])
        });
        let parent = parents.next_back().unwrap_or_default();
        // An element inside a value: some readers stop there, others read on.
        if matches!(parent, b"t" | b"v") {
            return None;
        }
        let is_own = prefix(name) == self.own_prefix;
        let name = local(name);
        let found = PLACED
            .iter()
            .position(|(placed, ..)| placed.as_bytes() == name);
        if !is_own {
            let is_inside =
                CONTENT.contains(&parent) || parents.any(|name| CONTENT.contains(&name));
            // Controls have rows and columns of their own.
            let is_harmless = found.is_none() || matches!(name, b"row" | b"c" | b"v");
            return (!is_inside && is_harmless).then_some(());
        }
        let Some(place) = found else {
            return Some(());
        };
        let (_, its_parent, its_depth, several) = PLACED[place];
        let is_placed = self.open.len() == its_depth
            && (its_parent.is_empty() || parent == its_parent.as_bytes());
        let is_again = !several && self.seen & (1 << place) != 0;
        self.seen |= 1 << place;
        let has_value = matches!(name, b"v" | b"is");
        let is_second = has_value && self.has_value;
        self.has_value = has_value;
        (is_placed && !is_again && !is_second).then_some(())
    }

    /// Checks an instruction, without its `<?` and `?>`. A workbook may only have the XML declaration, with UTF-8, at the
    /// start of a part.
    pub(super) fn instruction(&self, text: &[u8], position: u64) -> Result<()> {
        expect(text.starts_with(b"xml ") && position == self.first)?;
        let mut attributes = Vec::new();
        let is_read = find_attributes(text, &mut attributes).is_some();
        let order: [&[u8]; 3] = [b"version", b"encoding", b"standalone"];
        let mut order = order.iter();
        let mut names = attributes.iter().map(|attribute| attribute.name(text));
        let is_sound = is_read
            && names.clone().next() == Some(&b"version"[..])
            && names.all(|name| order.any(|known| *known == name))
            && attributes.iter().all(|attribute| {
                let value = attribute.value(text);
                match attribute.name(text) {
                    b"version" => matches!(value, b"1.0" | b"1.1"),
                    b"encoding" => value.eq_ignore_ascii_case(b"utf-8"),
                    _ => matches!(value, b"yes" | b"no"),
                }
            });
        expect(is_sound)
    }
}

pub(super) const BROKEN: &str = "is not well-formed XML";

/// The byte order mark.
const MARK: &[u8] = "\u{feff}".as_bytes();

pub(super) fn expect(is_sound: bool) -> Result<()> {
    is_sound.then_some(()).context(BROKEN)
}

/// Returns whether the document properties may contain this date.
fn is_date(text: &[u8]) -> bool {
    let text = std::str::from_utf8(text).unwrap_or_default();
    DateTime::parse_from_rfc3339(text).is_ok() || text.parse::<NaiveDate>().is_ok()
}

/// Returns the prefix of a name; empty if it has none.
fn prefix(name: &[u8]) -> &[u8] {
    memchr::memchr(b':', name).map_or(b"", |colon| &name[..colon])
}

/// Adds a prefix; returns false if it stands for another namespace already, or if there are too many.
fn declare(prefixes: &mut Vec<(Vec<u8>, Vec<u8>)>, prefix: &[u8], namespace: &[u8]) -> bool {
    if let Some((_, known)) = prefixes.iter().find(|(known, _)| known == prefix) {
        return known == namespace;
    }
    prefixes.push((prefix.to_vec(), namespace.to_vec()));
    prefixes.len() <= PREFIXES
}

fn is_name(name: &[u8]) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80;
    let is_inner =
        |byte: u8| is_letter(byte) || byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b':');
    name.first().copied().is_some_and(is_letter)
        && name.iter().copied().all(is_inner)
        && memchr::memchr(b':', name).is_none_or(|colon| {
            colon + 1 < name.len() && memchr::memchr(b':', &name[colon + 1..]).is_none()
        })
}

/// Returns whether the text of an element is valid.
pub(super) fn is_text(text: &[u8]) -> bool {
    is_value(text) && (memchr::memchr(b'>', text).is_none() || memmem::find(text, b"]]>").is_none())
}

/// Returns whether every `&` starts a valid reference, and nothing starts a tag.
fn is_value(value: &[u8]) -> bool {
    if memchr::memchr2(b'<', b'&', value).is_none() {
        return true;
    }
    let value = std::str::from_utf8(value).unwrap_or("<");
    let is_sound = |piece: &str| {
        let reference = piece.split_once(';');
        reference.is_some_and(|(name, _)| character(name).is_some())
    };
    !value.contains('<') && value.split('&').skip(1).all(is_sound)
}

/// Checks that the prefixes of a part have their usual namespaces.
fn check_namespaces(root: &[u8], tag: &[u8], attributes: &[Attribute]) -> Option<()> {
    let namespace = |prefix: &[u8]| {
        let name = match prefix {
            b"" => b"xmlns".to_vec(),
            prefix => [b"xmlns:", prefix].concat(),
        };
        let mut attributes = attributes.iter();
        let found = attributes.find(|other| other.name(tag) == name);
        found.and_then(|found| std::str::from_utf8(found.value(tag)).ok())
    };
    let own = namespace(prefix(root)).unwrap_or_default();
    let is_own = match local(root) {
        b"workbook" | b"worksheet" => MAIN.contains(&own),
        b"styleSheet" | b"sst" => own.is_empty() || MAIN.contains(&own),
        b"Relationships" => own == "http://schemas.openxmlformats.org/package/2006/relationships",
        b"Types" => own == "http://schemas.openxmlformats.org/package/2006/content-types",
        _ => true,
    };
    let is_known = namespace(b"r").is_none_or(|known| RELATIONS.contains(&known));
    (is_own && is_known).then_some(())
}

#[cfg(test)]
mod tests {
    use super::MAIN;
    use crate::formats::xlsx::read::xml::{XmlEvent, XmlReader};

    fn is_sound(text: &[u8]) -> bool {
        let mut part = XmlReader::new(text, u64::MAX, (u64::MAX, "a text"));
        loop {
            match part.next() {
                Ok(XmlEvent::Done) => return true,
                Ok(_) => {}
                Err(_) => return false,
            }
        }
    }

    #[test]
    fn errors_are_found() {
        for text in [
            "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n<a><b c='1' d = \"&#x41;\"/>é &amp; </a>",
            "<a xmlns:x=\"y\"><x:b x:c=\"\"></x:b ></a>",
            "<a/>",
            "\u{feff}<?xml version=\"1.0\"?>\n<!-- a - b --><a b=\"]]>\">]] > \u{fffd}\u{1ffff}</a>\n",
            "<x:worksheet xmlns:x=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\"><x:sheetData><x:row><x:c><x:v>1</x:v></x:c></x:row></x:sheetData></x:worksheet>",
            "<worksheet xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\"><hyperlinks><hyperlink xmlns:s=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships\" s:id=\"rId1\"/></hyperlinks></worksheet>",
        ] {
            assert!(is_sound(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            "<a>",
            "<a></b>",
            "<a/><b/>",
            "</a>",
            "<a><b></a></b>",
            "<a b=1/>",
            "<a b=\"1\" b=\"2\"/>",
            "<a b=\"1\"c=\"2\"/>",
            "<a b=\"&x\"/>",
            "<a .b=\"1\"/>",
            "<a b/>",
            "<a>&</a>",
            "x<a/>",
            "<a/>x",
            "<a>&nbsp;</a>",
            "<a>&#1;</a>",
            "<a>&#+65;</a>",
            "<a>&#x+41;</a>",
            "<a b=\"&#+65;\"/>",
            "<a>\u{1}</a>",
            "<x:a/>",
            "<a x:b=\"1\"/>",
            "<1/>",
            "<?xml encoding=\"UTF-8\"?><a/>",
            "<?xm@l version=\"1.0\"?><a/>",
            " <?xml version=\"1.0\"?><a/>",
            "<?xml version=\"1.0\"?><?xml version=\"1.0\"?><a/>",
            "<!-- a --><?xml version=\"1.0\"?><a/>",
            "<a><!-- a -- b --></a>",
            "<a><!-- a ---></a>",
            "<a>]]></a>",
            "<a>\u{fffe}</a>",
            "<a>\u{ffff}</a>",
            "<a>&#xFFFE;</a>",
            "<a/>\u{feff}",
            "\n\u{feff}<a/>",
            "<a xmlns:dcterms=\"x\"><dcterms:created>2026-91-15T22:53:16Z</dcterms:created></a>",
            "<worksheet xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\"><col custAmWidth=\"1\"/></worksheet>",
            "<?xml version=\"1.0\" encoding=\"UTF-8' standalone=\"yes\"?><a/>",
            "<?xml version=\"1.0\" encoding=\"latin1\"?><a/>",
            "<worksheet/>",
            "<worksheet xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\"><sheetData xmlns=\"urn:y\"/></worksheet>",
            "<worksheet xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\" xmlns:y=\"urn:y\"><y:sheetData/></worksheet>",
            "<worksheet xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\" xmlns:y=\"urn:y\"><hyperlinks><hyperlink y:id=\"rId1\"/></hyperlinks></worksheet>",
            "<worksheet xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\"><hyperlinks><hyperlink id=\"rId1\"/></hyperlinks></worksheet>",
            "<worksheet xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\" xmlns:y=\"urn:y\"><dimension y:ref=\"A1\"/></worksheet>",
            "<worksheet xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\" xmlns:y=\"urn:y\"><a/><b xmlns:y=\"urn:z\"/></worksheet>",
            "<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\" xmlns:y=\"urn:y\"><Relationship y:Target=\"a\"/></Relationships>",
            "<workbook xmlns=\"http://example.org\"/>",
        ] {
            assert!(!is_sound(text.as_bytes()), "{text}");
        }
        for text in [
            &b"<a>\xc3</a>"[..],
            b"<a/>\xc3",
            b"<a>\xff</a>",
            b"\xff\xfe<\0a\0",
        ] {
            assert!(!is_sound(text), "{text:?}");
        }
    }

    /// Returns whether a part may have elements with these names, each inside the one before it.
    fn is_placed(path: &str) -> bool {
        let mut start = format!("<{}>", path.replace('/', "><"));
        let names: Vec<&str> = path.rsplit('/').collect();
        let end = format!("</{}>", names.join("></"));
        let namespaces =
            ["y", "xdr", "x14"].map(|prefix| format!(" xmlns:{prefix}=\"urn:{prefix}\""));
        let root = start.find('>').expect("a tag");
        start.insert_str(
            root,
            &format!(" xmlns=\"{}\"{}", MAIN[0], namespaces.concat()),
        );
        is_sound(format!("{start}{end}").as_bytes())
    }

    #[test]
    fn names_count_only_in_their_place() {
        for path in [
            "worksheet/sheetData/row/c/v",
            "worksheet/sheetData/row/c",
            "worksheet/hyperlinks/hyperlink",
            "worksheet/controls/anchor/xdr:row",
            "worksheet/extLst/ext/x14:sparkline",
            "workbook/sheets/sheet",
            "styleSheet/cellStyleXfs/xf",
            "sst/si/r/t",
        ] {
            assert!(is_placed(path), "{path}");
        }
        for path in [
            "worksheet/extLst/sheetData",
            "worksheet/sheetData/y:row",
            "worksheet/sheetData/row/y:c",
            "worksheet/sheetData/row/c/y:any",
            "worksheet/sheetData/any/row",
            "worksheet/y:sheetData",
            "worksheet/y:hyperlink",
            "worksheet/hyperlink",
            "workbook/sheets/y:sheet",
            "workbook/y:workbookPr",
            "sst/si/y:t",
            "sst/si/t/extLst",
            "sst/si/r/t/y:any",
            "worksheet/sheetData/row/c/v/extLst",
            "worksheet/sheetData/row/c/is/t/r",
        ] {
            assert!(!is_placed(path), "{path}");
        }
        for (rows, expected) in [
            ("<row><c><v/></c><c><v/></c></row></sheetData>", true),
            ("<row><c><v/><v/></c></row></sheetData>", false),
            ("</sheetData><sheetData></sheetData>", false),
        ] {
            let sheet = format!(
                "<worksheet xmlns=\"{}\"><sheetData>{rows}</worksheet>",
                MAIN[0]
            );
            assert_eq!(is_sound(sheet.as_bytes()), expected, "{sheet}");
        }
    }
}
