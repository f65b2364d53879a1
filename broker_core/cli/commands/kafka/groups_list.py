"""`broker-core kafka groups list`: the groups of consumers that the user may see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from broker_core.cli.common_options import Invocation
from broker_core.cli.help_examples import examples
from broker_core.cli.options.kafka_server import GivenKafka
from broker_core.counted import counted

if TYPE_CHECKING:
    from broker_core.client.kafka import AdminClient, GroupListing

__all__ = ["EXAMPLES", "list_groups"]

EXAMPLES: Final = examples(
    "broker-core kafka groups list --bootstrap kafka-1:9092,kafka-2:9092",
    "broker-core kafka groups list --state Empty --format json",
)


async def list_groups(
    invocation: Invocation,
    *,
    states: Annotated[
        list[str] | None,
        typer.Option(
            "--state", metavar="STATE", help="Only groups in this state; may be repeated.", show_default=False
        ),
    ] = None,
    form: Annotated[
        Literal["names", "json", "table"], typer.Option("--format", help="How to print the answer.")
    ] = "names",
    server: GivenKafka,
) -> None:
    """List the groups of all nodes that the user may see.

    While the cluster has given up a node that keeps groups, these are missing: a line on standard error says so, and
    the exit code is 1.
    """
    from broker_core.cli.error_line import say
    from broker_core.cli.exit_codes import EXIT_FAILED
    from broker_core.cli.printed_output import print_json, print_lines, print_table

    async with server.connected(invocation) as client:
        missing = await _what_is_missing(client)
        pages = client.list_groups_pages(states=states or ())
        # Each node has an order of its own.
        groups = sorted([group async for page in pages for group in page], key=_name)
        if not groups and not missing:
            await _say_why_none(client)
    if form == "names":
        print_lines(group.group_id for group in groups)
    elif form == "json":
        print_json([group._asdict() for group in groups])
    else:
        columns = ["group", "protocol", "state", "type"]
        print_table(columns, (list(group) for group in groups), caption=counted(len(groups), "group"))
    if missing:
        say(missing)
        raise typer.Exit(EXIT_FAILED)


def _name(group: GroupListing) -> bytes:
    return group.group_id.encode("utf-16-be", "surrogatepass")  # as Kafka sorts names


async def _what_is_missing(client: AdminClient) -> str:
    """A text about the groups that no node lists, since the partitions that keep them have no leader; empty if all have
    one, or if the asker may not see them.
    """
    from broker_core.kafka import GROUPS_TOPIC

    described = (await client.describe_topics([GROUPS_TOPIC])).rows()
    partitions = [each for _, row in described if not isinstance(row, Exception) for each in row.partitions]
    lost = [each for each in partitions if each.leader is None]
    if not lost:
        return ""
    return (
        f"groups are missing: {len(lost)} of {counted(len(partitions), 'partition')} of {GROUPS_TOPIC}, which keep "
        "them, have no node now"
    )


async def _say_why_none(client: AdminClient) -> None:
    """Print a note to standard error if the server can have no groups, since nothing can be committed there."""
    from broker_core.cli.error_line import say
    from broker_core.wire.kafka import OFFSET_COMMIT

    if OFFSET_COMMIT.key not in await client.api_versions():
        say("this server keeps no groups: it has no messages that they could consume")
