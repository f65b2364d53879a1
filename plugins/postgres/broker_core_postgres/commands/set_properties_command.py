"""`broker-core postgres set-properties`: change properties of a topic, or of all topics that match a pattern."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

import typer

from broker_core.catalog import PropertiesChange
from broker_core.errors import InvalidName
from broker_core.names import NamespaceName, TopicName
from broker_core.plugin_cli import examples, parse_properties
from broker_core.quantities import counted
from broker_core_postgres.commands.shared_options import DryRunOption, WriteDsnOption
from broker_core_postgres.commands.write_connection import writing_connection
from broker_core_postgres.fill import (
    FillingFailed,
    TopicPropertiesReport,
    maintain_topics,
    set_properties,
    set_properties_of_matching,
    storable_change,
)

__all__ = ["EXAMPLES", "run"]

EXAMPLES: Final = examples(
    "broker-core postgres set-properties persistent://public/default/orders region=eu team=a",
    "broker-core postgres set-properties public/default/orders --unset team",
    "# all topics that a pattern matches",
    "broker-core postgres set-properties public/default --pattern 'public/default/orders-.*' region=eu --dry-run",
)


def run(
    topic: Annotated[
        str,
        typer.Argument(
            metavar="TOPIC",
            help="A topic's full name, or tenant/namespace/topic; with --pattern a namespace.",
            show_default=False,
        ),
    ],
    properties: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE...]", help="What to set.", show_default=False),
    ] = None,
    *,
    unset: Annotated[
        list[str] | None,
        typer.Option("--unset", metavar="KEY", help="A key to remove; may be repeated.", show_default=False),
    ] = None,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="Remove all other keys: alone, it clears a topic's properties.",
            show_default=False,
        ),
    ] = False,
    pattern: Annotated[
        str | None,
        typer.Option(
            "--pattern",
            metavar="REGEX",
            help="All topics of the namespace whose name matches in full, as in a listing.",
            show_default=False,
        ),
    ] = None,
    dry_run: DryRunOption = False,
    dsn: WriteDsnOption = None,
) -> None:
    """Set or remove properties of a topic with all its partitions, or of all topics that match a pattern.

    Other keys stay as they are, unless --replace is given.
    """
    change = PropertiesChange(
        parse_properties(properties, option="argument"), tuple(unset or ()), replace=replace
    )
    storable_change(change)
    of_namespace = topic.count("/") == 1 and "://" not in topic
    if of_namespace != (pattern is not None):
        raise FillingFailed(
            f"{topic!r} is a namespace: name a topic, or a --pattern of topics"
            if of_namespace
            else f"--pattern is about the topics of a namespace (tenant/namespace), which {topic!r} is not"
        )

    async def change_them() -> TopicPropertiesReport:
        async with writing_connection(dsn, writes=not dry_run) as connection:
            if pattern is not None:
                report = await set_properties_of_matching(
                    connection, _namespace(topic), pattern, change, dry_run=dry_run
                )
            else:
                name = TopicName.parse(topic if "://" in topic else f"persistent://{topic}")
                report = await set_properties(connection, name, change, dry_run=dry_run)
            if not dry_run:
                await maintain_topics(connection, report.changed)
            return report

    report = asyncio.run(change_them())
    print(
        f"{'would change' if dry_run else 'changed'} the properties of {report.changed} of "
        f"{counted(report.names, 'name')} "
        f"({counted(report.topics, 'topic')})"
    )


def _namespace(text: str) -> NamespaceName:
    try:
        return NamespaceName.parse(text)
    except InvalidName as error:
        raise typer.BadParameter(str(error)) from None
