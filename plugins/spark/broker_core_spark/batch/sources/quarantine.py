"""Rows that are no topics, put aside by option instead of ending the build.

Rows are checked together by the code that stages them, so a batch without a wrong row costs one check. Of a batch with
one, halves are checked, and so on; the rows of a small wrong part are checked one by one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final, cast

import numpy as np
import pyarrow as pa

from broker_core import EncodedNames
from broker_core.names import PERSISTENT, TopicName
from broker_core_spark.arrow_columns import not_utf8
from broker_core_spark.batch.errors import InvalidCatalogue
from broker_core_spark.batch.sources.stage_rows import stage_rows
from broker_core_spark.batch.staging.sorted_runs import SortedRun, SortedRunWriter

__all__ = ["MOST_QUARANTINED", "Quarantine", "QuarantinedRow", "without_bad_rows", "without_bad_texts"]

#: Rows that a build puts aside. A source with more is no catalogue.
MOST_QUARANTINED: Final = 100_000
#: Characters of a name and of a reason.
_LONGEST: Final = 1000
#: Rows that are checked one by one where one of them is wrong.
_FEW: Final = 2048
_MARK: Final = b"quarantine "


@dataclass(frozen=True, slots=True)
class QuarantinedRow:
    """A row that is no topic, and why. Bytes that are no UTF-8 are written as ``\\xff``; ``line`` is that of a file."""

    name: str | None
    namespace: str | None
    domain: str | None
    reason: str
    line: int | None = None

    @classmethod
    def of(
        cls,
        name: object,
        reason: str,
        *,
        namespace: object = None,
        domain: object = None,
        line: int | None = None,
    ) -> QuarantinedRow:
        """The row with texts of bounded length."""
        return cls(_shown(name), _shown(namespace), _shown(domain), reason[:_LONGEST], line)


def _shown(value: object) -> str | None:
    if value is None:
        return None
    text = value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)
    return text.encode(errors="backslashreplace").decode()[:_LONGEST]


class Quarantine:
    """The rows that a build, or one task of it, puts aside."""

    def __init__(self) -> None:
        self.rows: list[QuarantinedRow] = []

    def add(self, rows: Iterable[QuarantinedRow]) -> None:
        """Put rows aside. Raises :exc:`InvalidCatalogue` for more than :data:`MOST_QUARANTINED`."""
        for row in rows:
            if len(self.rows) >= MOST_QUARANTINED:
                raise InvalidCatalogue(
                    f"more than {MOST_QUARANTINED:,} rows are no topics; the first: {self.rows[0].reason}"
                )
            self.rows.append(row)

    def results(self) -> Iterator[bytes]:
        """The rows as a task sends them to the driver."""
        if self.rows:
            yield _MARK + json.dumps([asdict(row) for row in self.rows]).encode()

    def take_from(self, results: Iterable[bytes]) -> Iterator[bytes]:
        """The other results of tasks. The rows among them are added."""
        for result in results:
            if result.startswith(_MARK):
                self.add(QuarantinedRow(**row) for row in json.loads(result[len(_MARK) :]))
            else:
                yield result


class _Checker:
    """Checks what a :class:`SortedRunWriter` takes, and writes nothing."""

    def add(
        self, namespace: str, domain: str, names: pa.LargeStringArray, _properties: object = ()
    ) -> Iterator[SortedRun]:
        try:
            EncodedNames.check(names)
        except ValueError as error:  # of a name
            raise InvalidCatalogue(f"{error} (in {domain}://{namespace})") from None
        return iter(())


def without_bad_rows(
    names: pa.LargeStringArray,
    namespaces: pa.LargeStringArray,
    domains: pa.LargeStringArray,
    values: Sequence[pa.LargeStringArray],
    default_namespace: str | None,
    quarantine: Quarantine,
) -> tuple[pa.LargeStringArray, pa.LargeStringArray, pa.LargeStringArray, list[pa.LargeStringArray]]:
    """The columns of :func:`~.stage_rows.stage_rows` without the rows that it would refuse, which are put aside."""
    good = np.ones(len(names), bool)
    parts = [(0, len(names))]
    while parts:
        low, high = parts.pop()
        rows = [column.slice(low, high - low) for column in (names, namespaces, domains)]
        if _fault(rows, default_namespace) is None:
            continue
        if high - low > _FEW:
            middle = (low + high) // 2
            parts += [(middle, high), (low, middle)]
            continue
        texts = (column.to_pylist() for column in rows)
        for number, (name, namespace, domain) in enumerate(zip(*texts, strict=True), low):
            reason = _row_fault(name, namespace, domain, default_namespace)
            if reason is not None:
                good[number] = False
                quarantine.add([QuarantinedRow.of(name, reason, namespace=namespace, domain=domain)])
    if good.all():
        return names, namespaces, domains, list(values)
    mask = pa.array(good)
    names, namespaces, domains, *rest = (
        column.filter(mask) for column in (names, namespaces, domains, *values)
    )
    return names, namespaces, domains, rest


def _fault(columns: Sequence[pa.LargeStringArray], default_namespace: str | None) -> str | None:
    """Why rows cannot be staged, all at once: the reason of one of them."""
    names, namespaces, domains = columns
    try:
        for _ in stage_rows(
            cast(SortedRunWriter, _Checker()), names, namespaces, domains, [], default_namespace
        ):
            pass  # there are none
    except InvalidCatalogue as error:
        return str(error)
    return None


def _row_fault(
    name: str | None, namespace: str | None, domain: str | None, default_namespace: str | None
) -> str | None:
    """The same for one row. It refuses the rows that :func:`_fault` does."""
    if name is None:
        return "a row of the catalogue has no name (null)"
    place = namespace if namespace is not None else default_namespace
    try:
        if "/" not in name:
            if place is None:
                return f"{name[:200]!r} is a local name without a namespace"
            TopicName.parse(f"{PERSISTENT if domain is None else domain}://{place}/{name}")
        elif namespace not in (None, str(TopicName.parse(name).namespace)):
            return f"Topic {name[:200]!r} is not in namespace {namespace[:200]}"
    except ValueError as error:  # of a name
        return str(error)
    return None


def without_bad_texts(batch: pa.RecordBatch, quarantine: Quarantine) -> pa.RecordBatch:
    """The rows of a batch whose first column, the name, is valid UTF-8. The others are put aside."""
    names = batch.column(0)
    try:
        names.cast(pa.large_string()).validate(full=True)
    except pa.ArrowNotImplementedError:
        return batch  # of another type: no row is right
    except pa.ArrowInvalid:
        good = np.ones(len(batch), bool)
        for row, value in not_utf8(names):
            good[row] = False
            quarantine.add(
                [QuarantinedRow.of(value, f"Invalid topic name {value[:100]!r}: no text in UTF-8")]
            )
        return batch.filter(pa.array(good))
    return batch
