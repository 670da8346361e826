//! File names with placeholders: one file per year, month, day or crop.

mod crops;
mod hive_folders;

use std::collections::HashSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use chrono::{Datelike as _, NaiveDate};

use crate::batch::range::{Range as DateRange, written};
use crate::batch::{Batch, CREATION_DATE, CROP_TYPE, canonical_date};
use crate::error::Failure;
use crate::text;
pub(crate) use crops::Crops;
pub(crate) use hive_folders::HiveFolders;

/// Replaces a missing value.
const UNKNOWN: &str = "unknown";
/// The same for a whole folder value, as in `crop_type={crop_type}`: engines read it as null.
const HIVE_NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// The value of a placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placeholder {
    Year,
    Month,
    Day,
    CropType,
}

const VALUES: [(&str, Placeholder); 4] = [
    ("year", Placeholder::Year),
    ("month", Placeholder::Month),
    ("day", Placeholder::Day),
    ("crop_type", Placeholder::CropType),
];

impl Placeholder {
    /// Returns where its value is in a date; `None` for a crop.
    fn in_date(self) -> Option<Range<usize>> {
        match self {
            Self::Year => Some(0..4),
            Self::Month => Some(5..7),
            Self::Day => Some(8..10),
            Self::CropType => None,
        }
    }

    /// Returns the placeholder as given.
    fn text(self) -> String {
        let known = VALUES.iter().find(|(_, value)| *value == self);
        known.map_or_else(String::new, |(name, _)| format!("{{{name}}}"))
    }
}

/// Files that a range may cut.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CutFiles {
    /// The period of their batches, such as `2026-05`. `None` if any date is possible.
    pub(crate) period: Option<String>,
    /// Their name, with placeholders for what is not known.
    pub(crate) name: String,
}

/// A name with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    /// The text before the first placeholder.
    start: String,
    /// Each placeholder with the text after it.
    parts: Vec<(Placeholder, String)>,
}

