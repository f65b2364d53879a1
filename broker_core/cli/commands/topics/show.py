"""`broker-core topics show`: topics with ids, partitions and properties, or the namespaces with their versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from broker_core.cli.common_options import Invocation
from broker_core.cli.described_topics import described, named_topic
from broker_core.cli.help_examples import examples
from broker_core.cli.open_catalog import opened_catalog
from broker_core.cli.options.option_values import parse_namespace
from broker_core.cli.options.topics import CatalogOption, is_namespace, topic_names

if TYPE_CHECKING:
    from broker_core.catalog import SqliteCatalog
    from broker_core.names import NamespaceName

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
    from broker_core.cli.printed_output import print_rows

    words = topics or []
    with opened_catalog(invocation, catalog) as opened:
        if not words or (len(words) == 1 and is_namespace(words[0])):
            columns = ["namespace", "topics", "names", "version"]
            rows = _namespaces(opened, parse_namespace(words[0]) if words else None)
        else:
            columns = ["name", "topic_id", "partitions", "properties", "created"]
            rows = [described(named_topic(opened, name)) for name in topic_names(words)]
    print_rows(columns, rows, form, alone=bool(words))


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
