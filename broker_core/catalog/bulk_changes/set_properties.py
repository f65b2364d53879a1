"""Changes of properties key by key: of one topic, or of all that match a pattern, in one transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from broker_core.catalog.bulk_changes.change_many_topics import TopicState, change_topics, topics_matching
from broker_core.catalog.catalog_errors import CatalogError
from broker_core.catalog.properties import checked_text, properties_of
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.catalog.topic_decisions import adjustment
from broker_core.names import ListedNames, NamespaceName, TopicName

__all__ = ["PropertiesChange", "PropertiesReport", "set_properties", "set_properties_of_matching"]


@dataclass(frozen=True, slots=True)
class PropertiesChange:
    """A change of properties: keys of ``unset`` go (all keys with ``replace``), then the ``given`` ones are set."""

    given: Mapping[str, str] = field(default_factory=dict)
    unset: Collection[str] = ()
    replace: bool = False

    def check(self) -> None:
        """Raise :exc:`CatalogError` if the change is empty or contradicts itself."""
        if not self.given and not self.unset and not self.replace:
            raise CatalogError("No property is given: KEY=VALUE sets one, --unset KEY takes one away")
        both = sorted(set(self.given) & set(self.unset))
        if both:
            raise CatalogError(f"Property {both[0]!r} is both set and unset")
        checked_text(self.given)

    def of(self, properties: Mapping[str, str]) -> dict[str, str]:
        """The properties of a topic after the change."""
        kept = {} if self.replace else {k: v for k, v in properties.items() if k not in self.unset}
        return kept | dict(self.given)


@dataclass(frozen=True, slots=True)
class PropertiesReport:
    """The number of selected ``topics``, of their listed ``names``, and of topics that ``changed``."""

    topics: int
    names: int
    changed: int


def set_properties(
    catalog: SqliteCatalog, name: TopicName, wanted: PropertiesChange, *, dry_run: bool = False
) -> PropertiesReport:
    """Change a topic, named by its own name or by one of its partitions: all of its names.

    If the topic has the properties already, nothing changes, not even the version. Raises
    :exc:`~broker_core.catalog.TopicMissing`, and :exc:`CatalogError` for invalid properties.
    """
    wanted.check()
    write = catalog.edit(name, adjustment(name, properties=wanted.of), dry_run=dry_run)
    assert write.after is not None
    return PropertiesReport(1, len(write.after.listed), int(write.changed))


def set_properties_of_matching(
    catalog: SqliteCatalog,
    namespace: NamespaceName,
    pattern: str,
    wanted: PropertiesChange,
    *,
    dry_run: bool = False,
) -> PropertiesReport:
    """Change all topics of a namespace whose name matches, as a listing by this pattern would (of either domain).

    Raises :exc:`~broker_core.errors.InvalidPattern`.
    """
    with catalog.changing(namespace, dry_run=dry_run) as (connection, change):
        report, states = _changed(topics_matching(connection, namespace, change.id, pattern), wanted)
        if not dry_run:
            change_topics(connection, change, states)
        return report


def _changed(
    topics: Iterable[TopicState], wanted: PropertiesChange
) -> tuple[PropertiesReport, list[TopicState]]:
    """The counts of the selected topics, and the new states of topics whose properties change."""
    wanted.check()
    known: dict[str | None, str] = {}
    states = []
    count = names = 0
    for topic in topics:
        count += 1
        names += len(ListedNames.parse(topic.listed))
        if topic.properties not in known:
            known[topic.properties] = checked_text(wanted.of(properties_of(topic.properties)))
        text = known[topic.properties]
        if text != (topic.properties or "{}"):
            states.append(replace(topic, properties=text))
    return PropertiesReport(count, names, len(states)), states
