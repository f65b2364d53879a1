"""The rows of requests and answers that have pages, and their orders: a table of all APIs with pages.

A row for each, as docs/reference/kafka.md#pages lists them; the fields of cursors are those of KIP-1062.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from broker_core.listing import utf16_key
from broker_core.servers.kafka.pages.answer_page import Key
from broker_core.wire.kafka import (
    CONSUMER_GROUP_DESCRIBE,
    DESCRIBE_ACLS,
    DESCRIBE_CONFIGS,
    DESCRIBE_GROUPS,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_PRODUCERS,
    DESCRIBE_TOPIC_PARTITIONS,
    DESCRIBE_TRANSACTIONS,
    LIST_GROUPS,
    LIST_OFFSETS,
    LIST_PARTITION_REASSIGNMENTS,
    LIST_TRANSACTIONS,
    METADATA,
    OFFSET_FETCH,
    Api,
    Order,
    order_of,
    ordered,
)

__all__ = ["LOG_DIR", "Level", "PageShape", "arrays_of", "shape_of"]

#: The one directory of topics that clients are shown.
LOG_DIR: Final = "/broker-core"
#: The newest producer, which a partition without producers stands for.
_NEWEST: Final = 2**63 - 1
#: The first value of each field of a cursor; other fields are texts, and begin with the empty one.
_BEGINNINGS: Final[Mapping[str, int]] = {"partition_index": 0, "producer_id": _NEWEST, "resource_type": 0}


@dataclass(frozen=True, slots=True)
class Level:
    """An ``array`` of structs, and by the fields of the cursor the fields of its elements; ``""`` is the element
    itself.
    """

    array: str
    keys: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PageShape:
    """Places of wanted names, units and cursor in the requests and answers of one API.

    ``fields`` are the cursor's. ``requested`` are the arrays of the request with the wanted names, each in the elements
    of the one before, and ``answered`` the arrays of the answer; units are the elements of the last one.

    ``refused`` is the array whose rows have the error of a request that is refused, ``None``: the answer as a whole.
    """

    fields: tuple[str, ...]
    answered: tuple[Level, ...]
    requested: tuple[Level, ...] = ()
    refused: int | None = None
    #: A field of the request that is the first one of all cursors.
    of_body: str = ""
    #: Whether an item of the request may have no row.
    sparse: bool = False
    #: Whether there is one row for each item of the request, in its order: rows may be encoded already.
    one_each: bool = False
    #: The row with the error of a request that asks for nothing by name.
    lone: Mapping[str, str] | None = None
    #: The field of the first array that names topics in place of a name.
    by_id: str = ""
    #: Whether the rows of topics have ids and no names.
    nameless: bool = False
    #: KIP-966 as Kafka has it: errors are free, denied topics come last, and a page may begin after a topic's end.
    as_kafka: bool = False
    #: The fields as they are compared.
    order: tuple[str, ...] = field(init=False)
    #: The place before all others.
    beginning: Key = field(init=False)
    #: The fields by which the request's arrays have the answer's order; ``None`` if they do not.
    requested_fields: tuple[str, ...] | None = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "beginning", tuple(_BEGINNINGS.get(each, "") for each in self.fields))
        object.__setattr__(self, "order", ordered(self.fields))
        requested = tuple(key for level in self.requested for key in level.keys)
        requested = (self.of_body, *requested) if self.of_body else requested
        fits = requested and requested == self.order[: len(requested)]
        object.__setattr__(self, "requested_fields", requested if fits else None)

    def order_of(
        self,
        key: Key,
        topic_id: uuid.UUID,
        fields: Sequence[str] | None = None,
        text_key: Callable[[str], bytes] = utf16_key,
    ) -> Order:
        """The value by which a key is compared; with ``fields``, by these alone."""
        values = dict(zip(self.fields, key, strict=True))
        return order_of(values, self.order if fields is None else fields, topic_id, text_key=text_key)


def _levels(*arrays: tuple[str, dict[str, str]]) -> tuple[Level, ...]:
    return tuple(Level(*each) for each in arrays)


_PARTITION: Final = ("topic_name", "partition_index")
_MEMBER: Final = ("group_id", "member_id")
_RESOURCE: Final = ("resource_name", "resource_type")
_TRANSACTION: Final = ("transactional_id", "producer_id")
_TOPICS: Final = ("topics", {"topic_name": "name"})
_PARTITIONS: Final = ("partitions", {"partition_index": "partition_index"})
_INDEXES: Final = ("partition_indexes", {"partition_index": ""})
_GROUPS: Final = ("groups", {"group_id": "group_id"})
_MEMBERS: Final = ("members", {"member_id": "member_id"})
_RESOURCES: Final = {"resource_name": "resource_name", "resource_type": "resource_type"}
_STATES: Final = (
    "transaction_states",
    {"transactional_id": "transactional_id", "producer_id": "producer_id"},
)

#: The shapes of an API's versions, each with the first version that has it, by API.
_SHAPES: Final[Mapping[Api, Sequence[tuple[int, PageShape]]]] = {
    METADATA: [
        (
            9,
            PageShape(
                _PARTITION,
                _levels(_TOPICS, _PARTITIONS),
                _levels(_TOPICS),
                0,
                lone={"name": ""},
                by_id="topic_id",
            ),
        ),
        (13, PageShape(_PARTITION, _levels(_TOPICS, _PARTITIONS), _levels(_TOPICS), by_id="topic_id")),
    ],
    DESCRIBE_TOPIC_PARTITIONS: [
        (0, PageShape(_PARTITION, _levels(_TOPICS, _PARTITIONS), _levels(_TOPICS), 0, as_kafka=True)),
    ],
    LIST_OFFSETS: [
        (6, PageShape(_PARTITION, _levels(_TOPICS, _PARTITIONS), _levels(_TOPICS, _PARTITIONS), 1)),
    ],
    LIST_PARTITION_REASSIGNMENTS: [
        (0, PageShape(_PARTITION, _levels(_TOPICS, _PARTITIONS), _levels(_TOPICS, _INDEXES), sparse=True)),
    ],
    DESCRIBE_LOG_DIRS: [
        (
            first,
            PageShape(
                (*_PARTITION, "log_dir"),
                _levels(("results", {"log_dir": "log_dir"}), _TOPICS, _PARTITIONS),
                _levels(("topics", {"topic_name": "topic"}), ("partitions", {"partition_index": ""})),
                refused,
                sparse=True,
                lone={"log_dir": LOG_DIR},
            ),
        )
        for first, refused in ((2, 0), (3, None))
    ],
    OFFSET_FETCH: [
        (
            6,
            PageShape(
                ("group_id", *_PARTITION),
                _levels(_TOPICS, _PARTITIONS),
                _levels(_TOPICS, _INDEXES),
                of_body="group_id",
            ),
        ),
        (
            8,
            PageShape(
                ("group_id", *_PARTITION),
                _levels(_GROUPS, _TOPICS, _PARTITIONS),
                _levels(_GROUPS, _TOPICS, _INDEXES),
                0,
            ),
        ),
        # From 10 on topics are asked for by their ids, and still in the order of their names.
        (
            10,
            PageShape(
                ("group_id", *_PARTITION),
                _levels(_GROUPS, _TOPICS, _PARTITIONS),
                _levels(_GROUPS),
                0,
                nameless=True,
            ),
        ),
    ],
    DESCRIBE_PRODUCERS: [
        (
            0,
            PageShape(
                (*_PARTITION, "producer_id"),
                _levels(_TOPICS, _PARTITIONS, ("active_producers", {"producer_id": "producer_id"})),
                _levels(_TOPICS, _INDEXES),
                1,
            ),
        ),
    ],
    LIST_TRANSACTIONS: [(0, PageShape(_TRANSACTION, _levels(_STATES)))],
    DESCRIBE_TRANSACTIONS: [
        (
            0,
            PageShape(
                _TRANSACTION,
                _levels(_STATES),
                _levels(("transactional_ids", {"transactional_id": ""})),
                0,
            ),
        ),
    ],
    LIST_GROUPS: [(3, PageShape(("group_id",), _levels(_GROUPS)))],
    DESCRIBE_GROUPS: [
        (5, PageShape(_MEMBER, _levels(_GROUPS, _MEMBERS), _levels(("groups", {"group_id": ""})), 0)),
    ],
    CONSUMER_GROUP_DESCRIBE: [
        (0, PageShape(_MEMBER, _levels(_GROUPS, _MEMBERS), _levels(("group_ids", {"group_id": ""})), 0)),
    ],
    DESCRIBE_ACLS: [(2, PageShape(_RESOURCE, _levels(("resources", _RESOURCES))))],
    DESCRIBE_CONFIGS: [
        (
            4,
            PageShape(
                _RESOURCE,
                _levels(("results", _RESOURCES)),
                _levels(("resources", _RESOURCES)),
                0,
                one_each=True,
            ),
        ),
    ],
}


def shape_of(api: Api, version: int) -> PageShape | None:
    """The pages of a version of an API; ``None`` if it has none."""
    return next((shape for first, shape in reversed(_SHAPES.get(api, ())) if first <= version), None)


def arrays_of(api: Api, version: int) -> PageShape:
    """The arrays of a version of an API that has pages in some; before the first such version, that version's."""
    return shape_of(api, version) or _SHAPES[api][0][1]
