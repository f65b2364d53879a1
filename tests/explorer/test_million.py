"""The page in Chromium over a million topics: what it draws and fetches stays as small as with fifty."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.served import Served
from tests.support.watched_page import WatchedPage

pytestmark = pytest.mark.long

TOPICS = 1_000_000
#: Elements of the whole page; rows that are not seen are none of them.
MOST_ELEMENTS = 300


def test_a_million_topics_are_scrolled_and_narrowed(
    page_of: Callable[..., WatchedPage], tmp_path: Path, explored: Callable[..., Served]
) -> None:
    names = [{"name": f"{('orders', 'clicks')[number % 2]}-{number:07}"} for number in range(TOPICS)]
    page = page_of(
        explored(tmp_path, names), "topics/public/default", viewport={"width": 1280, "height": 800}
    )
    page.see(re.compile("^1,000,000 names"))
    page.page.locator(".scroller").focus()
    page.page.keyboard.press("End")
    page.holds("document.querySelector('[aria-selected=true]')?.textContent === 'orders-0999998'")
    elements = "document.querySelectorAll('*').length"
    assert page.page.evaluate(elements) <= MOST_ELEMENTS
    middle = "(box) => { box.scrollTop = box.scrollHeight / 2; }"
    page.page.locator(".scroller").evaluate(middle)
    page.holds("[...document.querySelectorAll('.row')].some((row) => row.textContent === 'orders-0000000')")
    assert page.page.evaluate(elements) <= MOST_ELEMENTS
    page.page.get_by_label("Pattern of names").fill("orders-00000.*")
    page.see(re.compile("^50 names"))
