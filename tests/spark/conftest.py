"""What tests share, started when first needed: a Spark session of two threads, and a server of S3."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.distributions import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """``local[2]``, shared by all tests of this process."""
    from broker_core_spark.batch.spark.spark_session import spark_session

    quick = {
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": "-Xss4m",
        "spark.sql.shuffle.partitions": "2",
        "spark.python.daemon.module": "tests.support.spark_daemon",
        "spark.executorEnv.PYTHONPATH": str(ROOT),
    }
    with spark_session(master="local[2]", conf=quick, name="tests") as session:
        yield session


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """The address of an S3 server with the bucket ``generations``."""
    from urllib.request import Request, urlopen

    from moto.moto_server.werkzeug_app import (
        DomainDispatcherApplication,
        MotoRequestHandler,
        create_backend_app,
    )
    from werkzeug.serving import make_server

    answer, lock = DomainDispatcherApplication(create_backend_app), threading.Lock()

    def one_at_a_time(*request: Any) -> Any:
        # Moto finds out whether a name is free and takes it in two steps: of two puts at once both would create it.
        with lock:
            return answer(*request)

    server = make_server("127.0.0.1", 0, one_at_a_time, threaded=True, request_handler=MotoRequestHandler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    urlopen(Request(f"{endpoint}/generations", method="PUT")).close()  # the bucket
    yield endpoint
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def s3_options(s3: str) -> dict[str, str]:
    """The options of stores in that server."""
    return {
        "endpoint": s3,
        "region": "us-east-1",
        "access_key_id": "id",
        "secret_access_key": "none",
        "allow_http": "true",
    }
