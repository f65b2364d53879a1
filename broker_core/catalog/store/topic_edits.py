"""Edits of topics within one transaction: each becomes what its decision makes of it, or is refused by itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from typing import NamedTuple

from broker_core.catalog.errors import CatalogError
from broker_core.catalog.store.namespace_change import NamespaceChange
from broker_core.catalog.store.topic_rows import named_topic, own_topic, write_topic
from broker_core.catalog.topic_decisions import Decide, has_name
from broker_core.catalog.topic_record import TopicRecord
from broker_core.names import TopicName

__all__ = ["Edit", "Require", "edit_each", "edit_topic"]

#: Called with the topic of a name, or ``None``, before it is changed; what it raises refuses the edit.
Require = Callable[[TopicRecord | None], object]


class Edit(NamedTuple):
    """What to make of the topic of a name (:mod:`broker_core.catalog.topic_decisions`)."""

    topic: TopicName
    decide: Decide
    require: Require | None = None


def edit_topic(
    connection: sqlite3.Connection, change: NamespaceChange, edit: Edit
) -> tuple[TopicRecord | None, TopicRecord | None]:
    """Do one edit within the transaction of ``change``; returns the topic before and after it.

    What the edit refuses is raised before anything of it is written.
    """
    name, decide, require = edit
    before = named_topic(connection, name)
    if before is None and name.partition >= 0:
        before = own_topic(connection, name.partitioned_name)
    if require is not None:
        require(before if before is not None and has_name(before, name) else None)
    return before, write_topic(connection, change, before, decide(before))


def edit_each(
    connection: sqlite3.Connection, change: NamespaceChange, edits: Iterable[Edit]
) -> list[tuple[TopicRecord | None, TopicRecord | None] | CatalogError]:
    """Do edits in their order, each on what those before it left; a refused one is the error that says why."""
    done: list[tuple[TopicRecord | None, TopicRecord | None] | CatalogError] = []
    for edit in edits:
        try:
            done.append(edit_topic(connection, change, edit))
        except CatalogError as error:
            done.append(error)
    return done