impl Template {
    /// Parses `path`; `None` if it contains no placeholder.
    pub(crate) fn parse(path: &Path) -> Result<Option<Self>, Failure> {
        let Some(mut rest) = path.to_str() else {
            let lossy = path.to_string_lossy();
            return match Self::parse(Path::new(&*lossy))? {
                None => Ok(None),
                Some(_) => Err(Failure::usage(
                    format!(
                        "`{}` has placeholders, but is not valid UTF-8",
                        text::one_line(&lossy)
                    ),
                    "use a path in UTF-8",
                )),
            };
        };
        let mut template = Self {
            start: String::new(),
            parts: Vec::new(),
        };
        while let Some((before, after)) = rest.split_once('{') {
            template.end().push_str(before);
            let word = after.split_once('}');
            let word = word.filter(|(word, _)| {
                !word.is_empty()
                    && word.bytes().all(|byte| {
                        byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'-' | b' ')
                    })
            });
            let Some((word, behind)) = word else {
                template.end().push('{');
                rest = after;
                continue;
            };
            let Some((_, value)) = VALUES.iter().find(|(name, _)| *name == word) else {
                return Err(Failure::usage(
                    format!("`-o {}`: unknown placeholder `{{{word}}}`", path.display()),
                    "the placeholders are {year}, {month}, {day} and {crop_type}",
                ));
            };
            template.parts.push((*value, String::new()));
            rest = behind;
        }
        if template.parts.is_empty() {
            return Ok(None);
        }
        template.end().push_str(rest);
        let goes_up = |text: &String| text.split(std::path::is_separator).any(|part| part == "..");
        if template.texts()[1..].iter().any(goes_up) {
            return Err(Failure::usage(
                format!(
                    "`{}` has `..` after a placeholder",
                    text::one_line(&template.text())
                ),
                "write the folders of the files without `..`",
            ));
        }
        Ok(Some(template))
    }

    /// Returns the text after the last placeholder.
    fn end(&mut self) -> &mut String {
        let last = self.parts.last_mut();
        last.map_or(&mut self.start, |(_, text)| text)
    }

    /// Returns the text before, between and after the placeholders.
    pub(crate) fn texts(&self) -> Vec<String> {
        let texts = self.parts.iter().map(|(_, text)| text);
        [&self.start].into_iter().chain(texts).cloned().collect()
    }

    /// Returns the template as given.
    pub(crate) fn text(&self) -> String {
        self.with_date("")
    }

    fn has(&self, placeholder: Placeholder) -> bool {
        self.parts.iter().any(|(value, _)| *value == placeholder)
    }

    /// Returns the range of creation dates, as text, of all batches in the same file as `batch`: from the
    /// first, up to but excluding the second. `None` if any date is possible.
    pub(crate) fn date_span(&self, batch: &Batch) -> Option<[String; 2]> {
        let length = self.date_length()?;
        let date = batch.typed(CREATION_DATE)?;
        let date = canonical_date(&date);
        let prefix = date.get(..length)?;
        let first = format!("{prefix}{}", &"-01-01"[length - 4..]);
        let first = NaiveDate::parse_from_str(&first, "%Y-%m-%d").ok()?;
        // A leap second belongs to the next day.
        let from = match first.pred_opt() {
            Some(day) if day.year() >= 0 => format!("{day}T23:59:60"),
            _ => prefix.to_owned(),
        };
        Some([from, format!("{prefix}~")])
    }

    /// Returns how much of the date the batches of one file have in common; `None` if any date is possible.
    fn date_length(&self) -> Option<usize> {
        match (
            self.has(Placeholder::Year),
            self.has(Placeholder::Month),
            self.has(Placeholder::Day),
        ) {
            (false, ..) => None,
            (true, false, _) => Some("YYYY".len()),
            (true, true, false) => Some("YYYY-MM".len()),
            (true, true, true) => Some("YYYY-MM-DD".len()),
        }
    }

    /// Returns the files that may have batches both before and after `second`, a bound of `range`. `None` if a period begins
    /// there.
    pub(crate) fn cut_at(&self, second: i64, range: &DateRange) -> Option<CutFiles> {
        let date = written(second);
        let Some(length) = self.date_length() else {
            // Without a year, batches of any other year may be in the same files.
            let last = range.end.map(|end| end - i64::from(range.excludes_end));
            let ends = range.start.zip(last);
            let ends = ends.map(|(start, last)| (written(start), written(last)));
            let common = ends.and_then(|(start, last)| {
                let mut lengths = ["YYYY-MM-DD".len(), "YYYY-MM".len()].into_iter();
                let length = lengths.find(|length| start[..*length] == last[..*length])?;
                Some(start[..length].to_owned())
            });
            return Some(CutFiles {
                period: None,
                name: self.with_date(&common.unwrap_or_default()),
            });
        };
        if date[length..] == "-01-01T00:00:00Z"[length - "YYYY".len()..] {
            return None;
        }
        let period = &date[..length];
        Some(CutFiles {
            name: self.with_date(period),
            period: Some(period.to_owned()),
        })
    }

    /// Returns whether batches created in `range` may be in the file `name`.
    pub(crate) fn may_write(&self, name: &str, range: &DateRange) -> bool {
        const DAY: i64 = 86_400;
        const MAX_DAYS: i64 = 400;
        let (Some(start), Some(end)) = (range.start, range.end) else {
            return true;
        };
        let days = start.div_euclid(DAY)..=(end - i64::from(range.excludes_end)).div_euclid(DAY);
        let is_long = days.end() - days.start() > MAX_DAYS;
        let names: HashSet<String> = days
            .take(usize::try_from(MAX_DAYS).unwrap_or_default())
            .map(|day| self.with_date(&written(day * DAY)))
            .collect();
        let plain = |path: &str| path.strip_prefix("./").unwrap_or(path).to_owned();
        let name = plain(name);
        let fits = |dated: &String| match Self::parse(Path::new(&plain(dated))) {
            Ok(Some(template)) => template.fits(&name),
            _ => plain(dated) == name,
        };
        is_long || names.iter().any(fits)
    }

    /// Returns the template as given, with the parts of a date that `date` begins with.
    fn with_date(&self, date: &str) -> String {
        let mut name = self.start.clone();
        for (value, text) in &self.parts {
            match value.in_date().and_then(|place| date.get(place)) {
                Some(part) => name.push_str(part),
                None => name.push_str(&value.text()),
            }
            name.push_str(text);
        }
        name
    }

    /// Returns a placeholder of a date, the one that is missing before it, and the length of a date up to that part:
    /// `{month}` without `{year}` puts the same month of all years into one file. `None` if there is none.
    pub(super) fn gap(&self) -> Option<DateGap> {
        let [year, month, day] = [Placeholder::Year, Placeholder::Month, Placeholder::Day]
            .map(|placeholder| self.has(placeholder));
        match (year, month, day) {
            (_, false, true) => Some(("{day}", "{month}", "YYYY-MM".len())),
            (false, true, _) => Some(("{month}", "{year}", "YYYY".len())),
            _ => None,
        }
    }

    /// Returns whether the template contains the crop.
    pub(crate) fn has_crops(&self) -> bool {
        self.has(Placeholder::CropType)
    }

    /// Returns whether a folder is named after the crop so that engines read it from there, as in `crop_type={crop_type}/`.
    pub(super) fn has_crop_folders(&self) -> bool {
        let mut parts = self.parts.iter().enumerate();
        parts.any(|(index, (value, _))| {
            *value == Placeholder::CropType && self.null(index) == HIVE_NULL
        })
    }

    /// Returns the folder that contains all files, directly or in subfolders.
    pub(crate) fn folder(&self) -> PathBuf {
        let folder = self.start.rfind(std::path::is_separator);
        PathBuf::from(folder.map_or("", |end| &self.start[..=end]))
    }

    /// Returns the name of the file for `batch`.
    pub(crate) fn name(&self, batch: &Batch, crops: &mut Crops) -> String {
        let date = batch.typed(CREATION_DATE);
        // A leap second belongs to the next day, as in typed columns.
        let date = date.as_deref().map(canonical_date);
        let crop = batch.typed(CROP_TYPE);
        let crop = crop.as_deref().filter(|crop| !crop.is_empty());
        let mut name = self.start.clone();
        for (index, (value, text)) in self.parts.iter().enumerate() {
            let value = match value.in_date() {
                Some(place) => date.as_deref().and_then(|date| date.get(place)),
                None => crop.map(|crop| crops.name(crop)),
            };
            name.push_str(value.unwrap_or_else(|| self.null(index)));
            name.push_str(text);
        }
        name
    }

    /// Returns whether the template may produce `name`.
    pub(crate) fn fits(&self, name: &str) -> bool {
        let Some(rest) = name.strip_prefix(&self.start) else {
            return false;
        };
        // Only a forged name leads out of the folder.
        let mut folders = rest.split(std::path::is_separator);
        folders.all(|folder| !matches!(folder, "." | "..")) && self.fits_from(0, rest)
    }

    /// Returns whether the parts from `index` on may produce `name`.
    fn fits_from(&self, index: usize, name: &str) -> bool {
        let Some((value, text)) = self.parts.get(index) else {
            return name.is_empty();
        };
        let fits_rest = |rest: &str| {
            let rest = rest.strip_prefix(text.as_str());
            rest.is_some_and(|rest| self.fits_from(index + 1, rest))
        };
        let Some(place) = value.in_date() else {
            let crop = name.split(std::path::is_separator).next();
            let ends = crop.unwrap_or_default().char_indices().skip(1);
            let mut ends = ends.map(|(end, _)| end).chain(crop.map(str::len));
            return ends.any(|end| end > 0 && fits_rest(&name[end..]));
        };
        let is_digits = |value: &str| value.bytes().all(|byte| byte.is_ascii_digit());
        let date = name.split_at_checked(place.len());
        date.is_some_and(|(value, rest)| is_digits(value) && fits_rest(rest))
            || name.strip_prefix(self.null(index)).is_some_and(fits_rest)
    }

    /// Returns what stands for a missing value of a placeholder: it may be a whole folder value, as in `key={value}/`.
    fn null(&self, index: usize) -> &'static str {
        let before = index
            .checked_sub(1)
            .map_or(&self.start, |before| &self.parts[before].1);
        let key = before.rsplit(std::path::is_separator).next();
        let has_key = key.is_some_and(|key| key.len() > 1 && key.find('=') == Some(key.len() - 1));
        if has_key && self.parts[index].1.starts_with(std::path::is_separator) {
            HIVE_NULL
        } else {
            UNKNOWN
        }
    }
}

