"""The heap of the screen Live after many changes: an hour of ten a second with ``LIVE_CHANGES=36000``."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.support.served import Served
from tests.support.watched_page import WatchedPage

#: Changes: half of them make a topic, half delete one.
CHANGES: Final = int(os.environ.get("LIVE_CHANGES", "1000"))
#: Bytes of JavaScript's heap after a collection, at the most.
MOST: Final = 40_000_000
_CHANGE: Final = """
((method, from, to) => Promise.all([0, 1, 2, 3].map(async (lane) => {
  const given = method === 'PUT' ? {headers: {'Content-Type': 'application/json'}, body: '{}'} : {};
  for (let number = from + lane; number < to; number += 4) {
    await fetch(`v1/namespaces/public/default/topics/new-${number}`, {method, ...given});
  }
})))
"""


@pytest.mark.long
def test_its_heap_stays_small(
    page_of: Callable[..., WatchedPage], tmp_path: Path, explored: Callable[..., Served]
) -> None:
    running = explored(tmp_path, [], writes=True)
    page = page_of(running, "live/public/default?q=new-.*")
    page.see("Nothing has changed yet")
    other = page_of(running, "help")
    for start in range(0, CHANGES // 2, 500):
        for method in ("PUT", "DELETE"):
            other.page.evaluate(f"{_CHANGE}('{method}', {start}, {start + 500})")
    other.page.evaluate(f"{_CHANGE}('PUT', {CHANGES}, {CHANGES + 1})")
    page.see(f"new-{CHANGES}")
    protocol = page.context.new_cdp_session(page.page)
    protocol.send("HeapProfiler.collectGarbage")
    used = protocol.send("Runtime.getHeapUsage")["usedSize"]
    print(f"heap after {CHANGES} changes: {used / 1e6:.1f} MB")
    assert used <= MOST
