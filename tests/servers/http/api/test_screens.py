from __future__ import annotations

import base64
from pathlib import Path

from broker_core import HttpSite, hookimpl
from tests.support.api_serving import api_served
from tests.support.htpasswd import write_htpasswd


async def test_the_screens_say_whether_a_client_has_their_right(tmp_path: Path) -> None:
    folder = tmp_path / "static"
    folder.mkdir()
    (folder / "screen.js").write_text("export default () => null;")

    class Screens:
        @hookimpl
        def broker_core_http_routes(self) -> HttpSite:
            site = HttpSite("/mine", folder)
            for needs in ("nothing", "monitor", "admin", "super"):
                site.screen(needs, needs, "screen.js", needs=needs)
            return site

    users = write_htpasswd(tmp_path / "users", watcher="pw", root="pw")
    rules = [{"roles": ["watcher"], "namespaces": ["*"], "actions": ["monitor"]}]
    async with api_served(
        tmp_path,
        plugins={"p": Screens()},
        authentication={"methods": ["basic"], "basic": {"file": users}},
        authorization={"super_roles": ["root"], "rules": rules},
    ) as served:
        assert (await served.ask("/v1/screens")).status == 401
        for user, allowed in (
            ("watcher", ["nothing", "monitor"]),
            ("root", ["nothing", "monitor", "admin", "super"]),
        ):
            given = base64.b64encode(f"{user}:pw".encode()).decode()
            said = await served.ask("/v1/screens", headers={"Authorization": f"Basic {given}"})
            assert [each["id"] for each in said.json["items"] if each["allowed"]] == allowed
