//! Spark, DuckDB, Polars, Delta Lake, pyarrow and pandas reading lakes written by trayscan, and their examples.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Output, Run, Server, python, run};

/// The packages that the examples and the tests need.
const PACKAGES: &str =
    "'pyspark>=3.5,<4' duckdb duckdb-cli polars deltalake pyarrow pandas pytz setuptools";
const MODULES: &str = "pyspark, duckdb, polars, deltalake, pyarrow, pandas, pytz";

/// The programs of a Python environment with all packages; `None` if not available.
static PROGRAMS: LazyLock<Option<PathBuf>> =
    LazyLock::new(|| python("lake-engines", PACKAGES, MODULES));

/// A folder with an archive, used as the working directory of commands.
struct Bench {
    folder: TempDir,
    programs: PathBuf,
    has_java: bool,
}

impl Bench {
    fn new() -> Option<Self> {
        let programs = PROGRAMS.clone()?;
        let has_java = Run::new("java").arg("-version").succeeds();
        if !has_java {
            eprintln!("skipped in part: Spark needs Java, which is not installed");
        }
        Some(Self {
            folder: TempDir::new().unwrap(),
            programs,
            has_java,
        })
    }

    fn at(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Runs a program in the folder; the packages and trayscan are on its path.
    fn command(&self, program: &str, args: &[&str]) -> Run {
        let trayscan = Path::new(env!("CARGO_BIN_EXE_trayscan")).parent().unwrap();
        let path = [
            self.programs.to_str().unwrap(),
            trayscan.to_str().unwrap(),
            &std::env::var("PATH").unwrap_or_default(),
        ];
        let mut command = Run::new("/usr/bin/env");
        command
            .arg(program)
            .args(args)
            .current_dir(self.folder.path())
            .env("PATH", path.join(":"))
            .env("SPARK_LOCAL_IP", "127.0.0.1")
            .env("SPARK_LOCAL_DIRS", self.at("spark"))
            // Results must not depend on the local time zone.
            .env("TZ", "Asia/Kolkata");
        command
    }

    fn python(&self, args: &[&str]) -> Output {
        self.command("python", args).output().expect(0)
    }

    fn script(&self, script: &str, args: &[&str]) -> Output {
        self.python(&[&["-c", script], args].concat())
    }
}

fn example(name: &str) -> String {
    format!("{}/examples/lake/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Returns the rows of a CSV text, sorted, without the header.
fn rows(csv: &str) -> Vec<Vec<String>> {
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let row = |row: Result<csv::StringRecord, _>| row.unwrap().iter().map(String::from).collect();
    let mut rows: Vec<Vec<String>> = reader.records().map(row).collect();
    rows.sort();
    rows
}

/// Returns the figures of `trayscan summary`, in the format of the examples.
fn summary(archive: &str, args: &[&str]) -> Vec<Vec<String>> {
    let fixed = ["summary", "--archive", archive, "--by", "crop_type,month"];
    let ended = run(&[&fixed, &["-f", "json"][..], args].concat()).expect(0);
    let summary: Value = ended.json();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let rate = |value: &Value| {
        let rate = value["weighted_mean"].as_f64();
        rate.map_or_else(String::new, |rate| format!("{rate:.2}"))
    };
    let groups = summary["groups"].as_array().unwrap().iter();
    let row = |group: &Value| {
        vec![
            text(&group["crop_type"]),
            text(&group["month"]),
            group["batches"].to_string(),
            group["images"].to_string(),
            group["warnings"].to_string(),
            rate(&group["germination_rate"]),
            rate(&group["usable_rate"]),
        ]
    };
    let mut rows: Vec<Vec<String>> = groups.map(row).collect();
    rows.sort();
    rows
}

#[test]
#[ignore = "installs Spark, DuckDB, Polars and Delta Lake from PyPI, and runs them"]
fn examples_over_a_lake_agree_with_summary() {
    let Some(bench) = Bench::new() else { return };
    let server = Server::start(&["--batches", "5000"]);
    let mut keep = bench.command("sh", &[&example("lake.sh")]);
    keep.service(&server);
    keep.output().expect(0);
    // A second run without changes.
    let ended = keep.output().expect(0);
    assert!(ended.stderr.contains("nothing has changed"), "{ended:?}");
    let archive = bench.at("batches.db");
    let expected = summary(&archive, &[]);
    assert!(expected.len() > 200, "{}", expected.len());
    let batches = expected.iter().map(|row| row[2].parse::<u64>().unwrap());
    assert_eq!(batches.sum::<u64>(), 5000);

    let args = ["-csv", "-nullvalue", "", "-f", &example("sums.sql")];
    let duckdb = bench.command("duckdb", &args).output().expect(0);
    assert_eq!(rows(&duckdb.stdout), expected, "DuckDB");

    let polars = bench.python(&[&example("polars_sums.py")]);
    assert_eq!(rows(&polars.stdout), expected, "Polars");

    let delta = bench.python(&[&example("delta_sums.py"), "lake", "delta"]);
    assert_eq!(rows(&delta.stdout), expected, "Delta Lake");
    let again = bench.python(&[&example("delta_sums.py"), "lake", "delta"]);
    assert_eq!(rows(&again.stdout), expected);
    assert!(again.stderr.contains("nothing changed"), "{again:?}");
    // Some months are removed, one loses batches, and the rest is unchanged.
    let fewer = ["--start", "2024-06-15T00:00:00Z"];
    let template = bench.at("lake/year={year}/month={month}/batches.parquet");
    let manifest = bench.at("lake/_manifest.json");
    fs::remove_dir_all(bench.at("lake")).unwrap();
    fs::create_dir(bench.at("lake")).unwrap();
    let args = ["export", "--archive", &archive, "-o", &template];
    let args = [&args, &["--manifest", &manifest][..], &fewer].concat();
    run(&args).expect(0);
    let expected = summary(&archive, &fewer);
    let delta = bench.python(&[&example("delta_sums.py"), "lake", "delta"]);
    assert_eq!(rows(&delta.stdout), expected, "Delta Lake, after a change");

    if bench.has_java {
        let spark = bench.python(&[&example("spark_sums.py"), "lake"]);
        assert_eq!(rows(&spark.stdout), expected, "Spark");
    }
}

/// Reads a lake by month and one by crop, with all files in their folders.
const READ_LAKES: &str = r"
import sys, duckdb, pandas as pd, pyarrow.dataset as ds, pyarrow.parquet as pq
count, missing, has_java = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == 'true'

# Months: `_manifest.json` and `_SUCCESS` are left out, and folders are columns.
assert ds.dataset('months', partitioning='hive').count_rows() == count
table = pq.read_table('months')
assert (table.num_rows, table['crop_type'].null_count) == (count, missing)
frame = pd.read_parquet('months')
assert (len(frame), frame['crop_type'].isna().sum()) == (count, missing)
assert {str(name) for name in frame['month']} <= {f'{month:02}' for month in range(1, 13)} | set(map(str, range(1, 13)))
sql = lambda text: duckdb.sql(text).fetchall()
assert sql('SELECT count(*), count(crop_type) FROM read_parquet($$months/**/*.parquet$$)') == [(count, count - missing)]

# Crops: the folder `__HIVE_DEFAULT_PARTITION__` is null, whether files have the column or not.
for lake in ['crops', 'crops-without']:
    crops = ds.dataset(lake, partitioning='hive').to_table()['crop_type']
    assert (len(crops), crops.null_count) == (count, missing), lake
    found = sql(f'SELECT count(*), count(crop_type) FROM read_parquet($${lake}/*/*.parquet$$, hive_partitioning = true)')
    assert found == [(count, count - missing)], (lake, found)
# pandas takes the folder for a category, which does not go with the text in the files.
frame = pd.read_parquet('crops', partitioning=None)
assert (len(frame), frame['crop_type'].isna().sum()) == (count, missing)

if has_java:
    from pyspark.sql import SparkSession
    spark = SparkSession.builder.master('local[2]').config('spark.ui.enabled', 'false').getOrCreate()
    for lake in ['months', 'crops', 'crops-without']:
        found = spark.read.parquet(lake)
        found = (found.count(), found.filter('crop_type IS NULL').count())
        assert found == (count, missing), (lake, found)
    # The Bloom filter and the order do not hide a row.
    batches = spark.read.parquet('months')
    ids = [row.batch_id for row in batches.select('batch_id').take(5)]
    assert [batches.filter(batches.batch_id == id).count() for id in ids] == [1] * 5
    assert batches.filter(batches.batch_id == 'no such batch').count() == 0
    # A copy with filters of Spark's own, in no order.
    copy = batches.drop('year', 'month').orderBy('avg_germination_rate').coalesce(1).write
    for name in ['batch_id', 'crop_type', 'batch_creation_date', 'avg_usable_seedlings', 'number_of_images']:
        copy = copy.option(f'parquet.bloom.filter.enabled#{name}', 'true')
    copy.option('parquet.enable.dictionary', 'false').parquet('copy')
print('read')
";

#[test]
#[ignore = "installs Spark, DuckDB and pyarrow from PyPI, and runs them"]
fn engines_read_lakes_with_a_manifest_and_null_crops() {
    let Some(bench) = Bench::new() else { return };
    let archive = bench.at("batches.db");
    run(&["sync", &archive, "--sandbox", "-q"]).expect(0);
    let null = "SELECT count(*), count(*) FILTER (WHERE json_extract(received, '$.crop_type') IS NULL) \
                FROM batches";
    let database = Connection::open(&archive).unwrap();
    let (count, missing): (i64, i64) = database
        .query_row(null, [], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    assert!(missing > 0);
    for (lake, name, fields) in [
        ("months", "year={year}/month={month}", "-comment"),
        ("crops", "crop_type={crop_type}", "-comment"),
        ("crops-without", "crop_type={crop_type}", "-crop_type"),
    ] {
        let lake = bench.at(lake);
        fs::create_dir(&lake).unwrap();
        let template = format!("{lake}/{name}/batches.parquet");
        let manifest = format!("{lake}/_manifest.json");
        let fields = format!("--fields={fields}");
        let args = ["export", "--archive", &archive, "-o", &template, &fields];
        run(&[&args, &["--manifest", &manifest][..]].concat()).expect(0);
        fs::write(format!("{lake}/_SUCCESS"), "").unwrap();
        let unknown = format!("{lake}/crop_type=unknown");
        let default = format!("{lake}/crop_type=__HIVE_DEFAULT_PARTITION__");
        if Path::new(&unknown).exists() {
            fs::rename(unknown, default).unwrap();
        }
    }
    let [count, missing] = [count, missing].map(|number| number.to_string());
    let has_java = bench.has_java.to_string();
    let ended = bench.script(READ_LAKES, &[&count, &missing, &has_java]);
    assert_eq!(ended.stdout, "read\n");
    if bench.has_java {
        let (copy, months) = (bench.at("copy"), bench.at("months"));
        run(&["verify", &copy, "--against", &months]).expect(0);
    }
}

/// Comments that are read correctly only with the right options.
fn hard_comments() -> Vec<Value> {
    let texts = [
        "plain",
        "a, b",
        "say \"hi\"",
        "\"",
        "\"\"",
        "two\nlines",
        "\n",
        "two\r\nlines",
        "a\rb",
        "x\"y,\nz",
        "  blanks  ",
        "back\\slash",
        "\\\"",
        "end\\",
        "#hash",
        "'single'",
        "tab\there",
        "null",
        "NaN",
        "=1+1",
        "発芽 🌱",
    ];
    let texts = texts.iter().map(|text| json!(text));
    texts.chain([Value::Null]).collect()
}

/// Reads a lake of CSV files with the defaults of Spark, and with the options it needs.
const READ_CSV: &str = r"
import json, sys
from pyspark.sql import SparkSession
expected = json.load(open('comments.json'))
spark = SparkSession.builder.master('local[2]').config('spark.ui.enabled', 'false').getOrCreate()

def read(lake, **options):
    rows = spark.read.csv(lake, header=True, **options).select('batch_id', 'comment').collect()
    return len(rows), sum(1 for row in rows if row.batch_id in expected and expected[row.batch_id] == row.comment)

for lake in ['csv', 'gz']:
    whole = (len(expected), len(expected))
    assert read(lake, multiLine=True, quote='\x22', escape='\x22', mode='FAILFAST') == whole, lake
    for options in [{}, {'multiLine': True}, {'escape': '\x22'}]:
        found = read(lake, **options)
        assert found != whole, (lake, options, found)
print('read')
";

#[test]
#[ignore = "installs Spark from PyPI, and runs it"]
fn spark_reads_csv_with_line_breaks_with_three_options() {
    let Some(bench) = Bench::new() else { return };
    if !bench.has_java {
        return;
    }
    let archive = bench.at("batches.db");
    run(&["sync", &archive, "--sandbox", "-q"]).expect(0);
    let database = Connection::open(&archive).unwrap();
    let mut expected = serde_json::Map::new();
    for (comment, rowid) in hard_comments().into_iter().cycle().zip(1..=250) {
        let received = "SELECT received FROM batches WHERE rowid = ?1";
        let received: String = database
            .query_row(received, [rowid], |row| row.get(0))
            .unwrap();
        let mut batch: Value = serde_json::from_str(&received).unwrap();
        batch["comment"] = comment.clone();
        let sql = "UPDATE batches SET received = ?1 WHERE rowid = ?2";
        database.execute(sql, (batch.to_string(), rowid)).unwrap();
        expected.insert(batch["batch_id"].as_str().unwrap().to_owned(), comment);
    }
    drop(database);
    let comments = Value::Object(expected).to_string();
    fs::write(bench.at("comments.json"), comments).unwrap();
    for (lake, ending) in [("csv", "csv"), ("gz", "csv.gz")] {
        let name = format!("{lake}/year={{year}}/month={{month}}/batches.{ending}");
        let args = ["export", "--archive", &archive, "-o", &bench.at(&name)];
        run(&args).expect(0);
    }
    let ended = bench.script(READ_CSV, &[]);
    assert_eq!(ended.stdout, "read\n");
}
