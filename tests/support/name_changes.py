"""Changes of topics as snapshots follow them."""

from __future__ import annotations

from broker_core.catalog.snapshots.name_changes import LoggedNames, read_name_changes
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.catalog.topic_record import properties_text
from broker_core.change_log import Changes
from broker_core.names import DOMAINS, NamespaceName
from broker_core.snapshots import Snapshot

__all__ = ["name_changes_of", "name_changes_since"]


def name_changes_of(namespace: NamespaceName, changes: Changes) -> LoggedNames:
    """The names that changes are about, as they would be read from a log."""
    rows = [
        (
            DOMAINS.index(each.name.domain),
            each.name.local,
            str(each.listed_before),
            str(each.listed_after),
            properties_text(each.properties_before),
            properties_text(each.properties_after),
        )
        for each in changes
    ]
    return LoggedNames(namespace, changes.since, changes.version, rows)


def name_changes_since(catalog: SqliteCatalog, snapshot: Snapshot) -> LoggedNames:
    """All that the log of a catalogue has since a snapshot."""
    namespace = snapshot.listing.namespace
    with catalog.reading() as connection:
        changes = read_name_changes(
            connection, namespace, snapshot.version, most=10_000, properties=bool(snapshot.property_keys)
        )
    assert isinstance(changes, LoggedNames)
    return changes
