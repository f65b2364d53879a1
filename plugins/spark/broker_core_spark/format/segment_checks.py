"""Checks of segments against their manifest: their runs, their order, their boundaries, their selectors.

All names of a generation ascend strictly, across segments too. If a namespace came back later, only a part of it would
be listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa

from broker_core_spark.errors import InvalidGeneration
from broker_core_spark.format.canonical_question import (
    DOMAIN_ORDER,
    CanonicalQuestion,
    NameSelector,
    required_selectors,
)
from broker_core_spark.format.manifest import Manifest, SegmentEntry
from broker_core_spark.format.postings_file import StoredPostings
from broker_core_spark.format.segment_boundaries import begins_segment
from broker_core_spark.format.segment_reader import SegmentRun
from broker_core_spark.format.selector_keys import NO_SELECTORS, SelectorKeys, split_keys

__all__ = ["NamePlace", "SegmentChecks", "check_first_names", "last_place"]

#: The position of a name among all names of a generation, as in :attr:`~.manifest.SegmentEntry.order`.
NamePlace: TypeAlias = tuple[str, int, bytes]


class SegmentChecks:
    """Checks of the runs of one generation, with all questions that it answers.

    ``keys`` are the keys of the selectors of each (namespace, domain), if they are known without the questions.
    """

    def __init__(
        self,
        manifest: Manifest,
        questions: Iterable[CanonicalQuestion] = (),
        keys: Mapping[tuple[str, str], SelectorKeys] | None = None,
    ) -> None:
        self._manifest = manifest
        #: The selectors of each (namespace, domain).
        self.selectors: Mapping[tuple[str, str], tuple[NameSelector, ...]] = required_selectors(questions)
        if keys is None:
            keys = {
                place: SelectorKeys.of(selector.key for selector in found)
                for place, found in self.selectors.items()
            }
        #: The keys of their selectors.
        self.keys = keys

    def check_runs(self, number: int, postings: Iterable[StoredPostings]) -> None:
        """Check that the runs of a segment are the manifest's, and of its selectors, without reading the names."""
        entry = self._manifest.segments[number]
        if [(run.namespace, run.domain, run.names) for run in postings] != list(entry.runs):
            raise InvalidGeneration(entry.name, "its runs are not those that the manifest has")
        file = entry.postings.name
        for run in postings:
            expected = self.keys.get((run.namespace, run.domain), NO_SELECTORS)
            if run.selectors_digest != expected.digest:
                raise InvalidGeneration(
                    file, f"{run.namespace} was asked other patterns than the questions have"
                )
            if not expected.keys.issuperset(split_keys(run.entries["key"])):
                raise InvalidGeneration(
                    file, f"{run.namespace} has postings of a selector that no question has"
                )

    def check_again(
        self, number: int, postings: Sequence[StoredPostings], preceding: NamePlace | None
    ) -> None:
        """Check a segment without reading its names, which were verified for an equal entry of another manifest.

        ``preceding`` is the place of the last name of the segment before, if that was read.
        """
        entry = self._manifest.segments[number]
        self.check_runs(number, postings)
        if number:
            _check_first_name(entry, self._manifest.segment_bytes)
        if preceding is not None and entry.order <= preceding:
            raise InvalidGeneration(
                entry.name, f"its names of {entry.runs[0][0]} are not behind those before it"
            )

    def runs(
        self,
        number: int,
        postings: Sequence[StoredPostings],
        runs: Iterable[SegmentRun],
        *,
        preceding: NamePlace | None = None,
    ) -> Iterator[SegmentRun]:
        """The ``runs`` of the manifest's segment ``number``, each checked before it is given.

        ``postings`` are those of the runs, which are read only then. ``preceding`` is as for :meth:`check_again`.
        Raises :exc:`InvalidGeneration` with the segment's file.
        """
        self.check_again(number, postings, preceding)
        wanted = self._manifest.segments[number].first_local
        for at, run in enumerate(runs):
            name = run.local_at(0)
            if not at and name != wanted:
                raise InvalidGeneration(
                    run.file, f"its first name is {name!r:.200}, where the manifest has {wanted!r:.200}"
                )
            # Rebuilding and finding names depend on boundaries.
            if at and _begins(run.namespace, run.domain, name, self._manifest.segment_bytes):
                raise InvalidGeneration(
                    run.file, f"{name!r:.200} begins a segment, but there are names before it"
                )
            yield run

    def check_end(self, number: int, last: NamePlace) -> None:
        """Check that the last name of a segment comes before the first one of the next, which need not be read."""
        if number + 1 < len(self._manifest.segments) and last >= self._manifest.segments[number + 1].order:
            raise InvalidGeneration(
                self._manifest.segments[number].name,
                "its names are not all in front of the first one of the next segment",
            )


def last_place(run: SegmentRun) -> NamePlace:
    """The place of a run's last name."""
    name = run.local_at(len(run.names) - 1)
    return run.namespace, DOMAIN_ORDER.index(run.domain), name.encode("utf-16-be")


def check_first_names(manifest: Manifest) -> None:
    """Raise :exc:`InvalidGeneration` for a segment of the manifest whose first name begins none."""
    for entry in manifest.segments[1:]:
        _check_first_name(entry, manifest.segment_bytes)


def _check_first_name(entry: SegmentEntry, target: int) -> None:
    namespace, domain, _ = entry.runs[0]
    try:
        begins = _begins(namespace, domain, entry.first_local, target)
    except ValueError:  # longer than any name
        begins = False
    if begins is entry.continues:
        what = "begins a segment, where one should go on" if begins else "is none that begins a segment"
        raise InvalidGeneration(entry.name, f"its first name {entry.first_local!r:.200} {what}")


def _begins(namespace: str, domain: str, name: str, target: int) -> bool:
    """Whether a local name begins a segment."""
    return bool(begins_segment(namespace, domain, pa.array([name], pa.large_string()), target=target)[0])
