"""The questions of a running broker's HTTP port become the pattern file of a batch."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from broker_core.errors import BrokerCoreError
from broker_core.names import Mode
from broker_core.testing import serve
from broker_core_spark.batch.questions.load_questions import questions_of_rows
from broker_core_spark.commands.patterns_command import worth_precomputing
from broker_core_spark.format.canonical_question import CanonicalQuestion
from broker_core_spark.store.file_at_address import addressed_file
from tests.cli.conftest import Cli
from tests.support.narrowed import present

REQUESTED = "2026-03-01T10:15:00+00:00"


def line(pattern: str | None, count: int, seconds: float, *, error: int = 0, **properties: str) -> str:
    question = {"namespace": "t/n", "mode": "ALL", "pattern": pattern, "properties": properties}
    counted = {"count": count, "error": error, "seconds": seconds, "last_asked": REQUESTED}
    return json.dumps(question | counted)


def patterns(found: list[dict[str, Any]]) -> list[str | None]:
    return [question["pattern"] for question in found]


def test_the_most_expensive_ones_come_first() -> None:
    body = "\n".join([line("a", 100, 1.0), line("b", 2, 9.0), line(None, 5, 3.0, error=1, team="red"), ""])
    found, refused = worth_precomputing(body, "http://b", limit=10, min_count=1, max_length=1024)
    assert patterns(found) == ["b", None, "a"]
    question = {"namespace": "t/n", "mode": "ALL", "pattern": None, "properties": {"team": "red"}}
    assert found[1] == question | {"count": 4, "last_asked": REQUESTED}
    assert refused == 0
    assert patterns(worth_precomputing(body, "http://b", limit=2, min_count=1, max_length=1024)[0]) == [
        "b",
        None,
    ]


def test_what_was_asked_too_rarely_or_not_surely_stays_out() -> None:
    body = "\n".join([line("once", 1, 9.0), line("twice", 2, 1.0), line("perhaps", 50, 8.0, error=49)])
    assert patterns(worth_precomputing(body, "http://b", limit=10, min_count=2, max_length=1024)[0]) == [
        "twice"
    ]


def test_what_no_broker_runs_stays_out() -> None:
    body = "\n".join(
        [line("(?!a)b", 9, 9.0), line("a(", 9, 9.0), line("ftp://t/n/x", 9, 9.0), line("a|b", 9, 1.0)]
    )
    found, refused = worth_precomputing(body, "http://b", limit=10, min_count=1, max_length=1024)
    assert (patterns(found), refused) == (["a|b"], 3)


def raw(**values: str) -> str:
    """A line with values in JSON that Python would not write."""
    good = {"namespace": '"t/n"', "mode": '"ALL"', "pattern": '"x"', "properties": "{}"}
    counted = {"count": "9", "error": "0", "seconds": "1.5"}
    return "{" + ",".join(f'"{key}":{value}' for key, value in (good | counted | values).items()) + "}"


NO_QUESTIONS = {
    "page": ("<html>", "not an object of JSON"),
    "object": ("{}", "no namespace"),
    "list": ("[]", "no namespace"),
    "cut": (line("a", 1, 1.0)[:-5], "not an object of JSON"),
    "deep": ("[" * 100_000, "not an object of JSON"),
    "no pattern": (raw().replace('"pattern":"x",', ""), "no pattern"),
    "no count": (raw().replace('"count":9,', ""), "count must be"),
    "namespace": (raw(namespace='{"a":1}'), "namespace must be"),
    "namespace of one part": (raw(namespace='"t"'), "expected tenant/namespace"),
    "surrogate in a namespace": (raw(namespace='"t/\\ud800"'), "the namespace"),
    "mode": (raw(mode="5"), "mode must be"),
    "empty mode": (raw(mode='""'), "Invalid mode"),
    "pattern": (raw(pattern="[1]"), "pattern must be"),
    "surrogate in a pattern": (raw(pattern='"\\ud800"'), "not valid Unicode"),
    "long": (raw(pattern='"' + "a" * 2_000_000 + '"'), "longer than"),
    "properties": (raw(properties="[1]"), "properties must be"),
    "surrogate in a key": (raw(properties='{"\\ud800":"x"}'), "not valid Unicode"),
    "endless count": (raw(count="1e999"), "count must be"),
    "large count": (raw(count="1" + "0" * 400), "count must be"),
    "larger count": (raw(count="9" * 5000), "not an object of JSON"),
    "yes": (raw(count="true"), "count must be"),
    "negative error": (raw(error="-1"), "error must be"),
    "text": (raw(seconds='"1"'), "seconds must be"),
    "no number": (raw(seconds="NaN"), "seconds must be"),
    "large seconds": (raw(seconds="1" + "0" * 400), "seconds must be"),
    "endless seconds": (raw(seconds="Infinity"), "seconds must be"),
    "no time": (raw(last_asked='"yesterday"'), "last_asked must be"),
    "a number for a time": (raw(last_asked="17"), "last_asked must be"),
}


@pytest.mark.parametrize("name", NO_QUESTIONS)
def test_what_is_no_registry_is_an_error(name: str) -> None:
    body, message = NO_QUESTIONS[name]
    with pytest.raises(BrokerCoreError, match="http://b/questions: line 2 is no question") as caught:
        worth_precomputing(f"{raw()}\n{body}\n", "http://b", limit=10, min_count=1, max_length=1024)
    assert message in str(caught.value)
    assert len(str(caught.value)) <= 1000


def test_what_is_too_long_for_a_broker_stays_out() -> None:
    body = "\n".join([line("a" * 1025, 9, 9.0), line("a", 9, 1.0)])
    found, refused = worth_precomputing(body, "http://b", limit=10, min_count=1, max_length=1024)
    assert (patterns(found), refused) == (["a"], 1)
    assert len(worth_precomputing(body, "http://b", limit=10, min_count=1, max_length=2000)[0]) == 2


def test_what_a_newer_broker_says_besides_does_not_matter() -> None:
    found, _ = worth_precomputing(raw(later="[1]"), "http://b", limit=10, min_count=1, max_length=1024)
    requested = datetime.fromisoformat(found[0].pop("last_asked"))  # the broker does not say it: now
    assert datetime.now(UTC) - requested < timedelta(minutes=5)
    assert found == [{"namespace": "t/n", "mode": "ALL", "pattern": "x", "properties": {}, "count": 9}]
    assert not questions_of_rows([("here", found[0])]).refused  # the batch reads the file


async def test_a_running_broker_is_asked(cli: Cli, tmp_path: Path) -> None:
    tables: dict[str, dict[str, Any]] = {
        "http": {"listen": "127.0.0.1:0", "questions": True},
        "catalog": {"property_keys": ["team"]},
    }
    async with serve(topics=["persistent://public/default/a"], settings=tables) as server:
        for _ in range(3):
            await server.list(
                "public/default", pattern="public/default/a.*", properties={"team": "x", "secret": "y"}
            )
            await server.list("public/default", pattern="public/default/(?!b).*")
        await server.list("public/default", pattern="once")
        url = "http://{}:{}".format(*present(server.broker.http_address))
        output = tmp_path / "patterns.jsonl"
        said = await asyncio.to_thread(
            cli, "spark", "patterns", "export", "--broker", url, "--output", output
        )
        assert said.code == 0, said.err
        assert "left out 1 pattern " in said.err
        (written,) = output.read_text().splitlines()
        stored = f"memory://{tmp_path.name}/patterns.jsonl"  # as in a bucket
        said = await asyncio.to_thread(
            cli, "spark", "patterns", "export", "--broker", url, "--output", stored, "--store-option", "a=b"
        )
        assert said.code == 0, said.err
        stored_pattern = json.loads(addressed_file(stored).read(10_000))["pattern"]
        assert stored_pattern == json.loads(written)["pattern"]
        printed = await asyncio.to_thread(cli, "spark", "patterns", "export", "--broker", url)
        assert printed.out.splitlines() == [written]
    record = json.loads(written)
    question = CanonicalQuestion.of(
        record["namespace"], Mode[record["mode"]], record["pattern"], record["properties"]
    )
    assert question == CanonicalQuestion.of(
        "public/default", Mode.PERSISTENT, "public/default/a.*", {"team": "x"}
    )


async def test_a_broker_that_keeps_them_to_itself_says_how_to_show_them(cli: Cli) -> None:
    async with serve(settings={"http": {"listen": "127.0.0.1:0"}}) as server:
        url = "http://{}:{}".format(*present(server.broker.http_address))
        said = await asyncio.to_thread(cli, "spark", "patterns", "export", "--broker", url)
    assert said.code == 1
    assert f"{url}/questions: HTTP status 403: " in said.err
    assert "questions = true in the table [http]" in said.err
