//! Mutants of Parquet files (one statistic at a time) and of databases.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use fastrand::Rng;
use parquet::data_type::ByteArray;
use parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter,
    RowGroupMetaData, SortingColumn,
};
use parquet::file::statistics::{Statistics, ValueStatistics};
use rusqlite::Connection;

use super::{Mutant, one_byte};

/// The number of one-byte mutants of the footer, and of the page indexes.
const FOOTER_BYTES: usize = 260;
const INDEX_BYTES: usize = 80;
/// The number of one-byte mutants of the Bloom filter.
const FILTER_BYTES: usize = 80;
/// The number of one-cell mutants of a database, and of one-byte mutants of its indexes.
const CELLS: usize = 160;
const DATABASE_INDEX_BYTES: usize = 60;

pub(super) fn parquet(rng: &mut Rng, original: &[u8]) -> Vec<Mutant> {
    let mut mutants = Vec::new();
    let end = original.len() - 8;
    let length = u32::from_le_bytes(original[end..end + 4].try_into().unwrap());
    let footer = end - usize::try_from(length).unwrap();
    mutants.extend(one_byte(
        rng,
        original,
        footer..end + 8,
        FOOTER_BYTES,
        "byte of the footer",
    ));

    let bytes = Bytes::copy_from_slice(original);
    let metadata = ParquetMetaDataReader::new()
        .parse_and_finish(&bytes)
        .unwrap();
    let group = metadata.row_group(0);
    let indexes = group
        .columns()
        .iter()
        .filter_map(|column| Some((column.column_index_offset()?, column.column_index_length()?)));
    if let Some(start) = indexes.clone().map(|(start, _)| start).min() {
        let start = usize::try_from(start).unwrap();
        mutants.extend(one_byte(
            rng,
            original,
            start..footer,
            INDEX_BYTES,
            "byte of an index",
        ));
    }
    mutants.extend(filters(rng, original, &metadata));
    for (what, keys) in orders(group) {
        let changed = group.clone().into_builder().set_sorting_columns(keys);
        let changed = with_group(&metadata, changed.build().unwrap());
        let bytes = [&original[..footer], &footer_of(&changed)].concat();
        mutants.push(Mutant::new("sorting columns", what, bytes));
    }
    for place in 0..group.num_columns() {
        let column = group.column(place);
        let name = column.column_descr().name();
        let statistics = column.statistics().map(others).unwrap_or_default();
        for (what, other) in statistics {
            let column = column.clone().into_builder().set_statistics(other);
            let changed = with_column(&metadata, place, column.build().unwrap());
            let bytes = [&original[..footer], &footer_of(&changed)].concat();
            mutants.push(Mutant::new("statistic", format!("{name}: {what}"), bytes));
        }
        mutants.extend(renamed(original, footer, name));
    }
    mutants
}

/// Returns statistics with other bounds and counts.
fn others(statistics: &Statistics) -> Vec<(&'static str, Statistics)> {
    let nulls = statistics.null_count_opt();
    let deprecated = statistics.is_min_max_deprecated();
    macro_rules! variants {
        ($old:expr, $make:path, $more:expr) => {{
            let (min, max) = ($old.min_opt().cloned(), $old.max_opt().cloned());
            let make = |min, max, distinct, nulls| {
                $make(ValueStatistics::new(min, max, distinct, nulls, deprecated))
            };
            let raised = min.as_ref().map(|_| $more.clone());
            vec![
                ("min raised", make(raised.clone(), max.clone(), None, nulls)),
                ("max lowered", make(min.clone(), min.clone(), None, nulls)),
                ("both beyond", make(raised.clone(), raised, None, nulls)),
                (
                    "min and max swapped",
                    make(max.clone(), min.clone(), None, nulls),
                ),
                ("no nulls", make(min.clone(), max.clone(), None, Some(0))),
                (
                    "more nulls",
                    make(min.clone(), max.clone(), None, nulls.map(|nulls| nulls + 1)),
                ),
                ("all null", make(None, None, None, Some(14))),
                (
                    "distinct count",
                    make(min.clone(), max.clone(), Some(1), nulls),
                ),
            ]
        }};
    }
    match statistics {
        Statistics::Int64(old) => variants!(old, Statistics::Int64, 9_000_000_000_000_000_000_i64),
        Statistics::ByteArray(old) => {
            variants!(old, Statistics::ByteArray, ByteArray::from("\u{10ffff}"))
        }
        Statistics::Boolean(old) => variants!(old, Statistics::Boolean, true),
        _ => Vec::new(),
    }
}

