"""The arguments of `broker-core kafka configs ...` that name resources with configs: topics, or a node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from broker_core.cli.options.option_values import UnusableQuestion

if TYPE_CHECKING:
    from broker_core.client.kafka import ConfigResource

__all__ = ["NodeOption", "config_resources", "shown_resource"]

NodeOption = Annotated[
    int | None,
    typer.Option("--node", metavar="ID", help="The configs of a node, by its id.", show_default=False),
]


def config_resources(names: Sequence[str] | None, node: int | None) -> list[ConfigResource]:
    """The named resources. Raises :exc:`UnusableQuestion`."""
    from broker_core.client.kafka import ConfigResource

    if bool(names) is (node is not None):
        raise UnusableQuestion("name topics, or give --node: one of the two")
    if node is not None:
        return [ConfigResource.broker(node)]
    return [ConfigResource.topic(name) for name in dict.fromkeys(names or ())]


def shown_resource(resource: ConfigResource) -> str:
    """The name of a topic, or ``node ID``."""
    from broker_core.client.kafka import ConfigResourceType

    return resource.name if resource.type is ConfigResourceType.TOPIC else f"node {resource.name}"
