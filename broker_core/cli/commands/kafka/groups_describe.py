"""`broker-core kafka groups describe`: groups of consumers with their members, and their committed offsets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from broker_core.cli.common_options import Invocation
from broker_core.cli.help_examples import examples
from broker_core.cli.options.kafka_server import GivenKafka

if TYPE_CHECKING:
    from broker_core.client.kafka import AdminClient, GroupDescription, Results

__all__ = ["EXAMPLES", "describe_groups"]

EXAMPLES: Final = examples(
    "broker-core kafka groups describe billing --bootstrap kafka:9092",
    "broker-core kafka groups describe billing --offsets --format json",
)


async def describe_groups(
    invocation: Invocation,
    groups: Annotated[list[str], typer.Argument(metavar="GROUP...", help="Groups.", show_default=False)],
    *,
    offsets: Annotated[
        bool, typer.Option("--offsets", help="Show the committed offsets of each group.", show_default=False)
    ] = False,
    form: Annotated[Literal["table", "json"], typer.Option("--format", help="How to print it.")] = "table",
    server: GivenKafka,
) -> None:
    """Show groups with their members."""
    from broker_core.cli.printed_output import print_json, print_table
    from broker_core.cli.printed_results import succeeded

    async with server.connected(invocation) as client:
        described = await _described(client, groups)
        with succeeded(described) as found:
            wanted = dict.fromkeys(found) if offsets else {}
            with succeeded(await client.list_group_offsets(wanted) if wanted else {}) as committed:
                rows = [_row(group) for group in found.values()]
                for row in rows if offsets else ():
                    row["offsets"] = [
                        {
                            "topic": each.partition.topic,
                            "partition": each.partition.partition,
                            "offset": each.offset,
                        }
                        for each in committed.get(row["group"], ())
                    ]
                if form == "json":
                    print_json(rows)
                elif rows:
                    columns = ["group", "state", "protocol", "member", "client", "host"]
                    print_table(columns, (cells for row in rows for cells in _cells(row)))
                    if offsets:
                        print_table(
                            ["group", "topic", "partition", "offset"],
                            ([row["group"], *each.values()] for row in rows for each in row["offsets"]),
                        )


async def _described(client: AdminClient, groups: list[str]) -> Results[str, GroupDescription]:
    """Descriptions by the classic protocol, and of other groups by the consumer protocol (KIP-848)."""
    from broker_core.client.kafka import KafkaException, Results, UnsupportedVersionException

    classic = await client.describe_groups(groups)
    # A coordinator that is gone is gone for both.
    others = [group for group, row in classic.rows() if isinstance(row, KafkaException) and not row.retriable]
    if not others:
        return classic
    try:
        consumers = dict((await client.describe_consumer_groups(others)).rows())
    except UnsupportedVersionException:
        return classic
    rows = {
        group: consumers[group] if group in consumers and not isinstance(consumers[group], Exception) else row
        for group, row in classic.rows()
    }
    return Results(rows, classic.paged_by)


def _row(group: GroupDescription) -> dict[str, Any]:
    return {
        "group": group.group_id,
        "state": group.state,
        "protocol": group.protocol,
        "members": [each._asdict() for each in group.members],
    }


def _cells(row: dict[str, Any]) -> Iterator[list[object]]:
    head = [row["group"], row["state"], row["protocol"]]
    for each in row["members"]:
        yield [*head, each["member_id"], each["client_id"], each["client_host"]]
    if not row["members"]:
        yield [*head, "none", "", ""]