/// A placeholder of a date, the missing one before it, and the length of a date up to that.
pub(super) type DateGap = (&'static str, &'static str, usize);

#[cfg(test)]
mod tests {
    use super::*;

    use super::crops::safe;
    use crate::error::Kind;

    fn batch(date: &str, crop: &str) -> Batch {
        let text = format!(
            r#"{{"batch_id":"a","batch_name":"n","batch_creation_date":"{date}","crop_type":{crop},"number_of_images":1,"warnings":true}}"#
        );
        Batch::read(&text).batch.expect("a batch")
    }

    fn template(path: &str) -> Template {
        let parsed = Template::parse(Path::new(path)).expect(path);
        parsed.expect("placeholders")
    }

    #[test]
    fn a_bound_within_a_period_cuts_its_files() {
        let cut = |text: &str, second| template(text).cut_at(second, &DateRange::default());
        let files = |period: Option<&str>, name: &str| {
            let (period, name) = (period.map(str::to_owned), name.to_owned());
            Some(CutFiles { period, name })
        };
        // 2026-10-18T12:00:00Z, and the start of that day, month and year.
        let [noon, day, month, year] = [1_792_324_800, 1_792_281_600, 1_790_812_800, 1_767_225_600];
        for (name, second, period, cut_name) in [
            ("{year}/{month}.csv", noon, "2026-10", "2026/10.csv"),
            ("{year}.csv", noon, "2026", "2026.csv"),
            (
                "{year}/{month}/{day}/{crop_type}.csv",
                noon,
                "2026-10-18",
                "2026/10/18/{crop_type}.csv",
            ),
            ("{year}-{month}.csv", day, "2026-10", "2026-10.csv"),
            ("{year}.csv", month, "2026", "2026.csv"),
            (
                "{crop_type}/{year}.csv",
                noon,
                "2026",
                "{crop_type}/2026.csv",
            ),
            ("{year}/{day}.csv", noon, "2026", "2026/{day}.csv"),
        ] {
            assert_eq!(cut(name, second), files(Some(period), cut_name));
        }
        assert_eq!(cut("{year}-{month}-{day}.csv", day), None);
        assert_eq!(cut("{year}-{month}.csv", month), None);
        assert_eq!(cut("{year}.csv", year), None);
        for name in ["{crop_type}.csv", "{month}.csv"] {
            assert_eq!(cut(name, year), files(None, name), "any year");
        }
        let to_noon = |start| DateRange {
            start: Some(start),
            end: Some(noon),
            ..DateRange::default()
        };
        let dated = template("{crop_type}/{month}-{day}.csv");
        for (start, name) in [
            (day, "{crop_type}/10-18.csv"),
            (month, "{crop_type}/10-{day}.csv"),
            (year, "{crop_type}/{month}-{day}.csv"),
        ] {
            assert_eq!(dated.cut_at(noon, &to_noon(start)), files(None, name));
        }
    }

