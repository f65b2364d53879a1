"""The lineage of a build: what a receiver gets over HTTP and in a file, and what a build says without one."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from broker_core_spark.batch.errors import BatchError
from broker_core_spark.batch.lineage.build_events import BuildEvents
from broker_core_spark.batch.lineage.build_lineage import lineage_client, lineage_run, sending_lineage
from tests.support.ports import free_port
from tests.support.spark_catalogues import result_of

EVENTS = BuildEvents("prod", "0123456789ab", "generations", "names.txt", ["patterns.jsonl"])


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """The events that an HTTP server has received, with the key of each request."""
    received: list[dict[str, Any]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            received.append({"path": self.path, "key": self.headers["Authorization"], **json.loads(data)})
            self.send_response(201)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("OPENLINEAGE_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "some-key")
    yield received
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def _settings_of_the_test_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # The client writes variables of its own.
    monkeypatch.setattr("os.environ", {"HOME": str(tmp_path), "PATH": "/usr/bin"})
    monkeypatch.chdir(tmp_path)


def test_a_receiver_over_http(receiver: list[dict[str, Any]], tmp_path: Path) -> None:
    said: list[str] = []
    result = result_of(tmp_path / "store", [{"namespace": "a/b", "pattern": ".*"}], {"a/b": ["t"]})
    with sending_lineage(lineage_client(), EVENTS, said.append) as results:
        results.append(result)
    with pytest.raises(ValueError, match="why"), sending_lineage(lineage_client(), EVENTS, said.append):
        raise ValueError("why")
    with pytest.raises(KeyboardInterrupt), sending_lineage(lineage_client(), EVENTS, said.append):
        raise KeyboardInterrupt
    assert [event["eventType"] for event in receiver] == [
        "START",
        "COMPLETE",
        "START",
        "FAIL",
        "START",
        "ABORT",
    ]
    assert {(event["path"], event["key"]) for event in receiver} == {("/api/v1/lineage", "Bearer some-key")}
    assert receiver[3]["run"]["facets"]["errorMessage"]["message"] == "why"
    assert said == []


def test_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "lineage.yml"
    transport = {"type": "file", "log_file_path": str(tmp_path / "events.jsonl"), "append": True}
    config.write_text(json.dumps({"transport": transport}))
    monkeypatch.setenv("OPENLINEAGE_CONFIG", str(config))
    with pytest.raises(ValueError, match="why"), sending_lineage(lineage_client(), EVENTS, pytest.fail):
        raise ValueError("why")
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [event["eventType"] for event in events] == ["START", "FAIL"]


def test_nobody_there_is_one_warning(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    retry = {"total": 1, "backoff_factor": 0}
    transport = {"type": "http", "url": f"http://127.0.0.1:{free_port()}", "retry": retry}
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT", json.dumps(transport))
    said: list[str] = []
    with pytest.raises(ValueError, match="why"), sending_lineage(lineage_client(), EVENTS, said.append):
        raise ValueError("why")
    assert said == ["lineage: the receiver did not take all events: ConnectionError"]
    assert capfd.readouterr() == ("", "")


def test_no_client_and_no_receiver_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BatchError, match="set OPENLINEAGE_URL, or OPENLINEAGE_CONFIG"):
        lineage_client()
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT", json.dumps({"type": "secret.transport"}))
    with pytest.raises(BatchError, match=r"the settings of OpenLineage are not valid \(\w+\)$"):
        lineage_client()
    monkeypatch.setitem(sys.modules, "openlineage.client", None)
    with pytest.raises(BatchError, match="pip install openlineage-python"):
        lineage_client()


def test_the_job_and_its_parent_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lineage_run() == ("default", None)
    parent = "airflow://prod/nightly.build/0190b7ee-7a3c-7bbb-8000-000000000001"
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "prod")
    monkeypatch.setenv("OPENLINEAGE_PARENT_ID", parent)
    assert lineage_run() == ("prod", parent)
    for wrong in ("airflow", "airflow/job/run"):
        monkeypatch.setenv("OPENLINEAGE_PARENT_ID", wrong)
        with pytest.raises(BatchError, match="expected NAMESPACE/JOB/RUN"):
            lineage_run()
