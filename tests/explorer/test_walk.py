"""A walk over all screens of the page in all states: with topics and without, narrow and wide, dark and light, by
keyboard alone, without rights, and with the server away.

The page itself says which screens there are; one that the table of them does not have fails the walk.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from broker_core_explorer import plugin
from tests.explorer.conftest import SCREENS, places
from tests.support.served import Served
from tests.support.watched_page import WatchedPage

Open = Callable[..., WatchedPage]


#: What a screen says of a server that is away; help needs none.
AWAY: Final = re.compile("The server does not answer$|not connected|What RE2 refuses|The address names no")
NARROW: Final = {"width": 360, "height": 720}
WIDE: Final = {"width": 3840, "height": 400}


def show(page: WatchedPage, place: str, said: str | re.Pattern[str]) -> None:
    page.page.evaluate("(place) => { location.hash = place; }", f"#/{place}")
    page.see(said)
    page.settled()


@pytest.mark.parametrize(
    ("state", "looks"),
    [
        ("full", [(NARROW, "dark"), (WIDE, "light")]),
        ("none", [(NARROW, "light"), (WIDE, "dark")]),
    ],
)
def test_each_screen_narrow_and_wide_dark_and_light(
    page_of: Open, walked: Callable[[str], Served], state: str, looks: list[tuple[Any, Any]]
) -> None:
    page = page_of(walked(state), own=True)
    for place, said in places(state).items():
        show(page, place, said)
        assert page.page.title().endswith(" · broker-core")
        for size, scheme in looks:
            page.page.set_viewport_size(size)
            page.page.emulate_media(color_scheme=scheme)
            assert page.too_wide() <= 0, (place, size)
            if (
                size is NARROW or state == "full"
            ):  # the parts of a screen without topics have the same colours
                found = page.axe(colours_alone=size is WIDE)
                assert not found, (place, size, scheme)


def known_places() -> set[str]:
    """The places of the walk, without their questions."""
    return {place.partition("?")[0] for place in SCREENS}


def test_the_walk_has_each_screen() -> None:
    source = Path(plugin.__file__).with_name("static") / "app.js"
    of_page = re.findall(r"^  (\w+): \{ screen: ", source.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(of_page) == {place.partition("/")[0] for place in known_places()} - {"nowhere"}


#: What the keyboard must reach on a screen: whatever a pointer can press or fill in.
_PRESSED: Final = """[...document.querySelectorAll(
  'main :is(a[href], button:enabled, input, select, textarea, summary, [tabindex="0"]):not([tabindex="-1"])'
)].filter((one) => one.checkVisibility() && !one.closest('details:not([open]) > :not(summary)'))"""
_WATCHED: Final = f"""() => {{
  window.stops = [];
  window.watched?.abort();
  window.watched = new AbortController();
  document.addEventListener('focusin', ({{ target }}) => stops.push([
    {_PRESSED}.indexOf(target), getComputedStyle(target).outlineStyle !== 'none', target.className === 'skip',
  ]), {{ signal: watched.signal }});
  const before = (one) => document.querySelector('h1').compareDocumentPosition(one) & Node.DOCUMENT_POSITION_PRECEDING;
  return [{_PRESSED}.filter(before).length, {_PRESSED}.length];
}}"""


def tabbed(page: WatchedPage, where: str) -> None:
    """From the heading, which has the focus, Tab comes to all that can be pressed, visibly, and out again; what is
    before the heading is reached backwards.
    """
    before, count = page.page.evaluate(_WATCHED)
    for _ in range(before):
        page.page.keyboard.press("Shift+Tab")
    for pressed in range(count + 8):
        page.page.keyboard.press("Tab")
        if pressed >= count and page.page.evaluate("stops.at(-1)[2]"):
            break
    stops = page.page.evaluate("stops")
    first = {at for at, _, _ in stops[:before]}
    stops = stops[before:]
    last = next((number for number, (_, _, beyond) in enumerate(stops) if beyond), None)
    assert last is not None, f"{where}: Tab does not come out of it"
    assert (first | {at for at, _, _ in stops[:last]}) - {-1} == set(range(count)), where
    assert all(seen for at, seen, _ in stops[:last] if at >= 0), where
    in_order = [at for at, _, _ in stops[:last] if at >= 0]
    assert in_order == sorted(in_order), f"{where}: {in_order}"


def opened(page: WatchedPage, command: str, heading: str) -> None:
    """A screen by the palette; its heading has the focus."""
    page.page.keyboard.press("Control+k")
    page.page.keyboard.type(command)
    page.holds(
        f"document.querySelector('dialog [aria-selected=true]')?.textContent === {json.dumps(command)}"
    )
    page.page.keyboard.press("Enter")
    page.holds(f"document.activeElement.textContent === {json.dumps(heading)}")


@pytest.mark.parametrize("state", ["full", "none"])
def test_each_screen_by_keyboard_alone(page_of: Open, walked: Callable[[str], Served], state: str) -> None:
    page = page_of(walked(state))
    page.see(getattr(SCREENS["namespaces"], state))
    page.page.locator("nav[aria-label=Screens] a", has_text="Held").wait_for()
    titles: dict[str, str] = page.page.evaluate(
        "Object.fromEntries([...document.querySelectorAll('nav[aria-label=Screens] a')]"
        ".map((each) => [each.hash.slice(2), each.textContent]))"
    )
    assert titles.keys() - {"help"} <= known_places()
    seen = SCREENS.keys() - places("none").keys() if state == "none" else set()
    for title in (titles[place] for place in titles if place not in seen):
        opened(page, title, title)
        page.settled()
        tabbed(page, title)
    for command in ("Topics of", "Why not? in", "Live in"):  # of a namespace that is open
        show(page, "topic/public/default/orders-7", getattr(SCREENS["topic/public/default/orders-7"], state))
        page.holds("document.activeElement.textContent === 'orders-7'")
        if command == "Live in":
            tabbed(page, "topic")
        opened(page, f"{command} public/default", "public/default")
        if command == "Live in":  # which may be connecting
            page.see(getattr(SCREENS["live/public/default"], state))
        page.settled()
        tabbed(page, command)


def test_each_screen_without_rights(page_of: Open, walked: Callable[[str], Served]) -> None:
    page = page_of(walked("denied"))
    page.holds("document.activeElement.name === 'user'")
    for typed, then in (("reader", "Tab"), ("secret", "Enter")):
        page.page.keyboard.type(typed)
        page.page.keyboard.press(then)
    page.page.get_by_role("dialog").wait_for(state="hidden")
    others = {
        "topics/internal/audit": "You may not see the topics",
        "topics/public/nothing": "No such namespace is known",
        "live/internal/audit": "You may not see the changes",
        "topic/internal/audit/log": "You may not see this topic",
        "topic/public/default/sensor-00": "There is no such topic now",
    }
    for place, said in (places("denied") | others).items():
        show(page, place, said)
        if place in others or said != SCREENS[place].full:
            assert not page.axe(), place
            page.page.evaluate("document.querySelector('h1').focus()")
            tabbed(page, place)


def test_each_screen_while_the_server_is_away(page_of: Open, walked: Callable[[str], Served]) -> None:
    running = walked("full")
    page = page_of(running, "topics/public/default?renew=1")
    page.see(re.compile("^60 names"))
    server = page_of(running, "server")
    server.see("Memory under permits")
    server.settled()
    page.page.get_by_role("link", name="Held listings").wait_for()
    live = page_of(running, "live/public/default?q=other-.*")
    live.see("Nothing has changed yet")
    running.kill()
    live.see("not connected, trying again")
    live.see("Nothing has changed yet")
    server.page.keyboard.press("r")
    # What was there stays, with its time.
    server.page.locator(".kept ~ :has(table)", has_text="direct").wait_for()
    page.see("As it was at")
    page.see(re.compile("^60 names"))
    for each in (page, live, server):
        each.page.get_by_role("alert").wait_for()
        assert each.page.get_by_role("alert").count() == 1
    assert not server.axe()
    page.page.get_by_label("Pattern of names").fill("orders-1.*")
    page.see("The server does not answer. The page asks again")
    assert not page.axe()
    for place in places("full"):
        show(page, place, AWAY)
        page.see("The server does not answer. The page asks again")
    page.page.evaluate("document.querySelector('h1').focus()")
    assert not page.axe()  # before Tab comes to the link that skips what it covers
    tabbed(page, "away")
    page.page.evaluate("location.hash = '#/topics/public/default?q=orders-1.*'")
    running.start()
    page.see(re.compile("^11 names"))
    live.see("Nothing has changed yet")
    page.page.get_by_text("The server does not answer").wait_for(state="hidden")
