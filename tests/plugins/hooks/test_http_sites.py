from __future__ import annotations

from typing import Any

import pytest

from broker_core import HttpSite
from broker_core.plugins import Dispatcher, PluginLoadError, PluginRegistry
from tests.support.plugins import PluginOf


def sites(**plugins: Any) -> list[str]:
    """The prefixes of the sites of plugins, each of which returns this from the hook."""
    given = {name: PluginOf(http_routes=_returning(site)) for name, site in plugins.items()}
    return [each.site.prefix for each in Dispatcher(PluginRegistry.load(given=given)).http_sites()]


def _returning(site: Any) -> Any:
    return lambda: site


def with_route(prefix: str, path: str) -> HttpSite:
    site = HttpSite(prefix)
    site.route("GET", path, lambda _request: None)
    return site


def with_screen(prefix: str) -> HttpSite:
    site = HttpSite(prefix, "static")
    site.screen("status", "Status", "a.js")
    return site


def test_sites_are_those_of_the_plugins_in_their_order() -> None:
    assert sites(b=HttpSite("/b"), none=None, a=HttpSite("/")) == ["/b", "/"]


@pytest.mark.parametrize(
    ("plugins", "problem"),
    [
        ({"p": "/"}, "plugin 'p' returned '/' from broker_core_http_routes, not a broker_core.HttpSite"),
        *(
            ({"p": HttpSite(f"/{name}")}, f"plugin 'p' has a site at /{name}, which the server has itself")
            for name in ("v1", "metrics", "questions", "plugins", "admin", "lookup")
        ),
        ({"p": HttpSite("/metrics/mine")}, "plugin 'p' has a site at /metrics/mine, which the server has"),
        ({"p": with_route("/", "/admin/x")}, "plugin 'p' has a site at /admin/x, which the server has"),
        ({"p": with_route("/", "/{a}/{b}")}, "plugin 'p' has a route at /{a}/{b}, where the server has /v1"),
        ({"p": HttpSite("/a"), "q": HttpSite("/a")}, "plugin 'q' has a site at /a, and so has plugin 'p'"),
        (
            {"p": with_screen("/a"), "q": with_screen("/b")},
            "plugin 'q' has a screen 'status', and so has plugin 'p'",
        ),
    ],
)
def test_a_clash_stops_the_start(plugins: dict[str, Any], problem: str) -> None:
    with pytest.raises(PluginLoadError, match=problem):
        sites(**plugins)


def test_a_site_has_no_screen_twice_and_no_content_type_that_is_none() -> None:
    with pytest.raises(ValueError, match="there are two screens 'status'"):
        with_screen("/a").screen("status", "Status", "b.js")
    wrongs: tuple[Any, ...] = (
        "text/html\r\nX: y",
        "html",
        "text/html; charset",
        "text/ht\u00fcml",
        "text/html\n",
        5,
        None,
    )
    for wrong in wrongs:
        with pytest.raises(ValueError, match="the content_type of /x must be"):
            HttpSite("/a").route("GET", "/x", lambda _request: b"", content_type=wrong)
    HttpSite("/a").route(
        "GET", "/x", lambda _request: b"", content_type='text/csv;header="a b"; charset=utf-8'
    )


def test_a_hook_that_raises_stops_the_start() -> None:
    def fails() -> HttpSite:
        return HttpSite("no path")

    registry = PluginRegistry.load(given={"p": PluginOf(http_routes=fails)})
    with pytest.raises(
        PluginLoadError, match="failed in broker_core_http_routes: ValueError: prefix must be"
    ):
        Dispatcher(registry).http_sites()