fn with_column(
    metadata: &ParquetMetaData,
    place: usize,
    column: ColumnChunkMetaData,
) -> ParquetMetaData {
    let group = metadata.row_group(0).clone();
    let mut columns = group.columns().to_vec();
    columns[place] = column;
    let group = group.into_builder().set_column_metadata(columns).build();
    with_group(metadata, group.unwrap())
}

fn with_group(metadata: &ParquetMetaData, group: RowGroupMetaData) -> ParquetMetaData {
    let builder = metadata.clone().into_builder();
    builder.set_row_groups(vec![group]).build()
}

/// Mutants with changed bytes in the Bloom filter, and with each of its bits flipped.
fn filters(rng: &mut Rng, original: &[u8], metadata: &ParquetMetaData) -> Vec<Mutant> {
    let column = metadata.row_group(0).column(0);
    let start = usize::try_from(column.bloom_filter_offset().unwrap()).unwrap();
    let length = usize::try_from(column.bloom_filter_length().unwrap()).unwrap();
    let region = start..start + length;
    let mut mutants = one_byte(
        rng,
        original,
        region.clone(),
        FILTER_BYTES,
        "byte of a filter",
    );
    for place in region {
        let bit = rng.u8(0..8);
        let mut bytes = original.to_vec();
        bytes[place] ^= 1 << bit;
        let what = format!("bit {bit} of byte {place}");
        mutants.push(Mutant::new("bit of a filter", what, bytes));
    }
    mutants
}

/// Returns other sort orders for the footer.
fn orders(group: &RowGroupMetaData) -> Vec<(String, Option<Vec<SortingColumn>>)> {
    let key = |column_idx: i32, descending: bool, nulls_first: bool| SortingColumn {
        column_idx,
        descending,
        nulls_first,
    };
    let declared = group.sorting_columns().unwrap().clone();
    let mut orders = vec![("none".to_owned(), None)];
    for column in 0..i32::try_from(group.num_columns()).unwrap() {
        for (descending, nulls_first) in
            [(false, false), (false, true), (true, false), (true, true)]
        {
            let what =
                format!("column {column}, descending {descending}, nulls first {nulls_first}");
            let key = key(column, descending, nulls_first);
            orders.push((format!("only {what}"), Some(vec![key.clone()])));
            let first = [vec![key.clone()], declared.clone()].concat();
            orders.push((format!("first {what}"), Some(first)));
            let last = [declared.clone(), vec![key]].concat();
            orders.push((format!("last {what}"), Some(last)));
        }
    }
    orders
}

fn footer_of(metadata: &ParquetMetaData) -> Vec<u8> {
    let mut footer = Vec::new();
    ParquetMetaDataWriter::new(&mut footer, metadata)
        .finish()
        .unwrap();
    footer
}

/// Mutants with a column renamed to the same length, in the schema and everywhere.
fn renamed(original: &[u8], footer: usize, name: &str) -> Vec<Mutant> {
    let other = format!("{}z", &name[..name.len() - 1]);
    let length = u8::try_from(name.len()).unwrap();
    let written = [&[length], name.as_bytes()].concat();
    let places = memchr::memmem::find_iter(&original[footer..], &written);
    let places: Vec<usize> = places.map(|place| footer + place + 1).collect();
    let change = |places: &[usize]| {
        let mut bytes = original.to_vec();
        for place in places {
            bytes[*place..place + name.len()].copy_from_slice(other.as_bytes());
        }
        bytes
    };
    let mut mutants = vec![Mutant::new(
        "column renamed",
        format!("{name} everywhere"),
        change(&places),
    )];
    mutants.extend(places.iter().map(|place| {
        Mutant::new(
            "column renamed",
            format!("{name} at {place}"),
            change(&[*place]),
        )
    }));
    mutants
}

