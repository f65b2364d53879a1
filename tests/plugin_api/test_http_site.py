from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from broker_core import HttpRequest, HttpSite


def handler(request: HttpRequest) -> None: ...


def site() -> HttpSite:
    return HttpSite("/mine", Path("static"))


@pytest.mark.parametrize(
    "prefix", ["", "mine", "/mine/", "//", "/a b", "/@x", "/../etc", "/mine?x", None, "/é"]
)
def test_a_prefix_is_one_path(prefix: Any) -> None:
    with pytest.raises(ValueError, match="prefix must be / or such as /name"):
        HttpSite(prefix)


def test_paths_are_below_the_prefix() -> None:
    assert HttpSite("/").at("/status") == "/status"
    assert site().at("/status") == "/mine/status"


@pytest.mark.parametrize(
    ("add", "problem"),
    [
        (lambda: site().route("get", "/x", handler), "the method of a route is one of GET"),
        (lambda: site().route("GET", "x", handler), "the path of a route is such as"),
        (lambda: site().route("GET", "/{x}/{x}", handler), "one placeholder twice"),
        (lambda: site().route("GET", "/@x", handler), "the path of a route is such as"),
        (lambda: site().route("GET", "/x", handler, needs="list"), "/x needs one of nothing, credentials"),
        (lambda: site().route("GET", "/x", "text"), "must be a function, not str"),  # type: ignore[arg-type]
        (lambda: site().route("GET", "/x", lambda: None), "must take one argument"),  # type: ignore[misc,arg-type]
        (lambda: site().screen("A", "A", "a.js"), "the name of a screen has small letters"),
        (lambda: site().screen("a", "", "a.js"), "the title of a screen has 1 to 100"),
        (lambda: site().screen("a", "A", "a.js", needs="list"), "a screen needs one of nothing"),
        (
            lambda: HttpSite("/").screen("a", "A", "a.js"),
            "the screen 'a' has a module, and the site no files",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(add: Callable[[], None], problem: str) -> None:
    with pytest.raises((ValueError, TypeError), match=problem):
        add()


def test_a_method_of_a_path_has_one_route() -> None:
    mine = site()
    mine.route("GET", "/x/{tenant}/{namespace}", handler, needs="list")
    mine.route("POST", "/x/{tenant}/{namespace}", handler, needs="admin")
    for path in ("/x/{tenant}/{namespace}", "/x/{a}/{b}"):
        with pytest.raises(ValueError, match="two routes for GET /x"):
            mine.route("GET", path, handler)
    assert [route.has_namespace for route in mine.routes] == [True, True]
