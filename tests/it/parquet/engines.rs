//! DuckDB and pyarrow.

use std::fs::{self};
use std::path::PathBuf;

use crate::harness::{Folder, Output, Run, Server, export, python, run};

/// Returns Python with DuckDB and pyarrow; `None` if not possible.
fn python_engines() -> Option<PathBuf> {
    let programs = python("engines", "duckdb pyarrow pytz", "duckdb, pyarrow")?;
    Some(programs.join("python"))
}

#[test]
#[ignore = "installs DuckDB and pyarrow from PyPI"]
fn duckdb_and_pyarrow_read_it() {
    let Some(python) = python_engines() else {
        return;
    };
    let server = Server::start(&["--batches", "5000", "--fault", "unknown-fields"]);
    let folder = Folder::new();
    let (one, lake) = (folder.name("b.parquet"), folder.name("lake"));
    export(&server, &["-o", &one]).expect(0);
    let template = format!("{lake}/year={{year}}/month={{month}}/batches.parquet");
    export(&server, &["-o", &template]).expect(0);
    let others = folder.name("others");
    fs::create_dir(&others).unwrap();
    // The expected sum, in hundredths.
    let rates = server.flat("").into_iter().filter_map(|batch| {
        let rate = batch["avg_germination_rate"].as_str()?.to_owned();
        let (whole, fraction) = rate.split_once('.')?;
        assert_eq!(fraction.len(), 2);
        format!("{whole}{fraction}").parse::<i64>().ok()
    });
    let sum: i64 = rates.sum();
    let sum = format!("{}.{:02}", sum / 100, sum % 100);
    let script = r"
import sys, duckdb, pyarrow as pa, pyarrow.parquet as pq, pyarrow.compute as pc
one, lake, total, others = sys.argv[1:]
duck, packed = others + '/duckdb.parquet', others + '/zstd.parquet'
sql = lambda text: duckdb.sql(text).fetchall()
assert str(sql(f'SELECT sum(avg_germination_rate) FROM {one!r}')[0][0]) == total
lake = f'{lake}/*/*/*.parquet'
months = f'read_parquet({lake!r}, hive_partitioning = true)'
assert str(sql(f'SELECT sum(avg_germination_rate) FROM {months}')[0][0]) == total
assert sql(f'SELECT count(*) FROM {months} WHERE year <> year(batch_creation_date AT TIME ZONE $$UTC$$) OR month::INT <> month(batch_creation_date AT TIME ZONE $$UTC$$)') == [(0,)]
assert sql(f'SELECT count(*), count(DISTINCT batch_id) FROM {months}') == [(5000, 5000)]
types = {row[0]: row[1] for row in sql(f'DESCRIBE SELECT * FROM {one!r}')}
assert types['avg_germination_rate'] == 'DECIMAL(18,2)', types
assert types['batch_creation_date'] == 'TIMESTAMP WITH TIME ZONE', types
assert types['warnings'] == 'BOOLEAN' and types['number_of_images'] == 'BIGINT', types
assert types['batch_id'] == types['extra'] == 'VARCHAR', types
file = pq.ParquetFile(one)
table = file.read()
kind = lambda name: table.schema.field(name).type
assert kind('avg_germination_rate') == pa.decimal128(18, 2)
assert kind('batch_creation_date') == pa.timestamp('us', tz='UTC')
assert kind('batch_id') == pa.string() and kind('warnings') == pa.bool_() and kind('number_of_images') == pa.int64()
assert str(pc.sum(table['avg_germination_rate']).as_py()) == total
assert table.schema.field('batch_id').nullable is False
assert table.num_rows == int(file.metadata.metadata[b'trayscan.batches'])
stats = file.metadata.row_group(0).column(2).statistics
assert stats.has_min_max and stats.min == pc.min(table['batch_creation_date']).as_py(), stats
group = file.metadata.row_group(0)
order = [(key.column_index, key.descending, key.nulls_first) for key in group.sorting_columns]
assert order == [(2, False, False), (0, False, False)], order
rows = list(zip(table['batch_creation_date'].to_pylist(), table['batch_id'].to_pylist()))
assert rows == sorted(rows)
assert all(group.column(place).has_column_index and group.column(place).has_offset_index for place in range(19))
probe = lambda id: [row[-1] for row in sql(f'SELECT * FROM parquet_bloom_probe({one!r}, $$batch_id$$, {id!r})')]
assert all(probe(id) == [False] for _, id in rows[::100])
assert sum(probe(f'no-such-{number}') == [False] for number in range(100)) < 10
placed = sql(f'SELECT path_in_schema, bloom_filter_length FROM parquet_metadata({one!r}) WHERE bloom_filter_offset IS NOT NULL')
assert [name for name, _ in placed] == ['batch_id'], placed
duckdb.sql(f'COPY (FROM {one!r}) TO {duck!r}')
duckdb.sql(f'COPY (FROM {one!r}) TO {packed!r} (COMPRESSION zstd)')
pq.write_table(table, others + '/arrow.parquet')
pq.write_table(table, others + '/whole.parquet', store_decimal_as_integer=True, coerce_timestamps='ms')
pq.write_table(table, others + '/old.parquet', version='1.0', use_deprecated_int96_timestamps=True)
short = pa.decimal128(9, 2)
fields = [pa.field(field.name, short if pa.types.is_decimal(field.type) else field.type) for field in table.schema]
pq.write_table(table.cast(pa.schema(fields)), others + '/short.parquet', store_decimal_as_integer=True, compression='none')
pq.write_table(table, others + '/pages.parquet', data_page_version='2.0')
pq.write_table(table, others + '/gzip.parquet', compression='gzip')
pq.write_table(table, others + '/brotli.parquet', compression='brotli')
print('read', duckdb.__version__, pa.__version__)
";
    let output = Run::new(python)
        .args(["-c", script, &one, &lake, &sum, &others])
        .env("TZ", "UTC")
        .raw();
    let ended = Output::of(output).expect(0);
    assert!(ended.stdout.starts_with("read "), "{ended:?}");
    // Copies written by other programs have the same batches.
    for name in [
        "duckdb", "zstd", "arrow", "whole", "old", "short", "pages", "gzip",
    ] {
        let copy = format!("{others}/{name}.parquet");
        let ended = run(&["verify", &copy, "--against", &one]).expect(0);
        assert!(ended.stdout.contains("5000 batches"), "{ended:?}");
        // Some copies keep the embedded digest.
        run(&["verify", &copy]).expect(0);
    }
    let ended = run(&["verify", &format!("{others}/brotli.parquet")]).expect(2);
    assert!(ended.stderr.contains("compressed with BROTLI"), "{ended:?}");
}

