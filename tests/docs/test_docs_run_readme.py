"""The README's commands run in an environment with the wheels; tests/test_readme.py runs its plugins."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.docs.page_runner import PageRunner
from tests.docs.pages import ROOT, Block, blocks_of
from tests.support.files import file_with
from tests.support.postgres_server import PostgresServer

README = blocks_of((ROOT / "README.md").read_text(encoding="utf-8"), "README.md")
#: The runner puts free ports into the place of these.
PORTS = "export BROKER_CORE_PULSAR__LISTEN=127.0.0.1:6650 BROKER_CORE_HTTP__LISTEN=127.0.0.1:8080\n"
#: The README's topics for each one of the test.
SCALE = 50


def one_with(text: str) -> Block:
    (block,) = (block for block in README if text in block.text)
    return block


def no_server() -> PostgresServer:
    raise AssertionError("this needs no database")


@pytest.fixture
def home(tmp_path: Path, programs: Path) -> Iterator[Path]:
    """A folder with the clone's environment, which is the one of the wheels, and a `sudo` that has nothing to do."""
    (tmp_path / ".venv").symlink_to(programs.parent)
    (tmp_path / "requirements").symlink_to(ROOT / "requirements")
    sudo = file_with(programs / "sudo", '#!/bin/sh\n[ "$1" = apt ] && exit 0\nshift 2\nexec "$@"\n')
    sudo.chmod(0o755)
    yield tmp_path
    sudo.unlink()


@pytest.fixture
def postgres_server() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


def test_listings_from_postgresql(home: Path, programs: Path, postgres_server: PostgresServer) -> None:
    script = one_with("broker-core postgres migrate")
    server = f"export PGHOST={postgres_server.folder} PGPORT={postgres_server.port} PGUSER=postgres\n"
    with PageRunner(home, programs, no_server) as runner:
        said = runner.script(replace(script, text=server + PORTS + script.text))
    listed = [line for line in said.splitlines() if line.startswith("persistent://")]
    assert listed == [f"persistent://public/default/orders-partition-{number}" for number in range(2)]


def test_topics_for_kafka_clients(home: Path, programs: Path) -> None:
    console = one_with("$ broker-core kafka topics create")
    activate, setting, commands = console.text.split("\n", 2)
    assert (activate, setting) == ("$ . .venv/bin/activate", "$ export BROKER_CORE_CONFIG=broker-core.toml")
    each = re.sub(r"^[$] ([^&#\n]+).*$", r"$ \1 --config broker-core.toml", commands, flags=re.MULTILINE)
    with PageRunner(home, programs, no_server) as runner:
        runner.run(one_with("[kafka]\n"))
        runner.run(replace(console, text=each))


@pytest.mark.long
def test_precomputed_listings_with_spark(home: Path, programs: Path) -> None:
    script = one_with("broker-core spark build")
    topics, answer, after = 1_000_000, 20_000, 20_001
    assert all(f" {number}" in script.text for number in (topics, answer, after))
    fewer = script.text.replace(f" {topics} ", f" {topics // SCALE} ")
    with PageRunner(home, programs, no_server) as runner:
        said = runner.script(replace(script, text=PORTS + fewer))
    lines = [line.strip() for line in said.splitlines()]
    assert lines.index(str(answer // SCALE)) < lines.index(str(answer // SCALE + 1))
