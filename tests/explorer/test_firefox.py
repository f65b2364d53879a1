"""Each screen of the page in Firefox, driven by WebDriver BiDi (https://w3c.github.io/webdriver-bidi/)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from tests.support.eventually import eventually
from tests.support.machine import firefox
from tests.support.served import Served

pytestmark = pytest.mark.long

SCREENS: Final = {
    "namespaces": "public/default",
    "topics/public/default?q=orders-(.*)&p=region=eu": "39 names",
    "why/public/default?p=region=eu&topic=orders-7": "What it would take:",
    "topic/public/default/orders-7": "Full name",
    "live/public/default": "Nothing has changed yet",
    "plugins": "broker-core-explorer",
    "server": "Memory under permits",
    "help/patterns": "What RE2 refuses",
}


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

    async def value(self, expression: str) -> Any:
        """What an expression of JavaScript is, of a plain type."""
        said = await self._call(
            "script.evaluate",
            expression=expression,
            target={"context": self._context},
            awaitPromise=True,
        )
        return said["result"].get("value")

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


@pytest.fixture
async def tab(tmp_path: Path) -> AsyncIterator[Tab]:
    program = firefox()
    if program is None:
        pytest.skip("no Firefox is installed: make interop brings it on Debian, as root")
    options = ["--headless", "--no-remote", "--profile", str(tmp_path), "--remote-debugging-port", "0"]
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


async def test_each_screen_in_firefox(tab: Tab, served: Served) -> None:
    for place, there in SCREENS.items():
        await tab.go(f"http://{served.ready['http']}/#/{place}")

        async def shows(text: str = there) -> bool:
            return text in str(await tab.value("document.body.innerText"))

        await eventually(shows, what=f"{there!r} at {place}")
    assert not tab.wrong
