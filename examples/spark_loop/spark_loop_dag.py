"""The loop as an Airflow DAG (3, or 2.9 with apache-airflow-providers-standard): learn, build on the cluster, clean up.

It runs every hour, one turn at a time. The catalogue and the store are what the broker has too: a PostgreSQL and a
bucket here, since a worker of Airflow rarely runs where the broker's own file is. Passwords come from the environment
of the worker (PGPASSFILE, the cloud's own credentials), never from these lines.

The workers of Airflow have broker-core with the batch and a JRE. The executors of Spark need nothing but Python of the
same release: they get the environment as an archive.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.exceptions import AirflowFailException, AirflowSkipException  # type: ignore[import-not-found]
from airflow.providers.standard.operators.bash import BashOperator  # type: ignore[import-not-found]

try:
    from airflow.sdk import DAG  # type: ignore[import-not-found]
except ImportError:  # Airflow 2
    from airflow import DAG  # type: ignore[import-not-found]

CONFIG = "/etc/broker-core/broker-core.toml"
BROKER = "http://broker-core:8080"
CATALOGUE = "postgresql://topics_batch@topics-db/topics"
STORE = "s3://listings/prod"
MASTER = "spark://spark-master:7077"
#: Made by venv-pack (docs/how-to/spark-submit.md), unpacked by each executor as the folder `env`.
ENVIRONMENT = "/opt/broker-core/listings-env.tar.gz#env"
#: Exit code of a build that a gate refuses.
REFUSED = 3


class BuildOperator(BashOperator):  # type: ignore[misc]
    """Runs a build. One that a gate refuses fails without a retry, which would be refused again."""

    def __init__(self, **given: Any) -> None:
        super().__init__(skip_on_exit_code=REFUSED, **given)

    def execute(self, context: Any) -> Any:
        try:
            return super().execute(context)
        except AirflowSkipException as refused:
            raise AirflowFailException("a gate is closed, see the log: --allow-shrink publishes") from refused


with DAG(
    dag_id="broker_core_spark",
    description="Precompute the listings that brokers are asked for",
    schedule="17 * * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=5), "execution_timeout": timedelta(hours=2)},
) as dag:
    build = BuildOperator(
        task_id="build",
        # Learning and building in one task: both need the same file, and tasks may run on different machines. The file
        # is in the folder that the operator makes for the task and removes after it, whatever becomes of the task.
        bash_command=(
            f"broker-core spark patterns export --broker {BROKER} --output patterns.jsonl && "
            f"broker-core spark build --config {CONFIG} --catalogue {CATALOGUE} --patterns patterns.jsonl "
            f"--out {STORE} --incremental --master {MASTER} --conf spark.archives={ENVIRONMENT}"
        ),
        env={"PYSPARK_PYTHON": "./env/bin/python"},  # on the executors
        append_env=True,
    )
    gc = BashOperator(
        task_id="gc", bash_command=f"broker-core spark gc --config {CONFIG} --store {STORE} --keep 3"
    )
    build >> gc
