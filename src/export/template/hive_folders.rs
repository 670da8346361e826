//! Folders such as `year=2026`, compared with the batches in them.

use std::path::Path;

use percent_encoding::percent_decode_str;

use super::{HIVE_NULL, Placeholder, VALUES, mark_of, safe};
use crate::batch::{Timestamp, canonical_date};

/// The folders of a file that are named like `year=2026`: engines read them as columns.
pub(crate) struct HiveFolders<'a>(Vec<(Placeholder, &'a str)>);

impl<'a> HiveFolders<'a> {
    /// Takes those of `path` that have the name of a placeholder.
    pub(crate) fn of(path: &'a Path) -> Self {
        let folders = path.parent().into_iter().flat_map(Path::iter);
        let folders = folders.filter_map(|folder| {
            let (key, value) = folder.to_str()?.split_once('=')?;
            let (_, placeholder) = VALUES.iter().find(|(name, _)| *name == key)?;
            Some((*placeholder, value))
        });
        Self(folders.collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the name of a folder that contradicts a batch with this creation date and crop. A folder in another notation,
    /// such as `month=2026-05`, and values that are not valid contradict nothing.
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
            Placeholder::CropType => {
                let crop = crop.filter(|crop| !crop.is_empty() && value != HIVE_NULL);
                crop.is_some_and(|crop| !is_name_of(value, crop))
            }
        };
        let mut folders = self.0.iter();
        let (placeholder, value) =
            folders.find(|(placeholder, value)| is_wrong(*placeholder, value))?;
        let key = VALUES.iter().find(|(_, known)| known == placeholder);
        Some(format!("{}={value}", key.map_or("", |(name, _)| name)))
    }
}

/// Returns whether a folder of this name may be that of `crop`, also if another program wrote it, or if the name has more
/// in it.
fn is_name_of(name: &str, crop: &str) -> bool {
    let plain = safe(crop);
    let decoded = percent_decode_str(name).decode_utf8_lossy();
    // A long name is shortened before its mark.
    let start = mark_of(&plain).map_or(&*plain, |mark| &plain[..mark]);
    name.contains(start) || decoded.contains(crop)
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
            ("crop_type=Leek/b.csv", date, None, None),
            (
                "crop_type=__HIVE_DEFAULT_PARTITION__/b.csv",
                date,
                Some("5"),
                None,
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
        let long = "x".repeat(300);
        let folder = format!("crop_type={}/b.csv", safe(&long));
        let folders = HiveFolders::of(Path::new(&folder));
        assert_eq!(folders.contradiction(date, Some(&long)), None);
    }
}
