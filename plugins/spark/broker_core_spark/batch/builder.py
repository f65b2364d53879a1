"""The builder: the process, its user and host, the versions, and the Spark application."""

from __future__ import annotations

import os
import platform
import socket
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from broker_core_spark.store import user_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Builder", "plugin_version", "spark_application"]


@dataclass(frozen=True, slots=True)
class Builder:
    """The builder of a generation: ``user`` on ``host`` in process ``pid``, as ``run``, with these versions.

    ``application`` is the id of the Spark application; empty through Spark Connect, which does not give it.
    """

    user: str
    host: str
    pid: int
    run: str
    version: str
    spark: str
    python: str
    application: str = ""

    @classmethod
    def this_process(cls, spark: SparkSession, run: str) -> Builder:
        """The builder that this process is."""
        return cls(
            user_name(),
            socket.gethostname(),
            os.getpid(),
            run,
            plugin_version(),
            str(spark.version),
            platform.python_version(),
            spark_application(spark),
        )

    def record(self) -> dict[str, Any]:
        """The builder as JSON has it."""
        return {name: getattr(self, name) for name in self.__slots__}

    def __str__(self) -> str:
        return f"{self.user} on {self.host}, process {self.pid}"


def spark_application(spark: SparkSession) -> str:
    """The id of a classic session's application, else an empty text."""
    from pyspark.errors import PySparkException

    try:
        return str(spark.sparkContext.applicationId)
    except (PySparkException, AttributeError):  # Spark Connect has no context
        return ""


def plugin_version() -> str:
    """The version of this distribution."""
    try:
        return version("broker-core-spark")
    except PackageNotFoundError:
        return "unknown"
