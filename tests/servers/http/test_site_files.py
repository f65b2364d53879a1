"""The files of plugins' sites as a browser gets them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from broker_core import HttpSite, hookimpl
from broker_core.plugins import PluginLoadError
from tests.support.api_serving import ApiServed, api_served

INDEX = '<meta name="root" content="@root/"><script type="module" src="@files/app.js"></script>'
APP = "export const many = 1;\n" * 100


class Site:
    """A plugin with a site at a prefix."""

    def __init__(self, prefix: str, folder: Path, **screens: str) -> None:
        self.site = HttpSite(prefix, folder)
        for name, module in screens.items():
            self.site.screen(name, name.title(), module)

    @hookimpl
    def broker_core_http_routes(self) -> HttpSite:
        return self.site


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "static"
    (folder / "parts").mkdir(parents=True)
    (folder / "index.html").write_text(INDEX)
    (folder / "app.js").write_text(APP)
    (folder / "parts/tiny.css").write_text("a{}")
    (folder / ".hidden").write_text("no")
    return folder


@pytest.mark.parametrize(
    ("prefixes", "problem"),
    [
        (("/", "/parts"), "plugin 'q' has a site at /parts, and plugin 'p' has /parts/tiny.css"),
        (("/app.js", "/"), "plugin 'q' has /app.js, and plugin 'p' a site at /app.js"),
        (("/x", "/x/of/it"), "plugin 'q' has a site at /x/of/it, and plugin 'p' has /x/of/{it}"),
    ],
)
async def test_two_plugins_at_one_path_stop_the_start(
    tmp_path: Path, folder: Path, prefixes: tuple[str, str], problem: str
) -> None:
    plugins = {name: Site(prefix, folder) for name, prefix in zip("pq", prefixes, strict=True)}
    if prefixes[0] == "/x":
        plugins["p"].site.route("GET", "/of/{it}", lambda _request: None)
    with pytest.raises(PluginLoadError) as raised:
        async with api_served(tmp_path, plugins=plugins):
            pass
    assert problem in str(raised.value)


POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)


async def test_a_site_within_another_that_has_nothing_there(tmp_path: Path, folder: Path) -> None:
    async with api_served(tmp_path, plugins={"p": Site("/", folder), "q": Site("/q", folder)}) as served:
        assert (await served.ask("/q/app.js")).status == 200


async def index_of(served: ApiServed, path: str) -> tuple[str, str]:
    """The page at a path, and the address of its script there."""
    page = (await served.ask(path)).body.decode()
    return page, path + page.partition('src="')[2].partition('"')[0]


@pytest.mark.parametrize(("prefix", "up"), [("/", "./"), ("/explorer", "../"), ("/of/team", "../../")])
async def test_files_are_there_by_their_name_and_for_ever_by_their_hash(
    tmp_path: Path, folder: Path, prefix: str, up: str
) -> None:
    async with api_served(tmp_path, plugins={"p": Site(prefix, folder, status="app.js")}) as served:
        below = prefix.rstrip("/") + "/"
        page, script = await index_of(served, below)
        assert f'content="{up}"' in page
        for path, cached in ((f"{below}app.js", "no-cache"), (script, "public, max-age=31536000, immutable")):
            said = await served.ask(path)
            assert (said.status, said.body.decode()) == (200, APP)
            assert said.headers["Cache-Control"] == cached
            assert said.headers["Content-Type"] == "text/javascript; charset=utf-8"
            assert said.headers["Content-Security-Policy"] == POLICY
            assert said.headers["X-Content-Type-Options"] == "nosniff"
            assert said.headers["Vary"] == "Accept-Encoding"
            assert said.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        style = script.replace("app.js", "parts/tiny.css")
        assert (await served.ask(style)).body == b"a{}"
        for absent in (
            ".hidden",
            "parts",
            "app.jsx",
            "@0123456789abcdef/app.js",
            "../topics.sqlite",
            "%2e%2e/topics.sqlite",
        ):
            assert (await served.ask(below + absent)).status == 404
        assert (await served.ask(script.replace("app.js", "index.html"))).status == 404
        (screen,) = (await served.ask("/v1/screens")).json["items"]
        assert (screen["id"], screen["title"], screen["plugin"]) == ("status", "Status", "p")
        assert "/" + screen["module"] == script
        if prefix != "/":
            said = await served.ask(prefix, allow_redirects=False)
            assert (said.status, said.headers["Location"]) == (308, f"{prefix.rpartition('/')[2]}/")


async def test_a_browser_that_has_a_file_is_sent_none(tmp_path: Path, folder: Path) -> None:
    async with api_served(tmp_path, plugins={"p": Site("/", folder)}) as served:
        plain = await served.ask("/app.js", headers={"Accept-Encoding": "identity"})
        packed = await served.ask("/app.js", headers={"Accept-Encoding": "gzip"}, auto_decompress=False)
        assert packed.headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(packed.body) == plain.body == APP.encode()
        assert plain.headers["ETag"] != packed.headers["ETag"]
        for said, form in ((plain, "identity"), (packed, "gzip")):
            known = {"If-None-Match": said.headers["ETag"], "Accept-Encoding": form}
            again = await served.ask("/app.js", headers=known)
            assert (again.status, again.body) == (304, b"")
        assert (await served.ask("/app.js", headers={"If-None-Match": "no tag"})).status == 200
        head = await served.ask("/app.js", "HEAD", headers={"Accept-Encoding": "identity"})
        assert (head.status, head.body, head.headers["Content-Length"]) == (200, b"", str(len(APP)))
        assert (await served.ask("/app.js", "POST")).status == 405


def _much(folder: Path) -> None:
    (folder / "much.js").write_bytes(b" " * (8 * 1024 * 1024 + 1))


def _many(folder: Path) -> None:
    for number in range(501):
        (folder / f"{number}.js").touch()


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda folder: (folder / "run.exe").touch(), "has a file 'run.exe' in its site: names"),
        (lambda folder: (folder / "parts/a b.js").touch(), "has a file 'parts/a b.js' in its site: names"),
        (_much, "has a site of more than 500 files, or 8 MiB"),
        (_many, "has a site of more than 500 files, or 8 MiB"),
        (lambda folder: (folder / "app.js").unlink(), "has a screen 'status', and no file 'app.js'"),
    ],
)
async def test_what_cannot_be_served_stops_the_start(
    tmp_path: Path, folder: Path, spoil: Any, problem: str
) -> None:
    spoil(folder)
    with pytest.raises(PluginLoadError, match=f"plugin 'p' {problem}"):
        async with api_served(tmp_path, plugins={"p": Site("/", folder, status="app.js")}):
            pass


async def test_a_folder_that_is_none_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(PluginLoadError, match="files of 'absent', which is no folder"):
        async with api_served(tmp_path, plugins={"p": Site("/", tmp_path / "absent")}):
            pass
