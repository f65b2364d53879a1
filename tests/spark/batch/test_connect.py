"""A build through Spark Connect gives the same bytes. The server does not have the job's files.

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
from tests.support.spark_catalogues import (
    expected_generation,
    fill,
    generation_files,
    questions_about,
    write_patterns,
)

for package in ("pyspark", "grpc", "grpc_status", "zstandard"):
    pytest.importorskip(package, reason="without pyspark[connect]")

SEGMENT_BYTES = 8192
_PATIENCE = 300  # seconds
_JOB = """
import json, sys
from broker_core_spark.batch.build_errors import InvalidCatalogue
from broker_core_spark.batch.job import build
from broker_core_spark.batch.spark.spark_session import spark_session
catalogue, patterns, store, server = sys.argv[1:5]
with spark_session(master=server) as spark:
    result = build(spark, catalogue=catalogue, patterns=patterns, store=store, segment_bytes=int(sys.argv[5]),
                   partitions=3)
    try:
        build(spark, catalogue="table:nothing", patterns=patterns, store=store)
    except InvalidCatalogue as error:
        print(error, file=sys.stderr)
    print(json.dumps({"session": type(spark).__module__, **result.record()}))
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


def test_a_client_of_spark_connect_makes_the_same_generation(server: str, tmp_path: Path) -> None:
    catalogue = tmp_path / "catalogue.sqlite"
    fill(catalogue, {"public/large": [f"orders-{number}" for number in range(3000)]})
    patterns = write_patterns(tmp_path / "patterns.jsonl", questions_about("public/large"))
    done = subprocess.run(
        [sys.executable, "-c", _JOB, catalogue, patterns, tmp_path / "store", server, str(SEGMENT_BYTES)],
        capture_output=True,
        text=True,
        check=False,
        timeout=_PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["session"].startswith("pyspark.sql.connect")
    assert "Cannot read the catalogue table:nothing: [TABLE_OR_VIEW_NOT_FOUND]" in done.stderr
    expected = expected_generation(catalogue, patterns, tmp_path / "expected", segment_bytes=SEGMENT_BYTES)
    assert record["generation"] == expected.id
    assert generation_files(tmp_path / "store", expected) == generation_files(tmp_path / "expected", expected)
