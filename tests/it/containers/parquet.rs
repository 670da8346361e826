//! Parquet: statistics, indexes and the footer.

use ::parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataReader,
    ParquetMetaDataWriter, RowGroupMetaData, SortingColumn,
};
use ::parquet::file::statistics::Statistics;
use serde_json::{Value, json};

use super::{Exported, replaced};

/// Returns the offset of the footer of a Parquet file.
fn footer(bytes: &[u8]) -> usize {
    let end = bytes.len() - 8;
    let length = u32::from_le_bytes(bytes[end..end + 4].try_into().unwrap());
    end - usize::try_from(length).unwrap()
}

/// Rewrites a Parquet file with a changed row group in its metadata, and the same data.
fn with_row_group(bytes: &[u8], group: impl Fn(RowGroupMetaData) -> RowGroupMetaData) -> Vec<u8> {
    let mut reader = ParquetMetaDataReader::new();
    reader
        .try_parse(&bytes::Bytes::copy_from_slice(bytes))
        .unwrap();
    let metadata = reader.finish().unwrap();
    let groups = metadata.row_groups().iter().cloned().map(group).collect();
    let metadata = ParquetMetaData::new(metadata.file_metadata().clone(), groups);
    let mut altered = bytes[..footer(bytes)].to_vec();
    ParquetMetaDataWriter::new(&mut altered, &metadata)
        .finish()
        .unwrap();
    altered
}

/// Rewrites a Parquet file with an entry in its metadata.
fn with_metadata(bytes: &[u8], key: &str, value: &str) -> Vec<u8> {
    let mut reader = ParquetMetaDataReader::new();
    reader
        .try_parse(&bytes::Bytes::copy_from_slice(bytes))
        .unwrap();
    let metadata = reader.finish().unwrap();
    let file = metadata.file_metadata();
    let mut entries = file.key_value_metadata().cloned().unwrap_or_default();
    entries.push(KeyValue::new(key.to_owned(), value.to_owned()));
    let file = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_owned),
        Some(entries),
        file.schema_descr_ptr(),
        file.column_orders().cloned(),
    );
    let metadata = ParquetMetaData::new(file, metadata.row_groups().to_vec());
    let mut altered = bytes[..footer(bytes)].to_vec();
    ParquetMetaDataWriter::new(&mut altered, &metadata)
        .finish()
        .unwrap();
    altered
}

/// The same, with changed metadata of the column `name`.
fn with_column(
    bytes: &[u8],
    name: &str,
    column: impl Fn(ColumnChunkMetaData) -> ColumnChunkMetaData,
) -> Vec<u8> {
    let alter = |group: RowGroupMetaData| {
        let mut columns = group.columns().to_vec();
        let place = columns
            .iter()
            .position(|column| column.column_path().string() == name);
        let place = place.unwrap();
        columns[place] = column(columns[place].clone());
        group
            .into_builder()
            .set_column_metadata(columns)
            .build()
            .unwrap()
    };
    with_row_group(bytes, alter)
}

#[test]
fn column_statistics_must_match_the_values() {
    let export = Exported::new("a.parquet", &[]);
    // Rewritten without changes, it is equal.
    export.assert_equal(&with_row_group(&export.bytes, |group| group));
    let statistics = |name: &str, statistics: Statistics| {
        with_column(&export.bytes, name, |column| {
            column
                .into_builder()
                .set_statistics(statistics.clone())
                .build()
                .unwrap()
        })
    };
    let number = |least, greatest, distinct, nulls| {
        Statistics::int64(Some(least), Some(greatest), distinct, nulls, false)
    };
    let bounds = "the wrong smallest or largest value";
    for (what, name, claimed, why) in [
        (
            "least",
            "number_of_images",
            number(13, 12, None, Some(0)),
            bounds,
        ),
        (
            "wide",
            "number_of_images",
            number(11, 12, None, Some(0)),
            bounds,
        ),
        (
            "greatest",
            "avg_germination_rate",
            number(8750, 8751, None, Some(0)),
            bounds,
        ),
        (
            "nulls",
            "number_of_images",
            number(12, 12, None, Some(3)),
            "the wrong number of nulls",
        ),
        (
            "distinct",
            "number_of_images",
            number(12, 12, Some(2), Some(0)),
            "the wrong number of distinct values",
        ),
        (
            "text",
            "batch_id",
            Statistics::byte_array(Some("b4".into()), Some("b9".into()), None, Some(0), false),
            bounds,
        ),
        // Some engines use deprecated bounds.
        (
            "old text",
            "batch_id",
            Statistics::byte_array(Some("b4".into()), Some("b9".into()), None, Some(0), true),
            bounds,
        ),
    ] {
        export.assert_refused(what, &statistics(name, claimed), why);
    }
    export.assert_equal(&statistics(
        "number_of_images",
        number(12, 12, Some(1), Some(0)),
    ));
}

