"""Answers with a version are built once, and shared by exactly the clients that may share them."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc
import pytest

from broker_core import ListingRequest
from broker_core.names import NamespaceName
from tests.support.plugin_answers import (
    NAMESPACE,
    A,
    B,
    C,
    masking,
    success,
    topics,
)
from tests.support.plugins import PluginOf
from tests.support.pulsar_serving import serving


class Versioned:
    """Answers with a version; ``depends_on`` is what it says that its answers depend on."""

    def __init__(self) -> None:
        self.topics: Any = [A, B]
        self.version: str | int | None = "v1"
        self.calls = 0

    def plugin(self, *depends_on: str) -> PluginOf:
        async def broker_core_list_topics(request: ListingRequest) -> Any:
            self.calls += 1
            return success(self.topics, version=self.version)

        return PluginOf(list_topics=broker_core_list_topics, depends_on=lambda: frozenset(depends_on))


async def test_an_answer_with_a_version_is_built_once() -> None:
    source = Versioned()
    plugins = {"p": source.plugin()}
    async with serving(plugins=plugins) as s, await s.client() as client:
        assert topics(await client.ask(NAMESPACE)) == [A, B]
        assert len(s.pipeline.answers) == 1
        source.topics = [C]  # a lie: other topics under the same version
        for pattern in (None, "t/n/.*"):
            assert topics(await client.ask(NAMESPACE, pattern=pattern)) == [A, B]
        assert source.calls == 3
        source.version = "v2"
        assert topics(await client.ask(NAMESPACE)) == [C]
        assert len(s.pipeline.answers) == 1
        s.pipeline.answers.forget(NamespaceName("t", "n"))
        assert s.permits.snapshots.acquired == 0
        assert topics(await client.ask(NAMESPACE)) == [C]


async def test_without_a_version_nothing_is_kept() -> None:
    source = Versioned()
    source.version = None
    async with serving(plugins={"p": source.plugin()}) as s, await s.client() as client:
        await client.ask(NAMESPACE)
        source.topics = [C]
        assert topics(await client.ask(NAMESPACE)) == [C]
        assert len(s.pipeline.answers) == 0


@pytest.mark.parametrize(
    ("depends_on", "questions"),
    [
        ((), 1),
        (("pattern",), 2),
        (("properties",), 2),
        (("pattern", "properties"), 4),
        (("client",), 2),
        (("principal",), 1),  # nobody is authenticated yet
    ],
)
async def test_an_answer_is_kept_for_all_that_it_depends_on(
    depends_on: tuple[str, ...], questions: int
) -> None:
    source = Versioned()
    async with serving(plugins={"p": source.plugin(*depends_on)}) as s:
        for version in ("one", "two"):
            async with await s.client(client_version=version) as client:
                for pattern in ("t/n/a", "t/n/.*"):
                    for value in ("x", "y"):
                        await client.ask(NAMESPACE, pattern=pattern, properties={"k": value})
                if "client" not in depends_on:
                    assert len(s.pipeline.answers) == questions
        assert len(s.pipeline.answers) == questions


async def test_what_one_pattern_left_is_no_answer_to_another() -> None:
    """The plugin forgets to say that it depends on the pattern, and so would hide topics."""

    async def broker_core_list_topics(topics_pattern: str | None) -> Any:
        return success([A] if topics_pattern == "t/n/a.*" else [A, B], version=1, filtered=True)

    plugins = {"p": PluginOf(list_topics=broker_core_list_topics, depends_on=lambda: {"client"})}
    async with serving(plugins=plugins) as s, await s.client() as client:
        assert topics(await client.ask(NAMESPACE, pattern="t/n/a.*")) == [A]
        assert topics(await client.ask(NAMESPACE, pattern="t/n/[ab]")) == [A, B]
        assert topics(await client.ask(NAMESPACE)) == [A, B]


async def test_modes_do_not_mix() -> None:
    source = Versioned()
    async with serving(plugins={"p": source.plugin()}) as s, await s.client() as client:
        for mode in (0, 2):
            assert topics(await client.ask(NAMESPACE, mode)) == [A, B]
        assert len(s.pipeline.answers) == 2


async def test_masks_apply_to_kept_answers_each_time() -> None:
    shown = "/a"
    plugins = {"p": Versioned().plugin(), "m": masking(lambda topics: pc.match_substring(topics, shown))}
    async with serving(plugins=plugins) as s, await s.client() as client:
        assert topics(await client.ask(NAMESPACE)) == [A]
        shown = "/b"
        assert topics(await client.ask(NAMESPACE)) == [B]
