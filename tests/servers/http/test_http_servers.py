from __future__ import annotations

from pathlib import Path

import aiohttp

from tests.support.api_serving import NAMESPACE, api_served


async def test_the_operators_server_has_places_of_its_own(tmp_path: Path) -> None:
    socket = tmp_path / "admin.sock"
    async with api_served(tmp_path, admin={"socket": str(socket)}) as served:
        assert served.broker._http_servers is not None
        served.broker._http_servers._services.admission.drain()
        assert (await served.ask(f"{NAMESPACE}/topics")).status == 503
        connector = aiohttp.UnixConnector(str(socket))
        async with (
            aiohttp.ClientSession(connector=connector) as operator,
            operator.get(f"http://server{NAMESPACE}/topics") as said,
        ):
            assert said.status == 200


async def test_a_denied_page_is_counted(tmp_path: Path) -> None:
    async with api_served(tmp_path, authorization={"mode": "rules"}) as served:
        assert (await served.ask("/plugins")).status == 403
        assert served.sample("denials_total", action="monitor", by="rules") == 1
