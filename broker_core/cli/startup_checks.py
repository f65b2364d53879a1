"""What `broker-core check` looks at, part by part. Nothing is changed or made, and nobody is waited for long."""

from __future__ import annotations

import asyncio
import errno
import inspect
import json
import os
import resource
import socket
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from broker_core.cli.error_line import one_line
from broker_core.errors import BrokerCoreError
from broker_core.plugin_api.check_findings import Check
from broker_core.redaction.credentials import without_credentials
from broker_core.servers.admission import FileBudget

if TYPE_CHECKING:
    from broker_core.plugins import LoadedPlugin
    from broker_core.quantities import ListenAddress
    from broker_core.settings import PluginsSettings, Settings, UpstreamSettings

__all__ = [
    "PATIENCE",
    "bounded",
    "catalog_checks",
    "host_checks",
    "limit_checks",
    "listen_checks",
    "log_checks",
    "plugin_checks",
    "upstream_checks",
]

#: Seconds that one check may take.
PATIENCE: Final = 15.0
#: Seconds until a broker has answered.
_CONNECT: Final = 5.0
#: Seconds that clients wait for the answer to a lookup (operationTimeoutMs of Java, reference of each client).
_CLIENTS_WAIT: Final = 30.0
#: Seconds that a server of our own has to answer on its port.
_OWN_ANSWER: Final = 2.0
_IN_USE: Final = "is in use: another process listens there"
_LOOPBACK: Final = ("127.", "::1", "localhost")
#: Open files of a server that takes a good many clients.
_FEW_FILES: Final = 4096
_LITTLE_SPACE: Final = 256 * 1024 * 1024
#: Topics with properties that are looked through for a key.
_MOST_TOPICS: Final = 50_000


def bounded(name: str, check: Callable[[], Iterable[Check]], *, patience: float = PATIENCE) -> list[Check]:
    """What a check finds; an error in its place where it fails, or has not come to an end in ``patience`` seconds."""
    found: list[Check] = []

    def run() -> None:
        try:
            found.extend(check())
        except BrokerCoreError as error:
            found.append(Check.error(name, str(error)))
        except Exception as error:  # noqa: BLE001 - a plugin's fault, or ours: the others are still looked at
            found.append(Check.error(name, f"the check failed: {type(error).__name__}: {error}"))

    # A daemon: one that hangs must not keep the command from its end.
    thread = threading.Thread(target=run, name=f"check {name}", daemon=True)
    thread.start()
    thread.join(patience)
    late = [Check.error(name, f"no result within {patience:g} s")] if thread.is_alive() else []
    return [
        Check(each.level, each.name, without_credentials(one_line(each.text)))
        for each in [*list(found), *late]
    ]


def listen_checks(settings: Settings) -> Iterator[Check]:
    """The addresses that will be listened on: free, and who may reach them."""
    addresses = {"pulsar.listen": settings.pulsar.listen}
    if settings.http is not None:
        addresses["http.listen"] = settings.http.listen
    taken: dict[ListenAddress, str] = {}
    for name, address in addresses.items():
        problem = f"is that of {taken[address]} too" if address in taken else _why_not_free(address)
        ours = problem == _IN_USE and (_speaks_pulsar if name == "pulsar.listen" else _speaks_http)(address)
        if address.port:
            taken[address] = name
        if ours:
            yield Check.warning(
                name, f"{address} is in use by a broker-core that runs: another one cannot listen there"
            )
        elif problem is not None:
            yield Check.error(name, f"{address} {problem}")
        elif not address.host.startswith(_LOOPBACK):
            yield Check.warning(
                name,
                f"{address} is reached from other machines, and there is no authentication: see the docs, secure",
            )
        else:
            yield Check.ok(name, f"{address} is free")


def _why_not_free(address: ListenAddress) -> str | None:
    try:
        found = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        return f"cannot be listened on: {error.strerror or error}"
    for family, kind, protocol, _, place in found:
        with socket.socket(family, kind, protocol) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
            if family == socket.AF_INET6:
                tried.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            try:
                tried.bind(place)
                tried.listen(1)
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    return _IN_USE
                return f"cannot be listened on: {os.strerror(error.errno or 0).lower()}"
    return None


def _speaks_pulsar(address: ListenAddress) -> bool:
    """Whether a broker-core answers there as to a client."""
    from broker_core.client import ClientError, LookupClient

    async def asked() -> str:
        async with LookupClient(
            f"pulsar://{address.from_here}", connect_timeout=_OWN_ANSWER, operation_timeout=_OWN_ANSWER
        ) as client:
            return str(client.server.server_version)

    try:
        server: str = asyncio.run(asked())
    except (ClientError, OSError, ValueError):
        return False
    return server.startswith("broker-core")


def _speaks_http(address: ListenAddress) -> bool:
    """Whether a broker-core answers there to who asks for its health."""
    from broker_core.cli.running_broker import BrokerUnreachable, get

    try:
        said = get(f"http://{address.from_here}", "/-/live", timeout=_OWN_ANSWER)
        return bool(json.loads(said) == {"status": "live"})
    except (BrokerUnreachable, ValueError):
        return False