#[test]
fn page_indexes_must_match_the_pages() {
    let export = Exported::new("a.parquet", &[]);
    let footer_start = footer(&export.bytes);
    let mut reader = ParquetMetaDataReader::new();
    reader
        .try_parse(&bytes::Bytes::from(export.bytes.clone()))
        .unwrap();
    let metadata = reader.finish().unwrap();
    let column = metadata.row_group(0).column(0);
    assert_eq!(column.column_path().string(), "batch_id");
    let index = usize::try_from(column.column_index_offset().unwrap()).unwrap();
    let altered = replaced(&export.bytes, index, b"b1", b"b2");
    export.assert_refused(
        "column index",
        &altered,
        "a page of `batch_id` has the wrong",
    );
    let offsets = usize::try_from(column.offset_index_offset().unwrap()).unwrap();
    let mut altered = export.bytes.clone();
    // The offset of the first page, which starts right after the magic bytes.
    let at = altered[offsets..footer_start]
        .iter()
        .position(|byte| *byte == 8)
        .unwrap();
    altered[offsets + at] = 10;
    let why = "the offset index does not point to its pages";
    export.assert_refused("offset index", &altered, why);
    let why = "a page index has an invalid offset";
    let nowhere = with_column(&export.bytes, "batch_id", |column| {
        column
            .into_builder()
            .set_offset_index_offset(Some(1 << 40))
            .build()
            .unwrap()
    });
    export.assert_refused("nowhere", &nowhere, why);
}

#[test]
fn decimals_are_described_alike_for_older_readers() {
    let export = Exported::new("a.parquet", &[]);
    let footer = footer(&export.bytes);
    // In the schema, the name is followed by the old type, a decimal, and its scale. Without the type, the scale is
    // three fields after the name.
    let name = b"avg_germination_rate\x25\x0a\x15\x04";
    let other = b"avg_germination_rate\x35\x04";
    let mut altered = replaced(&export.bytes, footer, name, other);
    let end = altered.len() - 8;
    let length = u32::try_from(end - footer).unwrap();
    altered[end..end + 4].copy_from_slice(&length.to_le_bytes());
    export.assert_refused(
        "type",
        &altered,
        "older readers do not see its decimals as such",
    );
}

#[test]
fn pandas_shows_the_names_of_the_columns() {
    let export = Exported::new("a.parquet", &[]);
    let with_names = |names: &[(&str, &str)]| {
        let columns = names
            .iter()
            .map(|(name, field)| json!({"name": name, "field_name": field}));
        let columns: Vec<Value> = columns.collect();
        let pandas = json!({"index_columns": [], "columns": columns}).to_string();
        with_metadata(&export.bytes, "pandas", &pandas)
    };
    let same = [("crop_type", "crop_type"), ("comment", "comment")];
    export.assert_equal(&with_names(&same));
    let swapped = [("crop_type", "comment"), ("comment", "crop_type")];
    let why = "pandas would show another column as `crop_type`";
    export.assert_refused("names", &with_names(&swapped), why);
    let unnamed = "{\"columns\":[{\"name\":0,\"field_name\":\"x\"}]}";
    export.assert_equal(&with_metadata(&export.bytes, "pandas", unnamed));
    let unreadable = with_metadata(&export.bytes, "pandas", "{\"x\":NaN,\"columns\":[]}");
    export.assert_refused(
        "text",
        &unreadable,
        "its description for pandas cannot be read",
    );
    let period = json!({"columns": [{"name": "number_of_images", "numpy_type": "period[D]"}]});
    let period = with_metadata(&export.bytes, "pandas", &period.to_string());
    let why = "its description for pandas has another type for `number_of_images` than the file";
    export.assert_refused("type", &period, why);
}

