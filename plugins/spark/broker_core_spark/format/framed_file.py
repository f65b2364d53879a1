"""The frame that names files and postings files have: header, directory and trailer. Writing one, and reading one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from broker_core.errors import BrokerCoreError
from broker_core.names import NamespaceName
from broker_core_spark.errors import InvalidGeneration
from broker_core_spark.format import segment_layout
from broker_core_spark.format.canonical_question import DOMAIN_ORDER, canonical_json
from broker_core_spark.format.manifest import FileEntry
from broker_core_spark.format.segment_layout import FileKind, RunPlace

__all__ = ["FramedFile", "FramedWriter", "open_frame", "section_buffers"]


@dataclass(frozen=True, slots=True)
class FramedFile(FileEntry):
    """A written file, as the parts of its bytes: views of the columns that it was made of. It is put under ``name``."""

    data: Sequence[memoryview]

    @property
    def entry(self) -> FileEntry:
        """The file as a manifest has it."""
        return FileEntry(self.name, self.size)


class FramedWriter:
    """Writes a file of a kind. No byte is copied, so buffers stay as they are until the file is in a store."""

    def __init__(self, kind: FileKind) -> None:
        self._kind = kind
        self._data: list[memoryview] = []
        self._digest = hashlib.sha256()
        self._directory: list[dict[str, Any]] = []
        #: Bytes so far.
        self.size = 0
        self.write(segment_layout.HEADER.pack(kind.head, segment_layout.FORMAT_VERSION, 0))

    def write(self, data: Any) -> None:
        """Append a buffer."""
        view = memoryview(data)
        if not view.nbytes:
            return
        view = view.cast("B")
        self._data.append(view)
        self._digest.update(view)
        self.size += len(view)

    def add(self, record: dict[str, Any], sizes: Sequence[int], *sections: Iterable[Any]) -> None:
        """Append the two sections of a run, each of some buffers, and its record with its sizes to the directory."""
        for buffers in sections:
            for data in buffers:
                self.write(data)
            self.write(bytes(segment_layout.padding(self.size)))
        self._directory.append(record | dict(zip(self._kind.sizes, sizes, strict=True)))

    def finish(self) -> FramedFile:
        """The whole file. The writer is not used afterwards. Raises :exc:`ValueError` without a run."""
        if not self._directory:
            raise ValueError("a file of a segment has at least one run of names")
        at = self.size
        directory = canonical_json({"runs": self._directory})
        self.write(directory)
        self.write(segment_layout.TRAILER.pack(at, len(directory), self._kind.tail))
        name = f"{self._kind.folder}/{self._digest.hexdigest()}.{self._kind.suffix}"
        data, self._data = self._data, []  # a writer that is kept does not hold the file
        return FramedFile(name, self.size, data)


def open_frame(kind: FileKind, buffer: pa.Buffer, file: str) -> list[tuple[dict[str, Any], RunPlace]]:
    """The runs of a file's directory and their places. ``file`` is its name in errors.

    Raises :exc:`InvalidGeneration`.
    """
    view = memoryview(buffer)
    least = segment_layout.HEADER.size + segment_layout.TRAILER.size
    if len(view) < least:
        raise InvalidGeneration(file, f"{len(view)} bytes are no {kind.title}, which has {least} at least")
    magic, version, zero = segment_layout.HEADER.unpack_from(view)
    if magic != kind.head:
        raise InvalidGeneration(file, f"it does not begin as a {kind.title} does")
    if version != segment_layout.FORMAT_VERSION or zero:
        raise InvalidGeneration(
            file, f"format version {version}.{zero}: only {segment_layout.FORMAT_VERSION}.0 is known here"
        )
    at, size, magic = segment_layout.TRAILER.unpack_from(view, len(view) - segment_layout.TRAILER.size)
    if magic != kind.tail:
        raise InvalidGeneration(file, f"it does not end as a {kind.title} does: it is truncated, or none")
    if at + size != len(view) - segment_layout.TRAILER.size or at < segment_layout.HEADER.size:
        raise InvalidGeneration(file, "its directory is not where it must be")
    if size > segment_layout.DIRECTORY_LIMIT:
        raise InvalidGeneration(file, f"its directory has {size} bytes: too many")
    try:
        return _places(kind, bytes(view[at : at + size]), at)
    except (ValueError, TypeError, KeyError, RecursionError, BrokerCoreError) as error:
        raise InvalidGeneration(file, f"its directory: {error!s:.300}") from None


def _places(kind: FileKind, data: bytes, end: int) -> list[tuple[dict[str, Any], RunPlace]]:
    record = json.loads(data)
    runs = record["runs"]
    if set(record) != {"runs"} or not isinstance(runs, list) or not runs or canonical_json(record) != data:
        raise ValueError("it is not in its canonical form")
    places: list[tuple[dict[str, Any], RunPlace]] = []
    start = segment_layout.HEADER.size
    last = ("", 0)
    for run in runs:
        if set(run) != {"namespace", "domain", *kind.sizes, *kind.digests}:
            raise ValueError("a run has other parts than it must have")
        if any(not isinstance(run[key], str) or len(run[key]) != 64 for key in kind.digests):
            raise ValueError("the digest of the selectors is none")
        NamespaceName.parse(run["namespace"])
        if run["domain"] not in DOMAIN_ORDER:
            raise ValueError(f"{run['domain']!r:.50} is no domain")
        order = (run["namespace"], DOMAIN_ORDER.index(run["domain"]))
        if order <= last:
            raise ValueError("its runs are not in order")
        last = order
        # A bitmap is shorter than its names, so sizes but the names are bounded by the file.
        numbers = [run[key] for key in kind.sizes]
        if any(type(size) is not int or size < 0 for size in numbers) or not 0 < numbers[0] < 2**31:
            raise ValueError("a size is out of bounds")
        place = kind.place(start, *numbers)
        if place.end > end:
            raise ValueError("a run is longer than the file")
        places.append((run, place))
        start = place.end
    if start != end:
        raise ValueError(f"its runs take {start} bytes, but there are {end}")
    return places


def section_buffers(buffer: pa.Buffer, place: RunPlace, file: str) -> tuple[pa.Buffer, pa.Buffer]:
    """The two sections of a run. Raises :exc:`InvalidGeneration` if anything but zeros follows one."""
    view = memoryview(buffer)
    for at, size in place.sections:
        if any(view[at + size : at + size + segment_layout.padding(size)]):
            raise InvalidGeneration(file, "between its sections is something else than zeros")
    first, second = (buffer.slice(*section) for section in place.sections)
    return first, second
