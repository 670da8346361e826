#!/bin/sh
# Keeps a lake of Parquet files: fetches what is new into the archive, then rewrites the months that changed.
# Usage: lake.sh [ARCHIVE [LAKE]]; the service comes from the settings of trayscan (TRAYSCAN_BASE_URL, ...).
set -eu

archive=${1:-batches.db}
lake=${2:-lake}

trayscan sync "$archive"
trayscan export --archive "$archive" -o "$lake/year={year}/month={month}/batches.parquet" --only-changed
