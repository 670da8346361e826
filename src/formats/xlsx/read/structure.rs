//! Checks that what readers look for is in its namespace and in its place. Some look for a name alone, wherever it
//! is: they would read other cells than the rest.

/// An element that readers look for, with its parent, and whether there may be several.
struct Placed {
    name: &'static str,
    parent: &'static str,
    depth: usize,
    several: bool,
}

const fn one(name: &'static str, parent: &'static str) -> Placed {
    Placed {
        name,
        parent,
        depth: 1,
        several: false,
    }
}

const fn several(name: &'static str, parent: &'static str, depth: usize) -> Placed {
    Placed {
        name,
        parent,
        depth,
        several: true,
    }
}

/// The elements of the parts that tell where the cells are, and what they contain.
const PLACED: [Placed; 23] = [
    one("sheetData", "worksheet"),
    several("row", "sheetData", 2),
    several("c", "row", 3),
    several("v", "c", 4),
    several("is", "c", 4),
    one("dimension", "worksheet"),
    one("hyperlinks", "worksheet"),
    several("hyperlink", "hyperlinks", 2),
    one("mergeCells", "worksheet"),
    several("mergeCell", "mergeCells", 2),
    one("workbookPr", "workbook"),
    one("sheets", "workbook"),
    several("sheet", "sheets", 2),
    one("definedNames", "workbook"),
    several("definedName", "definedNames", 2),
    several("si", "sst", 1),
    one("numFmts", "styleSheet"),
    one("cellXfs", "styleSheet"),
    several("xf", "", 2),
    several("Relationship", "Relationships", 1),
    several("Default", "Types", 1),
    several("Override", "Types", 1),
    one("calcPr", "workbook"),
];

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
        let found = PLACED
            .iter()
            .position(|placed| placed.name.as_bytes() == name);
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
        let placed = &PLACED[place];
        let is_placed = depth == placed.depth
            && (placed.parent.is_empty() || parent == placed.parent.as_bytes());
        let is_again = !placed.several && self.seen & (1 << place) != 0;
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
