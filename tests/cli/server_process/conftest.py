from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.server_process.serving import Server


@pytest.fixture
def servers() -> Iterator[list[Server]]:
    started: list[Server] = []
    yield started
    for server in started:
        if server.process.poll() is None:
            server.process.kill()
        server.process.wait()
