//! Folders such as `year=2026`, compared with the batches in them.

use std::ops::Range;
use std::path::Path;

use percent_encoding::percent_decode_str;

use super::crops::{mark_of, safe};
use super::{HIVE_NULL, Placeholder, UNKNOWN, VALUES};
use crate::batch::{COLUMNS, CREATION_DATE, CROP_TYPE, Timestamp, Values, canonical_date};

/// The folders of a file that are named like `year=2026` or a field: engines read them as columns.
pub(crate) struct HiveFolders<'a>(Vec<HiveFolder<'a>>);

struct HiveFolder<'a> {
    name: &'a str,
    value: &'a str,
    key: FolderKey,
}

enum FolderKey {
    /// A part of the creation date, or the crop.
    Placeholder(Placeholder),
    /// Any other field.
    Column(usize),
}

impl FolderKey {
    /// Finds a key. Engines ignore its case.
    fn find(key: &str) -> Option<Self> {
        let mut placeholders = VALUES.iter();
        let placeholder = placeholders.find(|(name, _)| key.eq_ignore_ascii_case(name));
        if let Some((_, placeholder)) = placeholder {
            return Some(Self::Placeholder(*placeholder));
        }
        let mut columns = COLUMNS.iter();
        let column = columns.position(|column| key.eq_ignore_ascii_case(column.name));
        column.map(Self::Column)
    }

    /// Returns the column that engines read it as, or from which it is taken.
    fn column(&self) -> usize {
        match self {
            Self::Placeholder(Placeholder::CropType) => CROP_TYPE,
            Self::Placeholder(_) => CREATION_DATE,
            Self::Column(column) => *column,
        }
    }
}

impl<'a> HiveFolders<'a> {
    /// Takes those of `path`.
    pub(crate) fn of(path: &'a Path) -> Self {
        let folders = path.parent().into_iter().flat_map(Path::iter);
        let folders = folders.filter_map(|folder| {
            let name = folder.to_str()?;
            let (key, value) = name.split_once('=')?;
            let key = FolderKey::find(key)?;
            Some(HiveFolder { name, value, key })
        });
        Self(folders.collect())
    }

    /// Returns the name of a folder that contradicts a batch with these columns, one bit each. A folder in another notation,
    /// such as `month=2026-05`, and dates that are not valid contradict nothing.
    pub(crate) fn contradiction(&self, batch: &dyn Values, columns: u32) -> Option<&'a str> {
        if self.0.is_empty() {
            return None;
        }
        let date = batch.plain(CREATION_DATE);
        let date = date.filter(|date| Timestamp::parse(date).is_some());
        let date = date.as_deref().map(canonical_date);
        let is_other = |value: &str, place: Range<usize>| {
            let is_digits = value.bytes().all(|byte| byte.is_ascii_digit());
            let is_number = value.len() <= place.len() && is_digits;
            let part = date.as_deref().and_then(|date| date.get(place));
            let number = |text: &str| text.parse::<u32>().ok();
            is_number && part.is_some_and(|part| number(value) != number(part))
        };
        let is_wrong_crop = |value: &str| {
            let crop = batch.plain(CROP_TYPE);
            match crop.as_deref().filter(|crop| !crop.is_empty()) {
                // A crop that is not valid text has no name.
                Some(crop) if value == HIVE_NULL => !crop.contains('\\') && !is_json(crop),
                Some(crop) => !is_name_of(value, crop),
                None => !is_null(value),
            }
        };
        let is_wrong = |folder: &&HiveFolder<'_>| match &folder.key {
            FolderKey::Placeholder(placeholder) => match placeholder.in_date() {
                Some(place) => is_other(folder.value, place),
                None => is_wrong_crop(folder.value),
            },
            FolderKey::Column(column) => match batch.plain(*column).as_deref() {
                None | Some("") => !is_null(folder.value),
                Some(text) => percent_decode_str(folder.value).decode_utf8_lossy() != text,
            },
        };
        let is_present = |folder: &&HiveFolder<'_>| columns & (1 << folder.key.column()) != 0;
        let mut folders = self.0.iter().filter(is_present);
        folders.find(is_wrong).map(|folder| folder.name)
    }
}

/// Returns whether the value of a folder may stand for a missing one.
fn is_null(value: &str) -> bool {
    let nulls = ["", "null", UNKNOWN, HIVE_NULL];
    nulls.iter().any(|null| has_word(value, null))
}

/// Returns whether a folder of this name may be that of `crop`, also if another program wrote it, or if the name has other
/// words in it.
fn is_name_of(name: &str, crop: &str) -> bool {
    let plain = safe(crop);
    let decoded = percent_decode_str(name).decode_utf8_lossy();
    // A long name is shortened before its mark.
    let start = mark_of(&plain).map_or(&*plain, |mark| &plain[..mark]);
    has_word(name, start) || has_word(&decoded, crop)
}

