"""The real `pulsar-admin`, at a real broker and at this server: the same exit codes, the same words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.programs import AdminTool, LibraryListing, ToolOutcome
from tests.interop.pulsar_peer import (
    ADMIN,
    PeerUnavailable,
    PulsarBroker,
    Security,
    admin_tool_jars,
    peer_jars,
)
from tests.support.served import Served

pytestmark = pytest.mark.interop

_NAMESPACE = "public/tools"
_HERE = f"persistent://{_NAMESPACE}"
#: Commands one after the other: each meets what those before it made. A word may have spaces, as `a b` has.
_COMMANDS = [
    ("topics", "create", f"{_HERE}/one"),
    ("topics", "create", f"{_HERE}/one"),
    ("topics", "create", "-m", "region=eu", "-m", "tier=gold", f"{_HERE}/two"),
    ("topics", "create", f"{_HERE}/a b"),
    ("topics", "create", f"{_HERE}/caf\u00e9+"),
    ("topics", "create", f"{_HERE}/x-partition-3"),
    ("topics", "create-partitioned-topic", "-p", "3", f"{_HERE}/parted"),
    ("topics", "create-partitioned-topic", "-p", "3", f"{_HERE}/parted"),
    ("topics", "create-partitioned-topic", "-p", "2", "-m", "region=eu", f"{_HERE}/told"),
    ("topics", "create-partitioned-topic", "-p", "0", f"{_HERE}/none"),
    ("topics", "create-partitioned-topic", "-p", "2", f"{_HERE}/one"),
    ("topics", "list", _NAMESPACE),
    ("topics", "list", "-td", "persistent", _NAMESPACE),
    ("topics", "list", "-td", "non_persistent", _NAMESPACE),
    ("topics", "list-partitioned-topics", _NAMESPACE),
    ("namespaces", "topics", _NAMESPACE),
    ("namespaces", "topics", "-m", "ALL", _NAMESPACE),
    ("namespaces", "topics", "-m", "NON_PERSISTENT", _NAMESPACE),
    ("namespaces", "topics", "-m", "neither", _NAMESPACE),
    ("topics", "get-properties", f"{_HERE}/one"),
    ("topics", "update-properties", "-p", "a=b", "-p", "c=d e", f"{_HERE}/one"),
    ("topics", "get-properties", f"{_HERE}/one"),
    ("topics", "remove-properties", "-k", "a", f"{_HERE}/one"),
    ("topics", "get-properties", f"{_HERE}/one"),
    ("topics", "get-properties", f"{_HERE}/two"),
    ("topics", "get-properties", f"{_HERE}/told"),
    ("topics", "update-properties", "-p", "region=us", f"{_HERE}/told"),
    ("topics", "get-properties", f"{_HERE}/told"),
    ("topics", "get-properties", f"{_HERE}/told-partition-0"),
    ("topics", "get-properties", f"{_HERE}/nowhere"),
    ("topics", "get-partitioned-topic-metadata", f"{_HERE}/parted"),
    ("topics", "get-partitioned-topic-metadata", f"{_HERE}/told"),
    ("topics", "get-partitioned-topic-metadata", f"{_HERE}/one"),
    ("topics", "get-partitioned-topic-metadata", f"{_HERE}/nowhere"),
    ("topics", "update-partitioned-topic", "-p", "5", f"{_HERE}/parted"),
    ("topics", "get-partitioned-topic-metadata", f"{_HERE}/parted"),
    ("topics", "list", _NAMESPACE),
    ("topics", "delete", f"{_HERE}/parted"),
    ("topics", "delete", f"{_HERE}/nowhere"),
    ("topics", "delete", f"{_HERE}/a b"),
    ("topics", "delete-partitioned-topic", f"{_HERE}/nowhere"),
    ("topics", "delete-partitioned-topic", f"{_HERE}/one"),
    ("topics", "delete-partitioned-topic", f"{_HERE}/parted"),
    ("topics", "delete", f"{_HERE}/one"),
    ("topics", "list", _NAMESPACE),
    ("topics", "list", "public/nowhere"),
    ("topics", "list-partitioned-topics", "public/nowhere"),
    ("namespaces", "topics", "public/nowhere"),
    ("namespaces", "list", "nowhere"),
    ("namespaces", "policies", "public/nowhere"),
]
#: What the tool does here, where that is better than what it does at a broker.
_DIFFERENT = {
    # A broker's answer is empty, and the tool ends with a NullPointerException.
    ("topics", "get-properties", f"{_HERE}/parted"): ToolOutcome(0, "", ""),
    # A broker has no words for it.
    ("topics", "update-properties", "-p", "a=b", f"{_HERE}/nowhere"): ToolOutcome(
        1, "", f"Topic {_HERE}/nowhere not found\n\nReason: Topic {_HERE}/nowhere not found"
    ),
}


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdminTool]:
    try:
        jars = admin_tool_jars()
    except PeerUnavailable as error:
        pytest.skip(str(error))
    with AdminTool(tmp_path_factory.mktemp("tool") / "tool.log", jars) as tool:
        yield tool


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("standalone")
    tables: dict[str, dict[str, Any]] = {
        "http": {"listen": "127.0.0.1:0"},
        "catalog": {"path": str(folder / "topics.sqlite"), "property_keys": ["region"]},
    }
    with Served(folder, tables) as served:
        yield served


def _url(served: Served) -> str:
    return f"http://{served.ready['http']}"


def _compared(outcome: ToolOutcome) -> ToolOutcome:
    """Without the order of lines, what libraries log of a JVM that runs many commands, and lines of a stack trace."""
    err = [
        line for line in outcome.err.splitlines() if not re.match(r"SLF4J|\s+at |.*HashedWheelTimer", line)
    ]
    return ToolOutcome(outcome.exit, "\n".join(sorted(outcome.out.splitlines())), "\n".join(err))


def test_commands_have_the_outcomes_of_a_broker(
    pulsar_broker: PulsarBroker, standalone: Served, tool: AdminTool
) -> None:
    pulsar_broker.admin.create_namespace(_NAMESPACE)
    broker = f"http://127.0.0.1:{pulsar_broker.http_port}"
    differences = []
    for command in _COMMANDS:
        wanted, found = (_compared(tool.run(url, *command)) for url in (broker, _url(standalone)))
        if wanted != found:
            differences.append((command, wanted, found))
    assert differences == [], "\n".join(map(repr, differences))
    for command, better in _DIFFERENT.items():
        tool.run(_url(standalone), "topics", "create-partitioned-topic", "-p", "3", f"{_HERE}/parted")
        assert _compared(tool.run(_url(standalone), *command)) == better


def test_namespaces_and_their_policies(
    pulsar_broker: PulsarBroker, standalone: Served, tool: AdminTool
) -> None:
    url = _url(standalone)
    tool.run(url, "topics", "create", "persistent://acme/orders/a")
    assert tool.run(url, "tenants", "list").out.split().count("acme") == 1
    assert tool.run(url, "namespaces", "list", "acme").out == "acme/orders\n"
    broker = f"http://127.0.0.1:{pulsar_broker.http_port}"
    told = [
        json.loads(tool.run(url, "namespaces", "policies", namespace).out)
        for url, namespace in ((broker, "public/default"), (_url(standalone), "acme/orders"))
    ]
    for each in told:
        each.pop("clusterThatCanDeleteNamespace", None)  # the tool's own computation from the clusters
    assert told[0] == told[1]


def test_the_library_of_4_2_selects_by_properties(
    standalone: Served, tool: AdminTool, tmp_path: Path
) -> None:
    url = _url(standalone)
    for name, region in (("here", "eu west"), ("there", "us")):
        made = tool.run(
            url,
            "topics",
            "create-partitioned-topic",
            "-p",
            "2",
            "-m",
            f"region={region}",
            f"persistent://acme/s/{name}",
        )
        assert made.exit == 0
    listing = LibraryListing(peer_jars())
    assert sorted(listing.topics(url, "acme/s", {"region": "eu west"})) == [
        f"persistent://acme/s/here-partition-{number}" for number in range(2)
    ]
    assert len(listing.topics(url, "acme/s", {})) == 4


def test_through_a_gateway(pulsar_broker: PulsarBroker, tool: AdminTool, tmp_path: Path) -> None:
    pulsar_broker.admin.create_namespace("public/through")
    topic = "persistent://public/through/orders"
    broker = f"http://127.0.0.1:{pulsar_broker.http_port}"
    assert tool.run(broker, "topics", "create-partitioned-topic", "-p", "2", topic).exit == 0
    pulsar_broker.admin.create_topic("persistent://public/through/bills")
    tables = {"http": {"listen": "127.0.0.1:0"}, "upstream": {"service_url": pulsar_broker.service_url}}
    with Served(tmp_path, tables) as gateway:
        for command in (
            ("topics", "list", "public/through"),
            ("topics", "list-partitioned-topics", "public/through"),
            ("namespaces", "topics", "public/through"),
            ("topics", "lookup", "persistent://public/through/bills"),
            ("topics", "partitioned-lookup", topic),
            ("topics", "get-partitioned-topic-metadata", topic),
            ("topics", "get-partitioned-topic-metadata", "persistent://public/through/nowhere"),
        ):
            wanted, found = (_compared(tool.run(url, *command)) for url in (broker, _url(gateway)))
            assert wanted == found, command
        refused = tool.run(_url(gateway), "topics", "create", "persistent://public/through/new")
        assert refused.exit == 1
        assert "ask the web service of a broker" in refused.err
    assert "persistent://public/through/new" not in pulsar_broker.admin.topics("public/through")


def test_tokens_give_rights(tool: AdminTool, tmp_path: Path) -> None:
    security = Security(tmp_path / "security")
    tables: dict[str, dict[str, Any]] = {
        "http": {"listen": "127.0.0.1:0"},
        "catalog": {"path": str(tmp_path / "topics.sqlite")},
        "authentication": {"methods": ["token"], "token": {"key": f"file:{security.token_public_key}"}},
        "authorization": {
            "super_roles": [ADMIN],
            "rules": [{"roles": ["reader"], "namespaces": ["public/*"], "actions": ["list"]}],
        },
    }
    topic = "persistent://public/tokens/a"
    create, listing = ("topics", "create", topic), ("topics", "list", "public/tokens")
    with Served(tmp_path / "served", tables) as served:
        url, admin, reader = _url(served), security.token(ADMIN), security.token("reader")
        assert tool.run(url, *create).exit == 1
        assert "credentials are needed" in tool.run(url, *listing).err
        refused = tool.run(url, *create, token=reader)
        assert refused.exit == 1
        assert "has no right to admin" in refused.err
        assert tool.run(url, *create, token=admin).exit == 0
        assert tool.run(url, *listing, token=reader).out == f"{topic}\n"
        assert "no right to list" in tool.run(url, "topics", "list", "acme/other", token=reader).err
