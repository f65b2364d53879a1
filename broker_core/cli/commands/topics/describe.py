"""`broker-core topics describe`: all that the catalogue has of topics, found by their names or ids."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import typer

from broker_core.cli.common_options import Invocation
from broker_core.cli.described_topics import described, named_topic
from broker_core.cli.help_examples import examples
from broker_core.cli.open_catalog import opened_catalog
from broker_core.cli.options.topics import CatalogOption, IdsOption, names_and_ids

__all__ = ["EXAMPLES", "describe_topics"]

EXAMPLES: Final = examples(
    "broker-core topics describe public/default orders",
    "broker-core topics describe --id pLW3lPqvQYyE8maO_j3eRw --format json",
)


def describe_topics(
    invocation: Invocation,
    topics: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAMESPACE] [TOPIC...]",
            help="Full names, or a namespace and names in it.",
            show_default=False,
        ),
    ] = None,
    *,
    ids: IdsOption = None,
    form: Annotated[Literal["table", "json"], typer.Option("--format", help="How to print it.")] = "table",
    catalog: CatalogOption = None,
) -> None:
    """Show all that the catalogue has of topics, by their names or ids: properties, Kafka's configs, replicas."""
    from broker_core.cli.printed_output import print_rows

    names, wanted = names_and_ids(topics, ids)
    with opened_catalog(invocation, catalog) as opened:
        found = [named_topic(opened, name) for name in names]
        found += [opened.topic_of_id(topic_id) for topic_id in wanted]
    columns = ["name", "topic_id", "partitions", "replication", "properties", "configs", "created"]
    print_rows(columns, [described(record) for record in found], form, alone=True)
