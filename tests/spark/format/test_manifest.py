"""A manifest has one form. Every other is refused with the reason."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from broker_core_spark.errors import InvalidGeneration
from broker_core_spark.format.canonical_question import canonical_json
from broker_core_spark.format.manifest import FileEntry, Manifest, SegmentEntry, manifest_name

DIGEST = "ab" * 32


def manifest() -> Manifest:
    segments = (
        SegmentEntry(
            f"segments/{DIGEST}.seg",
            100,
            "a",
            (("t/m", "persistent", 2), ("t/n", "non-persistent", 3)),
            FileEntry(f"postings/{'ef' * 32}.post", 20),
        ),
        SegmentEntry(
            f"segments/{'cd' * 32}.seg",
            100,
            "b",
            (("t/n", "non-persistent", 4),),
            FileEntry(f"postings/{'ef' * 32}.post", 20),
            continues=True,
        ),
    )
    questions = FileEntry(f"questions/{DIGEST}.jsonl", 10)
    versions = {"t/n": 7, "t/m": 0, "t/empty": 1}
    return Manifest("id", False, ("k", "l"), 8, versions, 5, questions, segments, {"t/n": "s", "t/m": "r"})


def test_a_manifest_is_read_as_it_was_written() -> None:
    made = manifest()
    again = Manifest.parse(made.data, manifest_name(made.id))
    assert again == made
    assert again.id == made.id
    assert len(made.id) == 64
    assert made.topics == 9
    assert made.counts() == {("t/m", "persistent"): 2, ("t/n", "non-persistent"): 7}
    assert [file.sha256 for file in made.files] == [DIGEST, DIGEST, "cd" * 32, "ef" * 32, "ef" * 32]
    assert made.totals == {"t/m": (0, 2), "t/n": (7, 0)}
    assert made.stretches() == [made.segments]


def test_the_order_of_namespaces_makes_no_difference() -> None:
    made = manifest()
    turned = Manifest(
        "id",
        False,
        ("k", "l"),
        8,
        dict(reversed(list(made.namespaces.items()))),
        5,
        made.questions,
        made.segments,
        dict(reversed(list(made.stamps.items()))),
    )
    assert turned.data == made.data


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda record: record.update(format="other"), "no manifest"),
        (lambda record: record.update(version=1), "format version 1: only 2 .*Build the generation again"),
        (
            lambda record: record["stamps"].update({"t/other": "s"}),
            "a stamp of t/other, which has no version",
        ),
        (lambda record: record["stamps"].update({"t/n": ""}), "a stamp of t/n"),
        (lambda record: record["stamps"].update({"t/n": 1}), "is no string"),
        (lambda record: record.pop("stamps"), "stamps"),
        (lambda record: record.update(version="1" * 100), "format version"),
        (lambda record: record.update(more=1), "canonical"),
        (lambda record: record.pop("segments"), "a part"),
        (lambda record: record.update(segments=None), "a part"),
        (lambda record: record["segments"].reverse(), "not in order"),
        (lambda record: record["segments"].append(record["segments"][0]), "not in order"),
        (lambda record: record["segments"][0]["runs"].reverse(), "not in order"),
        (
            lambda record: record["segments"][0]["runs"].append(["t/n", "non-persistent", 1]),
            "runs of the segm",
        ),
        (
            lambda record: record["segments"][0]["runs"].append(["t/n", "persistent", 1]),
            "runs of the segments",
        ),
        (
            lambda record: record["segments"][0]["runs"].append(["t/o", "persistent", 1]),
            "runs of the segments",
        ),
        (lambda record: record["segments"][0].update(name="../../etc/passwd"), "no file of a generation"),
        (lambda record: record["segments"][0].update(size=-1), "a part"),
        (lambda record: record["segments"][0].update(size=1e3), "a part"),
        (lambda record: record["segments"][0].update(runs=[]), "without names"),
        (
            lambda record: record["segments"][0].update(runs=[["t/l", "persistent", 1]]),
            "none of its namespaces",
        ),
        (lambda record: record["segments"][0].update(runs=[["t/n", "other", 1]]), "no domain"),
        (lambda record: record["segments"][0].update(runs=[["t/n", "persistent", 0]]), "a part"),
        (lambda record: record["segments"][0].update(first_local=1), "no string"),
        (lambda record: record["namespaces"].update({"x": 1}), "Invalid namespace"),
        (lambda record: record["namespaces"].update({"t/n": -1}), "a part"),
        (lambda record: record["namespaces"].update({"t/n": None}), "static"),
        (lambda record: record["catalogue"].update(static=True), "static"),
        (lambda record: record["catalogue"].update(static=1), "neither true nor false"),
        (lambda record: record.update(catalogue=[]), "a part"),
        (lambda record: record.update(property_keys=["l", "k"]), "sorted"),
        (lambda record: record.update(segment_bytes=0), "a part"),
        (lambda record: record.update(largest_segment_bytes=0), "a part"),
        (lambda record: record["segments"].pop(), "totals .* one is missing"),
        (lambda record: record["totals"].pop("t/m"), "totals"),
        (lambda record: record["totals"].update({"t/empty": [0, 0]}), "totals"),
        (lambda record: record["totals"].update({"t/m": [2, 0]}), "totals"),
        (lambda record: record["totals"].update({"t/m": [2]}), "a part"),
        (lambda record: record["segments"][0].update(continues=True), "continues none"),
        (lambda record: record["segments"][1].update(continues=False), "canonical"),
        (lambda record: record["segments"][0].pop("postings"), "a part"),
        (lambda record: record["segments"][0].update(size="100"), "'100' is no number"),
        (lambda record: record["segments"][0].update(size=True), "True is no number"),
        (lambda record: record["segments"][0].update(size=2**63), "is no number"),
        (lambda record: record["segments"][0].update(name="x" * 1000), r"a part.{0,230}$"),
        (lambda record: record["segments"][1].update(continues=1), "neither true nor false"),
        (lambda record: record["catalogue"].update(id=1), "1 is no string"),
        (
            lambda record: record["segments"][0]["postings"].update(name="segments/x"),
            "no file of a generation",
        ),
        (
            lambda record: record["segments"][0].update(name=f"postings/{DIGEST}.post"),
            "no file of a generation",
        ),
        (lambda record: record["questions"].update(name="segments/x"), "no file of a generation"),
    ],
)
def test_what_is_no_manifest_is_refused(change: Callable[[dict[str, Any]], object], reason: str) -> None:
    record = json.loads(manifest().data)
    change(record)
    with pytest.raises(InvalidGeneration, match=reason) as caught:
        Manifest.parse(canonical_json(record) + b"\n", "manifests/x.json")
    assert caught.value.file == "manifests/x.json"


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"1", b"\xff", b"[" * 100_000, b'{"format": NaN}'])
def test_what_is_no_json_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidGeneration, match=r"no JSON|no manifest"):
        Manifest.parse(data, "manifests/x.json")


def test_spaces_are_refused() -> None:
    with pytest.raises(InvalidGeneration, match="canonical"):
        Manifest.parse(manifest().data + b"\n", "manifests/x.json")


def test_the_version_of_a_namespace_has_its_stamp() -> None:
    version = manifest().version("t/n")
    assert (version.catalog_id, version.number, version.stamp) == ("id", 7, "s")
    assert manifest().version("t/empty").stamp == ""


def test_stamps_of_a_static_catalogue_are_of_every_namespace_that_was_asked_about() -> None:
    made = manifest()
    static = replace(
        made, static=True, namespaces=dict.fromkeys(made.namespaces), stamps={"t/n": "s", "t/none": "s"}
    )
    assert Manifest.parse(static.data, "manifests/x.json") == static
    assert {name: version.stamp for name, version in static.versions().items()} == {"t/n": "s", "t/none": "s"}
    assert {name: version.number for name, version in made.versions().items()} == dict(made.namespaces)
    with pytest.raises(ValueError, match="t//none"):
        replace(static, stamps={"t//none": "s"}).check()


@pytest.mark.parametrize("part", ["segments", "property_keys", "namespaces", "totals"])
def test_a_manifest_of_wrong_parts_is_refused_at_the_first(part: str) -> None:
    # A report of each of them took a thousand times their bytes.
    record = json.loads(manifest().data)
    record[part] = [{}] * 20_000 if isinstance(record[part], list) else {f"{n}": [] for n in range(20_000)}
    data = canonical_json(record) + b"\n"
    tracemalloc.start()
    try:
        with pytest.raises(InvalidGeneration, match="a part"):
            Manifest.parse(data, "manifests/x.json")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * 1024 * 1024
