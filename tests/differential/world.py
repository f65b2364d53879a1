"""What both servers are started with: settings, users, plugins and a catalogue; and the servers."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.differential.judging_plugins import DESCRIBED, FAILING, NAMES_ONLY
from tests.support.distributions import ROOT
from tests.support.htpasswd import write_htpasswd
from tests.support.served import Served, broker_core_command
from tests.support.tokens import SECRET, data_url, token

__all__ = ["CATALOGUED", "NAMESPACES", "PERSONAS", "Persona", "Side", "World", "topic_names"]


@dataclass(frozen=True, slots=True)
class Persona:
    """A client: its role, how it proves it (``basic``, ``token`` or nothing), and the role it asks for as a proxy."""

    role: str
    method: str = "basic"
    principal: str | None = None

    @property
    def password(self) -> str:
        return f"password of {self.role}"

    @property
    def token(self) -> str:
        """A token without an end."""
        return token({"sub": self.role}, key=SECRET, by="HS256").decode()


PERSONAS: Final = (
    Persona("admin"),
    Persona("ann"),
    Persona("bob", "token"),
    Persona("nobody", "token"),
    Persona("proxy", principal="ann"),
    Persona("guest", "none"),
)

#: Namespaces with topics of the catalogue.
CATALOGUED: Final = ("public/default", "acme/shop", "acme/large")
NAMESPACES: Final = (*CATALOGUED, DESCRIBED, NAMES_ONLY, FAILING, "acme/empty", "none/such")

_RULES: Final[list[dict[str, Any]]] = [
    {
        "roles": ["ann", "proxy"],
        "namespaces": ["public/*", "acme/*", "plug/*"],
        "actions": ["list", "lookup"],
    },
    {"roles": ["ann"], "namespaces": ["public/default"], "actions": ["admin"]},
    {"roles": ["bob"], "namespaces": ["acme/shop"], "actions": ["*"]},
    {"roles": ["bob"], "namespaces": ["public/*", "plug/*"], "actions": ["list"]},
    {"roles": ["guest"], "namespaces": ["plug/names", "public/*"], "actions": ["list"]},
]
_PLUGINS: Final = ("lister", "names_only", "failing", "mask", "gate")


def topic_names() -> list[str]:
    """Local names of the catalogue's topics at the beginning."""
    kinds = ("orders", "bills", "hidden", "gated", "Upper", "é☃")
    return [f"{kind}-{number}" for kind in kinds for number in range(12)]


def _lines(namespace: str) -> Iterator[Mapping[str, Any]]:
    if namespace == "acme/large":
        for number in range(3000):
            yield {"name": f"large-{number:05}", "properties": {"region": ("eu", "us")[number % 2]}}
        return
    for number, name in enumerate(topic_names()):
        properties = {"region": ("eu", "us")[number % 2], "team": f"team-{number % 5}"} if number % 3 else {}
        yield {"name": name, "partitions": (0, 0, 1, 3)[number % 4], "properties": properties}
    yield {"name": f"non-persistent://{namespace}/volatile"}
    yield {"name": f"non-persistent://{namespace}/volatile-hidden", "partitions": 2}
    yield {"name": "lone-partition-3"}
    yield {"name": "__change_events"}


@dataclass(frozen=True, slots=True)
class Side:
    """A server to start: the folder of its source tree, and settings in the place of those of both, by table."""

    tree: Path
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def command(self) -> Path | None:
        """The `broker-core` of another tree than this one."""
        return None if self.tree == ROOT else self.tree / ".venv" / "bin" / "broker-core"

    def check(self) -> None:
        """Raise :exc:`SystemExit` if nothing of this tree can be started."""
        if self.command is not None and not self.command.is_file():
            raise SystemExit(f"{self.command} is not there: run `make setup` in {self.tree}")


class World:
    """Both servers; ``folder`` is for their files. ``gateway``: both stand before a third server of the second tree."""

    def __init__(self, folder: Path, sides: tuple[Side, Side], *, gateway: bool = False) -> None:
        self._folder = folder
        self._sides = sides
        self._gateway = gateway

    @contextmanager
    def serving(self) -> Iterator[tuple[Served, Served]]:
        """The servers, which end with the context."""
        for side in self._sides:
            side.check()
        site = self._site()
        write_htpasswd(
            self._folder / "users",
            **{each.role: each.password for each in PERSONAS if each.method == "basic"},
        )
        catalogue = self._catalogue()
        with ExitStack() as stack:
            upstream: dict[str, Any] = {}
            if self._gateway:
                copy = shutil.copy(catalogue, self._folder / "upstream.sqlite")
                behind = Served(
                    self._folder / "upstream",
                    {"catalog": {"path": str(copy)}},
                    command=self._sides[1].command,
                )
                upstream = {"upstream": {"service_url": stack.enter_context(behind).service_url}}
            served = []
            for number, side in enumerate(self._sides):
                folder = self._folder / str(number)
                folder.mkdir()
                path = shutil.copy(catalogue, folder / "catalog.sqlite")
                tables = self._settings() | upstream
                for name, table in ({"catalog": {"path": str(path)}} | dict(side.settings)).items():
                    tables[name] = tables.get(name, {}) | dict(table)
                server = Served(folder, tables, python_path=site, command=side.command)
                served.append(stack.enter_context(server))
            yield served[0], served[1]

    def _settings(self) -> dict[str, dict[str, Any]]:
        return {
            "http": {"listen": "127.0.0.1:0", "most_items": 2000},
            "pulsar": {"keep_alive": "1h"},  # a client that is asked seldom would answer no PING
            "kafka": {
                "listen": "127.0.0.1:0",
                "advertised": "broker.example:9092",
                "super_users": ["User:admin"],
                "namespaces": {"User:bob": "acme/shop"},
                "sasl": {"mechanisms": ["PLAIN", "OAUTHBEARER"]},
            },
            "catalog": {"property_keys": ["region", "team"]},
            "authentication": {
                "methods": ["token", "basic"],
                "anonymous_role": "guest",
                "proxy_roles": ["proxy"],
                "token": {"key": data_url(SECRET), "algorithms": ["HS256"]},
                "basic": {"file": str(self._folder / "users")},
            },
            "authorization": {"super_roles": ["admin"], "rules": _RULES},
            "plugins": {"enabled": list(_PLUGINS)},
            "log": {"format": "json"},
        }

    def _site(self) -> Path:
        """A folder from which the plugins can be loaded."""
        site = self._folder / "site"
        metadata = site / "judging_plugins-1.dist-info"
        metadata.mkdir(parents=True)
        shutil.copy(Path(__file__).parent / "judging_plugins.py", site)
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: judging-plugins\nVersion: 1\n")
        lines = [f"{name} = judging_plugins:{name}" for name in _PLUGINS]
        (metadata / "entry_points.txt").write_text("\n".join(["[broker_core]", *lines, ""]))
        return site

    def _catalogue(self) -> Path:
        """The catalogue that both begin with, made by the second tree, whose format the first one reads."""
        path = self._folder / "catalog.sqlite"
        command = self._sides[1].command or broker_core_command()
        for namespace in CATALOGUED:
            text = "".join(json.dumps(line) + "\n" for line in _lines(namespace))
            subprocess.run(
                [command, "topics", "import", namespace, "-", "--catalog", str(path)],
                input=text.encode(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                cwd=self._folder,
                check=True,
            )
        return path
