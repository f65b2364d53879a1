"""Exporting what a broker was asked: from a running broker's HTTP port to the file of a batch."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from broker_core.names import Mode
from broker_core.testing import serve
from broker_core_spark.commands.broker_http import BrokerUnreachable
from broker_core_spark.commands.patterns_command import learned
from broker_core_spark.format.question import Question
from tests.cli.conftest import Cli


def line(pattern: str | None, count: int, seconds: float, *, error: int = 0, **properties: str) -> str:
    question = {"namespace": "t/n", "mode": "ALL", "pattern": pattern, "properties": properties}
    return json.dumps(question | {"count": count, "error": error, "seconds": seconds})


def patterns(found: list[dict[str, Any]]) -> list[str | None]:
    return [question["pattern"] for question in found]


def test_the_most_expensive_ones_come_first() -> None:
    body = "\n".join([line("a", 100, 1.0), line("b", 2, 9.0), line(None, 5, 3.0, team="red"), ""])
    found, refused = learned(body, "http://b", limit=10, min_count=1)
    assert patterns(found) == ["b", None, "a"]
    assert found[1] == {"namespace": "t/n", "mode": "ALL", "pattern": None, "properties": {"team": "red"}}
    assert refused == 0
    assert patterns(learned(body, "http://b", limit=2, min_count=1)[0]) == ["b", None]


def test_what_was_asked_too_rarely_or_not_surely_stays_out() -> None:
    body = "\n".join([line("once", 1, 9.0), line("twice", 2, 1.0), line("perhaps", 50, 8.0, error=49)])
    assert patterns(learned(body, "http://b", limit=10, min_count=2)[0]) == ["twice"]


def test_what_no_broker_runs_stays_out() -> None:
    body = "\n".join(
        [line("(?!a)b", 9, 9.0), line("a(", 9, 9.0), line("ftp://t/n/x", 9, 9.0), line("a|b", 9, 1.0)]
    )
    found, refused = learned(body, "http://b", limit=10, min_count=1)
    assert (patterns(found), refused) == (["a|b"], 3)


@pytest.mark.parametrize("body", ["<html>", "{}", "[]", '{"namespace": 1}', line("a", 1, 1.0)[:-5]])
def test_what_is_no_registry_is_an_error(body: str) -> None:
    with pytest.raises(BrokerUnreachable, match="http://b/questions: a line is no question"):
        learned(body, "http://b", limit=10, min_count=1)


async def test_a_running_broker_is_asked(cli: Cli, tmp_path: Path) -> None:
    tables: dict[str, dict[str, Any]] = {
        "http": {"listen": "127.0.0.1:0"},
        "catalog": {"property_keys": ["team"]},
    }
    async with serve(topics=["persistent://public/default/a"], settings=tables) as server:
        for _ in range(3):
            await server.list(
                "public/default", pattern="public/default/a.*", properties={"team": "x", "secret": "y"}
            )
            await server.list("public/default", pattern="public/default/(?!b).*")
        await server.list("public/default", pattern="once")
        assert server.broker.http_address is not None
        url = "http://{}:{}".format(*server.broker.http_address)
        output = tmp_path / "patterns.jsonl"
        said = await asyncio.to_thread(
            cli, "spark", "patterns", "export", "--broker", url, "--output", output
        )
        assert said.code == 0, said.err
        assert "left out 1 patterns" in said.err
        (written,) = output.read_text().splitlines()
        printed = await asyncio.to_thread(cli, "spark", "patterns", "export", "--broker", url)
        assert printed.out.splitlines() == [written]
    record = json.loads(written)
    question = Question.of(record["namespace"], Mode[record["mode"]], record["pattern"], record["properties"])
    assert question == Question.of("public/default", Mode.PERSISTENT, "public/default/a.*", {"team": "x"})
    assert not output.with_name("patterns.jsonl.new").exists()
