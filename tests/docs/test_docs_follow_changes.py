"""docs/how-to/follow-changes.md with the follower's own commands: no wheel has it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.docs.page_runner import PageRunner
from tests.docs.pages import ROOT, blocks
from tests.support.postgres_server import PostgresServer


def no_server() -> PostgresServer:
    raise AssertionError("this needs no database")


def test_the_follower_sends_what_the_page_says(tmp_path: Path, programs: Path) -> None:
    shutil.copy(ROOT / "examples" / "follow_changes" / "follow_changes.py", tmp_path)
    with PageRunner(tmp_path, programs, no_server) as runner:
        for block in blocks("how-to/follow-changes.md"):
            if block.language == "sh" and "--once" in block.text:
                runner.script(block)
            else:
                runner.run(block)
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [each["type"] for each in events] == [
        "broker-core.namespace.resync",
        "broker-core.topic.create",
        "broker-core.topic.delete",
    ]
