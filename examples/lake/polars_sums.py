"""Batches, images and mean rates per crop and month, with Polars.

    pip install polars
    python polars_sums.py [LAKE]

The means are weighted with the number of images, like `weighted_mean` of `trayscan summary`. The sums are whole numbers, so they
are exact. Polars reads only the columns that it needs, on all cores.
"""
import csv
import sys
from decimal import ROUND_HALF_UP, Decimal

import polars as pl

RATES = {"germination_rate": "avg_germination_rate", "usable_rate": "avg_usable_seedling_rate"}

lake = sys.argv[1] if len(sys.argv) > 1 else "lake"
batches = pl.scan_parquet(f"{lake}/year=*/month=*/batches.parquet", hive_partitioning=False)


def sums_of(name, rate):
    """The rates in hundredths times images, and the images of the batches that have the rate."""
    hundredths = (pl.col(rate) * 100).cast(pl.Int64)
    images = pl.col("number_of_images").cast(pl.Int64)
    return [
        (hundredths * images).sum().alias(name),
        images.filter(pl.col(rate).is_not_null()).sum().alias(f"{name}_images"),
    ]


groups = (
    # Months are those of UTC, as in the names of the folders.
    batches.group_by("crop_type", pl.col("batch_creation_date").dt.strftime("%Y-%m").alias("month"))
    .agg(
        pl.len().alias("batches"),
        pl.col("number_of_images").sum().alias("images"),
        pl.col("warnings").sum().alias("warnings"),
        *(column for name, rate in RATES.items() for column in sums_of(name, rate)),
    )
    .sort("crop_type", "month")
    .collect()
)


def mean(row, name):
    images = row[f"{name}_images"]
    return (Decimal(row[name]) / 100 / images).quantize(Decimal("0.01"), ROUND_HALF_UP) if images else None


columns = ["crop_type", "month", "batches", "images", "warnings"]
out = csv.writer(sys.stdout)
out.writerow(columns + list(RATES))
for row in groups.iter_rows(named=True):
    out.writerow([row[column] for column in columns] + [mean(row, name) for name in RATES])
