from __future__ import annotations

import threading

from broker_core.logs.dropped_line_count import DroppedLineCount


def test_every_reason_has_a_count() -> None:
    drops = DroppedLineCount("full", "rate", "failed")
    assert drops.counts() == {"full": 0, "rate": 0, "failed": 0}
    drops.add("full", 3)
    drops.add("rate")
    counts = drops.counts()
    counts["rate"] = 99  # a copy
    assert drops.counts() == {"full": 3, "rate": 1, "failed": 0}


def test_no_count_is_lost_between_threads() -> None:
    drops = DroppedLineCount("rate")

    def add() -> None:
        for _ in range(20_000):
            drops.add("rate")

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert drops.counts()["rate"] == 80_000
