"""`broker-core kafka ...`: topics, configs and nodes of a Kafka server; users and ACLs of its clients."""

from __future__ import annotations

from typing import Final

import typer

from broker_core.cli.common_options import command
from broker_core.cli.deferred_commands import DeferredGroup, deferred_commands

__all__ = ["acls_app", "app", "cluster_app", "configs_app", "groups_app", "topics_app", "users_app"]

_HELP: Final = "Topics, configs and nodes of a Kafka server; users and access control lists of Kafka clients."
_TOPICS: Final = "List, create, describe, delete and extend topics of a Kafka server, which may be this one."
_CONFIGS: Final = "Show and change configs of topics and nodes of a Kafka server."
_GROUPS: Final = "List and show groups of consumers of a Kafka server."
_CLUSTER: Final = "Show the nodes of a Kafka server."
_USERS: Final = "Add, list and remove users of Kafka clients, in the catalogue."
_ACLS: Final = "Add, list and remove access control lists of Kafka clients, in the catalogue or at a server."


class _KafkaCommands(DeferredGroup):
    deferred = deferred_commands(
        "broker_core.cli.commands",
        {
            "topics": ("kafka:topics_app", _TOPICS),
            "configs": ("kafka:configs_app", _CONFIGS),
            "acls": ("kafka:acls_app", _ACLS),
            "groups": ("kafka:groups_app", _GROUPS),
            "users": ("kafka:users_app", _USERS),
            "cluster": ("kafka:cluster_app", _CLUSTER),
        },
    )


class _TopicsCommands(DeferredGroup):
    deferred = deferred_commands(
        "broker_core.cli.commands.kafka",
        {
            "list": ("topics_list:list_topics", "List the topics that the user may see."),
            "create": ("topics_create:create_topics", "Create topics."),
            "describe": ("topics_describe:describe_topics", "Show topics with their partitions."),
            "delete": ("topics_delete:delete_topics", "Delete topics, by name or by id."),
            "alter": ("topics_alter:alter_topics", "Let topics have more partitions."),
        },
    )


class _ConfigsCommands(DeferredGroup):
    deferred = deferred_commands(
        "broker_core.cli.commands.kafka",
        {
            "describe": (
                "configs_describe:describe_configs",
                "Show the configs of topics, or of a node.",
            ),
            "alter": (
                "configs_alter:alter_configs",
                "Change some configs of topics, or of a node, and leave the others.",
            ),
        },
    )


class _ClusterCommands(DeferredGroup):
    deferred = deferred_commands(
        "broker_core.cli.commands.kafka",
        {
            "describe": (
                "cluster_describe:describe_cluster",
                "Show the id of the cluster, its nodes and its controller.",
            )
        },
    )


class _GroupsCommands(DeferredGroup):
    deferred = deferred_commands(
        "broker_core.cli.commands.kafka",
        {
            "list": ("groups_list:list_groups", "List the groups of all nodes that the user may see."),
            "describe": ("groups_describe:describe_groups", "Show groups with their members."),
        },
    )


class _UsersCommands(DeferredGroup):
    deferred = deferred_commands(
        "broker_core.cli.commands.kafka",
        {
            "add": ("users:add_user", "Add a user, or give it a new password."),
            "list": ("users:list_users", "List users with their mechanisms."),
            "remove": ("users:remove_user", "Remove a user."),
        },
    )


class _AclsCommands(DeferredGroup):
    deferred = deferred_commands(
        "broker_core.cli.commands.kafka",
        {
            "add": ("acls:add_acls", "Allow or deny operations to principals in a namespace."),
            "list": ("acls:list_acls", "List the access control lists of a namespace."),
            "remove": ("acls:remove_acls", "Remove access control lists of a namespace."),
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
# Modules of this package have the names without `_app`.
users_app = _group("users", _UsersCommands, _USERS)
acls_app = _group("acls", _AclsCommands, _ACLS)
topics_app = _group("topics", _TopicsCommands, _TOPICS)
configs_app = _group("configs", _ConfigsCommands, _CONFIGS)
groups_app = _group("groups", _GroupsCommands, _GROUPS)
cluster_app = _group("cluster", _ClusterCommands, _CLUSTER)
