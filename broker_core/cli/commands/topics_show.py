"""`broker-core topics show`: topics with ids, partitions and properties, or the namespaces with their versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from broker_core.cli.common_options import Invocation
from broker_core.cli.help_examples import examples
from broker_core.cli.open_catalog import opened_catalog
from broker_core.cli.options.question import parse_namespace
from broker_core.cli.options.topics import CatalogOption, is_namespace, topic_names

if TYPE_CHECKING:
    from broker_core.catalog import SqliteCatalog, TopicRecord
    from broker_core.names import NamespaceName, TopicName

__all__ = ["EXAMPLES", "show_topics"]

EXAMPLES: Final = examples(
    "# how many topics each namespace has",
    "broker-core topics show",
    "broker-core topics show public/default orders --format json",
)


def show_topics(
    invocation: Invocation,
    topics: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAMESPACE] [TOPIC...]", help="Without a topic: the namespaces.", show_default=False
        ),
    ] = None,
    *,
    form: Annotated[Literal["table", "json"], typer.Option("--format", help="How to print it.")] = "table",
    catalog: CatalogOption = None,
) -> None:
    """Show topics with their ids, partitions and properties; or namespaces with their versions."""
    from broker_core.cli.printed_output import print_json, print_table

    words = topics or []
    with opened_catalog(invocation, catalog) as opened:
        if not words or (len(words) == 1 and is_namespace(words[0])):
            columns = ["namespace", "topics", "names", "version"]
            rows = _namespaces(opened, parse_namespace(words[0]) if words else None)
        else:
            columns = ["name", "id", "partitions", "properties", "created"]
            rows = [_described(opened, name) for name in topic_names(words)]
    if form == "json":
        print_json(rows[0] if len(rows) == 1 and words else rows)
    else:
        print_table(columns, ([_cell(row[column]) for column in columns] for row in rows))


def _namespaces(catalog: SqliteCatalog, only: NamespaceName | None) -> list[dict[str, Any]]:
    from broker_core.catalog import summarize

    summaries = (summarize(catalog, name) for name in ([only] if only is not None else catalog.namespaces()))
    return [
        {
            "namespace": str(summary.namespace),
            "topics": summary.topics,
            "names": summary.names,
            "version": str(summary.version),
        }
        for summary in summaries
    ]


def _described(catalog: SqliteCatalog, name: TopicName) -> dict[str, Any]:
    from broker_core.catalog import TopicMissing, topic_id_text

    record: TopicRecord | None = catalog.topic(name)
    if record is None:
        raise TopicMissing(f"There is no topic {name} in the catalogue")
    return {
        "name": str(record.name),
        "id": topic_id_text(record.topic_id),
        "partitions": record.partitions,
        "properties": dict(record.properties),
        "created": record.created.isoformat(timespec="milliseconds"),
        "names": list(record.names),
    }


def _cell(value: object) -> object:
    if isinstance(value, dict):
        return " ".join(f"{key}={inner}" for key, inner in value.items())
    return value