    #[test]
    fn a_range_reaches_the_files_of_its_days() {
        let between = |start, end| DateRange {
            start: Some(start),
            end: Some(end),
            excludes_end: true,
        };
        // The start of 2026-10-01, of 2026-10-18, of 2026-11-01 and of 2028.
        let [first, middle, next, late] =
            [1_790_812_800, 1_792_281_600, 1_793_491_200, 1_830_297_600];
        let october = between(first, next);
        for (path, name, range, expected) in [
            ("{month}.csv", "10.csv", october, true),
            ("./{month}.csv", "10.csv", october, true),
            ("{month}.csv", "11.csv", october, false),
            ("{month}.csv", "11.csv", between(first, late), true),
            (
                "{year}/{day}/{crop_type}.csv",
                "2026/17/Leek.csv",
                between(first, middle),
                true,
            ),
            (
                "{year}/{day}/{crop_type}.csv",
                "2026/18/Leek.csv",
                between(first, middle),
                false,
            ),
            ("{crop_type}.csv", "Leek.csv", october, true),
            ("{crop_type}.csv", "Leek.txt", october, false),
            (
                "{month}.csv",
                "11.csv",
                DateRange {
                    end: None,
                    ..october
                },
                true,
            ),
        ] {
            let found = template(path).may_write(name, &range);
            assert_eq!(found, expected, "{path}, {name}");
        }
    }

