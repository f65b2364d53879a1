"""The lines of the access log: the asker, the question, and what came of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from broker_core import TopicListingResult
from broker_core.access.asker import Asker
from broker_core.errors import Cause, ListingFailed, ResponseTooLarge
from broker_core.listing.pages.page import Page
from broker_core.logs import AccessLog
from broker_core.pipeline import EventSinks, PipelineOptions, QuestionText
from broker_core.pipeline.answer import ReusableAnswer
from broker_core.settings import AccessLogSettings, LimitsSettings, PatternsSettings
from tests.support.eventually import eventually
from tests.support.memory_lister import MemoryLister
from tests.support.pipelines import FEW, made, request
from tests.support.plugins import PluginOf

ASKER = Asker(
    role="proxy",
    original_principal="team-a",
    remote_address="192.0.2.7:4711",
    client_version="Pulsar-Java-v4.2.0",
)
WHO = {
    "role": "proxy",
    "principal": "team-a",
    "address": "192.0.2.7:4711",
    "client_version": "Pulsar-Java-v4.2.0",
    "transport": "pulsar",
    "namespace": "t/n",
    "mode": "PERSISTENT",
}


class Lines:
    def __init__(self, folder: Path, **settings: Any) -> None:
        self.path = folder / "access.jsonl"
        self.log = AccessLog(AccessLogSettings(path=self.path, **settings))

    def read(self) -> list[dict[str, Any]]:
        """The lines of all listings so far, without times."""
        self.log.close(10)
        found = [json.loads(line) for line in self.path.read_text().splitlines()]
        for line in found:
            assert line.pop("time")
            assert line.pop("total_ms") >= line.pop("waited_ms") >= 0
        return found


async def test_an_answer_at_once_an_answer_again_and_an_unchanged_one(tmp_path: Path) -> None:
    lines = Lines(tmp_path)
    async with made(MemoryLister(FEW), sinks=EventSinks(lines.log)) as m:
        question = request("t/n/0.*", asker=ASKER)
        answer = m.pipeline.answer_now(question)
        assert answer is not None
        answer.release()
        reusable = ReusableAnswer.of(question, answer)
        assert reusable is not None
        ended = m.pipeline.answer_again(reusable, ASKER)
        assert ended is not None
        ended(None)
        same = m.pipeline.answer_now(request("t/n/0.*", asker=ASKER, topics_hash=answer.topics_hash))
        assert same is not None
        same.release()
    first, again, unchanged = lines.read()
    assert first == {
        **WHO,
        "pattern": "t/n/0.*",
        "outcome": "served",
        "lister": "catalog",
        "plan": "range",
        "topics": 2,
        "bytes": answer.fields_size,
        "topics_hash": answer.topics_hash,
        "filtered": True,
    }
    assert again == first
    assert unchanged == {**first, "outcome": "unchanged", "topics": 0, "bytes": 0}


async def test_of_properties_only_those_that_are_named(tmp_path: Path) -> None:
    lines = Lines(tmp_path, properties=["region", "absent"])
    async with made(sinks=EventSinks(lines.log)) as m:
        for properties in ({"region": "eu", "secret": "hunter2"}, {"other": "x"}):
            (await m.ask(properties=properties)).release()
    first, second = lines.read()
    assert first["properties"] == {"region": "eu"}
    assert "properties" not in second
    assert "hunter2" not in lines.path.read_text()


async def test_without_a_list_no_property_is_in_a_line(tmp_path: Path) -> None:
    lines = Lines(tmp_path)
    async with made(sinks=EventSinks(lines.log)) as m:
        (await m.ask(properties={"region": "eu"})).release()
    (line,) = lines.read()
    assert "properties" not in line


async def test_a_token_in_the_place_of_other_text_is_not_shown(tmp_path: Path) -> None:
    token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln"
    lines = Lines(tmp_path, properties=["region"])
    async with made(sinks=EventSinks(lines.log)) as m:
        asker = Asker(client_version=token)
        (await m.ask(pattern=f"t/n/{token}", properties={"region": token}, asker=asker)).release()
    lines.read()
    assert "eyJ" not in lines.path.read_text()


async def test_a_page_says_how_many_were_asked_for(tmp_path: Path) -> None:
    lines = Lines(tmp_path)
    async with made(sinks=EventSinks(lines.log)) as m:
        (await m.ask(page=Page(None, 3))).release()
    (line,) = lines.read()
    assert (line["page_limit"], line["topics"]) == (3, 3)


async def test_refusals_have_their_cause_and_no_text_of_others(tmp_path: Path) -> None:
    def fails() -> Any:
        raise RuntimeError("password=hunter2")

    lines = Lines(tmp_path, sample=0)
    strict = PipelineOptions(PatternsSettings(unsupported="error"))
    plugin = PluginOf(list_topics=fails)
    async with made(plugins={"p": plugin}, options=strict, sinks=EventSinks(lines.log)) as m:
        with pytest.raises(ListingFailed):
            await m.ask()
        with pytest.raises(ListingFailed):
            await m.ask(pattern="(?!x)")
    failed, unsupported = lines.read()
    assert {key: failed[key] for key in ("outcome", "cause", "reason", "plugin")} == {
        "outcome": "refused",
        "cause": "PLUGIN",
        "reason": "plugin_error",
        "plugin": "p",
    }
    assert (unsupported["cause"], unsupported["reason"]) == ("PATTERN", "bad_pattern")
    assert "plugin" not in unsupported
    assert "hunter2" not in lines.path.read_text()


async def test_an_answer_that_cannot_be_sent_has_the_line_of_a_refusal(tmp_path: Path) -> None:
    lines = Lines(tmp_path, sample=0)
    too_large = ResponseTooLarge(9, 8, 10)
    async with made(MemoryLister(FEW), sinks=EventSinks(lines.log)) as m:
        question = request("t/n/0.*", asker=ASKER)
        answer = m.pipeline.answer_now(question)
        assert answer is not None
        reusable = ReusableAnswer.of(question, answer)
        assert reusable is not None
        answer.release(too_large)
        answer.release()
        ended = m.pipeline.answer_again(reusable, ASKER)
        assert ended is not None
        ended(too_large)
        (await m.ask()).release(too_large)
    told = {"outcome": "refused", "cause": "TOO_LARGE", "reason": "frame_limit"}
    first, second, third = lines.read()
    assert first == second == {**WHO, "pattern": "t/n/0.*", **told}
    assert {key: third[key] for key in told} == told


async def test_a_pattern_that_takes_a_thread_is_told_where_it_is_refused(tmp_path: Path) -> None:
    lines = Lines(tmp_path)
    async with made(sinks=EventSinks(lines.log)) as m:
        with pytest.raises(ListingFailed):
            await m.pipeline.answer(request(), topics_pattern="t/n/(")
        assert m.sample("listing_rejected_total", reason="bad_pattern") == 1
        assert m.sample("listing_requests_total", outcome="error", plan="unknown") == 1
    (line,) = lines.read()
    assert (line["pattern"], line["cause"]) == ("t/n/(", "PATTERN")


async def test_a_question_that_was_refused_before_is_told_once(tmp_path: Path) -> None:
    lines = Lines(tmp_path, properties=["region"])
    pairs = [("region", "eu"), ("secret", "hunter2")]
    question = QuestionText("t/" + "n" * 2000, "ALL", "x" * 2000, pairs)
    failure = ListingFailed("no", cause=Cause.NAME, reason="bad_namespace")
    async with made(sinks=EventSinks(lines.log)) as m:
        m.pipeline.refused(question, ASKER, failure)
        m.pipeline.refused(question, ASKER, failure)
        m.pipeline.refused(QuestionText(None), ASKER, ListingFailed("no", reason="bad_request"))
        assert m.sample("listing_requests_total", outcome="error", plan="unknown") == 2
        assert m.sample("listing_seconds_count") == 2
    line, unread = lines.read()
    assert line["namespace"] == "t/" + "n" * 998 + "…"
    assert line["pattern"] == "x" * 1000 + "…"
    assert (line["mode"], line["properties"], line["reason"]) == ("ALL", {"region": "eu"}, "bad_namespace")
    assert not {"namespace", "mode", "pattern", "properties"} & unread.keys()


async def test_a_stale_answer_says_so(tmp_path: Path) -> None:
    broken: list[bool] = []

    def list_topics() -> Any:
        if broken:
            raise RuntimeError
        return TopicListingResult.success(FEW)

    lines = Lines(tmp_path)
    tables = {"p": {"on_failure": "stale", "max_stale": "5m"}}
    async with made(
        plugins={"p": PluginOf(list_topics=list_topics)}, tables=tables, sinks=EventSinks(lines.log)
    ) as m:
        (await m.ask()).release()
        broken.append(True)
        (await m.ask()).release()
    fresh, stale = lines.read()
    assert "stale_s" not in fresh
    assert stale["stale_s"] >= 0
    assert (stale["lister"], stale["topics"]) == ("p", 10)


async def test_the_wait_for_permits_is_told(tmp_path: Path) -> None:
    lines = Lines(tmp_path)
    limits = LimitsSettings(heap_permits=1000, permit_timeout=0.05)
    async with made(sinks=EventSinks(lines.log), limits=limits) as m:
        taken = m.permits.heap.try_acquire(1000)
        assert taken is not None
        with pytest.raises(ListingFailed):
            await m.ask()
        taken.release()
        await eventually(lambda: m.permits.heap.acquired == 0)
    lines.log.close(10)
    line = json.loads(lines.path.read_text())
    assert (line["cause"], line["reason"]) == ("PERMITS", "heap_timeout")
    assert line["total_ms"] >= line["waited_ms"] >= 49


async def test_dropped_lines_are_a_metric(tmp_path: Path) -> None:
    (tmp_path / "access.jsonl").symlink_to("/dev/full")
    lines = Lines(tmp_path)
    async with made(sinks=EventSinks(lines.log)) as m:
        (await m.ask()).release()
        lines.log.close(10)
        assert m.sample("access_log_dropped_total", reason="failed") == 1
        assert m.sample("access_log_dropped_total", reason="full") == 0
    async with made() as m:
        assert (
            m.metrics.registry.get_sample_value("broker_core_access_log_dropped_total", {"reason": "full"})
            is None
        )
