"""Writing a segment: a file of the sorted names of its runs, and a file of what each selector picks of them.

A writer holds one run at a time. Files are in memory up to 64 MiB, then in temporary files. Equal runs give equal
bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from broker_core import EncodedNames
from broker_core_spark.arrow_columns import buffer_and_offsets
from broker_core_spark.format import segment_layout
from broker_core_spark.format.canonical_question import DOMAIN_ORDER, NameSelector
from broker_core_spark.format.framed_file import FramedFile, FramedWriter
from broker_core_spark.format.manifest import FileEntry, SegmentEntry
from broker_core_spark.format.picked_words import Matches
from broker_core_spark.format.postings_collector import PostingsCollector
from broker_core_spark.format.postings_file import PostingsWriter, RunPostings
from broker_core_spark.format.selector_keys import SelectorKeys

__all__ = ["Matches", "NamesWriter", "SegmentFiles", "SegmentWriter"]

_MOST_NAMES: Final = 2**31 - 1
_Array = np.ndarray[Any, Any]


class NamesWriter:
    """The writer of a names file."""

    def __init__(self) -> None:
        self._file = FramedWriter(segment_layout.NAMES)
        #: (namespace, domain, number of names) of each run so far.
        self.runs: list[tuple[str, str, int]] = []
        #: The first local name of the first run.
        self.first_local = ""

    def add_run(self, names: EncodedNames) -> None:
        """Append the names of one namespace and domain, at least one.

        Runs come in the order of all names, none twice. Raises :exc:`ValueError` otherwise.
        """
        namespace, domain = str(names.namespace), names.domain
        self._check_run(namespace, domain, len(names))
        data, offsets = buffer_and_offsets(names.fields)
        first = int(offsets[0])
        offsets = offsets - first
        if int(offsets[-1]) > segment_layout.MOST_FIELD_BYTES:
            raise ValueError(
                f"the names of {namespace} in one segment take {int(offsets[-1])} bytes: too many"
            )
        place = segment_layout.NamesLayout(self._file.size, len(names), int(offsets[-1]))
        self._file.write(offsets.astype("<u4"))
        self._file.pad()
        self._file.write(memoryview(data)[first : first + place.fields_size])
        self._file.pad()
        self._file.add_run({"namespace": namespace, "domain": domain} | place.record())
        if not self.runs:
            self.first_local = names.names[0].as_py()
        self.runs.append((namespace, domain, len(names)))

    def finish(self) -> FramedFile:
        """The whole file."""
        if not self.runs:
            raise ValueError("a segment has at least one run of names")
        return self._file.finish()

    def close(self) -> None:
        """Discard an unfinished file."""
        self._file.close()

    def _check_run(self, namespace: str, domain: str, count: int) -> None:
        if not 0 < count <= _MOST_NAMES:
            raise ValueError(f"a run of {count} names: from 1 to {_MOST_NAMES}")
        place = (namespace, DOMAIN_ORDER.index(domain))
        if self.runs and place <= (self.runs[-1][0], DOMAIN_ORDER.index(self.runs[-1][1])):
            raise ValueError(f"the run of {domain} names of {namespace} is not in order")


@dataclass(slots=True)
class SegmentFiles:
    """A written segment: its entry in the manifest, and its files, at their beginnings."""

    entry: SegmentEntry
    names: FramedFile
    postings: FramedFile

    def close(self) -> None:
        """Close the files."""
        self.names.file.close()
        self.postings.file.close()


class SegmentWriter:
    """The writer of both files of a segment."""

    def __init__(self, *, continues: bool = False) -> None:
        """``continues`` says that the segment is a later piece of a stretch (:mod:`.segment_boundaries`)."""
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

        ``selectors`` are all that were asked (:func:`~.canonical_question.required_selectors`). ``matches`` are the
        names that they pick, in any order; a selector without names may be left out. Runs come in the order of all
        names, none twice. Raises :exc:`ValueError` otherwise.
        """
        self._names.add_run(names)
        asked = SelectorKeys.of(selector.key for selector in selectors)
        found = PostingsCollector(names)
        for selector, picked in matches:
            if selector.key not in asked.keys:
                raise ValueError(f"the matches of {selector}, which is none of those that were asked")
            found.add(selector.key, picked)
        _, (postings,) = found.finish()
        self._postings.add_run(str(names.namespace), names.domain, postings, asked)
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

    @property
    def names(self) -> int:
        """The number of names so far."""
        return sum(run[2] for run in self._names.runs)

    def close(self) -> None:
        """Discard an unfinished segment."""
        self._names.close()
        self._postings.close()
