"""A segment written in one process: both of its files, from the matches of its runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from broker_core import EncodedNames
from broker_core_spark.format.canonical_question import NameSelector
from broker_core_spark.format.framed_file import FramedFile
from broker_core_spark.format.manifest import FileEntry, SegmentEntry
from broker_core_spark.format.names_writer import NamesWriter
from broker_core_spark.format.picked_words import Matches
from broker_core_spark.format.postings_collector import PostingsCollector
from broker_core_spark.format.postings_file import PostingsWriter, RunPostings
from broker_core_spark.format.selector_keys import SelectorKeys

__all__ = ["SegmentFiles", "SegmentWriter"]


@dataclass(slots=True)
class SegmentFiles:
    """A written segment: its entry in the manifest, and its files."""

    entry: SegmentEntry
    names: FramedFile
    postings: FramedFile


class SegmentWriter:
    """The writer of both files of a segment."""

    def __init__(self, *, continues: bool = False) -> None:
        """``continues`` says that the segment is a later piece of a stretch."""
        self._names = NamesWriter()
        self._postings = PostingsWriter()
        self._continues = continues

    def add_run(
        self,
        names: EncodedNames,
        selectors: Sequence[NameSelector],
        matches: Iterable[tuple[NameSelector, Matches]],
    ) -> RunPostings:
        """Append the names of one namespace and domain, at least one, and give their postings.

        ``selectors`` are all that were asked. ``matches`` are the names that they pick, in any order; a selector
        without names may be left out. Runs come in the order of all names, none twice; else :exc:`ValueError`.
        """
        self._names.add_run(names)
        keys = SelectorKeys.of(selector.key for selector in selectors)
        found = PostingsCollector(names)
        for selector, picked in matches:
            if selector.key not in keys.keys:
                raise ValueError(f"the matches of {selector}, which is none of those that were asked")
            found.add(selector.key, picked)
        _, (postings,) = found.finish()
        self._postings.add_run(str(names.namespace), names.domain, postings, keys)
        return postings

    def finish(self) -> SegmentFiles:
        """The files. The writer is not used afterwards."""
        names = self._names.finish()
        postings = self._postings.finish()
        entry = SegmentEntry(
            names.name,
            names.size,
            self._names.first_local,
            tuple(self._names.runs),
            FileEntry(postings.name, postings.size),
            self._continues,
        )
        return SegmentFiles(entry, names, postings)