    #[test]
    fn placeholders_are_replaced_by_values() {
        let batch = batch("2026-05-01T06:00:00Z", r#""Tomato""#);
        for (path, name) in [
            (
                "lake/year={year}/month={month}/b.csv",
                "lake/year=2026/month=05/b.csv",
            ),
            ("{year}-{month}-{day}.csv", "2026-05-01.csv"),
            ("{{year}}{crop_type}.{x", "{2026}Tomato.{x"),
        ] {
            let template = template(path);
            assert_eq!(template.name(&batch, &mut Crops::new(&template)), name);
        }
        assert_eq!(Template::parse(Path::new("a{}b.csv")).expect("plain"), None);
        for path in [
            "{week}.csv",
            "{year}-{Month}.csv",
            "{crop-type}.csv",
            "{ year }.csv",
        ] {
            let refused = Template::parse(Path::new(path)).expect_err("no such value");
            assert_eq!(refused.kind, Kind::Usage);
        }
    }

    #[test]
    fn the_folder_ends_before_the_first_placeholder() {
        for (path, folder) in [
            ("{year}.csv", ""),
            ("lake/year={year}/b.csv", "lake/"),
            ("/data/lake/{year}.csv", "/data/lake/"),
        ] {
            assert_eq!(template(path).folder(), Path::new(folder));
        }
    }

    #[test]
    fn values_cannot_escape_their_path_segment() {
        let names = template("{crop_type}.csv");
        let name_of = |crop: &str| {
            let batch = batch("2026-05-01T06:00:00Z", crop);
            names.name(&batch, &mut Crops::new(&names))
        };
        for (crop, name) in [
            ("null", "unknown.csv"),
            (r#""""#, "unknown.csv"),
            (r#""..""#, "%2E%2E.csv"),
            (r#""../../etc""#, "%2E.%2F..%2Fetc.csv"),
            (r#""a/b\\c""#, "a%2Fb%5Cc.csv"),
            (r#""C:\u0000x""#, "C%3A%00x.csv"),
            (r#""100%""#, "100%25.csv"),
            (r#""{year}""#, "%7Byear%7D.csv"),
            (r#""Chicorée""#, "Chicorée.csv"),
            (r#""CON""#, "%43ON.csv"),
            (r#""nul.txt""#, "%6Eul.txt.csv"),
            (r#""Lpt9 .x""#, "%4Cpt9 .x.csv"),
            (r#""COM¹""#, "%43OM¹.csv"),
            (r#""CONIN$""#, "%43ONIN$.csv"),
            (r#""conout$.txt""#, "%63onout$.txt.csv"),
            (r#""-rf""#, "%2Drf.csv"),
            (r#""-""#, "%2D.csv"),
            (r#""a-b-""#, "a-b-.csv"),
            (r#""_trial""#, "%5Ftrial.csv"),
            (
                r#""__HIVE_DEFAULT_PARTITION__""#,
                "%5F_HIVE_DEFAULT_PARTITION__.csv",
            ),
            (r#""COM0""#, "COM0.csv"),
            (r#""Console""#, "Console.csv"),
            (r#""a\u202eb\u200b""#, "a%E2%80%AEb%E2%80%8B.csv"),
        ] {
            assert_eq!(name_of(crop), name);
        }
        let accents = [r#""Chicor\u00e9e""#, r#""Chicore\u0301e""#];
        let [one, two] = accents.map(name_of);
        assert_eq!(
            (one.as_str(), two.as_str()),
            ("Chicorée.csv", "Chicore%CC%81e.csv")
        );
        let long = |end: &str| format!("\"{}{end}\"", "é".repeat(300));
        let [first, second] = ["a", "b"].map(|end| name_of(&long(end)));
        assert!(first.len() < 200 && first != second, "{first}");
    }

    #[test]
    fn batches_of_one_file_are_within_its_date_span() {
        for (path, span) in [
            ("{year}.csv", Some(["2025-12-31T23:59:60", "2026~"])),
            (
                "{year}/{month}/{crop_type}",
                Some(["2026-04-30T23:59:60", "2026-05~"]),
            ),
            (
                "{day}.{month}.{year}",
                Some(["2026-04-30T23:59:60", "2026-05-01~"]),
            ),
            ("{year}/{day}.csv", Some(["2025-12-31T23:59:60", "2026~"])),
            ("{month}.csv", None),
            ("{crop_type}.csv", None),
        ] {
            let span = span.map(|span| span.map(str::to_owned));
            for date in ["2026-05-01T06:00:00Z", "2026-04-30T23:59:60+00:00"] {
                let batch = batch(date, "null");
                assert_eq!(template(path).date_span(&batch), span, "{path}");
                if let Some([from, to]) = &span {
                    assert!(from.as_str() <= date && date < to.as_str(), "{path} {date}");
                }
            }
            assert_eq!(template(path).text(), path);
        }
        let odd = batch("soon", "null");
        assert_eq!(template("{year}.csv").date_span(&odd), None);
    }

    #[test]
    fn a_folder_of_null_is_named_as_engines_expect() {
        let null = batch("2026-05-01T06:00:00Z", "null");
        let named = batch("2026-05-01T06:00:00Z", r#""__hive_default_partition__""#);
        for (path, name) in [
            (
                "crop_type={crop_type}/b.csv",
                "crop_type=__HIVE_DEFAULT_PARTITION__/b.csv",
            ),
            (
                "lake/y={year}/crop={crop_type}/b.csv",
                "lake/y=2026/crop=__HIVE_DEFAULT_PARTITION__/b.csv",
            ),
            ("crop_type={crop_type}.csv", "crop_type=unknown.csv"),
            (
                "crop_type={crop_type}-{year}/b.csv",
                "crop_type=unknown-2026/b.csv",
            ),
            ("={crop_type}/b.csv", "=unknown/b.csv"),
            ("a=b={crop_type}/b.csv", "a=b=unknown/b.csv"),
            ("{crop_type}/b.csv", "unknown/b.csv"),
        ] {
            let template = template(path);
            let mut crops = Crops::new(&template);
            assert_eq!(template.name(&null, &mut crops), name);
            // No crop gets that name.
            let other = template.name(&named, &mut crops);
            assert_ne!(other.to_lowercase(), name.to_lowercase());
        }
    }

    #[test]
    fn names_fit_a_template_where_each_value_stands_in_one_place() {
        let lake = "lake/year={year}/{crop_type}.csv";
        for (text, name, fits) in [
            (lake, "lake/year=2026/05.csv", true),
            (lake, "lake/year=2026/a.b.csv", true),
            (lake, "lake/year=2026/.csv", false),
            (lake, "lake/year=/05.csv", false),
            (lake, "lake/year=2026/05/06.csv", false),
            (lake, "lake/year=2026/05.csv.gz", false),
            (lake, "other/year=2026/05.csv", false),
            ("lake/{crop_type}/b.csv", "lake/../b.csv", false),
            ("lake/{crop_type}/b.csv", "lake/./b.csv", false),
            ("lake/{crop_type}/b.csv", "lake/..a/b.csv", true),
            ("{year}.csv", "2026.csv", true),
            ("{year}.csv", "2026-05.csv", false),
            ("{year}.csv", "unknown.csv", true),
            ("{year}.csv", "202é.csv", false),
            ("{crop_type}-{year}", "a-b-é-2026", true),
            ("{crop_type}-{year}", "-2026", false),
            ("{crop_type}{month}", "é05", true),
        ] {
            assert_eq!(template(text).fits(name), fits, "{text}: {name}");
        }
    }

    #[test]
    fn a_crop_has_one_name_and_the_first_keeps_its_own() {
        let names = template("{crop_type}/{year}.csv");
        let mut crops = Crops::on_disk(&names, true);
        let mut folder = |date: &str, crop: &str| {
            let name = names.name(&batch(date, crop), &mut crops);
            name.rsplit_once('/').expect("a folder").0.to_owned()
        };
        let (before, after) = ("2025-05-01T06:00:00Z", "2026-05-01T06:00:00Z");
        assert_eq!(folder(before, r#""tomato""#), "tomato");
        let second = folder(before, r#""Tomato""#);
        assert!(second.starts_with("Tomato~"), "{second}");
        let third = folder(before, r#""TOMATO""#).to_lowercase();
        assert!(third != second.to_lowercase() && third != "tomato");
        // In another folder, where the name is free.
        assert_eq!(folder(after, r#""Tomato""#), second);
        assert_eq!(folder(after, r#""tomato""#), "tomato");
        // As a folder of engines, that name is free.
        let hive = template("crop_type={crop_type}/b.csv");
        let unknown = batch(before, r#""unknown""#);
        let name = hive.name(&unknown, &mut Crops::new(&hive));
        assert_eq!(name, "crop_type=unknown/b.csv");
        // No crop gets the name of the missing value.
        assert!(folder(before, r#""Unknown""#).starts_with("Unknown~"));
        assert!(folder(before, r#""unknown""#).starts_with("unknown~"));
        assert_eq!(folder(after, "null"), "unknown");
    }

    #[test]
    fn where_case_counts_a_name_depends_on_its_crop_alone() {
        let names = template("{crop_type}.csv");
        let mut crops = Crops::on_disk(&names, false);
        for (crop, expected) in [
            ("Tomato", "Tomato.csv"),
            ("tomato", "tomato.csv"),
            ("TOMATO", "TOMATO.csv"),
        ] {
            let batch = batch("2026-05-01T06:00:00Z", &format!("{crop:?}"));
            assert_eq!(names.name(&batch, &mut crops), expected);
        }
        let unknown = batch("2026-05-01T06:00:00Z", r#""Unknown""#);
        let name = names.name(&unknown, &mut crops);
        assert!(name.starts_with("Unknown~"), "{name}");
    }

    #[test]
    fn no_crop_has_the_name_of_another_with_its_mark() {
        let names = template("{crop_type}.csv");
        let date = "2026-05-01T06:00:00Z";
        let marked = {
            let mut crops = Crops::on_disk(&names, true);
            let mut name = |crop: &str| names.name(&batch(date, crop), &mut crops);
            name(r#""tomato""#);
            name(r#""Tomato""#)
        };
        let marked = marked.strip_suffix(".csv").expect("a file");
        let long = "x".repeat(300);
        let crops = [
            "tomato".to_owned(),
            "Tomato".to_owned(),
            marked.to_owned(),
            marked.to_uppercase(),
            marked.replace('~', "%7E"),
            long.clone(),
            safe(&long).into_owned(),
            safe(&long).to_uppercase(),
        ];
        // In any order.
        for first in 0..crops.len() {
            let mut known = Crops::on_disk(&names, true);
            let mut taken = HashSet::new();
            for crop in crops[first..].iter().chain(&crops[..first]) {
                let name = names.name(&batch(date, &format!("{crop:?}")), &mut known);
                assert!(name.len() < 200, "{name}");
                assert!(taken.insert(name.to_lowercase()), "{crop} is {name} again");
            }
        }
    }
}
