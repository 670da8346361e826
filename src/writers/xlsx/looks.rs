//! How cells look, what stands above them, and how wide their columns are.

use rust_xlsxwriter::{Color, Format, FormatAlign, FormatUnderline};

use crate::batch::{COLUMNS, Kind};

/// Stands behind the name of a column of dates: cells know no zone.
const ZONE: &str = " (UTC)";

/// How cells look, in one row.
pub(super) struct Looks {
    pub(super) text: Format,
    pub(super) link: Format,
    pub(super) integer: Format,
    pub(super) decimal: Format,
    pub(super) boolean: Format,
    pub(super) second: Format,
    pub(super) fraction: Format,
}

impl Looks {
    pub(super) fn new(base: &Format) -> Self {
        let numbered = |format: &str| base.clone().set_num_format(format);
        Self {
            // As text even after somebody has edited it.
            text: numbered("@"),
            link: numbered("@")
                .set_font_color(Color::RGB(0x05_63_C1))
                .set_underline(FormatUnderline::Single),
            integer: numbered("0"),
            decimal: numbered("0.00"),
            boolean: base.clone().set_align(FormatAlign::Center),
            second: numbered("yyyy-mm-dd hh:mm:ss"),
            fraction: numbered("yyyy-mm-dd hh:mm:ss.000"),
        }
    }
}

pub(super) fn header(column: usize) -> String {
    let zone = if COLUMNS[column].kind == Kind::Date {
        ZONE
    } else {
        ""
    };
    format!("{}{zone}", COLUMNS[column].name)
}

/// Returns how wide a column is, in digits: its name and the button of the filter fit, and usual values.
#[allow(clippy::cast_precision_loss, reason = "names are short")]
pub(super) fn width(column: usize, header: &str) -> f64 {
    let usual = match (COLUMNS[column].name, COLUMNS[column].kind) {
        ("batch_id", _) => 38.0,
        ("batch_name" | "scanned_by_email", _) => 34.0,
        ("analysis_link", _) => 72.0,
        ("comment", _) => 60.0,
        (_, Kind::Date) => 24.0,
        (_, Kind::Text) => 20.0,
        _ => 10.0,
    };
    (header.len() as f64 + 4.0).max(usual)
}
