-- Batches, images and mean rates per crop and month, with DuckDB:
--   duckdb -csv -nullvalue '' -f sums.sql          in the folder that holds `lake`
--
-- The means are weighted with the number of images, like `weighted_mean` of `trayscan summary`. They are
-- computed in whole numbers, because DuckDB divides decimals as floating-point numbers.
SET TimeZone = 'UTC';

CREATE TEMP MACRO mean(total, weight) AS
    (((CAST(total * 100 AS HUGEINT) * 2 + weight) // (weight * 2)) * 0.01)::DECIMAL(18, 2);

SELECT crop_type,
       strftime(batch_creation_date, '%Y-%m') AS month,
       count(*) AS batches,
       sum(number_of_images) AS images,
       count(*) FILTER (warnings) AS warnings,
       mean(sum(avg_germination_rate * number_of_images),
            sum(number_of_images) FILTER (avg_germination_rate IS NOT NULL)) AS germination_rate,
       mean(sum(avg_usable_seedling_rate * number_of_images),
            sum(number_of_images) FILTER (avg_usable_seedling_rate IS NOT NULL)) AS usable_rate
FROM read_parquet('lake/*/*/*.parquet', hive_partitioning = true)
GROUP BY ALL
ORDER BY crop_type NULLS FIRST, month;
