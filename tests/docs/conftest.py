"""Fixtures for the tests that run pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from tests.docs.page_runner import FORKED, environment_of_its_own, page_environment
from tests.support.forked_programs import ForkServer
from tests.support.postgres_server import PostgresServer


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory, wheels: list[Path]) -> Iterator[Path]:
    """The programs of an environment with the wheels, and in a folder of it those that are forked in place of them."""
    folder = environment_of_its_own(tmp_path_factory.mktemp("environment"), wheels)
    with ForkServer(folder / "python", page_environment(folder, folder)) as server:
        (folder / FORKED).mkdir()
        for program in ("broker-core", "python"):
            server.write_program(folder / FORKED, program)
        yield folder


@pytest.fixture(scope="module")
def postgres() -> Iterator[Callable[[], PostgresServer]]:
    """Gives a PostgreSQL server, started when the first page asks for it."""
    with ExitStack() as stack:
        yield cache(lambda: stack.enter_context(PostgresServer()))
