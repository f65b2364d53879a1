"""Look at topics in a browser, at the address of [http].

The module is the plugin: its first line is what the list of plugins says. All that it brings is files: the page asks
``/v1`` with the rights of the signed-in user, as any other client of HTTP does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from broker_core import HttpSite, hookimpl
from broker_core_explorer.settings import ExplorerSettings

__all__ = ["broker_core_http_routes", "broker_core_settings"]

_FILES: Final = Path(__file__).parent / "static"
#: The screens of what the server has besides listings, and the right that each needs.
_FEATURES: Final = (
    ("kafka", "Kafka", "monitor"),
    ("watchers", "Watchers", "monitor"),
    ("held", "Held listings", "credentials"),
)


@hookimpl
def broker_core_settings() -> type[ExplorerSettings]:
    """The model of ``[plugins.explorer]``."""
    return ExplorerSettings


@hookimpl
def broker_core_http_routes(settings: ExplorerSettings) -> HttpSite:
    """The page, at the root of the server, and the screens of Kafka, watchers and held listings."""
    site = HttpSite("/", files=_FILES, changes=settings.writes)
    for name, title, needs in _FEATURES:
        site.screen(name, title, "screens/server.js", needs=needs)
    return site
