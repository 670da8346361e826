//! The fields of a batch, in one list: names, labels and types.

/// The type of a field (interface, section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldType {
    Text,
    Date,
    Integer,
    Decimal,
    Boolean,
}

impl FieldType {
    pub(crate) fn is_numeric(self) -> bool {
        matches!(self, Self::Integer | Self::Decimal)
    }
}

/// A field of a batch.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    /// The heading in tables.
    pub(crate) label: &'static str,
    pub(crate) kind: FieldType,
    pub(crate) nullable: bool,
}

const fn column(
    name: &'static str,
    label: &'static str,
    kind: FieldType,
    nullable: bool,
) -> Column {
    Column {
        name,
        label,
        kind,
        nullable,
    }
}

/// The fields, in the order of the interface.
pub(crate) const COLUMNS: [Column; 18] = [
    column("batch_id", "id", FieldType::Text, false),
    column("batch_name", "name", FieldType::Text, false),
    column(
        "batch_creation_date",
        "created (UTC)",
        FieldType::Date,
        false,
    ),
    column("crop_type", "crop", FieldType::Text, true),
    column("number_of_images", "images", FieldType::Integer, false),
    column("total_cells_per_tray", "cells", FieldType::Integer, true),
    column(
        "avg_germinated_seedlings",
        "germinated",
        FieldType::Decimal,
        true,
    ),
    column(
        "avg_non_germinated_seedlings",
        "not germ.",
        FieldType::Decimal,
        true,
    ),
    column("avg_germination_rate", "germ. %", FieldType::Decimal, true),
    column("avg_usable_seedlings", "usable", FieldType::Decimal, true),
    column(
        "avg_non_usable_cells",
        "not usable",
        FieldType::Decimal,
        true,
    ),
    column(
        "avg_usable_seedling_rate",
        "usable %",
        FieldType::Decimal,
        true,
    ),
    column(
        "avg_coefficient_of_variation",
        "CV %",
        FieldType::Decimal,
        true,
    ),
    column(
        "avg_median_seedling_size_mm2",
        "size mm²",
        FieldType::Decimal,
        true,
    ),
    column("scanned_by_email", "scanned by", FieldType::Text, true),
    column("analysis_link", "report", FieldType::Text, true),
    column("comment", "comment", FieldType::Text, true),
    column("warnings", "warn", FieldType::Boolean, false),
];

pub(crate) const BATCH_ID: usize = index_of("batch_id");
pub(crate) const BATCH_NAME: usize = index_of("batch_name");
pub(crate) const CREATION_DATE: usize = index_of("batch_creation_date");
pub(crate) const CROP_TYPE: usize = index_of("crop_type");
pub(crate) const NUMBER_OF_IMAGES: usize = index_of("number_of_images");
pub(crate) const TOTAL_CELLS: usize = index_of("total_cells_per_tray");
pub(crate) const GERMINATED: usize = index_of("avg_germinated_seedlings");
pub(crate) const NON_GERMINATED: usize = index_of("avg_non_germinated_seedlings");
pub(crate) const GERMINATION_RATE: usize = index_of("avg_germination_rate");
pub(crate) const USABLE: usize = index_of("avg_usable_seedlings");
pub(crate) const NON_USABLE: usize = index_of("avg_non_usable_cells");
pub(crate) const USABLE_RATE: usize = index_of("avg_usable_seedling_rate");
pub(crate) const COEFFICIENT_OF_VARIATION: usize = index_of("avg_coefficient_of_variation");
pub(crate) const SEEDLING_SIZE: usize = index_of("avg_median_seedling_size_mm2");
pub(crate) const SCANNED_BY: usize = index_of("scanned_by_email");
pub(crate) const ANALYSIS_LINK: usize = index_of("analysis_link");
pub(crate) const COMMENT: usize = index_of("comment");
pub(crate) const WARNINGS: usize = index_of("warnings");

/// Returns the index of the column called `name`, which must exist.
const fn index_of(name: &str) -> usize {
    let mut column = 0;
    while !is_same(COLUMNS[column].name.as_bytes(), name.as_bytes()) {
        column += 1;
    }
    column
}

const fn is_same(left: &[u8], right: &[u8]) -> bool {
    match (left, right) {
        ([first, left @ ..], [other, right @ ..]) => *first == *other && is_same(left, right),
        (left, right) => left.is_empty() && right.is_empty(),
    }
}

/// All columns, one bit each.
pub(crate) const ALL_COLUMNS: u32 = (1 << COLUMNS.len()) - 1;

/// The columns that may be null or absent, one bit each.
pub(crate) const NULLABLE_COLUMNS: u32 = {
    let (mut columns, mut column) = (0, 0);
    while column < COLUMNS.len() {
        columns |= (COLUMNS[column].nullable as u32) << column;
        column += 1;
    }
    columns
};

/// Returns a set of columns as one bit each.
pub(crate) fn column_bits(columns: impl IntoIterator<Item = usize>) -> u32 {
    columns.into_iter().fold(0, |all, column| all | 1 << column)
}

/// Returns the columns of a set, in order.
pub(crate) fn columns_of_bits(columns: u32) -> Vec<usize> {
    (0..COLUMNS.len())
        .filter(|column| columns & (1 << column) != 0)
        .collect()
}

/// Returns the index of the column called `name`.
pub(crate) fn find_column(name: &str) -> Option<usize> {
    COLUMNS.iter().position(|column| column.name == name)
}
