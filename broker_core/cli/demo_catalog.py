"""A small catalogue for trying things out: its settings, its topics, and commands that show what the server does.

Everything is in one folder, made on the first start and left alone after it, so that changes in it stay.
"""

from __future__ import annotations

import io
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

from broker_core.catalog import SqliteCatalog, import_topics
from broker_core.compact_json import compact_json
from broker_core.names import NamespaceName
from broker_core.plugin_api import PROJECT
from broker_core.settings import load_settings

__all__ = ["DEMO_FOLDER", "NAMESPACE", "Demo", "demo_topics", "prepare_demo", "program"]

#: The folder of the demo, in the working directory.
DEMO_FOLDER: Final = Path("broker-core-demo")
NAMESPACE: Final = NamespaceName("public", "default")

_SETTINGS: Final = """\
# The settings of the demo (`make run`). This file is yours to change: it is written once and then left alone.

[pulsar]
listen = "127.0.0.1:6650"

[http]
listen = "127.0.0.1:8080"
questions = true # counted, to be looked at

[catalog]
path = "topics.sqlite"
# The consumer properties that select topics; others are ignored.
property_keys = ["region", "team"]
"""
#: The settings of the page for the browser, if its distribution is installed.
_EXPLORER: Final = """
[plugins]
enabled = ["explorer"]

[plugins.explorer]
writes = true # the page may change topics
"""


@dataclass(frozen=True, slots=True)
class Demo:
    """A demo that is ready to be served."""

    config: Path
    catalog: Path
    #: Whether this was the first start.
    filled: bool

    def hints(self, service_url: str, command: str) -> list[str]:
        """Three example commands, quoted for a shell."""
        config = shlex.quote(str(self.config))
        return [
            f"{command} list {NAMESPACE} --url {service_url} --pattern '{NAMESPACE}/orders-.*'",
            f"{command} list {NAMESPACE} --url {service_url} --property region=eu --format table",
            f"{command} explain {NAMESPACE} --config {config} --pattern '{NAMESPACE}/sensor-[0-9]+'",
        ]


def prepare_demo(folder: Path = DEMO_FOLDER) -> Demo:
    """Make the folder, its settings and its catalogue if they are not there yet.

    Raises :exc:`~broker_core.errors.BrokerCoreError` or :exc:`OSError` if that cannot be done.
    """
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "broker-core.toml"
    try:
        with config.open("x", encoding="utf-8") as file:
            file.write(_SETTINGS + (_EXPLORER if entry_points(group=PROJECT, name="explorer") else ""))
    except FileExistsError:
        pass
    table = load_settings(config, environment={}).settings.catalog
    path = table.path
    with SqliteCatalog(path, mode=table.file_mode) as catalog:
        # In one transaction: a first start that was cut short left nothing, and is the first start again.
        filled = catalog.version(NAMESPACE).number == 0
        if filled:
            topics = "\n".join(compact_json(topic) for topic in demo_topics())
            import_topics(catalog, NAMESPACE, io.BytesIO(topics.encode()))
    return Demo(config, path, filled)


def demo_topics() -> Iterator[dict[str, Any]]:
    """The topics as lines of an import: partitions, properties, names in several scripts, a non-persistent one."""
    for region, partitions in (("eu", 3), ("us", 2), ("ap", 1)):
        properties = {"region": region, "team": "sales"}
        yield {"name": f"orders-{region}", "partitions": partitions, "properties": properties}
    yield {"name": "payments", "properties": {"region": "eu", "team": "billing"}}
    yield {"name": "payments-retry", "properties": {"region": "eu", "team": "billing"}}
    yield {"name": "größen-übersicht", "properties": {"region": "eu", "team": "sales"}}
    yield {"name": "注文-東京", "properties": {"region": "ap", "team": "sales"}}
    yield {"name": "🚚-tracking", "properties": {"region": "us", "team": "logistics"}}
    for number in range(1, 21):
        yield {"name": f"sensor-{number:04}", "properties": {"region": "us", "team": "devices"}}
    yield {"name": f"non-persistent://{NAMESPACE}/heartbeat"}


def program(argument: str) -> str:
    """The text to type for running this command again: its name if a shell finds it, else the shortest path."""
    path = Path(argument).absolute()
    found = shutil.which(path.name)
    if found is not None and Path(found).absolute() == path:
        return path.name
    if path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    return shlex.quote(str(path))
