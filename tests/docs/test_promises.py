"""docs/explanation/promises.md: each "Missing" is of something that is missing; each is shown by a test named here."""

from __future__ import annotations

import asyncio
import re
import time

import pyarrow as pa

from broker_core import Asker, ListingRequest, TopicListingResult
from tests.docs.pages import ROOT, read
from tests.support.narrowed import present
from tests.support.pipelines import made
from tests.support.plugins import PluginOf

PAGE = read("explanation/promises.md")
#: The headings of the promises with something missing, and the test that shows that.
SHOWN = {
    "Plugins cannot hurt the broker": "test_a_hook_that_does_not_yield_stops_the_event_loop",
    "Memory is bounded by permits": "test_memory_that_a_plugin_takes_is_not_counted",
    "The event loop never blocks": "test_a_hook_that_does_not_yield_stops_the_event_loop",
    "Nothing crosses principals": "test_a_plugins_own_cache_may_cross_principals",
}


def _result(request: ListingRequest, name: str) -> TopicListingResult:
    full = f"persistent://{request.namespace}/{name}"
    return TopicListingResult.success(pa.array([full]), filtered=False)


def test_what_is_missing_is_shown_by_a_test() -> None:
    missing = {
        heading
        for heading, text in re.findall(r"^## (.+)\n((?:(?!## ).*\n?)*)", PAGE, re.MULTILINE)
        if "- Missing:" in text
    }
    assert missing == set(SHOWN)
    assert all(name in globals() for name in SHOWN.values())


def test_no_protocol_with_a_server_is_missing() -> None:
    servers = {path.name for path in (ROOT / "broker_core" / "servers").iterdir()}
    for text in re.findall(r"- Missing:((?:.|\n(?!\n|- ))*)", PAGE):
        assert not [name for name in servers & {"kafka", "pulsar", "http"} if name in text.lower()], text


async def test_a_hook_that_does_not_yield_stops_the_event_loop() -> None:
    turns: list[int] = []

    async def list_topics(request: ListingRequest) -> TopicListingResult:
        asyncio.get_running_loop().call_soon(turns.append, 1)
        began = time.thread_time()
        while time.thread_time() < began + 0.01:
            pass
        seen.append(len(turns))
        return _result(request, "a")

    seen: list[int] = []
    async with made(plugins={"p": PluginOf(list_topics=list_topics)}) as m:
        (await m.ask()).release()
    assert seen == [0]


async def test_memory_that_a_plugin_takes_is_not_counted() -> None:
    taken: list[bytearray] = []

    def list_topics(request: ListingRequest) -> TopicListingResult:
        taken.append(bytearray(8 * 2**20))
        return _result(request, "a")

    async with made(plugins={"p": PluginOf(list_topics=list_topics)}) as m:
        answer = await m.ask()
        assert taken
        assert m.permits.heap.acquired < len(taken[0])
        answer.release()


async def test_a_plugins_own_cache_may_cross_principals() -> None:
    kept: dict[str, TopicListingResult] = {}

    def list_topics(request: ListingRequest) -> TopicListingResult:
        return kept.setdefault(str(request.namespace), _result(request, f"of-{request.asker.role}"))

    async with made(plugins={"p": PluginOf(list_topics=list_topics)}) as m:
        for role in ("one", "other"):
            answer = await m.ask(asker=Asker(role=role))
            assert present(answer.selection).names.to_pylist() == ["persistent://t/n/of-one"]
            answer.release()
