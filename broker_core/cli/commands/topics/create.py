"""`broker-core topics create`: new topics in the catalogue."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from broker_core.cli.common_options import Invocation
from broker_core.cli.help_examples import examples
from broker_core.cli.open_catalog import written_catalog
from broker_core.cli.options.option_values import UnusableQuestion, parse_properties
from broker_core.cli.options.topics import CatalogOption, topic_names
from broker_core.counted import counted
from broker_core.pattern_and_replica_bounds import MAX_REPLICATION

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
    configs: Annotated[
        list[str] | None,
        typer.Option(
            "--topic-config",
            metavar="NAME=VALUE",
            help="A topic config of Kafka; may be repeated.",
            show_default=False,
        ),
    ] = None,
    replication: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="The number of replicas to note for Kafka clients.",
            min=1,
            max=MAX_REPLICATION,
            show_default=False,
        ),
    ] = None,
    catalog: CatalogOption = None,
) -> None:
    """Add topics to the catalogue, each with a new id."""
    from broker_core.catalog import creation, topic_id_text

    given = parse_properties(properties)
    named = _configs(configs)
    names = topic_names(topics)
    with written_catalog(invocation, catalog, create=True) as opened:
        for name in names:
            decide = creation(name, partitions, given, configs=named, replication=replication)
            record = opened.edit(name, decide).after
            assert record is not None
            count = f" with {counted(record.partitions, 'partition')}" if record.partitions else ""
            print(f"created {name}{count}, id {topic_id_text(record.topic_id)}")


def _configs(texts: list[str] | None) -> dict[str, str]:
    """The configs of ``--topic-config``, as Kafka takes them; raises :exc:`UnusableQuestion`."""
    if not texts:
        return {}
    from broker_core.kafka.configs import InvalidConfig, check_configs

    configs = parse_properties(texts, option="--topic-config")
    try:
        check_configs(configs, {})
    except InvalidConfig as error:
        raise UnusableQuestion(str(error)) from None
    return configs
