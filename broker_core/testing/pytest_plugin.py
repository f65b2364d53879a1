"""Fixtures for tests of plugins; pytest finds this module by its entry point in any environment with broker-core.

Nothing of the server is imported before a fixture is used: every run of pytest in the environment loads this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from broker_core.testing.blocking_server import BlockingServer

__all__ = ["broker_core_serve"]


@pytest.fixture
def broker_core_serve() -> Iterator[Callable[..., BlockingServer]]:
    """Serve plugins, for tests that are not async: called with the arguments of ``broker_core.testing.serve``.

    Every call starts one more server; all of them stop when the test ends.
    """
    from broker_core.testing.blocking_server import BlockingServer

    with ExitStack() as stack:

        def start(*arguments: Any, **options: Any) -> BlockingServer:
            return stack.enter_context(BlockingServer(*arguments, **options))

        yield start
