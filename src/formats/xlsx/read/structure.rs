//! Checks that what readers look for is in its namespace and in its place. Some look for a name alone, wherever it
//! is: they would read other cells than the rest.

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

/// The elements of a part that may be there only once.
#[derive(Debug, Default)]
pub(super) struct Structure {
    seen: u32,
    /// Whether the current cell has a value.
    has_value: bool,
}

impl Structure {
    /// Checks an element with this local name. `parents` are the full names of the open elements, and `is_own` is
    /// whether it has the namespace of the part.
    pub(super) fn check<'a>(
        &mut self,
        name: &[u8],
        is_own: bool,
        mut parents: impl DoubleEndedIterator<Item = &'a [u8]> + ExactSizeIterator,
    ) -> Option<()> {
        let depth = parents.len();
        let parent = parents.next_back().map_or(&b""[..], local);
        // An element inside a value: some readers stop there, others read on.
        if matches!(parent, b"t" | b"v") {
            return None;
        }
        let found = PLACED
            .iter()
            .position(|(placed, ..)| placed.as_bytes() == name);
        if !is_own {
            let is_content = |name: &[u8]| CONTENT.contains(&local(name));
            let is_inside = is_content(parent) || parents.any(is_content);
            // Controls have rows and columns of their own.
            let is_harmless = found.is_none() || matches!(name, b"row" | b"c" | b"v");
            return (!is_inside && is_harmless).then_some(());
        }
        let Some(place) = found else {
            return Some(());
        };
        let (_, its_parent, its_depth, several) = PLACED[place];
        let is_placed =
            depth == its_depth && (its_parent.is_empty() || parent == its_parent.as_bytes());
        let is_again = !several && self.seen & (1 << place) != 0;
        self.seen |= 1 << place;
        let has_value = matches!(name, b"v" | b"is");
        let is_second = has_value && self.has_value;
        self.has_value = has_value;
        (is_placed && !is_again && !is_second).then_some(())
    }
}

/// Returns a name without its prefix.
pub(super) fn local(name: &[u8]) -> &[u8] {
    memchr::memchr(b':', name).map_or(name, |colon| &name[colon + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_count_only_in_their_place() {
        let check = |path: &str, is_own: bool| {
            let mut names: Vec<&[u8]> = path.split('/').map(str::as_bytes).collect();
            let name = names.pop().expect("a name");
            let is_own = is_own && !name.contains(&b':');
            Structure::default()
                .check(local(name), is_own, names.into_iter())
                .is_some()
        };
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
            assert!(check(path, true), "{path}");
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
            assert!(!check(path, true), "{path}");
        }
        assert!(
            !check("worksheet/sheetData/row", false),
            "a namespace of its own"
        );
    }

    #[test]
    fn a_cell_has_one_value_and_a_sheet_one_list_of_rows() {
        let mut structure = Structure::default();
        let mut check = |path: &[&'static str]| {
            let (name, parents) = path.split_last().expect("a name");
            let parents = parents.iter().map(|parent| parent.as_bytes());
            structure.check(name.as_bytes(), true, parents).is_some()
        };
        let cell = ["worksheet", "sheetData", "row", "c", "v"];
        assert!(check(&cell[..2]) && check(&cell[..3]) && check(&cell[..4]) && check(&cell));
        assert!(check(&cell[..4]) && check(&cell));
        assert!(!check(&cell), "a second value");
        assert!(!check(&cell[..2]), "a second list");
    }
}
