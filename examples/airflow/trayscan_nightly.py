"""Airflow: the batches of each day as Parquet in S3 and in a PostgreSQL table, with the container of trayscan.

Build the container with `docker build -f packaging/Dockerfile -t trayscan .`, copy this file to the `dags` folder, and set the
environment of the workers: TRAYSCAN_BASE_URL, TRAYSCAN_CLIENT_ID, TRAYSCAN_CLIENT_SECRET; TRAYSCAN_LAKE, such as
`s3://nursery-lake/batches`, with AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; TRAYSCAN_TABLE, such as
`postgres://trays@db.example.com/nursery?table=batches`, with PGPASSWORD.

The day is the one before the run, so that it is over, and a backfill fetches the right days. A task that runs again replaces its own file and updates its
own rows.
"""

import os
from datetime import datetime, timedelta

from airflow.providers.docker.operators.docker import DockerOperator
from airflow.sdk import DAG
from airflow.timetables.trigger import CronTriggerTimetable

PLAIN = ["TRAYSCAN_BASE_URL", "TRAYSCAN_CLIENT_ID", "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_ENDPOINT_URL"]
SECRET = ["TRAYSCAN_CLIENT_SECRET", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD"]
DAY = "{{ data_interval_start | ds }}"


def given(names):
    return {name: os.environ[name] for name in names if name in os.environ}


def trayscan(task_id, command):
    return DockerOperator(
        task_id=task_id,
        image="trayscan",
        command=command,
        environment=given(PLAIN) | {"TRAYSCAN_MESSAGE_FORMAT": "json"},
        # Not shown in the user interface.
        private_environment=given(SECRET),
        auto_remove="force",
        mount_tmp_dir=False,
    )


with DAG(
    dag_id="trayscan_nightly",
    # The interval is the day before; without it, Airflow 3 has none.
    schedule=CronTriggerTimetable("0 2 * * *", timezone="UTC", interval=timedelta(days=1)),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    default_args={"retries": 3, "retry_delay": timedelta(minutes=15)},
):
    lake = os.environ.get("TRAYSCAN_LAKE", "s3://nursery-lake/batches")
    table = os.environ.get("TRAYSCAN_TABLE", "postgres://trays@db.example.com/nursery?table=batches")
    trayscan("lake", ["export", "--period", DAY, "-o", f"{lake}/day={DAY}/batches.parquet"])
    trayscan("table", ["export", "--period", DAY, "-o", table])
