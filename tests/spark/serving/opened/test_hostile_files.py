"""A generation with changed files is refused by a file's name, or every answer is right.

The checksum finds a changed file. So most changed files here get the name and the manifest of their new content, as a
faulty or hostile writer would give them. Then only the content can be checked.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import pairwise, permutations
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_core import EncodedNames
from broker_core.names import Mode
from broker_core_spark.errors import InvalidGeneration, StoreFailed
from broker_core_spark.format import segment_layout
from broker_core_spark.format.canonical_question import DOMAIN_ORDER, CanonicalQuestion, required_selectors
from broker_core_spark.format.manifest import FileEntry, Manifest, SegmentEntry, manifest_name
from broker_core_spark.format.segment_boundaries import begins_segment
from broker_core_spark.serving.opened.generation import Generation
from broker_core_spark.serving.opened.verify_and_map import SampleChecks
from tests.support.generation_builder import build_generation, matches_of
from tests.support.generations import CATALOGUE, QUESTIONS, expected, memory, questions_of
from tests.support.narrowed import present
from tests.support.segment_writer import SegmentWriter
from tests.support.topics import assert_selection

#: Of the namespace that has no topics one is enough: thousands of openings read them all.
REQUESTED = [
    *(question for question in QUESTIONS if question.namespace != "t/empty"),
    CanonicalQuestion.of("t/empty", Mode.ALL, None),
    CanonicalQuestion.of("t/n", Mode.PERSISTENT, "t/n/orders-.*", {"tier": "gold"}),
]
PROPERTIES = {
    f"persistent://t/n/orders-{number:03}": {"tier": "gold" if number % 3 else "lead"} for number in range(60)
}
Files = dict[str, bytes]


@cache
def _built() -> tuple[Manifest, Files]:
    """The manifest and the files of a generation.

    Not built when the module is imported: a store starts threads, which the processes that run tests do not have.
    """
    store = memory()
    manifest = build_generation(
        store,
        CATALOGUE,
        REQUESTED,
        catalogue_id="c",
        versions=dict.fromkeys(CATALOGUE, 7),
        properties=PROPERTIES,
        property_keys=["tier"],
        segment_bytes=1536,
        stamps={"t/n": "stamp"},
    )
    files = {}
    for file in manifest.files:
        data = present(store.get(file.name, file.size))
        files[file.name] = data
    return manifest, files


def made() -> Manifest:
    return _built()[0]


def made_files() -> Files:
    return _built()[1]


def segment() -> SegmentEntry:
    """The segment with the most runs."""
    return max(made().segments, key=lambda entry: len(entry.runs))


def opened(files: Files, manifest: bytes) -> Generation:
    """Open the generation of a store with these files and this manifest."""
    store = memory()
    for name, content in files.items():
        store.put_new(name, content)
    generation = hashlib.sha256(manifest).hexdigest()
    store.put_new(manifest_name(generation), manifest)
    return Generation.open(store, generation, checks=SampleChecks(seed=1))


def fitting(name: str, content: bytes) -> tuple[Files, Manifest]:
    """Files and manifest with another content of one file, under the name of that content."""
    folder, _, suffix = name.partition("/")
    entry = FileEntry(
        f"{folder}/{hashlib.sha256(content).hexdigest()}.{suffix.partition('.')[2]}", len(content)
    )
    files = {other: data for other, data in made_files().items() if other != name} | {entry.name: content}
    if name == made().questions.name:
        return files, replace(made(), questions=entry)
    segments = tuple(
        replace(one, name=entry.name, size=entry.size)
        if one.name == name
        else replace(one, postings=entry)
        if one.postings.name == name
        else one
        for one in made().segments
    )
    return files, replace(made(), segments=segments)


def refused_or_right(
    files: Files, manifest: bytes, catalogue: Mapping[str, Mapping[str, Any]] = CATALOGUE
) -> str | None:
    """The file that was refused, or ``None`` if nothing is wrong. Every answer is right then."""
    text = manifest.decode("latin-1")
    names = {
        manifest_name(hashlib.sha256(manifest).hexdigest()),
        *re.findall(r"\w+/\w+\.(?:seg|post|jsonl)", text),
    }
    try:
        generation = opened(files, manifest)
    except (InvalidGeneration, StoreFailed) as error:
        file = error.file if isinstance(error, InvalidGeneration) else None
        said = file or next(name for name in names if name in str(error))
        return said if said in names else f"no file of the generation: {said}"
    for question in questions_of(generation):
        answer = present(generation.lookup(question))
        assert_selection(answer.selection, expected(catalogue, question, PROPERTIES))
    return None


def test_without_damage_all_of_it_is_right() -> None:
    assert len(made().segments) >= 3
    assert len(segment().runs) >= 2
    assert refused_or_right(made_files(), made().data) is None


FILES = {"seg": segment_layout.NAMES, "post": segment_layout.POSTINGS}
KINDS = pytest.mark.parametrize("kind", FILES)


def name_of(kind: str) -> str:
    return segment().name if kind == "seg" else segment().postings.name


def places(content: bytes, kind: str) -> tuple[set[int], set[int]]:
    """(bytes of positions, borders of the parts) of a file of a segment."""
    file = FILES[kind]
    at, size, _ = segment_layout.TRAILER.unpack_from(content, len(content) - segment_layout.TRAILER.size)
    structural = {*range(segment_layout.HEADER.size), *range(at, len(content))}
    borders = {0, segment_layout.HEADER.size, at, at + size, len(content)}
    start = segment_layout.HEADER.size
    for run in json.loads(content[at : at + size])["runs"]:
        place = file.place(start, *(run[key] for key in file.sizes))
        for begin, length in place.sections:
            end = begin + length
            borders |= {begin, end, end + segment_layout.padding(length)}
            # The first, the last, and the padding.
            structural |= {*range(begin, min(begin + 8, end)), *range(max(begin, end - 8), end)}
            structural |= set(range(end, end + segment_layout.padding(length)))
        if kind == "post" and run["entries"]:
            structural |= set(range(start, start + segment_layout.ENTRY.itemsize))
        start = place.end
    return structural, borders


def flipped(content: bytes, among: Iterable[int], seed: int) -> Iterator[bytes]:
    """The content with one flipped bit, for each of these bytes."""
    random = Random(seed)
    for place in sorted(among):
        yield content[:place] + bytes([content[place] ^ (1 << random.randrange(8))]) + content[place + 1 :]


def changed_files(manifest: Manifest) -> set[str]:
    """The names of the segments' files that are not those of the right generation."""
    return {file.name for file in manifest.files} - {*made_files()}


