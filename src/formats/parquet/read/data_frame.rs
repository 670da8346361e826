//! Checks the descriptions of a file for data frames. pandas, Polars and pyarrow show a column with the name and in the
//! type that it has there, whatever the file itself says.

use ::parquet::file::metadata::FileMetaData;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use super::arrow_schema;
use super::logical_type::ColumnType;
use super::thrift::broken;
use crate::batch::find_column;
use crate::formats::record::ReadError;
use crate::secret::brief;

const PANDAS: &str = "pandas";
/// Marks a column that programs show in a type of their own.
const EXTENSION: &[u8] = b"ARROW:extension:name";

/// Checks a file with these fields of a batch.
pub(super) fn check(file: &FileMetaData, fields: &[(String, ColumnType)]) -> Result<(), ReadError> {
    let columns = file.schema_descr().root_schema().get_fields();
    let names: Vec<&str> = columns.iter().map(|column| column.name()).collect();
    for entry in file.key_value_metadata().into_iter().flatten() {
        let text = entry.value.as_deref().unwrap_or_default();
        let checked = match entry.key.as_str() {
            PANDAS => check_pandas(text, fields),
            "ARROW:schema" => check_arrow(text, &names, fields),
            _ => Ok(()),
        };
        checked.map_err(broken)?;
    }
    Ok(())
}

/// Rejects the name of another field for a column, and a type that does not match it.
fn check_pandas(text: &str, fields: &[(String, ColumnType)]) -> Result<(), String> {
    let frame: Value = serde_json::from_str(text)
        .map_err(|_| "its description for pandas cannot be read".to_owned())?;
    for column in frame["columns"].as_array().into_iter().flatten() {
        let name = column["name"].as_str();
        let field = column["field_name"].as_str().or(name);
        let kind = find(fields, field.unwrap_or_default().as_bytes());
        if name != field && (kind.is_some() || name.is_some_and(|name| find_column(name).is_some()))
        {
            return Err(match name {
                Some(name) => format!("pandas would show another column as `{}`", brief(name)),
                None => "pandas would show a column without its name".to_owned(),
            });
        }
        let Some((name, kind)) = kind else {
            continue;
        };
        let has_type = match &column["numpy_type"] {
            Value::Null => true,
            Value::String(numpy_type) => is_pandas_type(numpy_type, kind),
            _ => false,
        };
        if !has_type {
            return Err(wrong_type("its description for pandas", name));
        }
    }
    Ok(())
}

/// Returns whether pandas shows the values of a column as they are if its type has this name.
fn is_pandas_type(numpy_type: &str, kind: ColumnType) -> bool {
    // Without a further word they describe the frame before it was written, and change nothing.
    const PLAIN: [&str; 13] = [
        "object", "category", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16",
        "uint32", "uint64", "float32", "float64",
    ];
    let family = numpy_type.split(['[', '(', '<']).next();
    let family = family.unwrap_or_default();
    let family = family.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let families: &[&str] = match kind {
        ColumnType::Text => &["str", "string", "large_string", "string_view", "dictionary"],
        ColumnType::Integer => &["int", "uint", "Int", "UInt"],
        ColumnType::Decimal(_) => &["decimal"],
        ColumnType::Instant(_) => &["datetime", "timestamp"],
        ColumnType::Boolean => &["bool", "boolean"],
    };
    PLAIN.contains(&numpy_type) || families.contains(&family)
}

/// Rejects a schema of other columns than those of the file, and types that do not match.
fn check_arrow(text: &str, names: &[&str], fields: &[(String, ColumnType)]) -> Result<(), String> {
    let bytes = BASE64_STANDARD.decode(text).unwrap_or_default();
    let [columns, metadata] =
        arrow_schema::read(&bytes).ok_or("its Arrow schema cannot be read")?;
    // A table of a column has its name, its type (that of its values if it has a dictionary), and its metadata.
    let found = columns.iter().map(|column| column.text(0));
    if !found.eq(names.iter().map(|name| Some(name.as_bytes()))) {
        return Err("its Arrow schema has other columns".to_owned());
    }
    for column in &columns {
        let Some((name, kind)) = column.text(0).and_then(|name| find(fields, name)) else {
            continue;
        };
        // The numbers of `Type` in `Schema.fbs`.
        let types: &[u8] = match kind {
            ColumnType::Text => &[5, 20, 24],
            ColumnType::Integer => &[2],
            ColumnType::Decimal(_) => &[7],
            ColumnType::Instant(_) => &[10],
            ColumnType::Boolean => &[6],
        };
        let has_type = column.byte(2).is_some_and(|found| types.contains(&found));
        let is_extension = column.tables(6).is_none_or(|metadata| {
            metadata
                .iter()
                .any(|entry| entry.text(0) == Some(EXTENSION))
        });
        if !has_type || is_extension {
            return Err(wrong_type("its Arrow schema", name));
        }
    }
    let mut pandas = metadata
        .iter()
        .filter(|entry| entry.text(0) == Some(PANDAS.as_bytes()));
    match (pandas.next(), pandas.next()) {
        (None, _) => Ok(()),
        (Some(entry), None) => {
            let text = entry
                .text(1)
                .and_then(|text| std::str::from_utf8(text).ok());
            check_pandas(text.unwrap_or_default(), fields)
        }
        _ => Err("its description for pandas cannot be read".to_owned()),
    }
}

