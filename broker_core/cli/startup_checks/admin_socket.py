"""The operator's socket: whether it can be made at ``[admin] socket``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from broker_core.cli.startup_checks.running_server import PATIENCE, is_live
from broker_core.plugin_api import Check

__all__ = ["admin_socket_checks"]

_NAME: Final = "admin.socket"


def admin_socket_checks(
    path: Path | None, config: Path | None = None, *, by_server: bool = False
) -> Iterator[Check]:
    """A finding if the settings have a socket, and findings about settings that a server there does not use yet.

    ``config`` is the option ``--config``. ``by_server``: the running server itself asks, which has the socket.
    """
    if path is None:
        return
    # Imported here: without a socket, check has no use for the libraries of HTTP.
    from broker_core.servers.http import AdminSocketError, AdminSocketInUse, check_place

    path = path.absolute()
    try:
        check_place(path)
    except AdminSocketInUse as error:
        if is_live(f"unix:{path}"):
            yield (
                Check.ok(_NAME, f"{path} is listened on by this server")
                if by_server
                else Check.warning(
                    _NAME, f"{path} is that of a broker-core that runs: another one cannot listen there"
                )
            )
            yield from _reload_checks(f"unix:{path}", config)
        else:
            yield Check.error(_NAME, _said(error))
    except AdminSocketError as error:
        yield Check.error(_NAME, _said(error))
    else:
        yield Check.ok(_NAME, f"{path} can be listened on")


def _reload_checks(url: str, config: Path | None) -> Iterator[Check]:
    """Findings about settings in its file that the running server does not use."""
    from broker_core.cli.running_broker import BrokerUnreachable, get, reload_page

    try:
        answer = json.loads(get(url, reload_page(config), timeout=PATIENCE))
        problems, changed, restart = answer["problems"], answer["changed"], answer["restart"]
    except (BrokerUnreachable, ValueError, KeyError, TypeError):
        return  # of another release
    if answer.get("another_file"):
        yield Check.warning("reload", f"the running server has other settings: {answer['another_file']}")
        return
    # A program that embeds a server has no file to read again: nothing is wrong.
    for name, reason in (problems | ({} if answer.get("given") else answer["failed"])).items():
        yield Check.error("reload", f"the server that runs goes on with what it had: {name}: {reason}")
    if changed:
        yield Check.warning("reload", f"not in force yet, run broker-core reload: {_names(changed)}")
    if restart:
        yield Check.warning("reload", f"in force after a restart of the server: {_names(restart)}")


def _names(changes: list[dict[str, Any]]) -> str:
    return ", ".join(change["setting"] for change in changes)


def _said(error: Exception) -> str:
    return str(error).removeprefix(f"{_NAME}: ")