pub(super) fn sqlite(rng: &mut Rng, path: &Path, archive: bool) -> Vec<Mutant> {
    let original = fs::read(path).unwrap();
    let mut changes = changes(path, archive);
    let cells = changes.iter().filter(|(kind, _)| *kind == "cell").count();
    rng.shuffle(&mut changes[..cells]);
    changes.drain(..cells.saturating_sub(CELLS));
    let copy = path.with_extension("copy");
    let mut mutants = Vec::new();
    for (kind, sql) in changes {
        fs::write(&copy, &original).unwrap();
        let database = Connection::open(&copy).unwrap();
        // Skip changes that the table rejects.
        let done = database.execute_batch(&sql);
        drop(database);
        if done.is_ok() {
            mutants.push(Mutant::new(kind, sql, fs::read(&copy).unwrap()));
        }
    }
    let _ = fs::remove_file(&copy);
    mutants.extend(index_bytes(rng, path, &original));
    mutants
}

/// Returns changes of one cell, row, column or index, in SQL. Cells are first.
fn changes(path: &Path, archive: bool) -> Vec<(&'static str, String)> {
    let database = Connection::open(path).unwrap();
    let names: Vec<String> = database
        .prepare("SELECT name FROM pragma_table_info('batches')")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let fields = if archive { 18 } else { names.len() };
    let mut changes = Vec::new();
    for row in 1..=14 {
        for name in &names[..fields] {
            for value in [
                format!("{name} || 'x'"),
                format!("{name} + 1"),
                "NULL".to_owned(),
                "''".to_owned(),
                format!("CAST({name} AS TEXT)"),
                format!("upper({name})"),
            ] {
                let sql = format!("UPDATE batches SET {name} = {value} WHERE rowid = {row}");
                changes.push(("cell", sql));
            }
        }
    }
    for row in 1..=14 {
        changes.push(("row", format!("DELETE FROM batches WHERE rowid = {row}")));
        let others = names[1..].join(", ");
        changes.push((
            "row",
            format!("INSERT INTO batches (batch_id, {others}) SELECT batch_id || '2', {others} FROM batches WHERE rowid = {row}"),
        ));
        if archive {
            changes.push((
                "cell received",
                format!("UPDATE batches SET received = replace(received, 'lot', 'Lot') WHERE rowid = {row}"),
            ));
            changes.push((
                "cell received",
                format!("UPDATE batches SET received = replace(received, '\"foam\"', '\"clay\"') WHERE rowid = {row}"),
            ));
            changes.push((
                "row",
                format!("UPDATE batches SET vanished = '2026-05-01T00:00:00Z' WHERE rowid = {row}"),
            ));
        }
    }
    for name in &names[..fields] {
        changes.push((
            "column renamed",
            format!("ALTER TABLE batches RENAME COLUMN {name} TO {name}z"),
        ));
        changes.push((
            "column removed",
            format!("ALTER TABLE batches DROP COLUMN {name}"),
        ));
    }
    changes.push((
        "column added",
        "ALTER TABLE batches ADD COLUMN note TEXT".to_owned(),
    ));
    changes
}

/// One-byte mutants of the index pages.
fn index_bytes(rng: &mut Rng, path: &Path, original: &[u8]) -> Vec<Mutant> {
    let database = Connection::open(path).unwrap();
    let size: usize = database
        .pragma_query_value(None, "page_size", |row| row.get(0))
        .unwrap();
    let roots: Vec<usize> = database
        .prepare("SELECT rootpage FROM sqlite_master WHERE type = 'index' AND tbl_name = 'batches'")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let each = DATABASE_INDEX_BYTES / roots.len();
    let mutants = roots.into_iter().flat_map(|root| {
        let page = (root - 1) * size..root * size;
        // The first half of a page is mostly empty.
        let used = page.start + size * 3 / 4..page.end;
        one_byte(rng, original, used, each, "byte of an index")
    });
    mutants.collect()
}
