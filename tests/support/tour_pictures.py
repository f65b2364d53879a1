"""The pictures of the explorer's tour, with what stood in each when it was taken, and how it looked: a page that says
something else, or has other elements or styles, makes them old. Times and figures, which differ each time, are left
out, and so is what the fonts of a machine decide.
"""

from __future__ import annotations

import difflib
import hashlib
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
_PICTURES: Final = FOLDER / "pictures.json"
_VARIES: Final = re.compile(
    r"[\w-]{22,}|\b[0-9a-f]{8}\b|\d+ \w{3} \d{4}, [\d:]+|\bnow\b|\d[\d.,]* \w+ ago|in \d+ \w+"
    r"|\d[\d.,]*(?: (?:ms|µs|s|min|B|KiB|MiB|GiB|%)\b)?"
)

#: The kinds of elements that are seen, each with the styles that it has whatever the fonts are.
_LOOK: Final = """(of) => {
  const STYLES = ['color', 'background-color', 'background-image', 'display', 'flex-direction', 'justify-content',
    'align-items', 'grid-auto-flow', 'position', 'font-family', 'font-size', 'font-weight', 'text-align',
    'text-decoration-line', 'white-space', 'padding', 'gap', 'border', 'border-radius', 'opacity'];
  const kinds = new Set();
  const seen = [document.body, ...document.querySelectorAll(`header, header *, :is(${of}), :is(${of}) *`)];
  for (const one of seen.filter((each) => each.checkVisibility())) {
    const style = getComputedStyle(one);
    kinds.add([one.localName, one.getAttribute('class'), ...STYLES.map((name) => style.getPropertyValue(name))].join());
  }
  return [...kinds].sort().join('\\n');
}"""


def compare_or_take(page: WatchedPage, name: str, *, of: str = "main", low: bool = False) -> None:
    """Wait until the elements ``of`` say what they said in the picture; or take it, with ``PICTURES`` in the
    environment. ``low`` cuts off what is below the last line.
    """
    pictures: dict[str, Any] = json.loads(_PICTURES.read_text(encoding="utf-8"))
    if not os.environ.get("PICTURES"):
        known = pictures[name]

        def as_taken() -> bool:  # parts of a screen come one after another
            shown = _shown(page, of)
            differs = [
                *difflib.unified_diff(
                    known["texts"], shown["texts"], "the picture", "the page", n=0, lineterm=""
                ),
                *(["its elements or their styles differ"] if known["look"] != shown["look"] else []),
            ]
            assert not differs, "\n".join(
                [f"the picture {name} is old: see the head of test_tour.py", *differs]
            )
            return True

        eventually_sync(as_taken, timeout=PATIENCE / 1000)
        return
    pictures[name] = _shown(page, of)
    _PICTURES.write_text(json.dumps(pictures, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    height = VIEW["viewport"]["height"]  # type: ignore[index]
    if low:
        box = page.page.locator("main").bounding_box()
        height = min(height, box["y"] + box["height"])
    clip = {"x": 0, "y": 0, "width": VIEW["viewport"]["width"], "height": height}  # type: ignore[index]
    page.page.screenshot(path=FOLDER / f"{name}.png", clip=clip)


def _shown(page: WatchedPage, of: str) -> dict[str, Any]:
    texts: list[str] = page.page.locator(of).all_inner_texts()
    lines = [line for text in texts for line in _VARIES.sub("N", text).splitlines() if line.strip()]
    look: str = page.page.evaluate(_LOOK, of)
    return {"look": hashlib.sha256(look.encode()).hexdigest()[:16], "texts": lines}
