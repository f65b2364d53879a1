"""Prometheus itself evaluates the dashboard and the alert rules, over scrapes of running servers."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import promql_parser
import pytest

from tests.interop.go_program import go_promql
from tests.interop.pulsar_peer import PeerUnavailable
from tests.support.monitored import scraped_under_traffic
from tests.support.monitoring_queries import RULES, dashboard_queries, rules
from tests.support.promql import evaluated, without_threshold

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def prometheus() -> Path:
    try:
        return go_promql()
    except PeerUnavailable as error:
        pytest.skip(str(error))


def test_prometheus_finds_what_our_evaluation_finds(prometheus: Path, tmp_path: Path) -> None:
    before, now, texts = asyncio.run(scraped_under_traffic(tmp_path))
    # Prometheus extrapolates rates to the ends of the range, so only labels are compared.
    scrapes = [
        {"time": int(scrape.time * 1000), "instance": instance, "text": text}
        for scrape, of_scrape in zip((before, now), texts, strict=True)
        for instance, text in of_scrape.items()
    ]
    up = [{"time": int(now.time * 1000), "instance": instance, "text": "up 1\n"} for instance in texts[1]]
    parsed = [
        without_threshold(promql_parser.parse(query))
        for query in [*(query for _, query in dashboard_queries()), *(rule["expr"] for rule in rules())]
    ]
    queries = [expression.prettify() for expression in parsed]
    asked = {
        "scrapes": scrapes + up,
        "queries": queries,
        "rules": RULES.read_text(encoding="utf-8"),
        "time": int(now.time * 1000),
    }
    done = subprocess.run(
        [prometheus], input=json.dumps(asked), capture_output=True, text=True, check=True, timeout=120
    )
    said: dict[str, Any] = json.loads(done.stdout)
    assert said["rules"] == []
    for query, expression, result in zip(queries, parsed, said["results"], strict=True):
        assert "error" not in result, f"{query}: {result}"
        ours = evaluated(expression, before, now)
        labels = {frozenset()} if isinstance(ours, float) else set(ours)
        theirs = {
            frozenset((name, value) for name, value in sample.items() if name != "value")
            for sample in result["samples"]
        }
        assert theirs == labels, query
        assert theirs, query
