"""The manifest of a generation: its files, and the state of the catalogue that it answers for.

The SHA-256 of its canonical JSON is the generation's id. It has no time, no host and no number of partitions of the
build, so equal inputs have equal ids.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

from broker_core.change_log import CatalogVersion
from broker_core.errors import BrokerCoreError
from broker_core.names import NON_PERSISTENT, PERSISTENT, NamespaceName
from broker_core_spark.errors import InvalidGeneration, OtherFormatVersion
from broker_core_spark.format.canonical_question import DOMAIN_ORDER, canonical_json
from broker_core_spark.format.segment_boundaries import LARGEST_FACTOR, SEGMENT_BYTES
from broker_core_spark.format.segment_layout import FORMAT_VERSION

__all__ = ["MANIFEST_LIMIT", "FileEntry", "Manifest", "SegmentEntry", "manifest_name"]

#: Bytes of the largest manifest that is read.
MANIFEST_LIMIT: Final = 512 * 1024 * 1024
_FORMAT: Final = "broker-core listing generation"
_FILES: Final = {
    folder: re.compile(rf"{folder}/[0-9a-f]{{64}}\.{suffix}")
    for folder, suffix in (("segments", "seg"), ("postings", "post"), ("questions", "jsonl"))
}
_MOST: Final = 2**63 - 1


def manifest_name(generation: str) -> str:
    """The path of a generation's manifest in its store."""
    return f"manifests/{generation}.json"


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file: its name, which has its SHA-256, and its size in bytes."""

    name: str
    size: int

    @property
    def sha256(self) -> str:
        return self.name.partition("/")[2].partition(".")[0]


@dataclass(frozen=True, slots=True)
class SegmentEntry(FileEntry):
    """A segment: its names file, and its postings file.

    ``runs`` are (namespace, domain, number of names), ``first_local`` is the first local name of the first run.
    ``continues`` says that it is a later piece of a stretch (:mod:`.segment_boundaries`).
    """

    first_local: str
    runs: tuple[tuple[str, str, int], ...]
    postings: FileEntry
    continues: bool = False

    @property
    def files(self) -> tuple[str, str]:
        """The names of its two files."""
        return self.name, self.postings.name

    @property
    def names(self) -> int:
        return sum(run[2] for run in self.runs)

    @property
    def order(self) -> tuple[str, int, bytes]:
        """The key that segments are sorted by."""
        namespace, domain, _ = self.runs[0]
        return namespace, DOMAIN_ORDER.index(domain), self.first_local.encode("utf-16-be")


@dataclass(frozen=True)
class Manifest:
    """The parts of a generation.

    ``namespaces`` has the version number of every namespace that is read, empty ones included. In a ``static``
    catalogue, which has no versions, the numbers are ``None``. ``stamps`` are the stamps of the versions
    (:class:`~broker_core.change_log.CatalogVersion`), if the catalogue has them. In a static one they are of the state
    of a table, for every namespace that questions name.

    ``property_keys`` are the keys of the properties that select topics, sorted. ``segment_bytes`` is the average size
    of segments, ``largest_segment_bytes`` the size of the largest (:mod:`.segment_boundaries`).

    The manifest also has the totals of each namespace, so that a namespace without one of its segments is refused.
    """

    catalogue_id: str
    static: bool
    property_keys: tuple[str, ...]
    segment_bytes: int
    namespaces: Mapping[str, int | None]
    question_count: int
    questions: FileEntry
    segments: tuple[SegmentEntry, ...]
    stamps: Mapping[str, str] = field(default_factory=dict)
    largest_segment_bytes: int = LARGEST_FACTOR * SEGMENT_BYTES

    @cached_property
    def data(self) -> bytes:
        """The bytes of the manifest."""
        record = {
            "format": _FORMAT,
            "version": FORMAT_VERSION,
            "catalogue": {"id": self.catalogue_id, "static": self.static},
            "property_keys": list(self.property_keys),
            "segment_bytes": self.segment_bytes,
            "largest_segment_bytes": self.largest_segment_bytes,
            "totals": {name: list(counts) for name, counts in self.totals.items()},
            "namespaces": dict(self.namespaces),
            "stamps": dict(self.stamps),
            "questions": {
                "name": self.questions.name,
                "size": self.questions.size,
                "count": self.question_count,
            },
            "segments": [
                {
                    "name": segment.name,
                    "size": segment.size,
                    "first_local": segment.first_local,
                    "runs": [list(run) for run in segment.runs],
                    "postings": {"name": segment.postings.name, "size": segment.postings.size},
                }
                | ({"continues": True} if segment.continues else {})
                for segment in self.segments
            ],
        }
        return canonical_json(record) + b"\n"

    @cached_property
    def id(self) -> str:
        """The id of the generation: the SHA-256 of the manifest, in hex."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def entry(self) -> FileEntry:
        """The manifest's own file."""
        return FileEntry(manifest_name(self.id), len(self.data))

    @property
    def topics(self) -> int:
        """The number of names in all namespaces."""
        return sum(segment.names for segment in self.segments)

    @property
    def files(self) -> tuple[FileEntry, ...]:
        """All files except the manifest."""
        return (self.questions, *self.segments, *(segment.postings for segment in self.segments))

    @property
    def totals(self) -> Mapping[str, tuple[int, int]]:
        """(non-persistent, persistent) names of each namespace with names."""
        counts = self.counts()
        return {
            name: (counts.get((name, NON_PERSISTENT), 0), counts.get((name, PERSISTENT), 0))
            for name, _ in counts
        }

    def stretches(self) -> list[tuple[SegmentEntry, ...]]:
        """The segments by stretch, in order: a stretch lies between two boundaries by content."""
        found: list[list[SegmentEntry]] = []
        for segment in self.segments:
            if segment.continues and found:
                found[-1].append(segment)
            else:
                found.append([segment])
        return [tuple(stretch) for stretch in found]

    def counts(self) -> dict[tuple[str, str], int]:
        """The number of names of each (namespace, domain) with names."""
        counts: dict[tuple[str, str], int] = {}
        for segment in self.segments:
            for namespace, domain, names in segment.runs:
                counts[namespace, domain] = counts.get((namespace, domain), 0) + names
        return counts

    def version(self, namespace: str) -> CatalogVersion:
        """The state of a namespace that the answers are for. In a static catalogue its number means nothing."""
        number = self.namespaces.get(namespace) or 0
        return CatalogVersion(self.catalogue_id, number, self.stamps.get(namespace, ""))

    def versions(self) -> dict[str, CatalogVersion]:
        """The states of the namespaces that were read. In a static catalogue they are known by their stamps alone."""
        return {name: self.version(name) for name in (self.stamps if self.static else self.namespaces)}

    @classmethod
    def parse(cls, data: bytes, file: str) -> Manifest:
        """The manifest of these bytes. ``file`` is its name in errors.

        Raises :exc:`~broker_core_spark.errors.InvalidGeneration` for anything but a manifest of this version.
        """
        try:
            record = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise InvalidGeneration(file, f"it is no JSON: {error}") from None
        if not isinstance(record, dict) or record.get("format") != _FORMAT:
            raise InvalidGeneration(file, "it is no manifest of a generation")
        if record.get("version") != FORMAT_VERSION:
            raise OtherFormatVersion(
                file,
                f"format version {str(record.get('version'))[:20]}: only {FORMAT_VERSION} is known here. "
                "Build the generation again with this version",
            )
        try:
            manifest = _manifest(record)
            manifest.check()
            if record["totals"] != {name: list(counts) for name, counts in manifest.totals.items()}:
                raise ValueError("the totals of its namespaces are not those of its segments: one is missing")
        except BrokerCoreError as error:
            raise InvalidGeneration(file, str(error)) from None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise InvalidGeneration(file, f"a part is not what it must be: {error!s:.200}") from None
        if manifest.data != data:
            raise InvalidGeneration(file, "it is not in its canonical form")
        return manifest

    def check(self) -> None:
        """Raise :exc:`ValueError` if parts contradict each other."""
        for namespace, version in self.namespaces.items():
            NamespaceName.parse(namespace)
            if (version is None) is not self.static:
                raise ValueError("a version of every namespace, or of none if the catalogue is static")
        if list(self.property_keys) != sorted(set(self.property_keys)):
            raise ValueError("property keys are sorted, each once")
        for namespace, stamp in self.stamps.items():
            NamespaceName.parse(namespace)
            if not stamp or (self.namespaces.get(namespace) is None and not self.static):
                raise ValueError(f"a stamp of {namespace}, which has no version")
        for folder, files in (
            ("questions", [self.questions]),
            ("segments", self.segments),
            ("postings", [segment.postings for segment in self.segments]),
        ):
            for file in files:
                if not _FILES[folder].fullmatch(file.name) or not 0 <= file.size <= _MOST:
                    raise ValueError(f"{file.name!r} is no file of a generation")
        orders = [segment.order for segment in self.segments]
        if any(later <= earlier for earlier, later in pairwise(orders)):
            raise ValueError("the segments are not in order")
        if self.segments and self.segments[0].continues:
            raise ValueError("the first segment continues none")
        # A run may continue in the next segment, but its namespace and domain must not come back later.
        last = ("", 0)
        for segment in self.segments:
            for number, (namespace, domain, _) in enumerate(segment.runs):
                place = (namespace, DOMAIN_ORDER.index(domain))
                if place < last or (number and place == last):
                    raise ValueError(
                        f"the runs of the segments are not in order: {domain} names of {namespace}"
                    )
                last = place
        for namespace, _ in self.counts():
            if namespace not in self.namespaces:
                raise ValueError(f"{namespace} has names but is none of its namespaces")


