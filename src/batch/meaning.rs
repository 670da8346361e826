//! Titles, units and descriptions of the fields (interface, section 2).

use super::COLUMNS;

/// Describes a field for people.
pub(crate) struct Meaning {
    /// The heading, without the unit.
    pub(crate) title: &'static str,
    /// Empty if there is none.
    pub(crate) unit: &'static str,
    pub(crate) text: &'static str,
}

impl Meaning {
    /// Returns the heading: the title, and the unit in brackets.
    pub(crate) fn heading(&self) -> String {
        match self.unit {
            "" => self.title.to_owned(),
            unit => format!("{} ({unit})", self.title),
        }
    }
}

const fn meaning(title: &'static str, unit: &'static str, text: &'static str) -> Meaning {
    Meaning { title, unit, text }
}

/// One for each of [`COLUMNS`]. Rates refer to tray cells. They are not the result of a germination test in a
/// seed laboratory, and must not be called that.
pub(crate) const MEANINGS: [Meaning; COLUMNS.len()] = [
    meaning("Batch id", "", "Unique identifier of the batch"),
    meaning("Batch name", "", "Name of the batch"),
    meaning("Created", "UTC", "When the batch was created"),
    meaning("Crop", "", "Crop variety that was scanned"),
    meaning("Images", "", "Number of images in the batch"),
    meaning("Cells per tray", "", "Cells that a tray has"),
    meaning(
        "Germinated",
        "per tray",
        "Germinated seedlings, average of the trays",
    ),
    meaning(
        "Not germinated",
        "per tray",
        "Non-germinated seedlings, average of the trays",
    ),
    meaning(
        "Germination rate",
        "%",
        "Germination rate, average of the trays, 0 to 100",
    ),
    meaning(
        "Usable seedlings",
        "per tray",
        "Usable seedlings, average of the trays",
    ),
    meaning(
        "Non-usable cells",
        "per tray",
        "Cells without a usable seedling, average of the trays",
    ),
    meaning(
        "Usable rate",
        "%",
        "Usable seedling rate, average of the trays, 0 to 100",
    ),
    meaning(
        "Size CV",
        "%",
        "Coefficient of variation of the seedling size, average of the trays; lower is more even",
    ),
    meaning(
        "Median size",
        "mm²",
        "Median seedling size, average of the trays",
    ),
    meaning("Scanned by", "", "E-mail address of who ran the scan"),
    meaning("Analysis report", "", "Address of the full analysis report"),
    meaning("Comment", "", "Comment on the batch"),
    meaning("Warnings", "", "Whether the batch has any warnings"),
];

/// Returns the index of the column with this heading, with or without its unit.
pub(crate) fn find_heading(heading: &str) -> Option<usize> {
    MEANINGS
        .iter()
        .position(|meaning| meaning.title == heading || meaning.heading() == heading)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::FieldType;

    #[test]
    fn no_two_fields_have_one_title_and_units_say_what_names_say() {
        for (place, meaning) in MEANINGS.iter().enumerate() {
            assert_eq!(find_heading(meaning.title), Some(place));
            assert_eq!(find_heading(&meaning.heading()), Some(place));
            let column = &COLUMNS[place];
            let unit = match column.name {
                name if name.ends_with("_rate") || name.contains("variation") => "%",
                name if name.ends_with("_mm2") => "mm²",
                _ if column.kind == FieldType::Date => "UTC",
                _ if column.kind == FieldType::Decimal => "per tray",
                _ => "",
            };
            assert_eq!(meaning.unit, unit, "{}", column.name);
        }
        assert_eq!(find_heading("Crops"), None);
    }
}
