//! Detects the format of a file, by its extension or by its first bytes.

use std::path::Path;

use super::record::ReadError;
use crate::storage::{Compression, sqlite};
use crate::text::one_line;

/// A text format that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DetectedFormat {
    /// A JSON array of batches.
    Array,
    /// One JSON object after another.
    Lines,
    /// Singer messages, one per line, some of them with a batch.
    Singer,
    /// Rows of cells, with this default delimiter.
    Separated(u8),
}

/// The extensions of text formats.
const TEXTS: [&str; 5] = ["csv", "tsv", "json", "ndjson", "jsonl"];

const FORMATS: &str = "these can be verified: json, ndjson, csv, tsv and singer (also as .gz or .zst), xlsx, parquet, sqlite, and archives";

/// The first bytes of a Parquet file, and of a zip archive such as a spreadsheet.
pub(crate) const PARQUET: &[u8] = b"PAR1";
pub(crate) const ZIP: &[u8] = b"PK\x03\x04";

/// Rejects a file whose name says another format than its first bytes: other programs go by the name, and the rest of the
/// file may be just that.
pub(crate) fn check_name(extension: Option<&str>, head: &[u8]) -> Result<(), ReadError> {
    const FORMATS: [(&str, &[&str], &[u8]); 3] = [
        (
            "a SQLite database",
            &["sqlite", "sqlite3", "db"],
            sqlite::MAGIC,
        ),
        ("a Parquet file", &["parquet"], PARQUET),
        ("a spreadsheet", &["xlsx"], ZIP),
    ];
    let Some(extension) = extension else {
        return Ok(());
    };
    let mut formats = FORMATS.iter();
    let named = formats.find(|(_, names, _)| names.contains(&extension));
    let found = FORMATS.iter().find(|(.., start)| head.starts_with(start));
    let is_known = named.is_some() || TEXTS.contains(&extension);
    if named == found || !is_known {
        return Ok(());
    }
    let is = match (found, named) {
        (Some((what, ..)), _) => format!("is {what}"),
        (None, named) => format!("is not {}", named.map_or("text", |(what, ..)| what)),
    };
    let why = format!("its name has the extension `.{extension}`, but it {is}");
    let hint = "other programs go by the name: rename it, or export it again";
    Err(ReadError::broken(None, why, hint))
}

/// Warns if the name of a text file says another compression than its first bytes. It is read anyway: browsers unpack
/// downloads silently.
pub(crate) fn warn_of_compression(path: &Path, head: &[u8]) {
    let extension = path.extension().and_then(|extension| extension.to_str());
    let named = match extension.map(str::to_lowercase).as_deref() {
        Some("gz") => Compression::Gzip,
        Some("zst") => Compression::Zstd,
        Some(extension) if TEXTS.contains(&extension) => Compression::None,
        // It says nothing.
        _ => return,
    };
    let found = compression(head);
    if found != named && !head.is_empty() {
        let words = |compression| match compression {
            Compression::None => "not compressed",
            Compression::Gzip => "compressed with gzip",
            Compression::Zstd => "compressed with zstd",
        };
        log::warn!(
            "by its name, `{}` is {}, but it is {}: other programs go by the name",
            one_line(&path.to_string_lossy()),
            words(named),
            words(found)
        );
    }
}

/// Warns if the name of a file is that of an array, but it has one object per line.
pub(crate) fn warn_of_lines(path: &Path) {
    log::warn!(
        "by its name, `{}` is a JSON array, but it is one object per line: other programs go by the name",
        one_line(&path.to_string_lossy())
    );
}

/// Returns how a file is compressed, by its first bytes.
pub(crate) fn compression(head: &[u8]) -> Compression {
    if head.starts_with(&[0x1f, 0x8b]) {
        Compression::Gzip
    } else if head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd])
        // A frame to skip, as `pzstd` writes first.
        || matches!(head, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
    {
        Compression::Zstd
    } else {
        Compression::None
    }
}

/// Returns the extension in lower case, without `.gz` or `.zst`.
pub(crate) fn extension(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?.to_lowercase();
    let name = name
        .strip_suffix(".gz")
        .or_else(|| name.strip_suffix(".zst"))
        .unwrap_or(&name);
    let (_, extension) = name.rsplit_once('.')?;
    Some(extension.to_owned())
}

/// Returns whether the name is that of a format with one line per batch and nothing else. Only such a file
/// can be complete without a byte.
pub(crate) fn may_be_empty(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| {
        extension.eq_ignore_ascii_case("ndjson") || extension.eq_ignore_ascii_case("jsonl")
    })
}