@KINDS
@pytest.mark.parametrize("part", range(4))
def test_every_flipped_bit_of_a_segment_is_found_without_its_checksum(part: int, kind: str) -> None:
    """A hash covers every name here, so no change can go unseen."""
    content = made_files()[name_of(kind)]
    structural, _ = places(content, kind)
    rest = sorted(set(range(len(content))) - structural)
    among = sorted(structural)[part::4] + Random(part).sample(rest, 25)
    for damaged in flipped(content, among, part):
        files, manifest = fitting(name_of(kind), damaged)
        refused = refused_or_right(files, manifest.data)
        # Changed names contradict the hashes of unchanged postings.
        assert refused in {*changed_files(manifest), segment().postings.name}


@KINDS
def test_a_segment_that_ends_elsewhere_is_found_without_its_checksum(kind: str) -> None:
    content = made_files()[name_of(kind)]
    _, borders = places(content, kind)
    sizes = {size for border in borders for size in (border - 1, border, border + 1)}
    for size in sorted(size for size in sizes if 0 <= size <= len(content) + 1 and size != len(content)):
        files, manifest = fitting(name_of(kind), (content + b"\0")[:size])
        assert refused_or_right(files, manifest.data) in changed_files(manifest)


@pytest.mark.parametrize("kind", ["questions", "manifest"])
def test_a_flipped_bit_of_a_text_is_found_or_harmless(kind: str) -> None:
    content = made_files()[made().questions.name] if kind == "questions" else made().data
    among = range(len(content)) if len(content) < 250 else Random(7).sample(range(len(content)), 250)
    found = 0
    for damaged in flipped(content, among, 7):
        if kind == "manifest":
            refused = refused_or_right(made_files(), damaged)
        else:
            files, manifest = fitting(made().questions.name, damaged)
            refused = refused_or_right(files, manifest.data)
        assert not (refused or "").startswith("no file")
        found += refused is not None
    assert found > len(among) // 2


def test_swapped_and_foreign_files_are_refused_by_name() -> None:
    foreign = memory()
    other = build_generation(
        foreign, {"t/n": {"persistent": ["orders-000", "other"]}}, REQUESTED[:1], catalogue_id="d"
    )
    contents: dict[str, bytes] = dict(made_files())
    for file in other.files:
        data = present(foreign.get(file.name, file.size))
        contents[file.name] = data
    names = [file.name for file in made().files]
    for name, taken in permutations([*names, *(file.name for file in other.files)], 2):
        if name not in made_files():
            continue
        # Refused by its own name, or by its size.
        with pytest.raises((InvalidGeneration, StoreFailed)) as caught:
            opened(made_files() | {name: contents[taken]}, made().data)
        assert name in str(caught.value)
        if taken.partition("/")[0] == name.partition("/")[0]:
            files, manifest = fitting(name, contents[taken])
            assert refused_or_right(files, manifest.data) is not None


