"""Topic listings from a PostgreSQL index, by pattern and by properties: migrate, fill and check it.

The module is the plugin: its first line is what the help of its commands says. The entry point ``postgres`` of the
group ``broker_core`` loads it, and its hooks are those of one :class:`PostgresPlugin`. A program that embeds several
brokers makes an instance for each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from broker_core import HttpSite, hookimpl
from broker_core_postgres.settings import PostgresSettings

if TYPE_CHECKING:
    import typer

    from broker_core import Check, DescribeRequest, Details, ListingRequest, TopicListingResult
    from broker_core_postgres.changes import PostgresChangeLog
    from broker_core_postgres.service import PostgresService

__all__ = ["COMMANDS", "PostgresPlugin"]

#: The commands of ``broker-core postgres``. Each has a module with ``run`` and ``EXAMPLES``.
COMMANDS: Final = ("migrate", "status", "explain", "load", "sync", "verify", "set-properties")


class PostgresPlugin:
    """The hooks. An instance serves one broker at a time."""

    def __init__(self) -> None:
        self.service: PostgresService | None = None

    @hookimpl
    def broker_core_settings(self) -> type[PostgresSettings]:
        """The model of ``[plugins.postgres]``."""
        return PostgresSettings

    @hookimpl
    def broker_core_depends_on(self) -> Collection[str]:
        """Answers depend on the question alone, not on the client."""
        return {"pattern", "properties"}

    @hookimpl
    async def broker_core_startup(self, broker: Any, settings: PostgresSettings) -> None:
        """Connect. Raises for a database that is reachable but cannot be served from."""
        if self.service is not None:
            raise RuntimeError(
                "this instance of the plugin serves a broker already: make a PostgresPlugin for each"
            )
        # A list of plugins needs no database driver; importing it takes longer than the event loop may wait.
        module = await asyncio.to_thread(import_module, "broker_core_postgres.service")
        callbacks = () if broker is None else (broker.topics_changed, broker.report_problems)
        service: PostgresService = module.PostgresService(settings, *callbacks)
        await service.start()
        if broker is not None:
            service.metrics.register(broker.metrics_registry)
        self.service = service

    @hookimpl
    def broker_core_reloaded(self, settings: PostgresSettings) -> Callable[[], None]:
        """Apply changed bounds, which the model has checked."""
        assert self.service is not None, "the plugin was not started"
        return partial(self.service.server_pools.follow, settings)

    @hookimpl
    def broker_core_change_log(self) -> PostgresChangeLog | None:
        """The database's log of changes."""
        return None if self.service is None else self.service.change_log

    @hookimpl
    async def broker_core_shutdown(self) -> None:
        """Close all connections."""
        service, self.service = self.service, None
        if service is not None:
            await service.close()

    @hookimpl
    async def broker_core_list_topics(self, request: ListingRequest) -> TopicListingResult:
        """List a namespace that was loaded into the database."""
        assert self.service is not None, "the plugin was not started"
        return await self.service.lister.list_topics(request)

    @hookimpl
    async def broker_core_version(self, request: ListingRequest) -> str | None:
        """The version of a namespace, for questions whose answers may be kept."""
        assert self.service is not None, "the plugin was not started"
        return await self.service.lister.version(request)

    @hookimpl
    async def broker_core_describe_topics(self, request: DescribeRequest) -> Details | None:
        """Describe topics of a namespace that was loaded into the database."""
        assert self.service is not None, "the plugin was not started"
        return await self.service.describer.describe(request)

    @hookimpl
    async def broker_core_check(self, settings: PostgresSettings) -> list[Check]:
        """Check that the database is reachable and ready for listings."""
        from broker_core_postgres.checks import check_database

        return [check async for check in check_database(settings)]

    @hookimpl
    def broker_core_http_routes(self) -> HttpSite:
        """The screen of the explorer, and the route of its data."""
        site = HttpSite("/postgres", Path(__file__).parent / "screen")
        site.route("GET", "/status", self._status)
        site.screen("postgres", "PostgreSQL", "postgres.js")
        return site

    async def _status(self, _request: Any) -> dict[str, Any]:
        assert self.service is not None, "the plugin was not started"
        return await self.service.status()

    @hookimpl
    def broker_core_commands(self, app: typer.Typer) -> None:
        """Add the commands. Their modules are imported here, for the command line alone."""
        for name in COMMANDS:
            module = import_module(f"broker_core_postgres.commands.{name.replace('-', '_')}_command")
            app.command(name, epilog=module.EXAMPLES)(module.run)


_plugin: Final = PostgresPlugin()
broker_core_settings = _plugin.broker_core_settings
broker_core_depends_on = _plugin.broker_core_depends_on
broker_core_startup = _plugin.broker_core_startup
broker_core_reloaded = _plugin.broker_core_reloaded
broker_core_change_log = _plugin.broker_core_change_log
broker_core_shutdown = _plugin.broker_core_shutdown
broker_core_list_topics = _plugin.broker_core_list_topics
broker_core_version = _plugin.broker_core_version
broker_core_describe_topics = _plugin.broker_core_describe_topics
broker_core_check = _plugin.broker_core_check
broker_core_http_routes = _plugin.broker_core_http_routes
broker_core_commands = _plugin.broker_core_commands