def log_checks(file: Path | None) -> Iterator[Check]:
    """The file of the log: that it can be written, or made. It is not opened."""
    if file is None:
        return
    shown = os.path.abspath(file)  # noqa: PTH100 - without its ".."
    try:
        mode = file.stat().st_mode
    except FileNotFoundError:
        folder = Path(os.path.realpath(file)).parent  # of a link that leads nowhere, where it leads to
        if not folder.is_dir():
            yield Check.error("log.file", f"{shown}: there is no folder {folder}")
        elif not os.access(folder, os.W_OK | os.X_OK):
            yield Check.error("log.file", f"{shown}: this user cannot make a file in {folder}")
        else:
            yield Check.ok("log.file", f"{shown} is not there: the server makes it")
        return
    except OSError as error:
        yield Check.error("log.file", f"{shown}: {(error.strerror or str(error)).lower()}")
        return
    if stat.S_ISDIR(mode) or stat.S_ISSOCK(mode):
        yield Check.error(
            "log.file", f"{shown} is a {'folder' if stat.S_ISDIR(mode) else 'socket'}, not a file"
        )
    elif not os.access(file, os.W_OK):
        yield Check.error("log.file", f"{shown} cannot be written by this user")
    else:
        yield Check.ok("log.file", f"{shown} can be written")


def limit_checks(settings: Settings) -> Iterator[Check]:
    """Settings that are right each by itself, and not together."""
    limits, pulsar = settings.limits, settings.pulsar
    found = False
    if limits.permit_timeout > _CLIENTS_WAIT:
        found = True
        yield Check.warning(
            "limits.permit_timeout",
            f"{limits.permit_timeout:g} s is longer than the {_CLIENTS_WAIT:g} s that clients wait for an answer: "
            "they ask again, and what they waited for is made for nobody",
        )
    if pulsar.write_timeout > limits.permit_timeout:
        found = True
        yield Check.warning(
            "pulsar.write_timeout",
            f"{pulsar.write_timeout:g} s is longer than limits.permit_timeout ({limits.permit_timeout:g} s): answers "
            "of others give up while one client that reads nothing holds the permits",
        )
    for name in ("heap_permits", "direct_permits", "snapshots"):
        if not getattr(limits, name):
            found = True
            yield Check.warning(f"limits.{name}", "0 is no limit: memory grows with what clients ask for")
    if not found:
        yield Check.ok("limits", "they fit together")


def host_checks(settings: Settings) -> Iterator[Check]:
    """What the machine, or the container, gives."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < _FEW_FILES:
        yield Check.warning(
            "files",
            f"the process may open {hard} files, and every client is one: raise LimitNOFILE or ulimit -n",
        )
    else:
        yield Check.ok("files", "no limit" if hard == resource.RLIM_INFINITY else f"up to {hard}")
    limits = settings.limits
    room = FileBudget.of_server().clients
    if limits.connections != "auto" and limits.connections > room:
        yield Check.warning(
            "limits.connections",
            f"{limits.connections} is more than the limit of open files has room for ({room}): raise LimitNOFILE or "
            "ulimit -n",
        )
    budget = limits.heap_permits + limits.direct_permits + limits.snapshots
    memory = _memory()
    if memory is None:
        return
    told = f"{budget / 2**20:,.0f} MiB of permits and snapshots, {memory / 2**20:,.0f} MiB of memory"
    if budget > memory:
        yield Check.warning("memory", f"{told}: the system ends the process before a limit refuses anything")
    else:
        yield Check.ok("memory", told)


def _memory() -> int | None:
    """Bytes that this process may have: of the machine, or of its control group."""
    found = []
    try:
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (OSError, ValueError):
        pass
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            found.append(int(Path(file).read_text(encoding="ascii")))
        except (OSError, ValueError):  # none, or "max"
            continue
    return min(found, default=None)


def catalog_checks(settings: Settings) -> Iterator[Check]:
    """The catalogue's file and folder. It is opened for reading alone; one that is not there is not made."""
    from broker_core.catalog import CatalogError, migration_ahead

    path = Path(os.path.abspath(settings.catalog.path))  # noqa: PTH100 - without its ".."
    folder = path.parent
    if not folder.is_dir():
        yield Check.error("catalog.path", f"{path}: there is no folder {folder}")
        return
    if not os.access(folder, os.W_OK | os.X_OK):
        yield Check.error(
            "catalog.path", f"{path}: the folder cannot be written, where SQLite puts its log beside the file"
        )
        return
    space = os.statvfs(folder)
    if space.f_bavail * space.f_frsize < _LITTLE_SPACE:
        yield Check.warning(
            "catalog.space", f"{folder}: {space.f_bavail * space.f_frsize // 2**20} MiB of the disk are free"
        )
    if not path.exists():
        yield Check.warning("catalog.path", f"{path} is not there: the server makes it, without topics")
        return
    if not os.access(path, os.R_OK):
        yield Check.error("catalog.path", f"{path} cannot be read by this user")
        return
    # Without a log beside it nobody has it open, and SQLite need not make one to read it.
    alone = "" if path.with_name(path.name + "-wal").exists() else "&immutable=1"
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro{alone}", uri=True, timeout=2)) as connection:
            ahead = migration_ahead(connection, path)
            (topics,) = connection.execute("SELECT count(*) FROM topics").fetchone()
            if not os.access(path, os.W_OK):
                yield Check.warning(
                    "catalog.path",
                    f"{path}: {topics} topics, which are served; this user cannot write the file, and so create none",
                )
            else:
                yield Check.ok("catalog.path", f"{path}: {topics} topics")
                if ahead is not None:
                    yield (Check.warning if ahead.has_room else Check.error)("catalog.format", ahead.text)
            if topics:
                yield from _property_keys(connection, settings.catalog.property_keys)
    except CatalogError as error:
        yield Check.error("catalog.path", str(error))
    except sqlite3.Error as error:
        yield Check.error("catalog.path", f"{path} is no catalogue, or damaged: {error}")


