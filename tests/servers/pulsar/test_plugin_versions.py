"""Answers with a version are built once, and shared by exactly the clients that may share them."""

from __future__ import annotations

from typing import Any

from broker_core import ListingRequest
from broker_core.names import NamespaceName
from tests.support.plugin_answers import (
    NAMESPACE,
    A,
    B,
    C,
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
