"""The question for details of some topics of a namespace, by name or by id."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import pyarrow as pa

from broker_core.access import Asker
from broker_core.immutable import copied
from broker_core.listing import DETAIL_TYPES, checked_wants
from broker_core.names import NamespaceName
from broker_core.plugin_api.request_lease import UNCOUNTED, Lease, PausedMemory, Pausing, RequestMemory

__all__ = ["DescribeRequest"]


@dataclass(frozen=True, slots=True, eq=False)
class DescribeRequest:
    """Topics to describe; immutable, and shared by all plugins of the chain.

    Either ``names`` (full names without partition suffix) or ``ids`` (16 bytes each) is an Arrow column without nulls,
    made of a sequence of Python values too; the other is ``None``. ``wants`` are the columns of the
    :class:`~broker_core.listing.details.Details` that are asked for; ``deadline`` is the end of the time for the
    answer, on the clock of the running event loop (seconds).
    """

    namespace: NamespaceName
    asker: Asker = field(default_factory=Asker)
    names: pa.LargeStringArray | None = None
    ids: pa.FixedSizeBinaryArray | None = None
    wants: frozenset[str] = frozenset()
    deadline: float = float("inf")
    memory: RequestMemory = field(default=UNCOUNTED, repr=False)

    def __post_init__(self) -> None:
        if (self.names is None) == (self.ids is None):
            raise TypeError("a DescribeRequest has either names or ids")
        for name, type_ in (("names", pa.large_string()), ("ids", DETAIL_TYPES["topic_id"])):
            values: Any = getattr(self, name)
            if values is not None and not isinstance(values, pa.Array):
                object.__setattr__(self, name, pa.array(values, type_))
        if self.wants:
            object.__setattr__(self, "wants", checked_wants(self.wants))

    def __len__(self) -> int:
        topics = self.ids if self.names is None else self.names
        assert topics is not None
        return len(topics)

    def pausing(self, pausing: Pausing) -> Self:
        """The request as a plugin gets it: ``pausing`` stops the plugin's clock while it waits for a method of the
        request.
        """
        return copied(self, memory=PausedMemory(self.memory, pausing))

    def lease(self, size: int) -> Lease:
        """Memory of ``size`` bytes for this request: ``async with request.lease(size)``, ``with`` in a thread."""
        return Lease(self.memory, size)