/// Returns whether `text` is `word`, or has it between other characters than letters and digits.
fn has_word(text: &str, word: &str) -> bool {
    let is_outside = |character: Option<char>| character.is_none_or(|one| !one.is_alphanumeric());
    text == word
        || !word.is_empty()
            && text.char_indices().any(|(start, _)| {
                let (before, from) = text.split_at(start);
                let after = from.strip_prefix(word);
                after.is_some_and(|after| {
                    is_outside(before.chars().next_back()) && is_outside(after.chars().next())
                })
            })
}

/// Returns whether `text` is a JSON value, which is not that of a text field.
fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::super::crops::marked;
    use super::*;
    use crate::batch::{ALL_COLUMNS, PlainRow};

    fn row(date: Option<&str>, crop: Option<&str>) -> PlainRow {
        let mut row = PlainRow::default();
        row.texts[CREATION_DATE] = date.map(ToOwned::to_owned);
        row.texts[CROP_TYPE] = crop.map(ToOwned::to_owned);
        row
    }

    #[test]
    fn folders_contradict_batches_of_other_dates_or_crops() {
        let date = Some("2026-05-01T06:00:00Z");
        let null = "crop_type=__HIVE_DEFAULT_PARTITION__";
        // The folder that is wrong, if any, is the last one.
        for (folders, date, crop, is_wrong) in [
            ("year=2026/month=05/day=1", date, None, false),
            ("year=2025", date, None, true),
            ("year=2026/month=6", date, None, true),
            ("year=2026", None, None, false),
            ("year=2026", Some("2026-05-01"), None, false),
            ("year=1999", Some("2026-13-45T00:00:00Z"), None, false),
            ("month=2025-06/year=all/day=Friday", date, None, false),
            ("crop_type=Leek-2026", date, Some("Leek"), false),
            ("crop_type=Leek", date, Some("Leek"), false),
            ("crop_type=Leek", date, Some("leek"), true),
            ("crop_type=a%2Fb", date, Some("a/b"), false),
            ("crop_type=a%20b", date, Some("a b"), false),
            (null, date, Some(""), false),
            ("crop_type=Leek", date, None, true),
            (null, date, None, false),
            ("crop_type=north-unknown", date, None, false),
            ("Crop_Type=Kale", date, Some("Leek"), true),
            ("crop_type=NotLeek", date, Some("Leek"), true),
            ("crop_type=north-Leek", date, Some("Leek"), false),
            ("crop_type=xa-a-a", date, Some("a-a"), false),
            (null, date, Some("\\ud800"), false),
            (null, date, Some("5"), false),
            (null, date, Some("Leek"), true),
            ("sown=1999", date, Some("Kale"), false),
        ] {
            let path = format!("{folders}/crop_type=Leek.csv");
            let hive = HiveFolders::of(Path::new(&path));
            let found = hive.contradiction(&row(date, crop), ALL_COLUMNS);
            let last = folders.rsplit('/').next().filter(|_| is_wrong);
            assert_eq!(found, last, "{path}");
        }
    }

    #[test]
    fn names_are_those_of_crops_and_fields() {
        let date = Some("2026-05-01T06:00:00Z");
        let leek = row(date, Some("Leek"));
        let marked = format!("crop_type={}/b.csv", marked("Leek", "Leek", 0));
        let folders = HiveFolders::of(Path::new(&marked));
        assert_eq!(folders.contradiction(&leek, ALL_COLUMNS), None);
        assert!(
            folders
                .contradiction(&row(date, Some("LEEK")), ALL_COLUMNS)
                .is_some()
        );
        for (path, expected) in [
            ("year=2026/Comment=x/b.csv", Some("Comment=x")),
            ("comment=__HIVE_DEFAULT_PARTITION__/b.csv", None),
            ("comments=x/b.csv", None),
            ("batch_creation_date=2026-05-01T06%3A00%3A00Z/b.csv", None),
            (
                "batch_creation_date=2026-05-01/b.csv",
                Some("batch_creation_date=2026-05-01"),
            ),
        ] {
            let found = HiveFolders::of(Path::new(path)).contradiction(&leek, ALL_COLUMNS);
            assert_eq!(found, expected, "{path}");
        }
        let path = Path::new("crop_type=Kale/b.csv");
        let other_columns = ALL_COLUMNS & !(1 << CROP_TYPE);
        assert_eq!(
            HiveFolders::of(path).contradiction(&leek, other_columns),
            None
        );
        let long = "x".repeat(300);
        let folder = format!("crop_type={}/b.csv", safe(&long));
        let folders = HiveFolders::of(Path::new(&folder));
        assert_eq!(
            folders.contradiction(&row(date, Some(&long)), ALL_COLUMNS),
            None
        );
    }
}
