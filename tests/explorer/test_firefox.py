"""Each screen of the page in Firefox, driven by WebDriver BiDi (https://w3c.github.io/webdriver-bidi/): a walk over all
of them, and in `make interop` with axe, narrow and wide, dark and light.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import aiohttp
import pytest
from axe_playwright_python.base import AXE_FILE_PATH

from tests.explorer.conftest import HOSTILE, HOSTILE_NAMES, TOPICS, as_shown, places
from tests.support.eventually import eventually
from tests.support.machine import firefox
from tests.support.served import Served


class Tab:
    """A tab of a Firefox; ``wrong`` has the errors and warnings of its pages, reports of their policy among them."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._calls = 0
        self._context = ""
        self.wrong: list[str] = []

    async def open(self) -> None:
        await self._call("session.new", capabilities={})
        await self._call("session.subscribe", events=["log.entryAdded"])
        self._context = (await self._call("browsingContext.create", type="tab"))["context"]

    async def go(self, url: str) -> None:
        await self._call("browsingContext.navigate", context=self._context, url=url, wait="complete")

    async def show(self, place: str, text: str, *, of: str = "true") -> None:
        """Go to a place of the page that is open, and wait until it says this, and an expression holds."""
        await self.value(f"location.hash = {json.dumps(f'#/{place}')}")
        shows = f"{of} && document.body.innerText.includes({json.dumps(text)})"
        await eventually(lambda: self.value(shows), what=f"{text!r} at {place}")

    async def value(self, expression: str) -> Any:
        """What an expression of JavaScript is, of a plain type."""
        said = await self._call(
            "script.evaluate",
            expression=expression,
            target={"context": self._context},
            awaitPromise=True,
        )
        return said["result"].get("value")

    async def resize(self, width: int, height: int) -> None:
        viewport = {"width": width, "height": height}
        await self._call("browsingContext.setViewport", context=self._context, viewport=viewport)

    async def press(self, *keys: str) -> None:
        """Press keys one after another, and let them go: characters, or those of WebDriver (U+E000 and above)."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        source = {"type": "key", "id": "keyboard", "actions": actions}
        await self._call("input.performActions", context=self._context, actions=[source])

    async def _call(self, method: str, **parameters: Any) -> Any:
        self._calls += 1
        await self._socket.send_json({"id": self._calls, "method": method, "params": parameters})
        while True:
            message = await self._socket.receive_json(timeout=60)
            if message.get("method") == "log.entryAdded" and message["params"]["level"] in {"error", "warn"}:
                self.wrong.append(str(message["params"]["text"]))
            if message.get("id") == self._calls:
                assert message["type"] == "success", message
                return message["result"]


#: What a Firefox with one tab needs no process of its own for, and add-ons: the walk takes a fifth less without them.
_LESS_TO_START: Final = {
    "fission.autostart": False,
    "dom.ipc.processPrelaunch.enabled": False,
    "dom.ipc.processCount": 1,
    "extensions.webextensions.remote": False,
    "browser.tabs.remote.separatePrivilegedContentProcess": False,
    "browser.newtab.preload": False,
    "media.rdd-process.enabled": False,
    "network.process.enabled": False,
    "extensions.installDistroAddons": False,
    "extensions.enabledScopes": 0,
    "extensions.startupScanScopes": 0,
    "extensions.formautofill.addresses.enabled": False,
    "extensions.formautofill.creditCards.enabled": False,
    "extensions.webcompat.enable_shims": False,
    "extensions.webcompat.perform_injections": False,
}


@pytest.fixture
def dark() -> bool:
    return False


@pytest.fixture
async def tab(tmp_path: Path, dark: bool) -> AsyncIterator[Tab]:
    program = firefox()
    if program is None:
        pytest.skip("no Firefox is installed: make test brings it on Debian, as root")
    profile = tmp_path / "profile"
    profile.mkdir()
    preferences = {**_LESS_TO_START, "ui.systemUsesDarkTheme": int(dark)}
    lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in preferences.items()]
    (profile / "user.js").write_text("".join(lines), encoding="utf-8")
    options = ["--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port", "0"]
    process = await asyncio.create_subprocess_exec(
        str(program), *options, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    try:
        address = None
        async with asyncio.timeout(120):
            while address is None:
                line = await process.stderr.readline()
                assert line, "Firefox ended"
                address = re.search(r"WebDriver BiDi listening on (ws://\S+)", line.decode())
        session = aiohttp.ClientSession()
        async with session, session.ws_connect(f"{address[1]}/session", max_msg_size=0) as socket:
            opened = Tab(socket)
            await opened.open()
            yield opened
    finally:
        process.terminate()
        await process.communicate()


def axe() -> str:
    """The text of axe-core, which defines `axe`."""
    return Path(AXE_FILE_PATH).read_text(encoding="utf-8") + "; true"


async def test_a_walk_over_all_screens(tab: Tab, tmp_path: Path, explored: Callable[..., Served]) -> None:
    served = explored(tmp_path / "served", TOPICS, writes=True, more={"public/hostile": HOSTILE_NAMES})
    await tab.go(f"http://{served.ready['http']}/")
    there = places("full") | {"namespaces": "2 namespaces"}
    for plugin in ("postgres", "spark"):  # which this server has not
        del there[f"screen/{plugin}"]
    for place, text in there.items():
        await tab.show(place, text)
    await tab.show("topics/public/hostile", "200 names")
    for name in HOSTILE_NAMES[: len(HOSTILE)]:
        place = f"topic/public/hostile/{quote(name, safe='')}"
        shown = json.dumps(as_shown(name))
        await tab.show(place, "Full name", of=f"document.querySelector('h1').textContent === {shown}")
    assert not tab.wrong


@pytest.mark.long
@pytest.mark.parametrize(("state", "dark"), [("full", True), ("none", False)])
async def test_each_screen(tab: Tab, walked: Callable[[str], Served], state: str) -> None:
    await tab.go(f"http://{walked(state).ready['http']}/")
    await tab.value(axe())
    for place, there in places(state).items():
        await tab.show(place, there)
        await tab.resize(3840, 720)
        assert not await tab.value("document.documentElement.scrollWidth > innerWidth"), place
        await tab.resize(360, 720)
        assert not await tab.value("document.documentElement.scrollWidth > innerWidth"), place
        found = await tab.value(
            "axe.run(document, {resultTypes: ['violations'], preload: false}).then((found) =>"
            " JSON.stringify(found.violations.map((each) => [each.id, each.nodes.map((node) => node.html)])))"
        )
        assert found == "[]", place
    await tab.press("?")
    # Whether keys act has the focus, and then the table of them.
    await eventually(
        lambda: tab.value("document.activeElement.matches('dialog input[type=checkbox]')"),
        what="help by its key",
    )
    await tab.press("\ue004")  # Tab
    assert await tab.value("document.activeElement.matches('dialog [tabindex=\"0\"]')")
    assert not tab.wrong
