"""Keeps a Delta Lake table of the lake, and prints batches, images and mean rates per crop and month.

    pip install deltalake pyarrow
    python delta_sums.py [LAKE [TABLE]]

trayscan replaces the file of a month when a batch of it changes. Files that a Delta table refers to must never
change, so the table has its own copy: this script replaces the months whose file differs from the one that was
copied last, all in one commit. Each commit records the files of the lake with their SHA-256.
"""
import csv
import json
import re
import sys
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, write_deltalake

RECORD = "trayscan.files"


def months_of_lake(lake):
    """The SHA-256 of each file, by (year, month), as the manifest of the lake has it."""
    manifest = json.loads((lake / "_manifest.json").read_text())
    months = {}
    for file in manifest["files"]:
        year, month = re.search(r"year=([0-9]+)/month=([0-9]+)/[^/]*$", file["path"]).groups()
        months[f"{year}-{month}"] = file["sha256"]
    return months


def months_of_table(table):
    """The same of the files that the table was made from."""
    if not DeltaTable.is_deltatable(table):
        return {}
    for commit in DeltaTable(table).history():
        if RECORD in commit:
            return json.loads(commit[RECORD])
    sys.exit(f"{table} was not made by this script")


def read_month(lake, month):
    year, number = month.split("-")
    rows = pq.ParquetFile(lake / f"year={year}" / f"month={number}" / "batches.parquet").read()
    for name, value in [("year", year), ("month", number)]:
        rows = rows.append_column(name, pa.array([value] * len(rows), pa.string()))
    return rows


def update(lake, table):
    new, old = months_of_lake(lake), months_of_table(table)
    changed = sorted(month for month in new.keys() | old.keys() if new.get(month) != old.get(month))
    if not changed:
        return print("nothing changed", file=sys.stderr)
    rows = [read_month(lake, month) for month in changed if month in new]
    # A month that is gone has no rows: an empty table of the same columns replaces it.
    rows = pa.concat_tables(rows) if rows else DeltaTable(table).to_pyarrow_dataset().schema.empty_table()
    where = [f"(year = '{month[:4]}' AND month = '{month[5:]}')" for month in changed]
    write_deltalake(
        table,
        rows,
        mode="overwrite",
        partition_by=["year", "month"],
        predicate=" OR ".join(where) if old else None,
        commit_properties=CommitProperties(custom_metadata={RECORD: json.dumps(new)}),
    )
    print(f"{len(changed)} months replaced", file=sys.stderr)


def mean(total, weight):
    return (total / weight).quantize(Decimal("0.01"), ROUND_HALF_UP) if weight else None


def print_sums(table):
    names = ["crop_type", "year", "month", "number_of_images", "warnings"]
    rates = ["avg_germination_rate", "avg_usable_seedling_rate"]
    groups = {}
    for batches in DeltaTable(table).to_pyarrow_dataset().to_batches(columns=names + rates):
        for row in batches.to_pylist():
            key = (row["crop_type"] or "", f"{row['year']}-{row['month']}")
            group = groups.setdefault(key, [0, 0, 0] + [Decimal(0)] * 4)
            images = row["number_of_images"]
            group[0] += 1
            group[1] += images
            group[2] += row["warnings"]
            for place, rate in enumerate(rates):
                if row[rate] is not None:
                    group[3 + 2 * place] += row[rate] * images
                    group[4 + 2 * place] += images
    out = csv.writer(sys.stdout)
    out.writerow(["crop_type", "month", "batches", "images", "warnings", "germination_rate", "usable_rate"])
    for key, group in sorted(groups.items()):
        out.writerow([*key, *group[:3], mean(*group[3:5]), mean(*group[5:7])])


if __name__ == "__main__":
    lake = Path(sys.argv[1] if len(sys.argv) > 1 else "lake")
    table = sys.argv[2] if len(sys.argv) > 2 else "delta"
    update(lake, table)
    print_sums(table)
