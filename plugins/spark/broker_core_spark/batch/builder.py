"""The builder: the process, its user and host, the versions, and the Spark application."""

from __future__ import annotations

import os
import platform
import socket
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from broker_core_spark.batch.progress.described_job import classic_context
from broker_core_spark.store import user_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Builder", "plugin_version"]


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
        context = classic_context(spark)
        return cls(
            user_name(),
            socket.gethostname(),
            os.getpid(),
            run,
            plugin_version(),
            str(spark.version),
            platform.python_version(),
            "" if context is None else str(context.applicationId),
        )

    def __str__(self) -> str:
        return f"{self.user} on {self.host}, process {self.pid}"


def plugin_version() -> str:
    """The version of this distribution."""
    try:
        return version("broker-core-spark")
    except PackageNotFoundError:
        return "unknown"