fn find<'a>(fields: &'a [(String, ColumnType)], name: &[u8]) -> Option<(&'a str, ColumnType)> {
    let found = fields.iter().find(|(known, _)| known.as_bytes() == name);
    found.map(|(name, kind)| (name.as_str(), *kind))
}

fn wrong_type(who: &str, name: &str) -> String {
    format!("{who} has another type for `{name}` than the file")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The columns `batch_id` and `number_of_images`, as written by pyarrow and by Polars; with the name of an extension
    /// for the first; and with another name for it in pandas.
    const PYARROW: &str = "/////8AAAAAQAAAAAAAKAAwABgAFAAgACgAAAAABBAAMAAAACAAIAAAABAAIAAAABAAAAAIAAABcAAAABAAAALz///8AAAECEAAAACwAAAAEAAAAAAAAABAAAABudW1iZXJfb2ZfaW1hZ2VzAAAAAAgADAAIAAcACAAAAAAAAAFAAAAAEAAUAAgABgAHAAwAAAAQABAAAAAAAAEFEAAAACAAAAAEAAAAAAAAAAgAAABiYXRjaF9pZAAAAAAEAAQABAAAAAAAAAA=";
    const POLARS: &str = "/////7kAAAAEAAAA8v///xQAAAAEAAEAAAAKAAsACAAKAAQA+P///wwAAAAIAAgAAAAEAAIAAABMAAAABAAAAKj///8oAAAAEAAAAAgAAAABAgAAAAAAAPT///9AAAAAAQAAAAgACQAEAAgAEAAAAG51bWJlcl9vZl9pbWFnZXMAAAAA7P///ywAAAAgAAAAGAAAAAEUAAAQABIABAAQABEACAAAAAwAAAAAAPz///8EAAQACAAAAGJhdGNoX2lkAA==";
    const EXTENSION: &str = "/////xgBAAAQAAAAAAAKAAwABgAFAAgACgAAAAABBAAMAAAACAAIAAAABAAIAAAABAAAAAIAAABwAAAAFAAAABAAFAAIAAYABwAMAAAAEAAQAAAAAAABAhAAAAAsAAAABAAAAAAAAAAQAAAAbnVtYmVyX29mX2ltYWdlcwAAAAAIAA4ACAAHAAgAAAAAAAABQAAAAAAAEgAYAAgABgAHAAwAAAAQABQAEgAAAAAAAQUUAAAAZAAAAAgAAAAYAAAAAAAAAAgAAABiYXRjaF9pZAAAAAABAAAADAAAAAgADAAEAAgACAAAABAAAAAEAAAAAwAAAHgueQAUAAAAQVJST1c6ZXh0ZW5zaW9uOm5hbWUAAAAABAAEAAQAAAAAAAAA";
    const WITH_PANDAS: &str = "/////ygBAAAQAAAAAAAKAA4ABgAFAAgACgAAAAABBAAQAAAAAAAKAAwAAAAEAAgACgAAAGgAAAAEAAAAAQAAAAwAAAAIAAwABAAIAAgAAABAAAAABAAAADIAAAB7ImNvbHVtbnMiOlt7Im5hbWUiOiJ4IiwiZmllbGRfbmFtZSI6ImJhdGNoX2lkIn1dfQAABgAAAHBhbmRhcwAAAgAAAFwAAAAEAAAAvP///wAAAQIQAAAALAAAAAQAAAAAAAAAEAAAAG51bWJlcl9vZl9pbWFnZXMAAAAACAAMAAgABwAIAAAAAAAAAUAAAAAQABQACAAGAAcADAAAABAAEAAAAAAAAQUQAAAAIAAAAAQAAAAAAAAACAAAAGJhdGNoX2lkAAAAAAQABAAEAAAAAAAAAA==";
    const NAMES: [&str; 2] = ["batch_id", "number_of_images"];

    fn fields() -> [(String, ColumnType); 2] {
        let types = [ColumnType::Text, ColumnType::Integer];
        let [first, second] = NAMES.map(str::to_owned);
        [(first, types[0]), (second, types[1])]
    }

    #[test]
    fn an_arrow_schema_must_have_the_columns_of_the_file() {
        let check = |text: &str, names: &[&str]| check_arrow(text, names, &fields());
        for text in [PYARROW, POLARS] {
            assert_eq!(check(text, &NAMES), Ok(()));
            assert!(check(text, &["number_of_images", "batch_id"]).is_err());
            assert!(check(text, &NAMES[..1]).is_err());
            assert!(check(&text[4..], &NAMES).is_err());
        }
        assert!(check(EXTENSION, &NAMES).is_err());
        let why = "pandas would show another column as `x`".to_owned();
        assert_eq!(check(WITH_PANDAS, &NAMES), Err(why));
        assert!(check("", &NAMES).is_err());
    }

    #[test]
    fn an_arrow_schema_must_have_the_types_of_the_file() {
        for kind in [
            ColumnType::Boolean,
            ColumnType::Decimal(2),
            ColumnType::Instant(1000),
            ColumnType::Integer,
        ] {
            let mut fields = fields();
            fields[0].1 = kind;
            let why = "its Arrow schema has another type for `batch_id` than the file".to_owned();
            assert_eq!(check_arrow(PYARROW, &NAMES, &fields), Err(why), "{kind:?}");
        }
    }

    #[test]
    fn a_damaged_arrow_schema_is_no_reason_to_panic() {
        for text in [PYARROW, POLARS, EXTENSION, WITH_PANDAS] {
            let bytes = BASE64_STANDARD.decode(text).expect("base64");
            for place in 0..bytes.len() {
                for value in [0, 1, 0x7f, 0x80, 0xff] {
                    let mut damaged = bytes.clone();
                    damaged[place] = value;
                    let damaged = BASE64_STANDARD.encode(damaged);
                    let _ = check_arrow(&damaged, &NAMES, &fields());
                }
                let cut = BASE64_STANDARD.encode(&bytes[..place]);
                let _ = check_arrow(&cut, &NAMES, &fields());
            }
        }
    }

    #[test]
    fn pandas_shows_a_column_in_its_type() {
        let decimal = ColumnType::Decimal(2);
        let instant = ColumnType::Instant(1_000_000);
        for (kind, numpy_types) in [
            (
                ColumnType::Text,
                &[
                    "object",
                    "str",
                    "string",
                    "string[pyarrow]",
                    "large_string[pyarrow]",
                    "int8",
                ][..],
            ),
            (
                ColumnType::Integer,
                &["int64", "Int64", "UInt8", "int64[pyarrow]", "float64"],
            ),
            (
                decimal,
                &["object", "float64", "decimal128(18, 2)[pyarrow]"],
            ),
            (
                instant,
                &[
                    "object",
                    "datetime64[ns]",
                    "datetime64[us, UTC]",
                    "timestamp[us, tz=UTC][pyarrow]",
                ],
            ),
            (ColumnType::Boolean, &["bool", "boolean", "bool[pyarrow]"]),
        ] {
            for numpy_type in numpy_types {
                assert!(is_pandas_type(numpy_type, kind), "{kind:?} {numpy_type}");
            }
        }
        for (kind, numpy_type) in [
            (ColumnType::Text, "int64[pyarrow]"),
            (ColumnType::Text, "Int64"),
            (ColumnType::Integer, "period[D]"),
            (ColumnType::Integer, "datetime64[ns, UTC]"),
            (ColumnType::Integer, "boolean"),
            (ColumnType::Integer, "string"),
            (ColumnType::Integer, "Float32"),
            (decimal, "int64[pyarrow]"),
            (decimal, "float[pyarrow]"),
            (instant, "period[D]"),
            (ColumnType::Boolean, "Int8"),
        ] {
            assert!(!is_pandas_type(numpy_type, kind), "{kind:?} {numpy_type}");
        }
    }
}
