"""The tour of docs/tutorial/explorer.md in a real Chromium: its pictures show what the page shows now.

``PICTURES=1 pytest tests/explorer/test_tour.py`` takes them anew. Beside them is what stood in each, without times and
figures that differ each time; a page that says something else makes them old.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from broker_core.demo import demo_topics
from tests.support.eventually import eventually_sync
from tests.support.served import Served
from tests.support.watched_page import WatchedPage

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "tutorial" / "explorer.md"
FOLDER: Final = ROOT / "docs" / "tutorial" / "explorer"
TEXTS: Final = FOLDER / "pictures.json"
#: Each picture: the place, and what is there when it is taken.
PICTURES: Final = {
    "namespaces": ("namespaces", "public/default"),
    "topics": ("topics/public/default?q=orders-(.*)&p=region=eu", "orders-eu-partition-2"),
    "why": ("why/public/default?q=orders-.*&p=region=eu&topic=orders-us", "What it would take:"),
    "topic": ("topic/public/default/orders-eu", "no plugin authorizes here"),
    "server": ("server", "Memory under permits"),
}
_VARIES: Final = re.compile(
    r"[\w-]{22}|\b[0-9a-f]{8}\b|\d+ \w{3} \d{4}, [\d:]+|\bnow\b|\d+ \w+ ago"
    r"|\d[\d.,]*(?: (?:ms|µs|s|B|KiB|MiB|GiB|%)\b)?"
)


def shown(page: WatchedPage) -> list[str]:
    """The lines of a screen, figures left out; of the server, the headings alone, since what it has done differs."""
    of = "main h1, main h2" if "#/server" in page.page.url else "main"
    texts: list[Any] = page.page.locator(of).all_inner_texts()
    return [line for text in texts for line in _VARIES.sub("N", text).splitlines() if line.strip()]


def test_the_pictures_show_what_the_page_shows(
    page_of: Callable[..., WatchedPage], tmp_path: Path, explored: Callable[..., Served]
) -> None:
    page = page_of(
        explored(tmp_path, list(demo_topics()), writes=True),
        viewport={"width": 1080, "height": 640},
        color_scheme="light",
        locale="en-GB",
        timezone_id="UTC",
    )
    taken = bool(os.environ.get("PICTURES"))
    texts: dict[str, list[str]] = {} if taken else json.loads(TEXTS.read_text(encoding="utf-8"))
    for name, (place, there) in PICTURES.items():
        page.go(place)
        page.see(there)
        page.settled()
        if taken:
            texts[name] = shown(page)
            if name == "server":
                page.page.locator(".chart").first.wait_for()  # the first values come after ten seconds
            page.page.screenshot(path=FOLDER / f"{name}.png")
        else:  # parts of a screen come one after another

            def as_taken(name: str = name) -> bool:
                assert shown(page) == texts[name], "the pictures are old: see the head of this file"
                return True

            eventually_sync(as_taken, timeout=15)
    if taken:
        TEXTS.write_text(json.dumps(texts, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def test_the_page_has_each_picture_and_no_other() -> None:
    named = set(re.findall(r"\(explorer/(\w+)\.png\)", PAGE.read_text(encoding="utf-8")))
    assert named == set(PICTURES) == {path.stem for path in FOLDER.glob("*.png")}
