"""`broker-core check`: finds faults of settings and of files, plugins and hosts that they name, before the start."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from broker_core.cli.commands.start.serve import CatalogOption, HttpOption, PulsarOption, serve_options
from broker_core.cli.common_options import Invocation, Options
from broker_core.cli.help_examples import examples
from broker_core.plugin_api import Check

if TYPE_CHECKING:
    from broker_core.settings import LoadedSettings, SettingProblem, Settings

__all__ = ["EXAMPLES", "all_checks", "check_settings"]

EXAMPLES: Final = examples(
    "broker-core check --config broker-core.toml",
    "broker-core check --config broker-core.toml --format json | jq '.[] | select(.level == \"error\")'",
)

#: The settings that a check depends on, besides the one of its name; with a dot at the end, each setting of a table.
_RESTS_ON: Final = {
    "limits": (
        "limits.permit_timeout",
        "pulsar.write_timeout",
        "pulsar.max_listing",
        "limits.heap_permits",
        "limits.direct_permits",
        "limits.snapshots",
        "quotas",
    ),
    "pulsar.write_timeout": ("limits.permit_timeout",),
    "pulsar.max_listing": ("pulsar.max_message_size", "pulsar.advertise_frame"),
    "memory": ("limits.heap_permits", "limits.direct_permits", "limits.snapshots"),
    "upstream.service_url": ("upstream.", "authentication."),
    "catalog.path": ("upstream.service_url",),
    "catalog.mode": ("catalog.path", "upstream.service_url"),
    "catalog.space": ("catalog.path", "upstream.service_url"),
    "catalog.property_keys": ("catalog.path", "upstream.service_url"),
    "kafka.acls": ("kafka.", "catalog.path", "upstream.service_url", "authentication."),
    "kafka.upstream.bootstrap_servers": ("kafka.upstream.",),
    "kafka.upstream.ports": ("kafka.",),
    "kafka.upstream.sasl": ("kafka.upstream.",),
    "kafka.upstream.topics": ("kafka.upstream.",),
    "kafka.super_users": ("kafka.", "authentication."),
    "plugins": ("plugins.enabled",),
    "properties": ("catalog.property_keys", "upstream.", "plugins."),
    "authentication": ("authentication.",),
    "authentication.token": ("authentication.",),
    "authentication.token.key": ("authentication.methods", "authentication.token."),
    "authentication.token.jwks": ("authentication.methods", "authentication.token."),
    "authentication.basic": ("authentication.",),
    "authentication.basic.file": ("authentication.methods",),
    "authorization": ("authorization.mode", "authorization.super_roles", "authorization.rules"),
}

#: The cluster of a gateway, and the names of its checks, which are reported if they cannot run.
_CLUSTER: Final = "kafka.upstream"
_OF_CLUSTER: Final = tuple(f"{_CLUSTER}.{name}" for name in ("bootstrap_servers", "ports", "topics"))
_UNSEEN: Final = "not-checked"

#: Checks with a line for each of several things, so that good ones are named beside bad ones.
_OF_SEVERAL: Final = frozenset({"upstream.service_url", "kafka.acls", "authorization.topics"})
#: Seconds in which the topics of a catalogue or of a Kafka cluster are listed, and several silent nodes are given up.
_LISTED: Final = 60.0


def check_settings(
    invocation: Invocation,
    *,
    pulsar: PulsarOption = None,
    http: HttpOption = None,
    catalog: CatalogOption = None,
    form: Annotated[
        Literal["lines", "json"], typer.Option("--format", help="How to print what was found.")
    ] = "lines",
    by_server: Annotated[bool, typer.Option("--by-server", hidden=True)] = False,
) -> None:
    """Look at settings, plugins, files, databases, ports and brokers, and say what is wrong: all of it in one run.

    Prints a line for each finding: `ok`, `warning` or `error`, a name, and what to do. The exit code is 1 if there is
    an error. Changes nothing, and may run beside the server: a port that a broker-core uses is a warning. The options
    are those of serve, and replace its settings.
    """
    from broker_core.cli.printed_output import print_json, print_lines
    from broker_core.cli.server_process.server_log import silence_logs

    if not invocation.debug:
        silence_logs()
    found = all_checks(invocation, serve_options(pulsar, http, catalog), by_server=by_server)
    if form == "json":
        print_json([{"level": each.level, "name": each.name, "text": each.text} for each in found])
    else:
        print_lines(f"{each.level} {each.name}: {each.text}" for each in found)
    if any(each.level == "error" for each in found):
        raise typer.Exit(1)


def all_checks(
    invocation: Invocation, options: Options | None = None, *, by_server: bool = False
) -> list[Check]:
    """All checks, settings first. A fault of one setting keeps no other check from running.

    ``options`` are those of `serve`. ``by_server``: the running server of these settings asks.
    """
    from broker_core.cli.startup_checks.admin_socket import admin_socket_checks
    from broker_core.cli.startup_checks.authentication_keys import authentication_checks
    from broker_core.cli.startup_checks.authorization_rules import authorization_checks, names_lost_checks
    from broker_core.cli.startup_checks.bounded_check import PATIENCE, bounded
    from broker_core.cli.startup_checks.catalog_file import catalog_checks
    from broker_core.cli.startup_checks.certificates import certificate_checks
    from broker_core.cli.startup_checks.enabled_plugins import plugin_checks, property_checks
    from broker_core.cli.startup_checks.host_resources import host_checks
    from broker_core.cli.startup_checks.kafka_acls import kafka_acl_checks
    from broker_core.cli.startup_checks.kafka_settings import (
        kafka_configs_checks,
        kafka_replication_checks,
        kafka_sasl_checks,
    )
    from broker_core.cli.startup_checks.kafka_upstream import kafka_upstream_checks
    from broker_core.cli.startup_checks.limits import limit_checks
    from broker_core.cli.startup_checks.listen_addresses import listen_checks
    from broker_core.cli.startup_checks.tracing import tracing_checks
    from broker_core.cli.startup_checks.upstream_brokers import upstream_checks
    from broker_core.cli.startup_checks.written_files import guard_file_checks, log_checks
    from broker_core.settings import dotted, find_admin_socket, find_problems

    loaded, problems = find_problems(invocation.config, options=options)
    found = bounded("settings", lambda: _settings_found(loaded, problems))
    if loaded is None:
        socket = find_admin_socket(invocation.config)
        return found + bounded(
            "admin.socket",
            lambda: admin_socket_checks(socket, invocation.config, by_server=by_server),
            patience=PATIENCE,
        )
    settings: Settings = loaded.settings
    upstream = settings.upstream
    access = settings.log.access
    logs = {"log.file": settings.log.file, "log.access.path": None if access is None else access.path}
    parts: list[tuple[str, Any, float]] = [
        ("listen", lambda: listen_checks(settings, by_server=by_server), PATIENCE),
        (
            "admin.socket",
            lambda: admin_socket_checks(settings.admin.socket, invocation.config, by_server=by_server),
            PATIENCE,
        ),
        ("authentication", lambda: authentication_checks(settings), PATIENCE),
        ("authorization", lambda: authorization_checks(settings), PATIENCE),
        ("authorization.topics", lambda: names_lost_checks(settings), _LISTED),
        ("kafka.acls", lambda: kafka_acl_checks(settings), PATIENCE),
        ("kafka.configs", lambda: kafka_configs_checks(settings), PATIENCE),
        ("kafka.replication_factor", lambda: kafka_replication_checks(settings), PATIENCE),
        ("kafka.sasl", lambda: kafka_sasl_checks(settings), PATIENCE),
        ("kafka.upstream", lambda: kafka_upstream_checks(settings), _LISTED),
        ("tls", lambda: certificate_checks(settings), PATIENCE),
        ("limits", lambda: limit_checks(settings), PATIENCE),
        ("host", lambda: host_checks(settings), PATIENCE),
        *((name, partial(log_checks, name, file), PATIENCE) for name, file in logs.items()),
        ("shrink_guard.file", lambda: guard_file_checks(settings.shrink_guard.file), PATIENCE),
        ("tracing", lambda: tracing_checks(settings.tracing), PATIENCE),
        ("catalog.path", lambda: catalog_checks(settings), PATIENCE)
        if upstream is None
        else ("upstream.service_url", lambda: upstream_checks(settings), PATIENCE),
        ("properties", lambda: property_checks(settings), PATIENCE),
        # Each plugin has its own patience.
        (
            "plugins",
            lambda: plugin_checks(settings.plugins, serves_http=settings.http is not None),
            600.0,
        ),
    ]
    left_out = [dotted(problem.path) for problem in problems]
    # Without its table there is no check of a cluster.
    unseen = dict.fromkeys(_OF_CLUSTER if any(each.startswith(_CLUSTER) for each in left_out) else ())
    for name, check, patience in parts:
        for each in bounded(name, check, patience=patience):
            if _rests_on(each.name, left_out):
                unseen[each.name] = None
            else:
                found.append(each)
    unseen = dict.fromkeys(name for name in unseen if name not in left_out)  # which has an error of its own
    if unseen:
        found.append(
            Check.warning(_UNSEEN, f"since they rest on settings that are wrong: {', '.join(sorted(unseen))}")
        )
    worse = {each.name for each in found if each.level != "ok"}
    return [
        each for each in found if each.level != "ok" or each.name not in worse or each.name in _OF_SEVERAL
    ]


def _rests_on(name: str, left_out: list[str]) -> bool:
    """Whether a check would only test a default, since a setting that it depends on is wrong."""
    rests_on = next((part for part in ("plugins", "authorization") if name.startswith(f"{part}.")), name)
    settings = (name, *_RESTS_ON.get(rests_on, ()))
    return any(
        setting == wrong
        or setting.startswith(f"{wrong}.")
        or (setting.endswith(".") and wrong.startswith(setting))
        for setting in settings
        for wrong in left_out
    )


def _settings_found(loaded: LoadedSettings | None, problems: list[SettingProblem]) -> list[Check]:
    if problems or loaded is None:
        return [Check.error("settings", problem.text) for problem in problems]
    where = "no settings file, the defaults" if loaded.file is None else str(loaded.file.absolute())
    return [Check.ok("settings", where)]
