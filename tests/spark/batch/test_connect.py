"""A build and an increment through Spark Connect give the same bytes. The server does not have the job's files.

Skipped without the packages of ``pyspark[connect]``, which nothing else here needs.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_core_spark.batch.spark.java_home import find_java_home
from tests.support.eventually import eventually_sync
from tests.support.ports import free_port
from tests.support.spark_increments import BeforeAndAfter

for package in ("pyspark", "grpc", "grpc_status", "zstandard"):
    pytest.importorskip(package, reason="without pyspark[connect]")

SEGMENT_BYTES = 8192
_PATIENCE = 300  # seconds
_JOB = """
import json, sys
from pathlib import Path
from broker_core_spark.batch.build_errors import InvalidCatalogue
from broker_core_spark.batch.job import build
from broker_core_spark.batch.spark.spark_session import spark_session
store, server, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
with spark_session(master=server) as spark:
    for folder in map(Path, sys.argv[4:]):
        patterns = str(folder / "patterns.jsonl")
        result = build(spark, catalogue=str(folder / "catalogue.sqlite"), patterns=patterns, store=store,
                       segment_bytes=size, partitions=3, incremental=True)
        print(json.dumps({"session": type(spark).__module__, **result.record()}))
    try:
        build(spark, catalogue="table:nothing", patterns=patterns, store=store)
    except InvalidCatalogue as error:
        print(error, file=sys.stderr)
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of a Spark Connect server."""
    import pyspark

    home = Path(pyspark.__file__).parent
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-Xss4m",
    }
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]", "--driver-memory", "512m"]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    environment = os.environ | {
        "JAVA_HOME": str(find_java_home()),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    with (tmp_path / "server.log").open("wb") as log:
        running = subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=log, stderr=log)
        try:
            # The client does not wait for it.
            eventually_sync(lambda: _listens(port), timeout=_PATIENCE, what="the server listens")
            yield f"sc://127.0.0.1:{port}"
        finally:
            running.terminate()
            try:
                running.wait(timeout=60)
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait()


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def test_a_client_of_spark_connect_makes_the_same_generations(server: str, tmp_path: Path) -> None:
    builds = BeforeAndAfter.below(tmp_path, topics=3000)
    done = subprocess.run(
        [
            *(sys.executable, "-c", _JOB, tmp_path / "store", server),
            *(str(SEGMENT_BYTES), builds.before, builds.after),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=_PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    full, increment = map(json.loads, done.stdout.splitlines())
    assert full["session"].startswith("pyspark.sql.connect")
    assert "Cannot read the catalogue table:nothing: [TABLE_OR_VIEW_NOT_FOUND]" in done.stderr
    builds.check({tmp_path / "store": (full, increment)}, segment_bytes=SEGMENT_BYTES)