/// Detects the format by the extension, or else by the beginning of the text.
pub(crate) fn format(extension: Option<&str>, head: &[u8]) -> Result<DetectedFormat, ReadError> {
    let text = head.strip_prefix("\u{feff}".as_bytes()).unwrap_or(head);
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    if is_table(text) {
        let why = "is a table for people: it has no exact values to verify";
        return Err(ReadError::foreign(why, FORMATS));
    }
    if is_singer(text) {
        if let Some(extension @ ("csv" | "tsv")) = extension {
            return Err(ReadError::broken(
                None,
                format!("its name has the extension `.{extension}`, but it has singer messages"),
                "other programs go by the name: rename it to `.jsonl`, or export it again",
            ));
        }
        return Ok(DetectedFormat::Singer);
    }
    Ok(match (extension, first) {
        (Some("csv"), _) => DetectedFormat::Separated(b','),
        (Some("tsv"), _) => DetectedFormat::Separated(b'\t'),
        (Some(extension @ ("ndjson" | "jsonl")), Some(b'[')) => {
            return Err(ReadError::broken(
                None,
                format!(
                    "its name has the extension `.{extension}`, but it is a JSON array, not one object per line"
                ),
                "other programs go by the name: rename it to `.json`, or export it again",
            ));
        }
        // Lines may have the extension of an array: the text decides, and there is a warning.
        (Some("json"), byte) if byte != Some(&b'{') => DetectedFormat::Array,
        (_, Some(b'[')) => DetectedFormat::Array,
        // A file without content may be an export without batches.
        (Some("json" | "ndjson" | "jsonl"), _) | (_, Some(b'{') | None) => DetectedFormat::Lines,
        (_, Some(_)) => DetectedFormat::Separated(b','),
    })
}

/// Returns whether `-f singer` wrote this: the schema is on the first line.
fn is_singer(text: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct SingerHead<'a> {
        r#type: &'a str,
    }
    let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    serde_json::from_slice(first).is_ok_and(|message: SingerHead<'_>| message.r#type == "SCHEMA")
}

/// Returns whether `-f table` wrote this: a rule is below the headings.
fn is_table(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| *byte == b'\n');
    let rule = lines.nth(1).unwrap_or_default();
    !rule.is_empty() && {
        let rule = String::from_utf8_lossy(rule);
        rule.contains('─') && rule.chars().all(|letter| matches!(letter, '─' | ' '))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SINGER: &str = r#"{"type":"SCHEMA","stream":"batches"}"#;

    fn of(name: &str, head: &str) -> Option<DetectedFormat> {
        format(extension(Path::new(name)).as_deref(), head.as_bytes()).ok()
    }

    #[test]
    fn the_extension_or_else_the_text_decides_the_format() {
        for (name, head, expected) in [
            ("a.csv", "[", DetectedFormat::Separated(b',')),
            ("A.TSV.GZ", "", DetectedFormat::Separated(b'\t')),
            ("a.json.zst", " [", DetectedFormat::Array),
            ("a.json", "{", DetectedFormat::Lines),
            ("a.json", "", DetectedFormat::Array),
            ("a.json", SINGER, DetectedFormat::Singer),
            ("a.jsonl", "", DetectedFormat::Lines),
            ("a", "\u{feff}[", DetectedFormat::Array),
            ("a.bak", "\n{", DetectedFormat::Lines),
            (
                "a.txt",
                "batch_id;batch_name",
                DetectedFormat::Separated(b','),
            ),
            ("gz", "", DetectedFormat::Lines),
        ] {
            assert_eq!(of(name, head), Some(expected), "{name} {head}");
        }
        assert_eq!(of("a.txt", "name  crop\n────  ────\nx     y\n"), None);
        assert_eq!(of("a.csv", "comment\n──\n─x\n"), None);
        assert_eq!(of("a.ndjson", "[{}]"), None);
        assert_eq!(of("a.csv", SINGER), None);
        assert_eq!(of("a.jsonl.gz", "\n["), None);
    }

    #[test]
    fn only_line_formats_may_be_empty() {
        for (name, expected) in [
            ("a.ndjson", true),
            ("a.JSONL", true),
            ("a.ndjson.gz", false),
            ("a.json", false),
            ("a.csv", false),
            ("a.xlsx", false),
            ("ndjson", false),
        ] {
            assert_eq!(may_be_empty(Path::new(name)), expected, "{name}");
        }
    }

    #[test]
    fn the_first_bytes_show_the_compression() {
        assert_eq!(compression(b"\x1f\x8b\x08"), Compression::Gzip);
        assert_eq!(compression(b"batch_id"), Compression::None);
    }
}