def test_parts_of_a_manifest_that_contradict_the_files_are_refused() -> None:
    first, second, *rest = made().segments
    exchanged = (
        replace(first, name=second.name, size=second.size),
        replace(second, name=first.name, size=first.size),
    )
    renamed = (replace(first, first_local=first.first_local + "!"), second)
    twice = (first, replace(second, name=first.name, size=first.size))
    for pair in (exchanged, renamed, twice):
        assert refused_or_right(made_files(), replace(made(), segments=(*pair, *rest)).data) in made_files()
    (namespace, domain, count), *others = second.runs
    for runs in (
        ((namespace, domain, count + 1), *others),
        ((namespace, domain, max(1, count - 1)), *others),
        (*second.runs, ("t/n", "persistent", 1)) if len(second.runs) == 1 else second.runs[:-1],
    ):
        lie = replace(made(), segments=(first, replace(second, runs=runs), *rest))
        assert refused_or_right(made_files(), lie.data) is not None
    for segment_bytes in (1, 64, 2**40):
        assert (
            refused_or_right(made_files(), replace(made(), segment_bytes=segment_bytes).data) in made_files()
        )
    for count in (0, made().question_count - 1, made().question_count + 1):
        assert (
            refused_or_right(made_files(), replace(made(), question_count=count).data)
            == made().questions.name
        )
    assert refused_or_right(made_files(), replace(made(), property_keys=()).data) == made().questions.name


SPREAD = {
    namespace: {domain: [f"orders-{number:02}" for number in range(30)] for domain in DOMAIN_ORDER}
    for namespace in ("t/m", "t/n", "t/o")
}
SPREAD_BYTES = 512


def spread(random: Random) -> list[list[tuple[tuple[str, int], EncodedNames]]] | None:
    """All names in valid segments that begin at boundaries, with runs of one segment in another.

    A run is ((namespace, number of its domain), names). Returns ``None`` if a run fits into no segment.
    """
    segments: list[list[tuple[tuple[str, int], EncodedNames]]] = []
    others: list[tuple[tuple[str, int], EncodedNames]] = []
    for namespace in sorted(SPREAD):
        for number, domain in enumerate(DOMAIN_ORDER):
            names = EncodedNames.of(namespace, domain, SPREAD[namespace][domain])
            begins = set(
                np.flatnonzero(begins_segment(namespace, domain, names.names, target=SPREAD_BYTES)).tolist()
            )
            for start, stop in pairwise(sorted({0, *begins, random.randrange(30), len(names)})):
                run = ((namespace, number), names.slice(start, stop))
                if start in begins or not segments:
                    segments.append([run])
                else:
                    others.append(run)
    for run in others:
        fits = [runs for runs in segments if runs[-1][0] < run[0]]
        if not fits:
            return None
        random.choice(fits).append(run)
    return segments


def test_runs_that_are_spread_over_other_segments_are_refused_or_right() -> None:
    """Each segment is right. Only together they have no order."""
    questions = [CanonicalQuestion.of(namespace, mode, None) for namespace in SPREAD for mode in Mode]
    required = required_selectors(questions)
    store = memory()
    made = build_generation(
        store,
        SPREAD,
        questions,
        catalogue_id="c",
        versions=dict.fromkeys(SPREAD, 1),
        segment_bytes=SPREAD_BYTES,
    )
    lines = present(store.get(made.questions.name, made.questions.size))
    found: list[str | None] = []
    for seed in range(200):
        segments = spread(Random(seed))
        if segments is None:
            continue
        files = {made.questions.name: lines}
        entries = []
        for runs in segments:
            writer = SegmentWriter()
            for (namespace, number), names in runs:
                domain = DOMAIN_ORDER[number]
                requested = required.get((namespace, domain), ())
                picked = matches_of(names, requested, PROPERTIES)
                writer.add_run(names, requested, picked)
            written = writer.finish()
            for part in (written.names, written.postings):
                files[part.name] = b"".join(part.data)
            entries.append(written.entry)
        manifest = replace(made, segments=tuple(sorted(entries, key=lambda entry: entry.order)))
        assert manifest.topics == made.topics
        found.append(refused_or_right(files, manifest.data, SPREAD))
    assert sum(file is not None for file in found) > 5


@settings(max_examples=80, deadline=None)
@given(
    st.deferred(lambda: st.sampled_from([file.name for file in made().files])),
    st.lists(
        st.tuples(st.floats(0, 1), st.integers(0, 64), st.one_of(st.binary(max_size=64), st.floats(0, 1))),
        min_size=1,
        max_size=3,
    ),
)
def test_parts_that_are_cut_out_written_over_or_repeated(
    name: str, edits: list[tuple[float, int, bytes | float]]
) -> None:
    content = made_files()[name]
    for where, size, what in edits:
        at = int(where * len(content))
        # A float is a position in another part of the same file.
        start = int(what * len(content)) if isinstance(what, float) else 0
        put = content[start : start + size] if isinstance(what, float) else what
        content = content[:at] + put + content[at + size :]
    files, manifest = fitting(name, content)
    refused = refused_or_right(files, manifest.data)
    assert refused is not None or name == made().questions.name or content == made_files()[name]
