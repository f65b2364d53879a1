"""docs/reference/kafka.md: the table of APIs and versions is that of the handlers."""

from __future__ import annotations

import re

from broker_core.servers.kafka.apis import HANDLERS
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs/reference/kafka.md").read_text(encoding="utf-8")


def test_the_apis_and_their_versions_are_those_that_are_answered() -> None:
    rows = re.findall(r"^\| (\d+) \| (\w+)[^|]* \| ([\d-]+) \|$", PAGE, re.MULTILINE)
    answered = []
    for key, row in sorted(HANDLERS.items()):
        first, last = row.api.versions
        answered.append((str(key), row.api.name, str(first) if first == last else f"{first}-{last}"))
    assert rows == answered
