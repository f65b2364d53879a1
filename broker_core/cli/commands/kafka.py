"""`broker-core kafka ...`: what Kafka clients of this server are, and may do."""

from __future__ import annotations

from typing import Final

import typer

from broker_core.cli.common_options import command
from broker_core.cli.deferred_commands import DeferredGroup, deferred_commands

__all__ = ["acls", "app", "users"]

_HELP: Final = "Users and access control lists of Kafka clients."
_USERS: Final = "Add, list and remove users of Kafka clients, in the catalogue."
_ACLS: Final = "Add, list and remove access control lists of Kafka clients, in the catalogue."


class _KafkaCommands(DeferredGroup):
    deferred = deferred_commands(
        "broker_core.cli.commands", {"users": ("kafka:users", _USERS), "acls": ("kafka:acls", _ACLS)}
    )


class _UsersCommands(DeferredGroup):
    deferred = deferred_commands(
        "broker_core.cli.commands",
        {
            "add": ("kafka_users:add_user", "Add a user, or give it a new password."),
            "list": ("kafka_users:list_users", "List users with their mechanisms."),
            "remove": ("kafka_users:remove_user", "Remove a user."),
        },
    )


class _AclsCommands(DeferredGroup):
    deferred = deferred_commands(
        "broker_core.cli.commands",
        {
            "add": ("kafka_acls:add_acls", "Allow or deny principals something in a namespace."),
            "list": ("kafka_acls:list_acls", "List the access control lists of a namespace."),
            "remove": ("kafka_acls:remove_acls", "Remove access control lists of a namespace."),
        },
    )


def _group(name: str, kind: type[DeferredGroup], text: str) -> typer.Typer:
    group = typer.Typer(name=name, cls=kind, help=text, no_args_is_help=True, pretty_exceptions_enable=False)

    @group.callback(help=text)
    @command
    def _of_group() -> None:
        """Takes ``--config`` and ``--debug`` for all commands of the group."""

    return group


app = _group("kafka", _KafkaCommands, _HELP)
users = _group("users", _UsersCommands, _USERS)
acls = _group("acls", _AclsCommands, _ACLS)
