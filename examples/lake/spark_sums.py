"""Batches, images and mean rates per crop and month, with Spark.

    pip install 'pyspark>=3.5,<4'      (needs Java 8, 11 or 17)
    python spark_sums.py [LAKE]

The means are weighted with the number of images, like `weighted_mean` of `trayscan summary`. Spark computes
them as decimals, so they are exact.
"""
import csv
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

lake = sys.argv[1] if len(sys.argv) > 1 else "lake"
spark = (
    SparkSession.builder.appName("trayscan sums")
    # Months are those of UTC, as in the names of the folders.
    .config("spark.sql.session.timeZone", "UTC")
    # `month` stays 05; Spark would make it the number 5.
    .config("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    .getOrCreate()
)

batches = spark.read.parquet(lake)
images = F.col("number_of_images").cast("decimal(18,0)")


def mean(rate):
    weight = F.sum(F.when(F.col(rate).isNotNull(), images))
    return F.round(F.sum(F.col(rate).cast("decimal(9,2)") * images) / weight, 2)


sums = (
    batches.groupBy("crop_type", F.date_format("batch_creation_date", "yyyy-MM").alias("month"))
    .agg(
        F.count("*").alias("batches"),
        F.sum("number_of_images").alias("images"),
        F.count(F.when(F.col("warnings"), True)).alias("warnings"),
        mean("avg_germination_rate").alias("germination_rate"),
        mean("avg_usable_seedling_rate").alias("usable_rate"),
    )
    .orderBy("crop_type", "month")
)

out = csv.writer(sys.stdout)
out.writerow(sums.columns)
out.writerows(sums.collect())
spark.stop()
