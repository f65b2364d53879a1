"""Edits of topics within one transaction: each is applied as decided, or refused by itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from broker_core.catalog.catalog_errors import CatalogError, NameCollides
from broker_core.catalog.store.change_log_writer import NamespaceChange
from broker_core.catalog.store.taken_names import taken_names
from broker_core.catalog.store.topic_rows import TopicWriter, named_topic, own_topic, own_topics
from broker_core.catalog.topic_decisions import Decide, has_name
from broker_core.catalog.topic_record import TopicRecord
from broker_core.names import TopicName

__all__ = ["Edit", "Require", "edit_each"]

#: From so many edits on, their topics are read together.
_TOGETHER: Final = 8
#: Called with the topic of a name, or ``None``, before it is changed; an exception refuses the edit.
Require = Callable[[TopicRecord | None], object]


class Edit(NamedTuple):
    """An edit of the topic of a name (:mod:`broker_core.catalog.topic_decisions`).

    ``distinct``: the name is refused if it collides with another topic's, as in Kafka. Topics of the same
    transaction may collide.
    """

    topic: TopicName
    decide: Decide
    require: Require | None = None
    distinct: bool = False


def edit_each(
    connection: sqlite3.Connection, change: NamespaceChange, edits: Sequence[Edit]
) -> list[tuple[TopicRecord | None, TopicRecord | None] | CatalogError]:
    """Do edits within the transaction of ``change``, in their order, each on the result of those before it.

    Returns the topic before and after each; for a refused one, of which nothing is written, the error.
    """
    writer = TopicWriter(connection, change)
    known: dict[tuple[str, str], TopicRecord | None] = {}
    if len(edits) >= _TOGETHER:
        plain = [edit.topic for edit in edits if edit.topic.partition < 0]
        known = own_topics(connection, change.namespace, plain)
    marked = [
        name.local for name, _, _, distinct in edits if distinct and ("." in name.local or "_" in name.local)
    ]
    taken = taken_names(connection, change.namespace, marked) if marked else {}
    done: list[tuple[TopicRecord | None, TopicRecord | None] | CatalogError] = []
    for name, decide, require, distinct in edits:
        key = (name.domain, name.local)
        try:
            if distinct and (other := taken.get(name.local, name.local)) != name.local:
                raise NameCollides(name.local, other)
            if key in known:
                before = known[key]
            else:
                writer.flush()
                before = _found(connection, name)
            if require is not None:
                require(before if before is not None and has_name(before, name) else None)
            after = writer.write(before, decide(before))
            done.append((before, after))
        except CatalogError as error:
            done.append(error)
            continue
        if known and (some := after or before) is not None:
            known[some.name.domain, some.name.local] = after
    writer.flush()
    return done


def _found(connection: sqlite3.Connection, name: TopicName) -> TopicRecord | None:
    """The topic of a name; for a missing partition the topic that would have it."""
    before = named_topic(connection, name)
    if before is None and name.partition >= 0:
        before = own_topic(connection, name.partitioned_name)
    return before