#[test]
#[ignore = "takes minutes, and installs DuckDB from PyPI"]
fn a_lake_of_a_million_batches_adds_up_in_duckdb() {
    let Some(python) = python_engines() else {
        return;
    };
    let server = Server::start(&["--batches", "1000000", "--page-size", "1000"]);
    let folder = Folder::new();
    let (all, lake) = (folder.name("all.csv"), folder.name("lake"));
    let fields = "batch_creation_date,avg_germination_rate";
    export(&server, &["-o", &all, "--fields", fields]).expect(0);
    let template = format!("{lake}/year={{year}}/month={{month}}/batches.parquet");
    export(&server, &["-o", &template]).expect(0);
    // By month, in integer hundredths: integers in Python do not overflow.
    let script = r"
import csv, sys, duckdb
all, lake = sys.argv[1:]
expected = {}
for row in csv.DictReader(open(all, newline='')):
    month = expected.setdefault((int(row['batch_creation_date'][:4]), int(row['batch_creation_date'][5:7])), [0, 0])
    month[0] += 1
    if row['avg_germination_rate']:
        whole, fraction = row['avg_germination_rate'].split('.')
        assert len(fraction) == 2, row
        month[1] += int(whole + fraction)
assert sum(count for count, _ in expected.values()) == 1000000, expected
months = f'read_parquet({lake + chr(47)!r} || $$*/*/*.parquet$$, hive_partitioning = true)'
found = duckdb.sql(f'SELECT year::INT, month::INT, count(*), sum(avg_germination_rate) FROM {months} GROUP BY ALL').fetchall()
found = {(year, month): [count, int((total or 0) * 100)] for year, month, count, total in found}
assert found == expected, (found, expected)
whole = duckdb.sql(f'SELECT count(DISTINCT batch_id), sum(avg_germination_rate) FROM {months}').fetchall()[0]
assert whole[0] == 1000000 and int(whole[1] * 100) == sum(total for _, total in expected.values()), whole
";
    let mut command = Run::new(python);
    command.args(["-c", script, &all, &lake]);
    let done = command.raw();
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{stderr}");
}
