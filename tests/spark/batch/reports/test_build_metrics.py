"""Metrics of a build, in a file and as a push gateway receives them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from prometheus_client.parser import text_string_to_metric_families

from broker_core_spark.batch.build_errors import BatchError
from broker_core_spark.batch.build_result import BuildResult
from broker_core_spark.batch.reports.build_metrics import METRICS, write_metrics
from tests.support.narrowed import of_type
from tests.support.ports import free_port
from tests.support.spark_catalogues import result_of

SECRET = "hidden-word"
PREFIX = "broker_core_spark_build_"


@pytest.fixture
def result(tmp_path: Path) -> BuildResult:
    rows: list[dict[str, Any]] = [
        {"namespace": "a/b", "pattern": "a/b/x.*"},
        {"namespace": "no/where", "pattern": "x", "count": 3},
    ]
    made = result_of(tmp_path / "store", rows, {"a/b": ["x1", "x2"]})
    return replace(made, seconds={"segments": 1.5}, published=datetime(2026, 3, 1, tzinfo=UTC))


def samples(text: str) -> dict[str, float]:
    return {
        sample.name.removeprefix(PREFIX) + "".join(sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@contextmanager
def push_gateway(status: int = 202) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """The address of a server, and the requests that it gets."""
    got: list[tuple[str, str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            got.append((self.command, self.path, body))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", got
        server.shutdown()
        thread.join()


def test_a_file_has_every_metric(result: BuildResult, tmp_path: Path) -> None:
    write_metrics(str(tmp_path / "build.prom"), result)
    found = samples((tmp_path / "build.prom").read_text())
    assert {name for name in found if name != "secondssegments"} == set(METRICS) - {"seconds"}
    assert found["secondssegments"] == 1.5
    assert (found["succeeded"], found["questions"], found["matches"], found["left_out"]) == (1, 1, 2, 1)
    assert found["coverage_ratio"] == 0.25
    assert found["published_timestamp_seconds"] == datetime(2026, 3, 1, tzinfo=UTC).timestamp()


def test_a_build_that_failed_after_it_published_has_its_generation_and_no_success(
    result: BuildResult, tmp_path: Path
) -> None:
    write_metrics(str(tmp_path / "build.prom"), result, succeeded=False)
    found = samples((tmp_path / "build.prom").read_text())
    assert (found["succeeded"], found["generation_number"], found["questions"]) == (0, 1, 1)


def test_a_gateway_keeps_what_a_failed_build_does_not_have(result: BuildResult) -> None:
    with push_gateway() as (address, got):
        write_metrics(address, result)
        write_metrics(address, None)
    # POST replaces the metrics of the same names alone; PUT would remove the others.
    assert [(method, path) for method, path, _ in got] == [
        ("POST", "/metrics/job/broker_core_spark_build")
    ] * 2
    assert samples(got[0][2])["matches"] == 2
    assert set(samples(got[1][2])) == {"succeeded", "ended_timestamp_seconds"}
    assert samples(got[1][2])["succeeded"] == 0


def test_metrics_that_cannot_be_written_are_told(result: BuildResult, tmp_path: Path) -> None:
    with pytest.raises(BatchError, match=r"Cannot write the metrics .*; the generation is published"):
        write_metrics(str(tmp_path / "none" / "build.prom"), result)
    with (
        push_gateway(500) as (address, _),
        pytest.raises(BatchError, match=r"Cannot push the metrics to http://127.*500") as refused,
    ):
        write_metrics(address, None)
    assert of_type(refused.value.__cause__, HTTPError).closed, "else its connection stays open"
    nobody = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(BatchError) as error:
        write_metrics(nobody, None)
    assert str(error.value) == f"Cannot push the metrics to {nobody}: [Errno 111] Connection refused"
    with pytest.raises(BatchError) as error:
        write_metrics(f"http://ann:{SECRET}@127.0.0.1:1", None)
    assert SECRET not in str(error.value)
    assert "published" not in str(error.value)