#[test]
fn an_arrow_schema_must_match_the_columns() {
    // The columns `batch_id` and `number_of_images`, as pyarrow writes it.
    const OTHER: &str = "/////8AAAAAQAAAAAAAKAAwABgAFAAgACgAAAAABBAAMAAAACAAIAAAABAAIAAAABAAAAAIAAABcAAAABAAAALz///8AAAECEAAAACwAAAAEAAAAAAAAABAAAABudW1iZXJfb2ZfaW1hZ2VzAAAAAAgADAAIAAcACAAAAAAAAAFAAAAAEAAUAAgABgAHAAwAAAAQABAAAAAAAAEFEAAAACAAAAAEAAAAAAAAAAgAAABiYXRjaF9pZAAAAAAEAAQABAAAAAAAAAA=";
    let export = Exported::new("a.parquet", &[]);
    for (what, schema, why) in [
        ("other columns", OTHER, "its Arrow schema has other columns"),
        ("no schema", "/////w==", "its Arrow schema cannot be read"),
    ] {
        let altered = with_metadata(&export.bytes, "ARROW:schema", schema);
        export.assert_refused(what, &altered, why);
    }
}

#[test]
fn a_footer_must_match_the_data() {
    let export = Exported::new("a.parquet", &[]);
    // The writer sets the row count itself, so patch it. It precedes the list of row groups.
    let start = footer(&export.bytes);
    let rows = replaced(
        &export.bytes,
        start,
        &[0x16, 6, 0x19, 0x1c],
        &[0x16, 4, 0x19, 0x1c],
    );
    export.assert_refused("rows", &rows, "its footer contradicts itself");
    let rows = with_row_group(&export.bytes, |group| {
        group.into_builder().set_num_rows(2).build().unwrap()
    });
    export.assert_refused("rows of a group", &rows, "its footer contradicts itself");
    let size = with_row_group(&export.bytes, |group| {
        group.into_builder().set_total_byte_size(1).build().unwrap()
    });
    export.assert_refused("size", &size, "its footer contradicts itself");
    let sorted = |descending: bool| {
        let column = SortingColumn {
            column_idx: 0,
            descending,
            nulls_first: false,
        };
        with_row_group(&export.bytes, |group| {
            let columns = Some(vec![column.clone()]);
            group
                .into_builder()
                .set_sorting_columns(columns)
                .build()
                .unwrap()
        })
    };
    export.assert_equal(&sorted(false));
    export.assert_refused(
        "order",
        &sorted(true),
        "the rows are not sorted by `batch_id`",
    );
    let elsewhere = with_column(&export.bytes, "batch_id", |column| {
        let offset = column.data_page_offset();
        column
            .into_builder()
            .set_data_page_offset(offset + 1)
            .build()
            .unwrap()
    });
    export.assert_refused("offset", &elsewhere, "it is damaged or cut short");
    // The column name in the column chunk, not in the schema.
    let first = export.bytes[start..]
        .windows(7)
        .position(|window| window == b"comment");
    let name = replaced(
        &export.bytes,
        start + first.unwrap() + 1,
        b"comment",
        b"commemt",
    );
    let why = "its footer contradicts itself";
    export.assert_refused("name", &name, why);
}

#[test]
fn runs_must_have_the_values_of_their_page() {
    let export = Exported::new("a.parquet", &[]);
    // Four bytes of length, and three times the level 1.
    let levels = [2, 0, 0, 0, 6, 1];
    for wrong in [
        [2, 0, 0, 0, 8, 1],
        [2, 0, 0, 0, 0x16, 1],
        [3, 0, 0, 0, 6, 1],
    ] {
        let altered = replaced(&export.bytes, 0, &levels, &wrong);
        let why = "a page does not contain what it declares";
        export.assert_refused(&format!("{wrong:?}"), &altered, why);
    }
}
