"""The heap of the screen Live after many changes: an hour of ten a second with ``LIVE_CHANGES=36000``."""

from __future__ import annotations

import http.client
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from tests.support.eventually import eventually_sync
from tests.support.served import Served
from tests.support.watched_page import PATIENCE, WatchedPage

#: Changes: half of them make a topic, half delete one.
CHANGES: Final = int(os.environ.get("LIVE_CHANGES", "1000"))
#: Bytes of JavaScript's heap after a collection, at the most.
MOST: Final = 40_000_000
LANES: Final = 4


def change(address: str, method: str, numbers: Iterable[object]) -> None:
    """Make or delete topics one after another, on one connection."""
    connection = http.client.HTTPConnection(address, timeout=60)
    for number in numbers:
        connection.request(
            method,
            f"/v1/namespaces/public/default/topics/new-{number}",
            body="{}" if method == "PUT" else None,
            headers={"Content-Type": "application/json"} if method == "PUT" else {},
        )
        with connection.getresponse() as answer:
            assert answer.status in {201, 204}, answer.read()
            answer.read()
    connection.close()


@pytest.mark.long
def test_its_heap_stays_small(
    page_of: Callable[..., WatchedPage], tmp_path: Path, explored: Callable[..., Served]
) -> None:
    running = explored(tmp_path, [], writes=True)
    page = page_of(running, "live/public/default?q=new-.*")
    page.see("No such namespace is known")  # there is none without topics
    address = running.ready["http"]
    with ThreadPoolExecutor(LANES) as threads:
        for start in range(0, CHANGES // 2, 500):
            for method in ("PUT", "DELETE"):
                lanes = [range(start + lane, start + 500, LANES) for lane in range(LANES)]
                list(threads.map(lambda numbers, method=method: change(address, method, numbers), lanes))
    last = count()

    def shown() -> bool:
        # What came and what went since a look is joined, what went on top: a topic made then may be below all of it.
        change(address, "PUT", [f"last-{next(last)}"])
        return bool(page.page.get_by_text("new-last-").locator("visible=true").count())

    eventually_sync(shown, PATIENCE / 1000, what="the last changes")
    protocol = page.context.new_cdp_session(page.page)
    protocol.send("HeapProfiler.collectGarbage")
    used = protocol.send("Runtime.getHeapUsage")["usedSize"]
    print(f"heap after {CHANGES} changes: {used / 1e6:.1f} MB")
    assert used <= MOST
