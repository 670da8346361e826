//! Folders such as `year=2026`, compared with the batches in them.

use std::path::Path;

use percent_encoding::percent_decode_str;

use super::{HIVE_NULL, Placeholder, UNKNOWN, VALUES, mark_of, safe};
use crate::batch::{COLUMNS, Timestamp, canonical_date};

/// The folders of a file that are named like `year=2026`: engines read them as columns.
#[derive(Default)]
pub(crate) struct HiveFolders<'a> {
    /// Those with the name of a placeholder, and their values.
    values: Vec<(Placeholder, &'a str)>,
    /// The first one with the name of another field: engines read its value instead of that of each batch.
    pub(crate) other_field: Option<&'a str>,
}

impl<'a> HiveFolders<'a> {
    /// Takes those of `path`. Engines ignore the case of names.
    pub(crate) fn of(path: &'a Path) -> Self {
        let mut all = Self::default();
        let folders = path.parent().into_iter().flat_map(Path::iter);
        for folder in folders.filter_map(|folder| folder.to_str()) {
            let Some((key, value)) = folder.split_once('=') else {
                continue;
            };
            let mut placeholders = VALUES.iter();
            let placeholder = placeholders.find(|(name, _)| key.eq_ignore_ascii_case(name));
            if let Some((_, placeholder)) = placeholder {
                all.values.push((*placeholder, value));
            } else if COLUMNS
                .iter()
                .any(|column| key.eq_ignore_ascii_case(column.name))
            {
                all.other_field.get_or_insert(folder);
            }
        }
        all
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the name of a folder that contradicts a batch with this creation date and crop. A folder in another notation,
    /// such as `month=2026-05`, and dates that are not valid contradict nothing.
    pub(crate) fn contradiction(&self, date: Option<&str>, crop: Option<&str>) -> Option<String> {
        let date = date.filter(|date| Timestamp::parse(date).is_some());
        let date = date.map(canonical_date);
        let is_other = |value: &str, width: usize, from: usize, to: usize| {
            let is_number = value.len() <= width && value.bytes().all(|byte| byte.is_ascii_digit());
            let part = date.as_deref().and_then(|date| date.get(from..to));
            let number = |text: &str| text.parse::<u32>().ok();
            is_number && part.is_some_and(|part| number(value) != number(part))
        };
        let is_wrong = |placeholder: Placeholder, value: &str| match placeholder {
            Placeholder::Year => is_other(value, 4, 0, 4),
            Placeholder::Month => is_other(value, 2, 5, 7),
            Placeholder::Day => is_other(value, 2, 8, 10),
            Placeholder::CropType => match crop.filter(|crop| !crop.is_empty()) {
                // A crop that is not text has no name.
                Some(crop) if value == HIVE_NULL => !is_json(crop),
                Some(crop) => !is_name_of(value, crop),
                None => !["", "null", UNKNOWN, HIVE_NULL]
                    .iter()
                    .any(|null| has_word(value, null)),
            },
        };
        let mut folders = self.values.iter();
        let (placeholder, value) =
            folders.find(|(placeholder, value)| is_wrong(*placeholder, value))?;
        let key = VALUES.iter().find(|(_, known)| known == placeholder);
        Some(format!("{}={value}", key.map_or("", |(name, _)| name)))
    }
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
    text.match_indices(word).any(|(start, _)| {
        let (before, after) = (&text[..start], &text[start + word.len()..]);
        let is_word = is_outside(before.chars().next_back()) && is_outside(after.chars().next());
        is_word && (!word.is_empty() || text.is_empty())
    })
}

/// Returns whether `text` is a JSON value, which is not that of a text field.
fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::super::marked;
    use super::*;

    #[test]
    fn folders_contradict_batches_of_other_dates_or_crops() {
        let date = Some("2026-05-01T06:00:00Z");
        for (path, date, crop, expected) in [
            ("year=2026/month=05/day=1/b.csv", date, None, None),
            ("year=2025/b.csv", date, None, Some("year=2025")),
            ("year=2026/month=6/b.csv", date, None, Some("month=6")),
            ("year=2026/b.csv", None, None, None),
            ("year=2026/b.csv", Some("2026-05-01"), None, None),
            ("year=1999/b.csv", Some("2026-13-45T00:00:00Z"), None, None),
            ("month=2025-06/year=all/day=Friday/b.csv", date, None, None),
            ("crop_type=Leek-2026/b.csv", date, Some("Leek"), None),
            ("crop_type=Leek/b.csv", date, Some("Leek"), None),
            (
                "crop_type=Leek/b.csv",
                date,
                Some("leek"),
                Some("crop_type=Leek"),
            ),
            ("crop_type=a%2Fb/b.csv", date, Some("a/b"), None),
            ("crop_type=a%20b/b.csv", date, Some("a b"), None),
            (
                "crop_type=__HIVE_DEFAULT_PARTITION__/b.csv",
                date,
                Some(""),
                None,
            ),
            ("crop_type=Leek/b.csv", date, None, Some("crop_type=Leek")),
            (
                "crop_type=__HIVE_DEFAULT_PARTITION__/b.csv",
                date,
                None,
                None,
            ),
            ("crop_type=north-unknown/b.csv", date, None, None),
            (
                "Crop_Type=Kale/b.csv",
                date,
                Some("Leek"),
                Some("crop_type=Kale"),
            ),
            (
                "crop_type=NotLeek/b.csv",
                date,
                Some("Leek"),
                Some("crop_type=NotLeek"),
            ),
            ("crop_type=north-Leek/b.csv", date, Some("Leek"), None),
            (
                "crop_type=__HIVE_DEFAULT_PARTITION__/b.csv",
                date,
                Some("5"),
                None,
            ),
            (
                "crop_type=__HIVE_DEFAULT_PARTITION__/b.csv",
                date,
                Some("Leek"),
                Some("crop_type=__HIVE_DEFAULT_PARTITION__"),
            ),
            ("sown=1999/crop_type=Leek.csv", date, Some("Kale"), None),
        ] {
            let folders = HiveFolders::of(Path::new(path));
            let found = folders.contradiction(date, crop);
            assert_eq!(found.as_deref(), expected, "{path}");
        }
        let marked = format!("crop_type={}/b.csv", marked("Leek", "Leek", 0));
        let folders = HiveFolders::of(Path::new(&marked));
        assert_eq!(folders.contradiction(date, Some("Leek")), None);
        assert!(folders.contradiction(date, Some("LEEK")).is_some());
        for (path, other) in [
            ("year=2026/Comment=x/b.csv", Some("Comment=x")),
            ("year=2026/comments=x/b.csv", None),
        ] {
            assert_eq!(HiveFolders::of(Path::new(path)).other_field, other);
        }
        let long = "x".repeat(300);
        let folder = format!("crop_type={}/b.csv", safe(&long));
        let folders = HiveFolders::of(Path::new(&folder));
        assert_eq!(folders.contradiction(date, Some(&long)), None);
    }
}
