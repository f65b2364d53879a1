"""The pictures of the explorer's tour, and what stood in each when it was taken: a page that says something else makes
them old. Times and figures, which differ each time, are left out.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, Final

from tests.support.eventually import eventually_sync
from tests.support.watched_page import PATIENCE, WatchedPage

__all__ = ["FOLDER", "VIEW", "compare_or_take"]

FOLDER: Final = Path(__file__).parents[2] / "docs" / "tutorial" / "explorer"
#: What a page of the tour is opened with.
VIEW: Final = {
    "viewport": {"width": 1080, "height": 640},
    "color_scheme": "light",
    "locale": "en-GB",
    "timezone_id": "UTC",
}
_TEXTS: Final = FOLDER / "pictures.json"
_VARIES: Final = re.compile(
    r"[\w-]{22,}|\b[0-9a-f]{8}\b|\d+ \w{3} \d{4}, [\d:]+|\bnow\b|\d+ \w+ ago|in \d+ \w+"
    r"|\d[\d.,]*(?: (?:ms|µs|s|min|B|KiB|MiB|GiB|%)\b)?"
)


def compare_or_take(page: WatchedPage, name: str, *, of: str = "main", low: bool = False) -> None:
    """Wait until the elements ``of`` say what they said in the picture; or take it, with ``PICTURES`` in the
    environment. ``low`` cuts off what is below the last line.
    """
    if not os.environ.get("PICTURES"):
        known = json.loads(_TEXTS.read_text(encoding="utf-8"))[name]

        def as_taken() -> bool:  # parts of a screen come one after another
            assert _shown(page, of) == known, f"the picture {name} is old: see the head of test_tour.py"
            return True

        eventually_sync(as_taken, timeout=PATIENCE / 1000)
        return
    texts: dict[str, Any] = json.loads(_TEXTS.read_text(encoding="utf-8"))
    texts[name] = _shown(page, of)
    _TEXTS.write_text(json.dumps(texts, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    height = VIEW["viewport"]["height"]  # type: ignore[index]
    if low:
        box = page.page.locator("main").bounding_box()
        height = min(height, box["y"] + box["height"])
    clip = {"x": 0, "y": 0, "width": VIEW["viewport"]["width"], "height": height}  # type: ignore[index]
    page.page.screenshot(path=FOLDER / f"{name}.png", clip=clip)


def _shown(page: WatchedPage, of: str) -> list[str]:
    texts: list[str] = page.page.locator(of).all_inner_texts()
    return [line for text in texts for line in _VARIES.sub("N", text).splitlines() if line.strip()]
