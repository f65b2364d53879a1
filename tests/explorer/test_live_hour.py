"""The heap of the screen Live after the changes of an hour, ten a second: they come in batches, and all are seen."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from tests.support.served import Served
from tests.support.watched_page import WatchedPage

#: Topics that come, and go again: two changes each.
TOPICS: Final = 18_000
#: Changes that the screen keeps.
KEPT: Final = 500
#: Topics of one batch: fewer changes than are kept.
BATCH: Final = 200
#: Bytes of JavaScript's heap after a collection, at the most.
MOST: Final = 40_000_000
IMPORT: Final = f"/v1/namespaces/public/default/topics:import?exact=true&max_deletions={BATCH}"


@pytest.mark.long
def test_its_heap_stays_small(
    page_of: Callable[..., WatchedPage], tmp_path: Path, explored: Callable[..., Served]
) -> None:
    running = explored(tmp_path, [], writes=True)
    page = page_of(running, "live/public/default?q=new-.*", own=True)
    page.see("No such namespace is known")  # there is none without topics
    with closing(http.client.HTTPConnection(running.ready["http"], timeout=60)) as connection:
        for start in range(0, TOPICS + BATCH, BATCH):
            names = range(start, min(start + BATCH, TOPICS))
            lines = "\n".join(json.dumps({"name": f"new-{number:05}"}) for number in names)
            connection.request("POST", IMPORT, body=lines, headers={"Content-Type": "application/x-ndjson"})
            answer = connection.getresponse()
            said = answer.read()
            assert answer.status == 200, said
            page.holds(
                f"document.body.innerText.includes('{min(start + BATCH, TOPICS):,} came, {start:,} went')"
            )
    page.see(f"no longer kept: {2 * TOPICS - KEPT:,} changes")
    protocol = page.context.new_cdp_session(page.page)
    protocol.send("HeapProfiler.collectGarbage")
    used = protocol.send("Runtime.getHeapUsage")["usedSize"]
    print(f"heap after {2 * TOPICS:,} changes: {used / 1e6:.1f} MB")
    assert used <= MOST
