"""Plugins are asked in their order, then the default lister."""

from __future__ import annotations

import pytest

from broker_core import ListingRequest, TopicListingResult
from broker_core.errors import ListingFailed
from broker_core.names import NamespaceName
from tests.support.chain_plugins import A, lists, lists_nothing, success
from tests.support.memory_lister import MemoryLister
from tests.support.pipelines import FEW, made, names
from tests.support.plugins import PluginOf


async def test_where_masks_apply_listers_see_no_hash() -> None:
    """What a mask takes away, the plugin's "unchanged" could not know."""
    seen: list[str | None] = []

    def lister(request: ListingRequest) -> None:
        seen.append(request.topics_hash)

    plugins = {"a": PluginOf(list_topics=lister), "m": PluginOf(visible=lambda: None)}
    async with made(plugins=plugins, tables={"m": {"namespaces": ["t/masked"]}}) as m:
        for namespace in ("t/masked", "t/open"):
            asked = ListingRequest(NamespaceName.parse(namespace), topics_hash="0a0b0c0d")
            (await m.pipeline.answer(asked)).release()
    assert seen == [None, "0a0b0c0d"]


async def test_the_default_lister_answers_where_all_plugins_pass() -> None:
    async with made(MemoryLister(FEW), {"a": lists_nothing(), "b": lists_nothing()}) as m:
        answer = await m.ask()
        assert answer.lister == "catalog"
        assert names(answer) == sorted(FEW)
    async with made(MemoryLister(FEW), {"a": lists_nothing(), "b": lists(A)}) as m:
        answer = await m.ask()
        assert answer.lister == "b"
        assert names(answer) == [A]
        assert not m.lister.asked


async def test_what_is_wrong_with_the_default_lister_is_said_of_it() -> None:
    class Elsewhere(MemoryLister):
        async def list_topics(self, request: ListingRequest) -> TopicListingResult:
            return success(self.listing(NamespaceName("t", "other"), request.mode))

    async with made(Elsewhere(FEW)) as m:
        with pytest.raises(ListingFailed, match=r"^catalog returned a listing of t/other"):
            await m.ask()
