"""Names of topics in paths, as they are sent."""

from __future__ import annotations

from pathlib import Path

import pytest
from yarl import URL

from tests.support.api_serving import api_served

_HERE = "/admin/v2/persistent/public/default/"


async def test_names_come_back_as_they_were_sent(tmp_path: Path) -> None:
    async with api_served(tmp_path, topics={}) as served:
        for sent in ("a%20b", "a+c", "plus%2B", "caf%C3%A9", "50%25", "%25C3", ".", "%E2%80%A8", "q%3Fx%3D1"):
            said = await served.session.put(URL(f"{served.url}{_HERE}{sent}", encoded=True))
            assert said.status == 204, sent
        said = await served.session.get(f"{served.url}/admin/v2/persistent/public/default")
        names = [name.removeprefix("persistent://public/default/") for name in await said.json()]
        assert set(names) == {"a b", "a c", "plus+", "café", "50%", "%C3", ".", "\u2028", "q?x=1"}


@pytest.mark.parametrize(
    ("sent", "status"), [("cut%C3", 400), ("zero%00", 400), ("half%2", 400), ("sl%2Fash", 412)]
)
async def test_no_name_is_refused(tmp_path: Path, sent: str, status: int) -> None:
    async with api_served(tmp_path) as served:
        url = URL(f"{served.url}{_HERE}{sent}", encoded=True)
        for method in ("PUT", "DELETE"):
            said = await served.session.request(method, url)
            assert said.status == status
            assert set(await said.json()) == {"reason"}


async def test_a_path_may_be_a_whole_url(tmp_path: Path) -> None:
    async with api_served(tmp_path) as served:
        assert served.broker.http_address is not None
        host, port = served.broker.http_address
        import asyncio

        reader, writer = await asyncio.open_connection(host, port)
        url = f"http://{host}:{port}{_HERE}bills/partitions"
        writer.write(f"GET {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        said = await reader.read()
        writer.close()
        assert b'"partitions":0' in said
