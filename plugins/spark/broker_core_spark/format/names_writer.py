"""The file of a segment's names: its runs, one after the other, each sorted.

Equal runs give equal bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from broker_core import EncodedNames
from broker_core.quantities import counted
from broker_core_spark.arrow_columns import Array, buffer_and_offsets
from broker_core_spark.format import segment_layout
from broker_core_spark.format.canonical_question import DOMAIN_ORDER
from broker_core_spark.format.framed_file import FramedWriter

__all__ = ["FieldParts", "NamesWriter"]

_MOST_NAMES: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class FieldParts:
    """Encoded names in neighbouring parts, of which nothing is copied.

    ``offsets`` are where each begins in all of them, and where the last one ends (int64).
    """

    offsets: Array
    data: Sequence[memoryview]

    @classmethod
    def of(cls, parts: Iterable[pa.LargeBinaryArray]) -> FieldParts:
        """The fields of these columns."""
        columns = [buffer_and_offsets(part) for part in parts]
        begins = np.cumsum([0, *(own[-1] - own[0] for _, own in columns)])
        starts = [own[:-1] + (begin - own[0]) for (_, own), begin in zip(columns, begins, strict=False)]
        data = [memoryview(buffer)[int(own[0]) : int(own[-1])] for buffer, own in columns]
        return cls(np.concatenate([*starts, begins[-1:]]), data)


class NamesWriter(FramedWriter):
    """The writer of a names file."""

    def __init__(self) -> None:
        super().__init__(segment_layout.NAMES)
        #: (namespace, domain, number of names) of each run so far.
        self.runs: list[tuple[str, str, int]] = []
        #: The first local name of the first run.
        self.first_local = ""

    def add_run(self, *parts: EncodedNames) -> FieldParts:
        """Append the names of one namespace and domain, at least one, in neighbouring parts. Returns their fields.

        Runs come in the order of all names, none twice. Raises :exc:`ValueError` otherwise.
        """
        namespace, domain = str(parts[0].namespace), parts[0].domain
        fields = FieldParts.of(part.fields for part in parts)
        names, total = len(fields.offsets) - 1, int(fields.offsets[-1])
        self._check_run(namespace, domain, names)
        if total > segment_layout.MOST_FIELD_BYTES:
            raise ValueError(f"the names of {namespace} in one segment take {total} bytes: too many")
        run = {"namespace": namespace, "domain": domain}
        self.add(run, (names, total), [fields.offsets.astype("<u4")], fields.data)
        if not self.runs:
            self.first_local = parts[0].slice(0, 1).names[0].as_py()
        self.runs.append((namespace, domain, names))
        return fields

    def _check_run(self, namespace: str, domain: str, count: int) -> None:
        if not 0 < count <= _MOST_NAMES:
            raise ValueError(f"a run of {counted(count, 'name')}: from 1 to {_MOST_NAMES}")
        place = (namespace, DOMAIN_ORDER.index(domain))
        if self.runs and place <= (self.runs[-1][0], DOMAIN_ORDER.index(self.runs[-1][1])):
            raise ValueError(f"the run of {domain} names of {namespace} is not in order")
