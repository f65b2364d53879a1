"""`broker-core kafka ...`: topics, configs and nodes of a Kafka server; users and ACLs of its clients."""

from __future__ import annotations

from typing import Final

import typer

from broker_core.cli.common_options import command
from broker_core.cli.deferred_commands import DeferredGroup, deferred_commands

__all__ = ["acls", "app", "cluster", "configs", "groups", "topics", "users"]

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
            "topics": ("kafka:topics", _TOPICS),
            "configs": ("kafka:configs", _CONFIGS),
            "acls": ("kafka:acls", _ACLS),
            "groups": ("kafka:groups", _GROUPS),
            "users": ("kafka:users", _USERS),
            "cluster": ("kafka:cluster", _CLUSTER),
        },
    )


class _TopicsCommands(DeferredGroup):
    deferred = deferred_commands(
        "broker_core.cli.commands",
        {
            "list": ("kafka_topics_list:list_topics", "List the topics that the asker may see."),
            "create": ("kafka_topics_create:create_topics", "Create topics."),
            "describe": ("kafka_topics_describe:describe_topics", "Show topics with their partitions."),
            "delete": ("kafka_topics_delete:delete_topics", "Delete topics, by name or by id."),
            "alter": ("kafka_topics_alter:alter_topics", "Let topics have more partitions."),
        },
    )


class _ConfigsCommands(DeferredGroup):
    deferred = deferred_commands(
        "broker_core.cli.commands",
        {
            "describe": (
                "kafka_configs_describe:describe_configs",
                "Show the configs of topics, or of a node.",
            ),
            "alter": (
                "kafka_configs_alter:alter_configs",
                "Change some configs of topics, or of a node, and leave the others.",
            ),
        },
    )


class _ClusterCommands(DeferredGroup):
    deferred = deferred_commands(
        "broker_core.cli.commands",
        {
            "describe": (
                "kafka_cluster_describe:describe_cluster",
                "Show the id of the cluster, its nodes and its controller.",
            )
        },
    )


class _GroupsCommands(DeferredGroup):
    deferred = deferred_commands(
        "broker_core.cli.commands",
        {
            "list": ("kafka_groups_list:list_groups", "List the groups of all nodes that the asker may see."),
            "describe": ("kafka_groups_describe:describe_groups", "Show groups with their members."),
        },
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
topics = _group("topics", _TopicsCommands, _TOPICS)
configs = _group("configs", _ConfigsCommands, _CONFIGS)
groups = _group("groups", _GroupsCommands, _GROUPS)
cluster = _group("cluster", _ClusterCommands, _CLUSTER)
