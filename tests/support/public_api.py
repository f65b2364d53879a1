"""The public modules: the list that the tests of the contract and of the documentation share."""

from __future__ import annotations

from typing import Final

__all__ = ["EMBEDDING", "PUBLIC", "page_of"]

#: What plugins and programs import; all of ``__all__`` is documented on the module's page.
PUBLIC: Final = (
    "broker_core",
    "broker_core.errors",
    "broker_core.names",
    "broker_core.patterns",
    "broker_core.change_log",
    "broker_core.catalog",
    "broker_core.quantities",
    "broker_core.plugin_cli",
    "broker_core.testing",
    "broker_core.client",
    "broker_core.client.kafka",
    "broker_core.consumer",
)
#: For programs that run a server of their own; a plugin needs none of it.
EMBEDDING: Final = ("broker_core.broker", "broker_core.settings", "broker_core.cli")


def page_of(module: str) -> str:
    """The page of a public module, by its path in docs/."""
    return f"reference/api/{module.rpartition('.')[2]}.md"