def _manifest(record: dict[str, Any]) -> Manifest:
    catalogue, questions = record["catalogue"], record["questions"]
    return Manifest(
        _text(catalogue["id"]),
        _flag(catalogue["static"]),
        tuple(_text(key) for key in record["property_keys"]),
        _number(record["segment_bytes"], 1),
        {
            _text(name): None if version is None else _number(version)
            for name, version in record["namespaces"].items()
        },
        _number(questions["count"]),
        FileEntry(_text(questions["name"]), _number(questions["size"])),
        tuple(_segment(segment) for segment in record["segments"]),
        {_text(name): _text(stamp) for name, stamp in record["stamps"].items()},
        _number(record["largest_segment_bytes"], 1),
    )


def _segment(record: dict[str, Any]) -> SegmentEntry:
    runs = []
    for namespace, domain, names in record["runs"]:
        if domain not in DOMAIN_ORDER:
            raise ValueError(f"{domain!r} is no domain")
        runs.append((_text(namespace), domain, _number(names, 1)))
    if not runs:
        raise ValueError("a segment without names")
    postings = record["postings"]
    return SegmentEntry(
        _text(record["name"]),
        _number(record["size"]),
        _text(record["first_local"]),
        tuple(runs),
        FileEntry(_text(postings["name"]), _number(postings["size"])),
        _flag(record.get("continues", False)),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.100} is no string")
    value.encode()  # a lone surrogate raises
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r:.100} is neither true nor false")
    return value


def _number(value: Any, least: int = 0) -> int:
    if type(value) is not int or not least <= value <= _MOST:
        raise ValueError(f"{value!r:.100} is no number from {least} on")
    return value
