"""`broker-core list --watch` as a process: what comes and goes, an outage, Ctrl-C, and a reader that leaves."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.names import TopicName
from broker_core.settings import Settings
from tests.cli.conftest import Cli
from tests.cli.server import serving
from tests.support.catalogue_topics import create_topics
from tests.support.forked_programs import forked_program
from tests.support.narrowed import present
from tests.support.ports import free_port

ORDERS, CLICKS, OTHER = (f"persistent://public/default/{name}" for name in ("orders", "clicks", "other"))

WATCHING = "watching: the server reports each change"


def settings(folder: Path, port: int) -> Settings:
    return Settings.model_validate(
        {
            "pulsar": {"listen": "127.0.0.1:0"},
            "http": {"listen": f"127.0.0.1:{port}"},
            "catalog": {"path": folder / "topics.sqlite"},
        }
    )


@contextmanager
def watching(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [
        forked_program("broker-core"),
        "list",
        "public/default",
        "--watch",
        "--period",
        "0.1",
        *arguments,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        alarm = threading.Timer(120, process.kill)
        alarm.start()
        try:
            yield process
        finally:
            alarm.cancel()
            process.kill()


def read(stream: Any) -> str:
    line: str = stream.readline()
    return line.removesuffix("\n")


def test_topics_come_and_go_over_an_outage_until_ctrl_c(tmp_path: Path) -> None:
    port = free_port()
    with SqliteCatalog(tmp_path / "topics.sqlite") as catalog:
        catalog.create(TopicName.parse(ORDERS))
        catalog.create(TopicName.parse(OTHER))
        with watching(
            "--url", f"http://127.0.0.1:{port}", "--pattern", ".*/(orders|clicks)", "--timeout", "1"
        ) as process:
            # The server may come later.
            assert "did not answer within 1 s" in read(process.stderr)
            with serving(settings(tmp_path, port)):
                assert read(process.stdout) == f"+ {ORDERS}"
                catalog.create(TopicName.parse(CLICKS))
                assert read(process.stdout) == f"+ {CLICKS}"
            while "polling: the server reports no changes, and is asked every 0.1 s" not in (
                said := read(process.stderr)
            ):
                assert said
            while "the topics stay as they were" not in (said := read(process.stderr)):
                assert said
            catalog.delete(TopicName.parse(ORDERS))
            with serving(settings(tmp_path, port)):
                assert read(process.stdout) == f"- {ORDERS}"
                process.send_signal(signal.SIGINT)
                assert process.wait(60) == 130
                assert present(process.stdout).read() == ""


def test_a_reader_that_leaves_ends_it_without_a_word(tmp_path: Path) -> None:
    create_topics(tmp_path / "topics.sqlite", ORDERS)
    with (
        serving(settings(tmp_path, free_port())) as url,
        watching("--url", url, "--format", "ndjson") as process,
    ):
        assert json.loads(read(process.stdout)) == {"added": ORDERS}
        present(process.stdout).close()
        process.wait(60)
        assert present(process.stderr).read() in ("", f"broker-core: {WATCHING}\n")


def test_over_pulsars_protocol_the_server_tells_of_changes(tmp_path: Path) -> None:
    with SqliteCatalog(tmp_path / "topics.sqlite") as catalog:
        catalog.create(TopicName.parse(ORDERS))
        with (
            serving(settings(tmp_path, free_port())) as url,
            watching("--url", url, "--period", "3600", "--pattern", ".*/(orders|clicks)") as process,
        ):
            assert read(process.stdout) == f"+ {ORDERS}"
            assert WATCHING in read(process.stderr)
            catalog.create(TopicName.parse(OTHER))
            catalog.create(TopicName.parse(CLICKS))
            assert read(process.stdout) == f"+ {CLICKS}"
            catalog.delete(TopicName.parse(ORDERS))
            assert read(process.stdout) == f"- {ORDERS}"


@pytest.mark.parametrize("more", [("--format", "table"), ("--hash", "00000000"), ("--format", "arrow")])
def test_what_does_not_go_with_it_is_an_error_of_usage(cli: Cli, more: tuple[str, ...]) -> None:
    said = cli("list", "a/b", "--watch", "--url", "pulsar://127.0.0.1:1", *more)
    assert (said.code, said.only_error) == (
        2,
        "--watch goes with --format names or ndjson, and not with --hash",
    )


def test_what_cannot_pass_ends_it_at_the_first_question(cli: Cli, tmp_path: Path) -> None:
    with serving(settings(tmp_path, free_port())) as url:
        said = cli("list", "public/default", "--watch", "--url", url, "--pattern", "(")
    assert said.code == 1
    assert said.only_error.startswith("MetadataError: ")
