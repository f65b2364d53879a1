"""Scenes that play at the same time, so that what all of them wait for is waited for once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import pytest

__all__ = ["playing_scenes"]

T = TypeVar("T")


@contextmanager
def playing_scenes(
    request: pytest.FixtureRequest, scenes: Mapping[str, Callable[[T], None]], stage_of: Callable[[str], T]
) -> Iterator[dict[str, Future[None]]]:
    """The scenes of which a test was selected, all of them playing; each on the stage that is made for its name."""
    wanted = [name for name in scenes if any(f"[{name}]" in item.nodeid for item in request.session.items)]
    stages = {name: stage_of(name) for name in wanted}
    with ThreadPoolExecutor(max(1, len(wanted))) as threads:
        yield {name: threads.submit(scenes[name], stages[name]) for name in wanted}
