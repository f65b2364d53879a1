"""`broker-core topics create`: new topics in the catalogue."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from broker_core.cli.common_options import Invocation
from broker_core.cli.help_examples import examples
from broker_core.cli.open_catalog import written_catalog
from broker_core.cli.options.question import parse_properties
from broker_core.cli.options.topics import CatalogOption, topic_names

__all__ = ["EXAMPLES", "create_topics"]

EXAMPLES: Final = examples(
    "broker-core topics create public/default orders --partitions 3 --property region=eu"
)

TopicsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="[NAMESPACE] TOPIC...",
        help="Full names, or a namespace and names in it: 'public/default orders' is "
        "'persistent://public/default/orders'.",
        show_default=False,
    ),
]


def create_topics(
    invocation: Invocation,
    topics: TopicsArgument,
    *,
    partitions: Annotated[
        int, typer.Option(metavar="N", help="How many partitions; 0 is a topic without.", min=0)
    ] = 0,
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--property", metavar="KEY=VALUE", help="A property; may be repeated.", show_default=False
        ),
    ] = None,
    catalog: CatalogOption = None,
) -> None:
    """Add topics to the catalogue, each with a new id."""
    given = parse_properties(properties)
    names = topic_names(topics)
    with written_catalog(invocation, catalog, create=True) as opened:
        for name in names:
            record = opened.create(name, partitions=partitions, properties=given or None)
            print(f"created {name}" + (f" with {record.partitions} partitions" if record.partitions else ""))
