"""The operator's socket: that it can be made where ``[admin] socket`` says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from broker_core.cli.startup_checks.running_server import is_live
from broker_core.plugin_api.check_findings import Check

__all__ = ["admin_socket_checks"]

_NAME: Final = "admin.socket"


def admin_socket_checks(path: Path | None) -> Iterator[Check]:
    """One finding if there is a socket in the settings."""
    if path is None:
        return
    # Imported here: without a socket, check has no use for the libraries of HTTP.
    from broker_core.servers.http import AdminSocketError, AdminSocketInUse, check_place

    path = path.absolute()
    try:
        check_place(path)
    except AdminSocketInUse as error:
        if is_live(f"unix:{path}"):
            yield Check.warning(
                _NAME, f"{path} is that of a broker-core that runs: another one cannot listen there"
            )
        else:
            yield Check.error(_NAME, _said(error))
    except AdminSocketError as error:
        yield Check.error(_NAME, _said(error))
    else:
        yield Check.ok(_NAME, f"{path} can be listened on")


def _said(error: Exception) -> str:
    return str(error).removeprefix(f"{_NAME}: ")
