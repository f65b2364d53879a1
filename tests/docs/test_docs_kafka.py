"""docs/reference/kafka.md: the table of APIs and versions is that of the handlers."""

from __future__ import annotations

import re

from broker_core.servers.kafka.apis import HANDLERS
from broker_core.servers.kafka.gateway import GATEWAY_HANDLERS
from broker_core.servers.kafka.gateway.changes import CHANGE_ROWS
from broker_core.servers.kafka.gateway.nodes import NODE_ROWS
from broker_core.servers.kafka.gateway.reads import READ_ROWS
from broker_core.servers.kafka.gateway.refused_produce_and_fetch import REFUSAL_ROWS
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs/reference/kafka.md").read_text(encoding="utf-8")


def test_the_apis_and_their_versions_are_those_that_are_answered() -> None:
    rows = re.findall(r"^\| (\d+) \| (\w+)[^|]* \| ([\d-]+) \|$", PAGE, re.MULTILINE)
    answered = []
    for key, row in sorted(HANDLERS.items()):
        first, last = row.api.versions
        answered.append((str(key), row.api.name, str(first) if first == last else f"{first}-{last}"))
    assert rows == answered


def test_what_a_gateway_does_with_each_api_is_what_its_rows_do() -> None:
    table = PAGE[PAGE.index("| the gateway | APIs |") :].split("\n\n", 1)[0]
    own, *written = [line.split(" | ")[1].rstrip("| ").split(", ") for line in table.splitlines()[2:]]
    groups = (NODE_ROWS, READ_ROWS, CHANGE_ROWS, REFUSAL_ROWS)
    assert written == [[row.api.name for row in rows] for rows in groups]
    others = {row.api.name for row in GATEWAY_HANDLERS.values()}.difference(*written)
    assert set(own) == others
