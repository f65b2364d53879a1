"""The 287 recorded questions to a real broker get the same answers from this server, for any lister."""

from __future__ import annotations

import random
from typing import Any

import pytest

from broker_core import TopicListingResult
from broker_core.errors import ServerError
from broker_core.listing.listing_hash import topics_hash
from broker_core.names import Mode
from broker_core.pipeline import PipelineOptions
from broker_core.settings import PatternsSettings
from tests.support.memory_lister import MemoryLister
from tests.support.plugins import PluginOf
from tests.support.pulsar_serving import serving
from tests.support.raw_client import RawClient, Refused
from tests.support.vectors import pattern_vectors

VECTORS = pattern_vectors()
CASES: list[dict[str, Any]] = VECTORS["cases"]
NAMESPACE: str = VECTORS["namespace"]
NAMES = [f"persistent://{NAMESPACE}/{name}" for name in VECTORS["stored_names"]]

Outcome = tuple[str, bool, str, list[str]]
#: What is listed without any pattern.
LISTED = sorted(f"persistent://{NAMESPACE}/{name}" for name in CASES[0]["topics"])


async def ask(client: RawClient, case: dict[str, Any], **more: Any) -> Outcome:
    try:
        answer = await client.ask(NAMESPACE, Mode[case["mode"]].value, pattern=case["topics_pattern"], **more)
    except Refused as refused:
        assert refused.code is ServerError.MetadataError  # noqa: PT017
        return ERROR
    return "listing", answer.filtered, answer.topics_hash, sorted(answer.topics)


ERROR: Outcome = ("error", False, "", [])


def expected(case: dict[str, Any], unsupported: str) -> list[Outcome]:
    """The recorded outcome. What RE2 refuses is an error if no dialect knows it, else what the setting says."""
    if "\\C" in (case["topics_pattern"] or ""):
        return [ERROR]
    if case["re2"]:
        names = sorted(f"persistent://{NAMESPACE}/{name}" for name in case["topics"])
        return [("listing", case["filtered"], case["topics_hash"], names)]
    listed = [] if case["mode"] == "NON_PERSISTENT" else LISTED
    return [ERROR] if unsupported == "error" else [ERROR, ("listing", False, topics_hash(listed), listed)]


async def differences(client: RawClient, unsupported: str = "unfiltered") -> list[Any]:
    found = []
    for case in CASES:
        wanted, got = expected(case, unsupported), await ask(client, case)
        if got not in wanted:
            found.append((case["topics_pattern"], case["mode"], [each[:3] for each in wanted], got[:3]))
        elif got[0] == "listing":
            unchanged = await ask(client, case, topics_hash=got[2])
            assert unchanged == ("listing", got[1], got[2], []), case
    return found


@pytest.mark.parametrize("at_once", [True, False])
async def test_the_default_lister(at_once: bool) -> None:
    async with serving(MemoryLister(NAMES, at_once=at_once)) as s, await s.client() as client:
        assert await differences(client) == []


async def test_unsupported_patterns_as_errors() -> None:
    strict = PipelineOptions(PatternsSettings(unsupported="error"))
    async with serving(MemoryLister(NAMES), pipeline_options=strict) as s, await s.client() as client:
        assert await differences(client, "error") == []


async def test_names_of_a_plugin() -> None:
    shuffled = random.Random(7).sample(NAMES, len(NAMES))

    async def broker_core_list_topics(mode: Mode) -> Any:
        return TopicListingResult.success([] if mode is Mode.NON_PERSISTENT else shuffled)

    plugin = {"p": PluginOf(list_topics=broker_core_list_topics)}
    async with serving(plugins=plugin) as s, await s.client() as client:
        assert await differences(client) == []


def test_how_many_cases_there_are() -> None:
    assert len(CASES) == 287
    assert sum(case["re2"] for case in CASES) > 200
