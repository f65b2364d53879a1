"""`broker-core kafka cluster describe`: the id of a cluster, its nodes and its controller."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import typer

from broker_core.cli.common_options import Invocation
from broker_core.cli.help_examples import examples
from broker_core.cli.options.kafka_server import GivenKafka

__all__ = ["EXAMPLES", "describe_cluster"]

EXAMPLES: Final = examples("broker-core kafka cluster describe --bootstrap kafka:9092")


async def describe_cluster(
    invocation: Invocation,
    *,
    form: Annotated[Literal["table", "json"], typer.Option("--format", help="How to print it.")] = "table",
    server: GivenKafka,
) -> None:
    """Show the id of the cluster, its nodes and its controller."""
    from broker_core.cli.printed_output import print_json, print_table

    async with server.connected(invocation) as client:
        cluster = await client.describe_cluster()
    controller = None if cluster.controller is None else cluster.controller.id
    rows = [
        {"id": node.id, "host": node.host, "port": node.port, "rack": node.rack} for node in cluster.nodes
    ]
    if form == "json":
        print_json({"cluster_id": cluster.cluster_id, "controller": controller, "nodes": rows})
        return
    print_table(
        ["node", "host", "port", "rack", "controller"],
        ([*row.values(), "yes" if row["id"] == controller else ""] for row in rows),
        title=f"cluster {cluster.cluster_id}",
    )
