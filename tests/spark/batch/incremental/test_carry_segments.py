"""Segments that are carried over to other names and questions equal those of a whole build, byte for byte."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from broker_core.names import Mode
from broker_core_spark.batch.incremental import carry_segments as carrying
from broker_core_spark.batch.incremental.carry_segments import carry_segments
from broker_core_spark.batch.incremental.changed_names import NameChanges
from broker_core_spark.batch.segments import segment_puts
from broker_core_spark.batch.segments.segment_puts import StoredSegments
from broker_core_spark.batch.segments.tallies import read_tallies
from broker_core_spark.errors import InvalidGeneration
from broker_core_spark.format.canonical_question import CanonicalQuestion
from broker_core_spark.format.manifest import FileEntry, Manifest
from broker_core_spark.format.segment_patch import PATCHES, patch_name
from broker_core_spark.serving.opened.generation import Generation
from broker_core_spark.serving.opened.verify_and_map import SampleChecks
from broker_core_spark.store import Store, open_store, put_all_verified
from tests.support.generation_builder import build_generation, mapped_bytes
from tests.support.spark_catalogues import Names, changes_of, kept_selectors, keyed, reread_all

NAMES = {"a/b": {"persistent": [f"t{number}" for number in range(500)]}, "a/c": {"persistent": ["t7"]}}
QUESTIONS = [CanonicalQuestion.of("a/b", Mode.ALL, ".*7"), CanonicalQuestion.of("a/c", Mode.PERSISTENT, None)]
PATTERNS = [".*7", "a/b/t1.*", None, ".*[0-4]", "a/b/t33", "a/b/t(1|2).", "none", ".*[0-8]"]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(str(tmp_path))


@pytest.fixture
def made(store: Store) -> Manifest:
    manifest = build_generation(
        store, NAMES, QUESTIONS, catalogue_id="c", versions=dict.fromkeys(NAMES, 1), segment_bytes=2048
    )
    assert len(manifest.segments) > 3
    return manifest


def built(store: Store, names: Names, questions: Sequence[CanonicalQuestion]) -> Manifest:
    catalogue: dict[str, dict[str, list[str]]] = {"a/b": {}, "a/c": {}, "b/b": {}}
    for namespace, domain, local in names:
        catalogue[namespace].setdefault(domain, []).append(local)
    return build_generation(
        store,
        catalogue,
        questions,
        catalogue_id="c",
        versions=dict.fromkeys(catalogue, 1),
        properties={
            f"{domain}://{namespace}/{local}": {"k": value}
            for (namespace, domain, local), value in names.items()
            if value is not None
        },
        property_keys=("k",),
        segment_bytes=1500,
        largest_segment_bytes=2000,
    )


def check(
    stores: tuple[Store, Store],
    names: tuple[Names, Names],
    questions: tuple[list[CanonicalQuestion], list[CanonicalQuestion]],
    *,
    compared: bool,
) -> StoredSegments:
    """Carry a generation of names and questions before over to those of now, and compare it with a whole one."""
    store, other = stores
    former, full = built(store, names[0], questions[0]), built(other, names[1], questions[1])
    carried = carry_segments(
        store,
        former,
        changes_of(former, *names, compared=compared).items(),
        kept_selectors(store, *questions, with_properties=compared),
        "temporary/kept",
        ("k",),
    )
    expected = {entry.name: entry for entry in full.segments}
    for result in carried.segments:
        whole = expected.pop(result.entry.name)
        # The stretch before may be gone, and with it what this one went on from.
        assert replace(result.entry, continues=whole.continues) == whole
        for file in (whole, whole.postings):
            assert stored(store, file) == stored(other, file)
    check_patches(stores, former, full)
    if not expected:
        found = read_tallies(store, carried.tallies)
        tallies = read_tallies(other, reread_all(other, full, questions[1]).tallies)
        assert found.keys() == tallies.keys()
        assert all((found[place] == tallies[place]).all() for place in found)
    return carried


def check_patches(stores: tuple[Store, Store], former: Manifest, full: Manifest) -> None:
    """A broker that has the former generation makes segments of the whole one by patches, with the same answers."""
    store, other = stores
    patches = {file.path for file in store.list(PATCHES)}
    assert patches <= {patch_name(entry.files) for entry in full.segments}
    for path in patches:
        other.put_new(path, store.get(path, 10**6) or b"")
    # The others were built pattern by pattern: what is made by patches is looked at.
    unsampled = SampleChecks(hashed_bytes=0, rematched=0)
    before = Generation.open(store, former.id, checks=unsampled)
    fetched: list[str] = []

    class Counted:
        def fetch(self, name: str, size: int) -> Iterator[bytes]:
            fetched.append(name)
            return other.fetch(name, size)

        def __getattr__(self, name: str) -> Any:
            return getattr(other, name)

    checks = SampleChecks(again=0, seed=1)
    swapped = Generation.open(cast(Store, Counted()), full.id, before=before, checks=checks)
    whole = mapped_bytes(Generation.open(other, full.id, checks=unsampled))
    assert mapped_bytes(swapped) == whole
    if patches:  # a damaged one is as none
        other.replace(min(patches), b"{")
        assert mapped_bytes(Generation.open(other, full.id, before=before, checks=checks)) == whole
    known = set(former.segments)
    unpatched = [
        entry.name for entry in full.segments if entry not in known and patch_name(entry.files) not in patches
    ]
    assert sorted(name for name in fetched if name.startswith("segments/")) == sorted(unpatched)


def stored(store: Store, file: FileEntry) -> bytes | None:
    return store.get(file.name, file.size)


@pytest.mark.parametrize("compared", [False, True], ids=["changes", "compared"])
def test_what_is_carried_over_equals_a_whole_build(tmp_path: Path, compared: bool) -> None:
    pick = random.Random(11)
    alphabet = [chr(0x10FFFF), "", "é", "k", "zz", "-part"]
    carried = anew = patches = 0
    for turn in range(8):
        every = {
            (
                pick.choice(["a/b", "a/c"]),
                pick.choice(["persistent", "persistent", "non-persistent"]),
                f"t{n}",
            ): (pick.choice([None, "x", "y"]))
            for n in range(300)
        }
        gone = pick.sample(sorted(every), pick.choice([0, 1, 5, 40]))
        now = {name: value for name, value in every.items() if name not in gone}
        for _ in range(pick.choice([0, 1, 6, 60])):
            place = pick.choice(["a/b", "a/c", "b/b"]), pick.choice(["persistent", "non-persistent"])
            now[(*place, f"t{pick.randrange(300)}{pick.choice(alphabet)}{pick.randrange(9)}")] = "x"
        for name in pick.sample(sorted(now), 4):
            now[name] = "y"
        rows = [
            CanonicalQuestion.of(namespace, pick.choice(list(Mode)), pattern, properties)
            for namespace in ("a/b", "a/c", "b/b")
            for pattern in PATTERNS
            for properties in (None, {"k": "x"})
        ]
        # Segments do not have properties: what selects by new ones is matched where all names are staged.
        requested = [row for row in pick.sample(rows, 30) if compared or not row.selector.properties]
        requested += [row for row in rows if row.selector.properties and not compared]
        kept = [row for row in requested if row.selector.properties or pick.random() < 0.8]
        stores = tuple(open_store(str(tmp_path / f"{kind}-{turn}")) for kind in ("store", "full"))
        result = check((stores[0], stores[1]), (every, now), (requested, kept), compared=compared)
        carried += sum(segment.new for segment in result.segments)
        anew += len(result.anew)
        patches += len(list(stores[0].list(PATCHES)))
    assert carried > 20
    assert patches > 1
    assert anew


def test_a_stretch_with_the_digest_of_before_is_kept_and_not_compared(store: Store, made: Manifest) -> None:
    selectors = kept_selectors(store, QUESTIONS, QUESTIONS)
    for before in ("digest", ""):
        changes = NameChanges(None, keyed({}), digest="digest", before=before)  # which would be without names
        carried = carry_segments(store, made, [(0, changes)], selectors, "temporary/kept")
        kept = [(result.entry, result.digest) for result in carried.segments]
        assert kept == ([(made.segments[0], "digest")] if before else [])


def test_files_that_wait_hold_no_former_ones_in_memory(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"a/b": {"persistent": [f"t{number}" for number in range(20_000)]}}
    rows = [CanonicalQuestion.of("a/b", Mode.ALL, f".*[{digits}]") for digits in range(12, 60)]
    former = build_generation(store, names, rows, catalogue_id="c", segment_bytes=64 * 1024)
    unchanged = dict.fromkeys(range(len(former.stretches())), NameChanges())
    gc.collect()
    before, held = pa.total_allocated_bytes(), []

    def counted(*arguments: Any) -> list[bool]:
        held.append(pa.total_allocated_bytes() - before)
        return put_all_verified(*arguments)

    monkeypatch.setattr(segment_puts, "put_all_verified", counted)
    monkeypatch.setattr(carrying, "_TOGETHER", 0)
    selectors = kept_selectors(store, rows, rows[:1])
    carry_segments(store, former, unchanged.items(), selectors, "temporary/kept", again=0)
    assert len(former.segments) > 4
    assert max(held) < sum(entry.postings.size for entry in former.segments) / 3


def test_damaged_files_are_made_anew_and_the_others_kept(
    store: Store, made: Manifest, tmp_path: Path
) -> None:
    changed, cut, gone = (entry.name for entry in made.segments[:3])
    content = (tmp_path / changed).read_bytes()
    (tmp_path / changed).write_bytes(content[:-30] + b"?" + content[-29:])
    (tmp_path / cut).write_bytes((tmp_path / cut).read_bytes()[:-1])
    (tmp_path / gone).unlink()
    lost = made.segments[3]
    (tmp_path / lost.postings.name).unlink()
    reread = reread_all(store, made, QUESTIONS)
    damaged = {changed, cut, gone, lost.name}
    stretches = made.stretches()
    assert damaged <= {entry.name for number in reread.anew for entry in stretches[number]}
    assert [result.entry for result in reread.segments] == [
        entry for number, stretch in enumerate(stretches) for entry in stretch if number not in reread.anew
    ]
    assert not any(result.new for result in reread.segments)


def test_segments_that_are_not_what_the_manifest_says_are_refused(store: Store, made: Manifest) -> None:
    namespace, domain, count = made.segments[1].runs[0]
    lie = replace(
        made,
        segments=(
            made.segments[0],
            replace(made.segments[1], runs=((namespace, domain, count - 1), *made.segments[1].runs[1:])),
            *made.segments[2:],
        ),
    )
    with pytest.raises(InvalidGeneration, match="its runs are not those"):
        reread_all(store, lie, QUESTIONS)
    with pytest.raises(InvalidGeneration, match="asked other patterns"):
        reread_all(store, made, QUESTIONS[:1])
    added = [CanonicalQuestion.of("a/b", Mode.ALL, ".*8")]
    with pytest.raises(InvalidGeneration, match="none that begins a segment"):
        every = [(number, NameChanges()) for number in range(len(made.stretches()))]
        lie = replace(made, segment_bytes=2**40)
        selectors = kept_selectors(store, QUESTIONS, [*QUESTIONS, *added])
        carry_segments(store, lie, every, selectors, "temporary/kept", again=1)
