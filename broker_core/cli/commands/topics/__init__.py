"""`broker-core topics ...`: the topics of the catalogue. A server that runs on the same file sees every change."""

from __future__ import annotations

from typing import Final

import typer

from broker_core.cli.common_options import command
from broker_core.cli.deferred_commands import DeferredGroup, deferred_commands

__all__ = ["app"]

_HELP: Final = "Import, export, create, change, delete and show topics of the catalogue."


class _TopicsCommands(DeferredGroup):
    deferred = deferred_commands(
        "broker_core.cli.commands.topics",
        {
            "import": (
                "import_file:import_file",
                "Add the topics of a file to a namespace: all of them, or none if a line is wrong.",
            ),
            "delete": (
                "delete:delete_topics",
                "Remove topics with all their partitions, or partitions by their own names; all of them or none.",
            ),
            "set-properties": (
                "set_properties:set_topic_properties",
                (
                    "Set or take away properties of a topic with all its partitions, or of all topics that match a "
                    "pattern."
                ),
            ),
            "export": (
                "export:export_namespace",
                "Write the topics of a namespace as a file that `topics import` takes.",
            ),
            "create": ("create:create_topics", "Add topics to the catalogue, each with a new id."),
            "describe": (
                "describe:describe_topics",
                (
                    "Show all that the catalogue has of topics, by their names or ids: properties, Kafka's configs, "
                    "replicas."
                ),
            ),
            "show": (
                "show:show_topics",
                "Show topics with their ids, partitions and properties; or namespaces with their versions.",
            ),
        },
    )


app = typer.Typer(
    name="topics", cls=_TopicsCommands, help=_HELP, no_args_is_help=True, pretty_exceptions_enable=False
)


@app.callback(help=_HELP)
@command
def _topics() -> None:
    """Takes ``--config`` and ``--debug`` for all commands of the group."""
