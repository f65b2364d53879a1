"""A Spark session for the batch: the one that is there, or a local one with settings that were measured.

Under spark-submit, in a notebook or on a managed Spark there is a session, and its settings are its owner's. On one
machine the heap may stay small: names never pass through it, except those of a table that Spark itself reads.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from broker_core.errors import BrokerCoreError
from broker_core_spark.batch.spark.java_home import find_java_home

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

__all__ = ["LOCAL_SETTINGS", "SessionFailed", "spark_session"]

#: Settings of a session that is made here; ``--conf`` overrides each.
LOCAL_SETTINGS: Final[Mapping[str, str]] = {
    "spark.driver.memory": "1g",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    # Larger batches between the JVM and Python: 2.7 million rows a second instead of 2.4.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    # Two threads that collect garbage are enough beside workers that are Python.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -Xss4m",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
}
_LOG_LEVEL: Final = "ERROR"
_CONNECT: Final = "sc://"
#: Set by spark-submit: its JVM runs already, and its options say where the job runs.
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"


class SessionFailed(BrokerCoreError):
    """No Spark session can be had; the message says why."""


@contextmanager
def spark_session(
    *, master: str | None = None, conf: Mapping[str, str] | None = None, name: str = "broker-core spark build"
) -> Iterator[SparkSession]:
    """The session that is active, or a new one that is stopped at the end.

    ``master`` is where a new one runs: ``local[2]``, ``spark://...``, ``yarn``, ``k8s://...``, or ``sc://...`` for
    Spark Connect. Without it what spark-submit was told counts, else ``local[*]``. ``conf`` are settings of a new one,
    stronger than :data:`LOCAL_SETTINGS`. Raises :exc:`SessionFailed`, and :exc:`~.jre.JavaMissing`.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise SessionFailed(
            "The batch needs PySpark, which serving does not: pip install 'pyspark>=4.1,<4.4' 'pandas>=2.2,<3'"
        ) from error
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    if master is None and _SUBMITTED not in os.environ:
        master = "local[*]"
    session = _made(master, dict(conf or {}), name)
    try:
        yield session
    finally:
        session.stop()


def _made(master: str | None, conf: dict[str, str], name: str) -> SparkSession:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    # Workers run this Python and find what it finds, unless the operator named another one.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        if master is None:
            builder = SparkSession.builder
        elif master.startswith(_CONNECT):
            builder = SparkSession.builder.remote(master)
        else:
            if _SUBMITTED not in os.environ:
                os.environ["JAVA_HOME"] = str(find_java_home())
            builder = SparkSession.builder.master(master)
            if master.startswith("local"):
                os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
                conf = {**LOCAL_SETTINGS, **conf}
        builder = builder.appName(name)
        for key, value in conf.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
    except PySparkException as error:
        said = str(error).strip().partition("\n")[0]
        connect = isinstance(error, ImportError) and (master or "").startswith(_CONNECT)
        advice = ". Spark Connect needs more of PySpark: pip install 'pyspark[connect]'" if connect else ""
        raise SessionFailed(
            f"Spark does not start at {master or 'its master'}: {said.rstrip('.')}{advice}"
        ) from error
    if master is not None and master.startswith("local"):
        session.sparkContext.setLogLevel(_LOG_LEVEL)
    return session
