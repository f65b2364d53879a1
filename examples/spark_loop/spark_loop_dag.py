"""The loop as an Airflow DAG (Airflow 2.9 or 3): learn, build on the cluster, clean up; every hour, one at a time.

The catalogue and the store are what the broker has too: a PostgreSQL and a bucket here, since a worker of Airflow
rarely runs where the broker's own file is. Passwords come from the environment of the worker (PGPASSFILE, the cloud's
own credentials), never from these lines.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow import DAG  # type: ignore[import-not-found]
from airflow.operators.bash import BashOperator  # type: ignore[import-not-found]

CONFIG = "/etc/broker-core/broker-core.toml"
BROKER = "http://broker-core:8080"
CATALOGUE = "postgresql://topics_batch@topics-db/topics"
STORE = "s3://listings/prod"
PATTERNS = "/tmp/patterns-{{ ts_nodash }}.jsonl"

with DAG(
    dag_id="broker_core_spark",
    description="Precompute the listings that brokers are asked for",
    schedule="17 * * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=5), "execution_timeout": timedelta(hours=2)},
) as dag:
    build = BashOperator(
        task_id="build",
        # Learning and building in one task: both need the same file, and tasks may run on different machines.
        bash_command=(
            f"broker-core spark patterns export --broker {BROKER} --output {PATTERNS} && "
            f"broker-core spark build --config {CONFIG} --catalogue {CATALOGUE} --patterns {PATTERNS} "
            f"--out {STORE} --incremental --master spark://spark-master:7077"
        ),
    )
    gc = BashOperator(task_id="gc", bash_command=f"broker-core spark gc --store {STORE} --keep 3")
    build >> gc
