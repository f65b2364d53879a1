"""A generation gives the catalogue's own answer, or passes the question with a reason."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from broker_core import Listing, hookimpl
from broker_core.listing.listing_hash import topics_hash
from broker_core.names import Mode
from broker_core.testing import Server, serve
from broker_core_spark.plugin import SparkPlugin
from broker_core_spark.serving.opened import generation
from broker_core_spark.serving.served_generation import ServedGeneration
from tests.spark.test_exact_answers import check, serving
from tests.support.chunks import tiny_chunks
from tests.support.narrowed import present
from tests.support.spark_model import CatalogueModel, Question, publish

ALL: Question = ("public/default", Mode.PERSISTENT, None, {})
TENS: Question = ("public/default", Mode.PERSISTENT, "public/default/t-1.*", {})
RED: Question = ("public/default", Mode.PERSISTENT, None, {"team": "red"})
REGISTERED = [ALL, TENS, RED]


async def filled(model: CatalogueModel, count: int = 20) -> None:
    await model.fill([f"persistent://public/default/t-{number}" for number in range(count)], Random(1))


async def served_of(plugin: SparkPlugin, server: Server, model: CatalogueModel, requested: Question) -> bool:
    """Ask, check the answer, and return whether the plugin gave it."""
    before = plugin.lister.counts.answers.total()
    await check(server, model, requested, Random(9))
    return plugin.lister.counts.answers.total() > before


@pytest.mark.parametrize(
    ("settings", "options", "reason"),
    [
        ({}, {"catalogue_id": "another"}, "other_catalogue"),
        ({"static": True}, {"catalogue_id": "another"}, "other_catalogue"),
        ({}, {"versions": None}, "not_declared_static"),
        ({"static": True}, {"versions": None}, None),
        ({"static": True}, {}, None),
        ({"max_age": "1h"}, {"versions": None}, None),
        ({"overlay_limit": 0}, {}, None),
    ],
    ids=["foreign", "foreign-static", "undeclared", "static", "followed", "young", "unchanged"],
)
async def test_a_generation_is_served_only_for_its_own_catalogue(
    settings: Mapping[str, Any], options: dict[str, Any], reason: str | None
) -> None:
    async with serving(settings) as (server, plugin, model, uri):
        await filled(model)
        await publish(uri, model, REGISTERED, **options)
        await plugin.lister.refresher.refresh()
        for requested in REGISTERED:
            assert await served_of(plugin, server, model, requested) is (reason is None)
        passed = {word for word, count in plugin.lister.counts.passed.items() if count}
        assert passed == ({reason} if reason else set())


async def test_questions_wait_for_one_index_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []
    joined = generation._joined_runs

    def noted(*runs: Any) -> Any:
        threads.append(threading.get_ident())
        return joined(*runs)

    monkeypatch.setattr(generation, "_joined_runs", noted)
    async with serving() as (server, plugin, model, uri):
        await filled(model, 200)
        await publish(uri, model, REGISTERED, segment_bytes=1024)
        await plugin.lister.refresher.refresh()
        assert threads == []  # not before it is needed
        await asyncio.gather(*(check(server, model, requested, Random(1)) for requested in REGISTERED))
        assert plugin.lister.counts.answers.total() == 2 * len(REGISTERED)
        assert len(threads) == 1
        served = present(plugin.lister.refresher.served)
        place = ("public/default", "persistent")
        assert list(served.generation.indexed) == [place]
        # The next generation has it before it is asked.
        await model.create("persistent://public/default/t-new", Random(1))
        await publish(uri, model, REGISTERED, segment_bytes=1024)
        await plugin.lister.refresher.refresh()
        assert present(plugin.lister.refresher.served) is not served
        assert list(present(plugin.lister.refresher.served).generation.indexed) == [place]
        for requested in REGISTERED:
            assert await served_of(plugin, server, model, requested)
        assert len(threads) == 2
        assert threading.get_ident() not in threads


async def test_a_generation_that_nothing_brings_up_to_date_is_served_for_max_age() -> None:
    async with serving({"max_age": "1h"}) as (server, plugin, model, uri):
        await filled(model)
        refresher, requested = plugin.lister.refresher, REGISTERED[0]
        served: ServedGeneration | None = None
        for _ in range(2):  # the second build has the same generation, so only its pointer is new
            await publish(uri, model, REGISTERED, versions=None)
            await refresher.refresh()
            assert await served_of(plugin, server, model, requested)
            served = present(refresher.served)
            assert served.follows == "max_age"
            served.built(datetime.now(UTC) - timedelta(hours=2))
            await refresher.refresh()
            assert not await served_of(plugin, server, model, requested)
        assert plugin.lister.counts.passed["too_old"] == 2
        assert served is not None
        served.built(datetime.now(UTC) + timedelta(days=9))  # of a clock that is wrong
        assert await served_of(plugin, server, model, requested)
        served.built(datetime.now(UTC) - timedelta(minutes=59))
        assert await served_of(plugin, server, model, requested)
    async with serving({"max_age": "1s"}) as (server, plugin, model, uri):
        await filled(model)
        await publish(uri, model, REGISTERED)
        await plugin.lister.refresher.refresh()
        served = present(plugin.lister.refresher.served)
        assert served.follows == "changes"
        served.built(datetime.now(UTC) - timedelta(hours=2))  # its change log brings it up to date
        assert await served_of(plugin, server, model, requested)


async def test_max_age_is_live() -> None:
    async with serving({"max_age": "1h"}) as (server, plugin, model, uri):
        await filled(model)
        await publish(uri, model, REGISTERED, versions=None)
        await plugin.lister.refresher.refresh()
        served = present(plugin.lister.refresher.served)
        served.built(datetime.now(UTC) - timedelta(minutes=30))
        for age, is_served in (("20m", False), ("40m", True), (None, False)):
            table: dict[str, object] = {"store": uri} if age is None else {"store": uri, "max_age": age}
            put_in_force = await server.broker.pipeline.dispatcher.prepare_settings({"spark": (table, table)})
            put_in_force()
            assert await served_of(plugin, server, model, REGISTERED[0]) is is_served
            assert served.follows == ("max_age" if is_served else "nothing")
        assert [plugin.lister.counts.passed[why] for why in ("too_old", "not_declared_static")] == [1, 1]


async def test_what_is_not_in_the_generation_is_passed_on() -> None:
    async with serving() as (server, plugin, model, uri):
        await filled(model)
        await publish(uri, model, REGISTERED)
        await plugin.lister.refresher.refresh()
        requested: list[tuple[Question, str]] = [
            (("public/default", Mode.ALL, None, {}), "not_registered"),
            (("public/default", Mode.PERSISTENT, None, {"team": "blue"}), "not_registered"),
            (("public/default", Mode.PERSISTENT, "public/default/(?!t).*", {}), "unsupported_pattern"),
            (("other/place", Mode.PERSISTENT, None, {}), "namespace"),
        ]
        for question, reason in requested:
            assert not await served_of(plugin, server, model, question)
            assert plugin.lister.counts.passed[reason] > 0
        # Neither the scheme nor a property that does not select is a part of the question.
        with_scheme: Question = (
            "public/default",
            Mode.PERSISTENT,
            "persistent://public/default/t-1.*",
            {"note": "x"},
        )
        assert await served_of(plugin, server, model, with_scheme)


@pytest.mark.parametrize("static", [False, True], ids=["followed", "static"])
async def test_a_generation_that_selects_by_other_properties_is_passed_by(static: bool) -> None:
    async with serving({"static": static}) as (server, plugin, model, uri):
        await filled(model)
        options: dict[str, Any] = {"versions": None} if static else {}
        await publish(uri, model, [ALL, TENS], property_keys=[], **options)
        await plugin.lister.refresher.refresh()
        assert await served_of(plugin, server, model, ALL)
        assert not await served_of(plugin, server, model, RED)
        assert plugin.lister.counts.passed["property_keys"] > 0


async def test_with_too_many_changes_questions_are_passed_on() -> None:
    async with serving({"overlay_limit": 3}) as (server, plugin, model, uri):
        await filled(model)
        await publish(uri, model, REGISTERED)
        await plugin.lister.refresher.refresh()
        random = Random(2)
        for number in range(8):
            await model.delete(f"persistent://public/default/t-{number}")
            await check(server, model, ALL, random)
        assert plugin.lister.counts.passed["overlay_limit"] > 0
        assert not await served_of(plugin, server, model, TENS)
        await publish(uri, model, REGISTERED)
        await plugin.lister.refresher.refresh()
        assert await served_of(plugin, server, model, TENS)


async def test_an_answer_of_before_only_where_the_operator_says_so() -> None:
    settings = {"overlay_limit": 3, "on_failure": "stale", "max_stale": "1h"}
    async with serving(settings) as (server, plugin, model, uri):
        await filled(model)
        await publish(uri, model, REGISTERED)
        await plugin.lister.refresher.refresh()
        await model.delete("persistent://public/default/t-3")
        assert await served_of(plugin, server, model, ALL)
        before = model.answer(ALL)
        for number in range(10, 19):
            await model.delete(f"persistent://public/default/t-{number}")
        answer = await server.list("public/default")
        assert (answer.topics, answer.topics_hash) == (before, topics_hash(before))
        assert plugin.lister.counts.answers["stale"] == 1
        served = present(plugin.lister.refresher.served)
        served.followers["public/default"].current_at -= 2 * 3600
        assert not await served_of(plugin, server, model, ALL)  # too old


async def test_an_answer_that_does_not_fit_is_passed_on() -> None:
    async with serving({"answers": "1KB"}) as (server, plugin, model, uri):
        await filled(model, 100)
        await publish(uri, model, REGISTERED)
        await plugin.lister.refresher.refresh()
        assert await served_of(plugin, server, model, ALL)
        await model.delete("persistent://public/default/t-50")
        assert not await served_of(plugin, server, model, ALL)
        assert plugin.lister.counts.passed["answers_limit"] > 0
        assert await served_of(plugin, server, model, TENS)  # the change does not concern it


async def test_an_answer_that_changes_do_not_concern_stays_the_generations() -> None:
    async with serving() as (server, plugin, model, uri):
        await filled(model)
        await publish(uri, model, REGISTERED)
        await plugin.lister.refresher.refresh()
        random = Random(4)
        served = present(plugin.lister.refresher.served)
        for number in range(2, 8):
            await model.delete(f"persistent://public/default/t-{number}")
            for _ in range(3):
                await check(server, model, TENS, random)
        # Noted apart: it takes no memory from answers with changes.
        assert (served._answers.nbytes, len(served._unchanged)) == (0, 1)
        await model.delete("persistent://public/default/t-11")
        for _ in range(3):
            await check(server, model, TENS, random)
            await check(server, model, ALL, random)
        assert served._answers.nbytes > 1000


async def test_an_answer_that_became_empty_stays_empty() -> None:
    async with serving() as (server, plugin, model, uri):
        await filled(model, 2)
        await publish(uri, model, REGISTERED)
        await plugin.lister.refresher.refresh()
        await model.delete("persistent://public/default/t-1")
        for _ in range(3):
            assert await served_of(plugin, server, model, TENS)


async def test_a_further_change_takes_the_memory_of_what_it_changes() -> None:
    with tiny_chunks(512):
        async with serving() as (server, plugin, model, uri):
            await filled(model, 200)
            await publish(uri, model, [ALL])
            await plugin.lister.refresher.refresh()
            served = present(plugin.lister.refresher.served)
            sizes = [0]
            for number in (11, 50, 98):
                await model.delete(f"persistent://public/default/t-{number}")
                assert await served_of(plugin, server, model, ALL)
                sizes.append(served._answers.nbytes)
            assert all(before < after < before + 2500 for before, after in pairwise(sizes)), sizes


async def test_the_latest_answer_is_kept_and_counts_while_anybody_has_it() -> None:
    async with serving() as (_, plugin, model, uri):
        await filled(model)
        await publish(uri, model, [ALL])
        await plugin.lister.refresher.refresh()
        served = present(plugin.lister.refresher.served)
        names = [f"persistent://public/default/{number:06}" for number in range(1000)]
        base, some = (
            Listing.from_names("public/default", Mode.PERSISTENT, part).all() for part in ([], names)
        )
        served._keep(b"a", 5, base, some)
        served._keep(b"a", 4, base, base)  # of an earlier version, finished later
        kept = present(served._answers.get(b"a"))
        assert (kept.number, kept.selection) == (5, some)
        size = some.fields_size
        assert served._answers.nbytes >= size
        served._keep(b"a", 9, base, base)
        assert b"a" not in served._answers
        assert served._answers.nbytes >= size  # a client still reads it
        del some, kept
        gc.collect()
        assert served._answers.nbytes < size


class Hides:
    """A mask: names that end in 2 are hidden."""

    @hookimpl
    def broker_core_visible(self, topics: pa.LargeStringArray) -> Any:
        return pc.invert(pc.ends_with(topics, "2"))


@pytest.mark.parametrize("verify", ["never", "always"])
async def test_masks_and_checks_work_on_its_answers(verify: str) -> None:
    plugin, uri = SparkPlugin(), f"memory://masks-{verify}"
    tables: dict[str, dict[str, Any]] = {
        "catalog": {"property_keys": ["team"]},
        "plugins": {
            "spark": {"store": uri, "refresh": "1h", "source_timeout": "10m", "verify_filtered": verify}
        },
    }
    async with serve({"spark": plugin, "hides": Hides()}, settings=tables) as server:
        model = CatalogueModel(server)
        await filled(model, 40)
        await publish(uri, model, REGISTERED)
        await plugin.lister.refresher.refresh()
        for _ in range(2):
            for namespace, mode, pattern, properties in REGISTERED:
                requested = (namespace, mode, pattern, properties)
                expected = [name for name in model.answer(requested) if not name.endswith("2")]
                answer = await server.list(namespace, mode=mode, pattern=pattern, properties=properties)
                assert (answer.topics, answer.topics_hash) == (expected, topics_hash(expected))
            # The second answers are spliced.
            await model.delete("persistent://public/default/t-13")
            await model.create("persistent://public/default/t-13-new", Random(3))
            await model.create("persistent://public/default/t-13", Random(5))
        assert plugin.lister.counts.answers["served"] == 6
        claims = server.broker.pipeline.dispatcher.claim_mismatches()
        assert not any(claims.values())
