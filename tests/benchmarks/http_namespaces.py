"""How long the namespaces of a catalogue take over HTTP: ``python -m tests.benchmarks.http_namespaces``.

Asked for: ``GET /v1/namespaces`` of 1,000 namespaces of 100 topics takes at most 10 ms. Each question is asked again
and again with pauses between, over a connection that stays open, while the catalogue is as it is; ``after a change``
there is a topic more each time. The role that is asked for by rules may list all.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from broker_core.catalog import SqliteCatalog
from broker_core.names import TopicName
from tests.benchmarks.http_client import HttpConnection, whole_body
from tests.benchmarks.measure import percentile
from tests.benchmarks.processes import machine
from tests.support.ports import host_and_port
from tests.support.served import Served
from tests.support.tokens import data_url, token

__all__ = ["measure_namespaces"]

#: Milliseconds that all of them may take.
ASKED: Final = 10.0
_PAUSE: Final = 0.02
_KEY: Final = bytes(range(32))
_RULES: Final = [
    {"roles": ["reader"], "namespaces": [f"t{tenant}/*" for tenant in range(10)], "actions": ["list"]}
]
_ROWS: Final = {
    "all": "",
    "with a prefix": "?prefix=t3/",
    "with a text": "?contains=9",
    "a page of 100 in the middle": "?limit=100&cursor=dDEvbjA1MA",
}


def measure_namespaces(namespaces: int, topics: int, times: int) -> dict[str, list[float]]:
    """The least, the median and the 90th percentile of the milliseconds of each question."""
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="broker-core-bench-") as folder:
        path = Path(folder) / "topics.sqlite"
        with SqliteCatalog(path) as catalog:
            for number in range(namespaces):
                namespace = f"persistent://t{number // 100}/n{number % 100:03}"
                for topic in range(topics):
                    catalog.create(TopicName.parse(f"{namespace}/topic-{topic}"))
            tables: dict[str, Any] = {"catalog": {"path": str(path)}, "http": {"listen": "127.0.0.1:0"}}
            with Served(Path(folder), tables) as served:
                for name, query in _ROWS.items():
                    found[name] = _times(served, query, "", times, lambda _: None)

                def change(turn: int) -> None:
                    catalog.create(TopicName.parse(f"persistent://t0/n000/more-{turn}"))

                found["all, after a change"] = _times(served, "", "", times, change)
        tables["authentication"] = {
            "methods": ["token"],
            "token": {"key": data_url(_KEY), "algorithms": ["HS256"]},
        }
        tables["authorization"] = {"rules": _RULES}
        credentials = f"Authorization: Bearer {token({'sub': 'reader'}, key=_KEY, by='HS256').decode()}\r\n"
        with Served(Path(folder), tables) as served:
            found["all, by rules"] = _times(served, "", credentials, times, lambda _: None)
    return found


def _times(
    served: Served, query: str, headers: str, times: int, before: Callable[[int], None]
) -> list[float]:
    taken = []
    with closing(HttpConnection(host_and_port(served.ready["http"]))) as connection:
        for turn in range(times + 5):
            time.sleep(_PAUSE)
            before(turn)
            began = time.perf_counter()
            head, body, _ = connection.ask(f"/v1/namespaces{query}", headers, keep=True)
            taken.append(1000 * (time.perf_counter() - began))
            assert " 200 " in head.partition("\r\n")[0], head
            assert json.loads(whole_body(body, head))["items"]
    return [
        round(each, 2) for each in (min(taken[5:]), percentile(taken[5:], 0.5), percentile(taken[5:], 0.9))
    ]


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--namespaces", type=int, default=1000)
    parser.add_argument("--topics", type=int, default=100, help="of each namespace")
    parser.add_argument("--times", type=int, default=100, help="of each question")
    options = parser.parse_args()
    found = measure_namespaces(options.namespaces, options.topics, options.times)
    print(machine())
    print(f"{'milliseconds':<30}{'least':>8}{'p50':>8}{'p90':>8}")
    for name, (least, median, most) in found.items():
        print(f"{name:<30}{least:>8.2f}{median:>8.2f}{most:>8.2f}")
    median = found["all"][1]
    print(
        f"all of them: {median:.1f} ms (asked: <= {ASKED:.0f} ms): {'passed' if median <= ASKED else 'missed'}"
    )


if __name__ == "__main__":
    main()
