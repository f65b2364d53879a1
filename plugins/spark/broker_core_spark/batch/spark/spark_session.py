"""The Spark session of a build: the active one, or a local one with measured settings.

Under spark-submit, in a notebook or on a managed Spark the session's settings are its owner's. On one machine the heap
may stay small: only names of a table that Spark reads pass through it.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from broker_core_spark.batch.spark.java_gateway import (
    JavaOutput,
    SessionFailed,
    start_java,
    with_machine_settings,
)
from broker_core_spark.batch.spark.java_home import find_java_home
from broker_core_spark.batch.spark.reached_server import check_server
from broker_core_spark.batch.spark.run_on_partitions import is_spark_error, spark_message
from broker_core_spark.batch.spark.spark_version import check_spark_version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

__all__ = ["LOCAL_SETTINGS", "SessionFailed", "spark_session"]

#: Settings of a new local session. ``--conf`` overrides each.
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
    # The serial collector is enough beside Python workers.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -Xss4m",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
}
_LOG_LEVEL: Final = "ERROR"
_CONNECT: Final = "sc://"
#: Set by spark-submit, whose JVM runs already and whose options say where the job runs.
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"


@contextmanager
def spark_session(
    *, master: str | None = None, conf: Mapping[str, str] | None = None, name: str = "broker-core spark build"
) -> Iterator[SparkSession]:
    """The active session, or a new one that is stopped at the end.

    ``master`` is that of a new one: ``local[2]``, ``spark://...``, ``yarn``, ``k8s://...``, or ``sc://...`` for Spark
    Connect. The default is that of spark-submit, else ``local[*]``. ``conf`` are settings that override
    :data:`LOCAL_SETTINGS`. Raises :exc:`SessionFailed` and :exc:`~.java_home.JavaMissing`.
    """
    try:
        import pyspark
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise SessionFailed(
            "The batch needs PySpark, which serving does not: pip install 'pyspark>=4.1,<4.4' 'pandas>=2.2,<3'"
        ) from error
    check_spark_version(pyspark.__version__)
    active = SparkSession.getActiveSession()
    if active is not None:
        check_spark_version(active.version, "Spark")
        yield active
        return
    if master is None and _SUBMITTED not in os.environ:
        master = "local[*]"
    output = JavaOutput()
    with _interrupts_kept():
        session = _made(master, dict(conf or {}), name, output)
    try:
        check_spark_version(session.version, "Spark")
        yield session
    except BaseException as error:
        interruption = _interruption(error)
        if interruption is not None or not isinstance(error, Exception):
            output.hush()
        # The JVM may be gone, ended by the same signal.
        with suppress(Exception), warnings.catch_warnings(action="ignore"):
            session.stop()
        if interruption is not None:
            raise interruption from None
        raise
    # Spark may interrupt threads of its own that still clean up, and calls that an error.
    output.hush()
    session.stop()


class _KeptHandlers:
    """The module :mod:`signal` for one that shall not handle signals."""

    SIGINT: Final = signal.SIGINT

    @staticmethod
    def signal(number: int, _: object) -> object:
        return signal.getsignal(number)


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Inside, PySpark does not handle SIGINT itself: its handler calls the JVM, where a call may be under way."""
    try:
        from pyspark.core import context
    except ImportError:  # the client of Spark Connect alone has no JVM
        yield
        return
    context.signal = _KeptHandlers  # type: ignore[attr-defined, assignment]
    try:
        yield
    finally:
        context.signal = signal  # type: ignore[attr-defined]


def _interruption(error: BaseException | None) -> KeyboardInterrupt | None:
    """The interruption that led to an error: PySpark replaces it by its own about a JVM that is gone."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error


def _made(master: str | None, conf: dict[str, str], name: str, output: JavaOutput) -> SparkSession:
    from pyspark.sql import SparkSession

    # Workers run this Python, unless the operator named another one.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        if master is None:
            builder = SparkSession.builder
        elif master.startswith(_CONNECT):
            import pyspark.sql.connect.session  # noqa: F401 - says which packages are missing

            check_server(master)
            builder = SparkSession.builder.remote(master)
        else:
            check_server(master)
            builder = SparkSession.builder.master(master)
            if master.startswith("local"):
                os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
                conf = {**LOCAL_SETTINGS, **conf}
            if _SUBMITTED not in os.environ:
                os.environ["JAVA_HOME"] = str(find_java_home())
                conf = with_machine_settings(conf)
                start_java({"spark.master": master, "spark.app.name": name, **conf}, output)
        builder = builder.appName(name)
        for key, value in conf.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
    except Exception as error:
        if not is_spark_error(error):
            raise
        said = spark_message(error)
        connect = isinstance(error, ImportError) and (master or "").startswith(_CONNECT)
        advice = ". Spark Connect needs more of PySpark: pip install 'pyspark[connect]'" if connect else ""
        raise SessionFailed(
            f"Spark does not start at {master or 'its master'}: {said.rstrip('.')}{advice}"
        ) from error
    if master is not None and master.startswith("local"):
        session.sparkContext.setLogLevel(_LOG_LEVEL)
    return session
