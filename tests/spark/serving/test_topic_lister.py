"""The lister answers precomputed questions, passes the others, and counts both."""

from __future__ import annotations

from random import Random

from broker_core.names import Mode
from tests.spark.test_exact_answers import serving
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
