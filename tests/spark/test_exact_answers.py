"""Over the protocol: every answer is the catalogue's current one, whatever is precomputed, changed or swapped."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Any
from uuid import uuid4

import pytest

from broker_core.listing.listing_hash import topics_hash
from broker_core.patterns import compile_pattern
from broker_core.testing import Server, serve
from broker_core_spark.format.segment_patch import PATCHES, patched_segment
from broker_core_spark.plugin import SparkPlugin
from broker_core_spark.serving.opened import verify_and_map
from broker_core_spark.store import Store, open_store
from broker_core_spark.store.publishing import use_generation
from tests.support.spark_model import (
    Built,
    CatalogueModel,
    Question,
    publish,
    publish_upon,
    random_name,
    random_question,
)

#: Questions of the published generations. ``REGISTERED_QUESTIONS=100000`` is as many as a large installation has.
REGISTERED = int(os.environ.get("REGISTERED_QUESTIONS", "0"))


@asynccontextmanager
async def serving(
    settings: Mapping[str, Any] | None = None,
) -> AsyncIterator[tuple[Server, SparkPlugin, CatalogueModel, str]]:
    """A server with the plugin on an empty store of its own."""
    uri = f"memory://{uuid4()}"
    plugin = SparkPlugin()
    tables: dict[str, dict[str, Any]] = {
        "catalog": {"property_keys": ["team"]},
        # The catalogue answers in time however busy the machine is: no question passes as "unreachable".
        "plugins": {"spark": {"store": uri, "refresh": "1h", "source_timeout": "10m", **(settings or {})}},
    }
    async with serve({"spark": plugin}, settings=tables) as server:
        yield server, plugin, CatalogueModel(server), uri


async def check(server: Server, model: CatalogueModel, requested: Question, random: Random) -> None:
    """Ask a question, and sometimes again with the hash of its answer."""
    namespace, mode, pattern, properties = requested
    expected = model.answer(requested)
    answer = await server.list(namespace, pattern=pattern, mode=mode, properties=properties)
    assert answer.topics == expected, requested
    assert answer.topics_hash == topics_hash(expected), requested
    assert answer.filtered is (pattern is not None and compile_pattern(pattern).supported), requested
    if random.random() < 0.3:
        again = await server.list(
            namespace, pattern=pattern, mode=mode, properties=properties, topics_hash=answer.topics_hash
        )
        assert (again.changed, len(again)) == (False, 0), requested


async def swap_under_questions(
    server: Server, plugin: SparkPlugin, model: CatalogueModel, questions: list[Question], random: Random
) -> None:
    """Refresh the generation while these questions are asked."""
    look = asyncio.create_task(plugin.lister.refresher.refresh())
    await asyncio.gather(*(check(server, model, question, random) for question in questions))
    await look


def other_questions(count: int) -> list[Question]:
    """So many different questions, none of them if ``count`` is negative."""
    random = Random(2)
    found: dict[str, Question] = {}
    while len(found) < count:
        question = random_question(random)
        found[repr(question)] = question
    return list(found.values())


@pytest.mark.parametrize("effort", [1, pytest.param(8, marks=pytest.mark.long)])
async def test_answers_before_during_and_after_changes_and_swaps(effort: int) -> None:
    random = Random(1)
    requested = [random_question(random) for _ in range(425 * effort)]
    registered = [question for question in requested if random.random() < 0.6]
    registered += other_questions(REGISTERED - len(registered))
    async with serving() as (server, plugin, model, uri):
        await model.fill({random_name(random) for _ in range(200)}, random)
        questions = iter(requested)
        for _ in range(25 * effort):  # nothing is published yet
            await check(server, model, next(questions), random)
        assert plugin.lister.counts.passed["no_generation"] > 0

        await publish(uri, model, registered)
        await plugin.lister.refresher.refresh()
        for _ in range(100 * effort):
            await check(server, model, next(questions), random)
        served = plugin.lister.counts.answers.copy()
        assert served["served"] > 30 * effort
        assert served["unchanged"] > 7 * effort

        for _ in range(25 * effort):
            await model.change(random)
            for _ in range(6):
                await check(server, model, next(questions), random)
        assert plugin.lister.counts.answers["served"] > served["served"] + 30 * effort
        assert plugin.lister.refresher.served is not None
        assert plugin.lister.refresher.served.overlay_names() > 15 * effort

        generations = [plugin.lister.refresher.served.generation.id]
        for part in (registered[::2], registered[1::2]):
            generations.append((await publish(uri, model, part)).generation)
            await swap_under_questions(
                server, plugin, model, [next(questions) for _ in range(15 * effort)], random
            )
        store = await asyncio.to_thread(open_store, uri)
        for generation in generations * 3:  # back and forth
            for _ in range(3):
                await model.change(random)
            await asyncio.to_thread(use_generation, store, generation)
            await swap_under_questions(
                server, plugin, model, [next(questions) for _ in range(10 * effort)], random
            )
        for question in questions:
            await check(server, model, question, random)
        tally = plugin.lister.counts
        assert (tally.checks["ok"], tally.checks["failed"]) == (12, 0)
        reasons = {reason for reason, count in tally.passed.items() if count}
        assert reasons == {"no_generation", "not_registered", "unsupported_pattern"}


def damage(store: Store, former: Built, now: Built, random: Random) -> None:
    """Damage patches and files that are new in a generation."""
    old = {file.name for file in former.manifest.files}
    patches = sorted(file.path for file in store.list(PATCHES))
    paths = [*patches, *(file.name for file in now.manifest.files if file.name not in old)]
    for path in random.sample(paths, min(len(paths), random.choice([1, 2, 6]))):
        data = store.get(path, 10**9) or b"-"
        at = random.randrange(len(data))
        kind = random.randrange(4)
        if kind == 0:
            store.replace(path, data[:at])
        elif kind == 1:
            store.replace(path, data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :])
        elif kind == 2:
            store.delete(path)
        else:
            store.replace(path, store.get(random.choice(paths), 10**9) or b"")


@pytest.mark.parametrize("swaps", [6, pytest.param(40, marks=pytest.mark.long)])
async def test_answers_beside_changes_while_swaps_by_patches_meet_a_damaged_store(
    monkeypatch: pytest.MonkeyPatch, swaps: int
) -> None:
    """Half of the generations are damaged: those are refused, or made of what is whole."""
    made: list[bool] = []

    def patched(*arguments: Any) -> Any:
        made.append(False)
        result = patched_segment(*arguments)
        made[-1] = True
        return result

    monkeypatch.setattr(verify_and_map, "patched_segment", patched)
    random = Random(6)
    registered = [random_question(random) for _ in range(250)]
    async with serving() as (server, plugin, model, uri):
        refresher = plugin.lister.refresher
        await model.fill({random_name(random) for _ in range(500)}, random)
        _, former = await publish_upon(uri, model, registered, None)
        await refresher.refresh()
        store = await asyncio.to_thread(open_store, uri)
        for swap in range(swaps):
            for _ in range(5):
                await model.change(random)
                for _ in range(5):
                    await check(server, model, random.choice(registered), random)
            pointer, now = await publish_upon(uri, model, registered, former)
            if swap % 2:
                await asyncio.to_thread(damage, store, former, now, random)
            for _ in range(3):
                await model.change(random)
            questions = random.sample(registered, 30)
            await swap_under_questions(server, plugin, model, questions, random)
            served = refresher.served
            assert served is not None
            assert swap % 2 or served.generation.id == pointer.generation
            for _ in range(20):
                await check(server, model, random.choice(registered), random)
            former = now
        tally = plugin.lister.counts
        assert sum(made) > swaps  # segments that patches made
        assert tally.answers["served"] > 20 * swaps
        assert not tally.passed["wrong_answer"]
        assert tally.checks["ok"] > swaps // 2
