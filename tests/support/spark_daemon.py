"""Daemon of Spark's Python workers that imports what their tasks need before it forks them.

Each worker imports it for itself otherwise, for half a second of a processor. Spark runs
``python -m tests.support.spark_daemon pyspark.worker``, as ``spark.python.daemon.module`` says.
"""

from __future__ import annotations

import gc

import pandas as pd  # noqa: F401 - PySpark imports it to take an Arrow table
from pyspark import daemon

import broker_core_spark.batch.job  # noqa: F401 - what the functions of tasks are made of

if __name__ == "__main__":
    gc.freeze()  # what is there stays shared
    daemon.manager()
