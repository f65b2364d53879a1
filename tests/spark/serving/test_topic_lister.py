"""The lister answers precomputed questions, passes the others, and counts both."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from broker_core import ListingRequest
from broker_core.client import ServerRefused
from broker_core.names import Mode, NamespaceName
from broker_core.patterns import compile_pattern
from broker_core_spark.plugin import SparkPlugin
from tests.spark.test_exact_answers import serving
from tests.support.narrowed import present
from tests.support.spark_model import publish

NAMESPACE = "public/default"


async def test_every_listing_is_counted_by_what_became_of_it() -> None:
    async with serving() as (server, plugin, model, uri):
        counts = plugin.lister.counts
        await model.fill([f"persistent://{NAMESPACE}/t-{number}" for number in range(5)], Random(1))
        assert len(await server.list(NAMESPACE)) == 5
        assert (counts.passed["no_generation"], counts.answers.total()) == (1, 0)

        await publish(uri, model, [(NAMESPACE, Mode.PERSISTENT, None, {})])
        await plugin.lister.refresher.refresh()
        answer = await server.list(NAMESPACE)
        assert len(answer) == 5
        assert not (await server.list(NAMESPACE, topics_hash=answer.topics_hash)).changed
        assert (counts.answers["served"], counts.answers["unchanged"]) == (1, 1)

        assert len(await server.list(NAMESPACE, pattern=f"{NAMESPACE}/t-[12]")) == 2
        assert counts.passed["not_registered"] == 1


async def why(plugin: SparkPlugin, pattern: str | None = None, **fields: Any) -> str:
    """Why a question passes."""
    compiled = None if pattern is None else compile_pattern(pattern)
    answer = await plugin.lister.list_topics(
        ListingRequest(NamespaceName("public", "default"), pattern=compiled, **fields)
    )
    assert answer.is_pass_through
    return present(answer.why)


async def test_a_question_that_passes_says_why() -> None:
    async with serving({"overlay_limit": 1}) as (_, plugin, model, uri):
        assert await why(plugin) == f"no_generation: nothing is published in {uri} yet"
        await model.fill([f"persistent://{NAMESPACE}/t-{number}" for number in range(5)], Random(1))
        generation = (await publish(uri, model, [(NAMESPACE, Mode.PERSISTENT, None, {})])).generation[:12]
        await plugin.lister.refresher.refresh()
        unknown = await why(plugin, f"{NAMESPACE}/t-1", properties={"team": "red", "other": "x"})
        assert unknown.startswith(f"not_registered: generation {generation} does not have this question")
        assert "(mode PERSISTENT, by team)" in unknown
        for number in range(3):
            await model.delete(f"persistent://{NAMESPACE}/t-{number}")
        assert "overlay_limit: public/default: more than 1 names changed" in await why(plugin)


async def test_an_embedded_catalogue_without_the_namespace_of_a_table_does_not_answer_for_it() -> None:
    async with serving({"static": True}) as (server, plugin, model, uri):
        with pytest.raises(
            ServerRefused,
            match="ServiceNotReady: no generation is served yet, and no other lister of this broker has",
        ):
            await server.list(NAMESPACE)
        name = f"persistent://{NAMESPACE}/t-1"
        model.topics[name] = 0, {}  # of the table alone
        await publish(uri, model, [(NAMESPACE, Mode.PERSISTENT, None, {})], versions=None)
        await plugin.lister.refresher.refresh()
        assert (await server.list(NAMESPACE)).topics == [name]
        registered = (
            f"the generation does not have the question, and no other lister of this broker has {NAMESPACE}"
        )
        with pytest.raises(ServerRefused, match=registered):
            await server.list(NAMESPACE, pattern=f"{NAMESPACE}/t-[12]")
        assert len(await server.list("of/neither")) == 0
        del model.topics[name]
        await model.create(name, Random(1))
        assert (await server.list(NAMESPACE, pattern=f"{NAMESPACE}/t-[12]")).topics


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"versions": None}, "not_declared_static: all its questions pass"),
        ({"catalogue_id": "another"}, "other_catalogue: the generation is of catalogue another; "),
    ],
)
async def test_a_generation_that_is_not_for_this_broker_says_why(options: dict[str, Any], says: str) -> None:
    async with serving() as (_, plugin, model, uri):
        await model.fill([f"persistent://{NAMESPACE}/t"], Random(1))
        await publish(uri, model, [(NAMESPACE, Mode.PERSISTENT, None, {})], **options)
        await plugin.lister.refresher.refresh()
        assert (await why(plugin)).startswith(says)