def _property_keys(connection: sqlite3.Connection, keys: Iterable[str]) -> Iterator[Check]:
    rows = connection.execute(
        "SELECT DISTINCT properties FROM (SELECT properties FROM topics WHERE properties IS NOT NULL LIMIT ?)",
        (_MOST_TOPICS,),
    ).fetchall()
    known: set[str] = set().union(*(json.loads(text) for (text,) in rows))
    there = f"there are {', '.join(sorted(known)[:10])}" if known else "no topic has any property"
    for key in keys:
        if key not in known:
            yield Check.warning(
                "catalog.property_keys",
                f"no topic has the property {key!r}, so that who asks for one gets nothing; {there}",
            )


def upstream_checks(upstream: UpstreamSettings) -> list[Check]:
    """Every broker of the service URL is asked for a connection."""
    from broker_core.client import ClientError, LookupClient, ServiceUrl
    from broker_core.quantities import ListenAddress

    async def tried(address: ListenAddress) -> str | None:
        try:
            async with LookupClient(
                f"pulsar://{address}", connect_timeout=_CONNECT, operation_timeout=_CONNECT
            ):
                return None
        except (ClientError, OSError, TimeoutError) as error:
            return str(error) or type(error).__name__

    async def all_of(addresses: list[ListenAddress]) -> list[str | None]:
        return await asyncio.gather(*map(tried, addresses))

    addresses = [ListenAddress(*address) for address in ServiceUrl.parse(upstream.service_url).addresses]
    problems = asyncio.run(all_of(addresses))
    reached = any(problem is None for problem in problems)
    return [
        Check.ok("upstream.service_url", f"{address} answers")
        if problem is None
        else Check("warning" if reached else "error", "upstream.service_url", f"{address}: {problem}")
        for address, problem in zip(addresses, problems, strict=True)
    ]


def plugin_checks(plugins: PluginsSettings) -> Iterator[Check]:
    """Each enabled plugin: that it is there and takes its settings, and what it says itself."""
    from broker_core.plugins import PluginLoadError, PluginRegistry, did_you_mean, installed_plugins

    for name in plugins.enabled:
        label = f"plugins.{name}"
        table = {name: plugins.table(name)} if name in plugins.tables else {}
        try:
            registry = PluginRegistry.load([name], table)
        except PluginLoadError as error:
            yield Check.error(label, str(error))
            continue
        plugin = registry[name]
        yield Check.ok(label, f"loaded{f' from {plugin.origin}' if plugin.origin else ''}")
        for warning in registry.warnings:
            yield Check.warning(label, warning)
        if plugin.options.deadline > _CLIENTS_WAIT:
            yield Check.warning(
                f"{label}.deadline",
                f"{plugin.options.deadline:g} s is longer than the {_CLIENTS_WAIT:g} s that clients wait",
            )
        yield from bounded(label, lambda plugin=plugin: list(_of_plugin(plugin)))  # type: ignore[misc]
    installed = {plugin.name for plugin in installed_plugins()}
    for name in plugins.tables:
        if name not in plugins.enabled:
            if name in installed:
                yield Check.warning(
                    f"plugins.{name}", "has a table of settings, and plugins.enabled does not name it"
                )
            else:  # the server does not start
                near = did_you_mean(name, installed)
                yield Check.error(f"plugins.{name}", f"has a table of settings, and is not installed{near}")


def _of_plugin(plugin: LoadedPlugin) -> Iterator[Check]:
    """What the plugin checks itself; without such a hook, what it calls a problem."""
    settings = plugin.options.settings
    found: Any = plugin.call_plain("broker_core_check", settings=settings)
    if inspect.iscoroutine(found):
        found = asyncio.run(found)
    for check in found or ():
        if not isinstance(check, Check):
            raise TypeError(f"broker_core_check gave a {type(check).__name__}, not a Check")
        yield Check(check.level, f"plugins.{plugin.name}.{check.name}", check.text)
    if "broker_core_check" not in plugin.implementations:
        problems = plugin.call_plain("broker_core_problems", settings=settings)
        for problem in [problems] if isinstance(problems, str) else problems or ():
            yield Check.error(f"plugins.{plugin.name}", str(problem))
