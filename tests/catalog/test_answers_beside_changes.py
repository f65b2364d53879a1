"""Questions with a pattern beside changes: those that no change concerns do not wait, and all answers are right."""

from __future__ import annotations

import random
import re
import sqlite3
import weakref
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from broker_core.catalog import catalog_lister as lister_module
from broker_core.catalog.catalog_lister import CatalogLister
from broker_core.catalog.snapshots import recent_changes
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.listing.listing import Listing, Selection
from broker_core.memory.permits import Permits
from broker_core.names import Mode
from broker_core.patterns import TopicsPattern, compile_pattern
from broker_core.pipeline import Answer, Pipeline
from broker_core.pipeline.answer import ReusableAnswer
from broker_core.plugin_api.listing_request import ListingRequest
from tests.catalog.listers import NAMESPACE, topic
from tests.support.catalogue_topics import create_topics
from tests.support.eventually import eventually
from tests.support.examples import examples
from tests.support.narrowed import of_type, present
from tests.support.pipelines import made

WHOLE = ListingRequest(NAMESPACE)


@pytest.fixture
async def lister(catalog: SqliteCatalog, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[CatalogLister]:
    monkeypatch.setattr(lister_module, "_SOON", 1000.0)  # each test moves it itself
    made = CatalogLister(catalog, Permits(), property_keys=("region",))
    yield made
    made.close()


def asked(text: str, **fields: Any) -> tuple[ListingRequest, TopicsPattern]:
    pattern = compile_pattern(f"persistent://a/b/{text}")
    return ListingRequest(NAMESPACE, pattern=pattern, **fields), pattern


def listed_now(lister: CatalogLister, text: str, **fields: Any) -> list[str] | None:
    """What matches of the answer at once."""
    request, pattern = asked(text, **fields)
    result = lister.list_now(request, pattern)
    if result is None:
        return None
    assert isinstance(result.topics, Listing | Selection)
    selection = result.topics.all() if isinstance(result.topics, Listing) else result.topics
    return [name.rpartition("/")[2] for name in selection.matching(pattern).names.to_pylist()]


def stands(lister: CatalogLister, text: str, listing: weakref.ref[Listing]) -> bool:
    return lister.still_valid(*asked(text), listing) is not None


async def listing(lister: CatalogLister) -> Listing:
    result = await lister.list_topics(WHOLE)
    return of_type(result.topics, Listing)


async def test_a_change_holds_up_only_questions_that_it_concerns(
    catalog: SqliteCatalog, lister: CatalogLister
) -> None:
    catalog.create(topic("x1"))
    before = await listing(lister)
    create_topics(catalog.path, topic("y1"))
    request, pattern = asked("x.*")
    result = present(lister.list_now(request, pattern))
    assert result.topics is before
    assert listed_now(lister, "y.*") is None
    assert lister.list_now(request) is None, "nobody says that the pattern will be applied"
    assert lister.list_now(WHOLE) is None
    catalog.create(topic("x2"))
    assert listed_now(lister, "x.*") is None
    assert listed_now(lister, "z.*") == []
    await listing(lister)
    assert listed_now(lister, "x.*") == ["x1", "x2"]


async def test_properties_that_select_count_as_changes(catalog: SqliteCatalog, lister: CatalogLister) -> None:
    catalog.create(topic("x1"), properties={"region": "eu"})
    catalog.create(topic("y1"), properties={"region": "eu"})
    await listing(lister)
    catalog.set_properties(topic("y1"), {"region": "us"})
    assert listed_now(lister, ".*") == ["x1", "y1"]
    assert listed_now(lister, "x.*", properties={"region": "eu"}) == ["x1"]
    assert listed_now(lister, "y.*", properties={"region": "eu"}) is None


async def test_topics_of_another_mode_concern_those_who_ask_for_all(
    catalog: SqliteCatalog, lister: CatalogLister
) -> None:
    catalog.create(topic("x1"))
    await lister.list_topics(replace(WHOLE, mode=Mode.ALL))
    catalog.create(topic("y1", "non-persistent"))
    assert listed_now(lister, "x.*", mode=Mode.ALL) == ["x1"]
    assert listed_now(lister, "y.*", mode=Mode.ALL) is None


async def test_a_snapshot_that_is_behind_is_moved_soon(
    catalog: SqliteCatalog, lister: CatalogLister, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lister_module, "_SOON", 0.0)
    catalog.create(topic("x1"))
    before = await listing(lister)
    catalog.create(topic("y1"))
    assert listed_now(lister, "x.*") == ["x1"]

    async def is_moved() -> bool:
        request, pattern = asked("x.*")
        result = lister.list_now(request, pattern)
        return result is not None and result.topics is not before

    await eventually(is_moved)
    assert lister.list_now(WHOLE) is not None
    assert listed_now(lister, "y.*") == ["y1"]


async def test_too_many_changes_hold_up_everybody(
    catalog: SqliteCatalog, lister: CatalogLister, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lister_module, "MOST_RECENT", 2)
    catalog.create(topic("x1"))
    await listing(lister)
    for number in range(3):
        catalog.create(topic(f"y{number}"))
    assert listed_now(lister, "x.*") is None
    await listing(lister)
    assert listed_now(lister, "x.*") == ["x1"]


def put(file: Path, into: Path) -> None:
    """The content of a catalogue into the file of another, as a restore does that keeps the file."""
    source, target = sqlite3.connect(file), sqlite3.connect(into)
    source.backup(target)
    source.close()
    target.close()


async def test_a_restored_copy_is_another_history(
    catalog: SqliteCatalog, lister: CatalogLister, tmp_path: Path
) -> None:
    catalog.create(topic("x1"))
    put(catalog.path, copy := tmp_path / "copy.sqlite")
    catalog.create(topic("x2"))
    former = weakref.ref(await listing(lister))
    catalog.create(topic("y1"))
    assert listed_now(lister, "x.*") == ["x1", "x2"]
    put(copy, catalog.path)
    assert listed_now(lister, "x.*") is None
    for local in ("y1", "y2", "y3"):  # the numbers of the versions come again
        catalog.create(topic(local))
        assert not stands(lister, "x.*", former)
    await listing(lister)
    assert listed_now(lister, "x.*") == ["x1"]
    assert not stands(lister, "x.*", former)


async def test_changes_of_one_history_say_nothing_of_a_snapshot_of_another(
    catalog: SqliteCatalog, lister: CatalogLister, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.create(topic("x1"))
    former = weakref.ref(await listing(lister))
    put(catalog.path, other := tmp_path / "other.sqlite")
    create_topics(other, *(topic(local) for local in ("x2", "x3", "x4")))
    catalog.create(topic("y1"))
    assert stands(lister, "x.*", former)
    put(catalog.path, own := tmp_path / "own.sqlite")
    put(other, catalog.path)
    keep = lister._kept.keep

    def keep_late(*arguments: Any) -> None:
        put(own, catalog.path)  # just when the other one was read
        keep(*arguments)

    monkeypatch.setattr(lister._kept, "keep", keep_late)
    assert len(await listing(lister)) == 4
    monkeypatch.undo()
    assert listed_now(lister, "x.*") is None
    assert not stands(lister, "x.*", former)
    await listing(lister)
    assert listed_now(lister, "x.*") == ["x1"]


async def test_an_answer_stands_for_as_long_as_nothing_has_changed_that_it_depends_on(
    catalog: SqliteCatalog, lister: CatalogLister
) -> None:
    catalog.create(topic("x1"))
    first = weakref.ref(await listing(lister))
    catalog.create(topic("y1"))
    assert stands(lister, "x.*", first)
    assert not stands(lister, "y.*", first)
    second = weakref.ref(await listing(lister))
    await eventually(lambda: first() is None)  # the thread that moved the snapshot may hold it for a moment
    assert stands(lister, "x.*", first)
    assert not stands(lister, "y.*", first)
    assert stands(lister, "y.*", second)
    assert lister.still_valid(asked("x.*")[0], None, first) is None, "its pattern is not applied"
    catalog.create(topic("z1"))
    assert stands(lister, "y.*", second)
    assert not stands(lister, "z.*", second)
    await listing(lister)
    assert stands(lister, "x.*", first)
    assert stands(lister, "y.*", second)
    assert not stands(lister, "z.*", first)


async def test_it_stands_too_where_a_change_comes_while_the_snapshot_is_moved(
    catalog: SqliteCatalog, lister: CatalogLister, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.create(topic("x1"))
    first = weakref.ref(await listing(lister))
    catalog.create(topic("y1"))
    assert stands(lister, "x.*", first)
    keep = lister._kept.keep

    def keep_late(*arguments: Any) -> None:
        catalog.create(topic("z1"))
        assert stands(lister, "x.*", first)  # somebody asks meanwhile, and sees the change
        keep(*arguments)

    monkeypatch.setattr(lister._kept, "keep", keep_late)
    second = weakref.ref(await listing(lister))
    monkeypatch.undo()
    assert second is not first
    for seen in (first, second):
        assert stands(lister, "x.*", seen)
        assert not stands(lister, "z.*", seen)
    assert not stands(lister, "y.*", first)
    assert stands(lister, "y.*", second)


async def test_an_answer_that_is_asked_for_again_and_again_stands_beside_any_number_of_changes(
    catalog: SqliteCatalog, lister: CatalogLister, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent_changes, "MOST_RECENT", 4)
    catalog.create(topic("x1"))
    await listing(lister)
    async with made(lister) as m:
        request, _ = asked("x.*", deadline=float("inf"))
        answer = present(m.pipeline.answer_now(request))
        often, once = (ReusableAnswer.of(request, answer) for _ in range(2))
        answer.release()
        assert often is not None
        assert once is not None
        for number in range(10):
            catalog.create(topic(f"y{number}"))
            assert m.again(often)
            await listing(lister)
        assert not m.again(once)


class Model:
    """The topics as they should be, and random changes of both."""

    def __init__(self, catalog: SqliteCatalog, seed: int) -> None:
        self.catalog = catalog
        self.random = random.Random(seed)
        self.topics: dict[str, str] = {}

    def change(self) -> None:
        chosen = self.random
        local = f"{chosen.choice('xyz')}-{chosen.randrange(40)}"
        region = chosen.choice(("eu", "us"))
        if local not in self.topics:
            self.catalog.create(topic(local), properties={"region": region})
            self.topics[local] = region
        elif chosen.random() < 0.5:
            self.catalog.set_properties(topic(local), {"region": region})
            self.topics[local] = region
        else:
            self.catalog.delete(topic(local))
            del self.topics[local]

    def question(self) -> tuple[str, dict[str, str]]:
        chosen = self.random
        text = chosen.choice(("x.*", "y-1.*", "z-7", ".*-2.*", "[xy]-3[0-9]*", ".*", "(x|z)-4.*"))
        return text, {"region": chosen.choice(("eu", "us"))} if chosen.random() < 0.3 else {}

    def right(self, text: str, properties: dict[str, str]) -> list[str]:
        region = properties.get("region")
        return sorted(
            f"persistent://a/b/{local}"
            for local, own in self.topics.items()
            if re.fullmatch(text, local) and region in (None, own)
        )


def names_in(answer: Answer) -> list[str]:
    names: list[str] = present(answer.selection).names.to_pylist()
    answer.release()
    return names


@pytest.mark.parametrize("seed", range(examples(2)))
async def test_random_questions_beside_random_changes_are_answered_right(
    catalog: SqliteCatalog, seed: int
) -> None:
    model = Model(catalog, seed)
    lister = CatalogLister(catalog, Permits(), property_keys=("region",))
    held: list[tuple[ReusableAnswer, str, list[str]]] = []
    behind = stood = 0
    async with made(lister) as m:
        pipeline: Pipeline = m.pipeline
        for _ in range(150):
            for _ in range(model.random.choice((0, 0, 1, 1, 2, 5))):
                model.change()
            text, properties = model.question()
            request, _ = asked(text, properties=properties, deadline=float("inf"))
            right = model.right(text, properties)
            answer = pipeline.answer_now(request)
            behind += answer is not None and lister.list_now(WHOLE) is None
            found = answer or await pipeline.answer(request)
            reusable = ReusableAnswer.of(request, found)
            assert names_in(found) == right
            if reusable is not None:
                held = [*held[-20:], (reusable, text, right)]
            for former, asked_text, answered in held:
                is_gone = former.listing() is None
                if m.again(former):
                    stood += is_gone
                    assert answered == model.right(asked_text, {})
    lister.close()
    assert behind > 20
    assert stood > 20
