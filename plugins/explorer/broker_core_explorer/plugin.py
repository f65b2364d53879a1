"""Look at topics in a browser, at the address of [http].

The module is the plugin: its first line is what the list of plugins says. All that it brings is files: the page asks
``/v1`` with the rights of whoever signed in, as any other client of HTTP does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from broker_core import HttpSite, hookimpl
from broker_core_explorer.settings import ExplorerSettings

__all__ = ["broker_core_http_routes", "broker_core_settings"]

_FILES: Final = Path(__file__).parent / "static"


@hookimpl
def broker_core_settings() -> type[ExplorerSettings]:
    """The model of ``[plugins.explorer]``."""
    return ExplorerSettings


@hookimpl
def broker_core_http_routes(settings: ExplorerSettings) -> HttpSite:
    """The page, at the root of the server."""
    return HttpSite("/", files=_FILES, changes=settings.writes)
