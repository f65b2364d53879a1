"""The commands of `broker-core` in one place."""

from __future__ import annotations

import contextvars
from collections.abc import Sequence
from typing import Annotated, Final

import typer

from broker_core.cli.deferred_commands import DeferredTable, deferred_commands
from broker_core.cli.exit_codes import exit_code_of
from broker_core.cli.plugin_commands import PluginCommandsGroup
from broker_core.cli.version import print_version

__all__ = ["app", "is_of_the_core", "run"]

_HELP: Final = (
    "A listing service for clients of Pulsar and Kafka: it answers which topics of a namespace match, and which of "
    "them a client may see."
)


_KAFKA: Final[DeferredTable] = {
    "topics": (
        {
            "list": ("kafka.topics_list:list_topics", "List the topics that the user may see."),
            "create": ("kafka.topics_create:create_topics", "Create topics."),
            "describe": ("kafka.topics_describe:describe_topics", "Show topics with their partitions."),
            "delete": ("kafka.topics_delete:delete_topics", "Delete topics, by name or by id."),
            "alter": ("kafka.topics_alter:alter_topics", "Add partitions to topics."),
        },
        "List, create, describe, delete and extend topics of a Kafka server, which may be this one.",
    ),
    "configs": (
        {
            "describe": (
                "kafka.configs_describe:describe_configs",
                "Show the configs of topics, or of a node.",
            ),
            "alter": (
                "kafka.configs_alter:alter_configs",
                "Change some configs of topics, or of a node, and leave the others.",
            ),
        },
        "Show and change configs of topics and nodes of a Kafka server.",
    ),
    "acls": (
        {
            "add": ("kafka.acls:add_acls", "Allow or deny operations to principals in a namespace."),
            "list": ("kafka.acls:list_acls", "List the access control lists of a namespace."),
            "remove": ("kafka.acls:remove_acls", "Remove access control lists of a namespace."),
        },
        "Add, list and remove access control lists of Kafka clients, in the catalogue or at a server.",
    ),
    "groups": (
        {
            "list": ("kafka.groups_list:list_groups", "List the groups of all nodes that the user may see."),
            "describe": ("kafka.groups_describe:describe_groups", "Show groups with their members."),
        },
        "List and show groups of consumers of a Kafka server.",
    ),
    "users": (
        {
            "add": ("kafka.users:add_user", "Add a user, or give it a new password."),
            "list": ("kafka.users:list_users", "List users with their mechanisms."),
            "remove": ("kafka.users:remove_user", "Remove a user."),
        },
        "Add, list and remove users of Kafka clients, in the catalogue.",
    ),
    "cluster": (
        {
            "describe": (
                "kafka.cluster_describe:describe_cluster",
                "Show the id of the cluster, its nodes and its controller.",
            )
        },
        "Show the nodes of a Kafka server.",
    ),
}
_TOKENS: Final[DeferredTable] = {
    "create-secret-key": (
        "tokens.make:create_secret_key",
        "Make a secret that signs and verifies tokens.",
    ),
    "create-key-pair": (
        "tokens.make:create_key_pair",
        "Make a private key, which signs tokens, and its public key, which verifies them.",
    ),
    "create": ("tokens.make:create_token", "Print a new token of a role, signed by a key."),
    "show": ("tokens.read:show_token", "Print the header and the claims of a token, unverified."),
    "validate": ("tokens.read:validate_token", "Verify a token by a key, and print its claims."),
}
_TOPICS: Final[DeferredTable] = {
    "import": (
        "topics.import_file:import_file",
        "Add the topics of a file to a namespace: all of them, or none if a line is wrong.",
    ),
    "delete": (
        "topics.delete:delete_topics",
        "Remove topics with all their partitions, or partitions by their own names; all of them or none.",
    ),
    "set-properties": (
        "topics.set_properties:set_topic_properties",
        (
            "Set or remove properties of a topic with all its partitions, or of all topics that match a "
            "pattern."
        ),
    ),
    "export": (
        "topics.export:export_namespace",
        "Write the topics of a namespace as a file that `topics import` takes.",
    ),
    "create": ("topics.create:create_topics", "Add topics to the catalogue, each with a new id."),
    "describe": (
        "topics.describe:describe_topics",
        (
            "Show all that the catalogue has of topics, by their names or ids: properties, Kafka's configs, "
            "replicas."
        ),
    ),
    "show": (
        "topics.show:show_topics",
        "Show topics with their ids, partitions and properties; or namespaces with their versions.",
    ),
}


class _RootCommands(PluginCommandsGroup):
    deferred = deferred_commands(
        "broker_core.cli.commands",
        {
            "serve": ("start.serve:serve_clients", "Serve clients until SIGTERM or SIGINT."),
            "list": (
                "listings.list:list_topics",
                "Ask a server for the topics of a namespace, as a consumer with a topics pattern does.",
            ),
            "explain": (
                "listings.explain:explain_listing",
                "Run one listing without a server: what each plugin answered, the plan, sizes, permits, hash.",
            ),
            "config": (
                "start.config:show_settings",
                "Print the settings in force and where each is from: default, file, environment. Secrets are masked.",
            ),
            "check": (
                "start.check:check_settings",
                (
                    "Look at settings, plugins, files, databases, ports and brokers, and say what is wrong: "
                    "all of it in one run."
                ),
            ),
            "reload": (
                "operate.reload:reload_settings",
                "Let the running server read its settings again, as SIGHUP does, or show what that would change.",
            ),
            "kafka": (
                _KAFKA,
                "Topics, configs and nodes of a Kafka server; users and access control lists of Kafka clients.",
            ),
            "demo": (
                "start.demo:serve_demo",
                (
                    "Serve a small demo catalogue on this machine, filled on the first start, "
                    "and show three commands to try."
                ),
            ),
            "plugins": (
                "plugins:app",
                (
                    "Show installed and enabled plugins: the order in which they are asked, their hooks, "
                    "and what is wrong with them."
                ),
            ),
            "clients": (
                "operate.clients:app",
                (
                    "Show the connected clients of a running server, over all protocols: "
                    "their requests, memory and traffic."
                ),
            ),
            "top": (
                "operate.top:show_top",
                "Show live what a running server does: questions, clients, namespaces, memory, plugins.",
            ),
            "shrink-guard": (
                "operate.shrink_guard:app",
                "Show which listings lost many topics at once and are held; let them pass.",
            ),
            "tokens": (
                _TOKENS,
                "Make keys and tokens for clients, as `pulsar tokens` does; show and validate tokens.",
            ),
            "topics": (
                _TOPICS,
                "Import, export, create, change, delete and show topics of the catalogue.",
            ),
        },
    )


app = typer.Typer(
    name="broker-core",
    cls=_RootCommands,
    help=_HELP,
    epilog="A plugin that is installed can add a group of commands of its own, called as the plugin.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print_version()
        raise typer.Exit


@app.callback(help=_HELP)
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """The options of `broker-core` itself."""


def run(arguments: Sequence[str]) -> int:
    """The exit code of `broker-core ARGUMENTS`."""
    tree = typer.main.get_command(app)

    def run_command() -> object:
        return tree.main(args=list(arguments), prog_name="broker-core", standalone_mode=False)

    # In a context of its own: the options of one run must not reach the next one in the same process.
    return contextvars.copy_context().run(exit_code_of, run_command, debug="--debug" in arguments)


def is_of_the_core(arguments: Sequence[str]) -> bool:
    """Whether the command belongs to the core, not to a plugin."""
    words = [word for word in arguments if not word.startswith("-")]
    return not words or words[0] in _RootCommands.deferred
