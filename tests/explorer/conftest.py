"""A real Chromium for the tests of the page, and servers for it: with topics and without, with rights."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from broker_core.catalog import SqliteCatalog, import_topics
from broker_core.names import NamespaceName
from tests.support.htpasswd import write_htpasswd
from tests.support.machine import chromium
from tests.support.served import Served
from tests.support.watched_page import WatchedPage

#: What is in the catalogue of most tests: 50 topics, of which `orders-7` is of another region.
TOPICS: Final = [
    {"name": f"orders-{number}", "properties": {"region": "us" if number == 7 else "eu", "team": "sales"}}
    for number in range(1, 41)
] + [{"name": f"sensor-{number:02}", "partitions": 2, "properties": {"region": "us"}} for number in range(10)]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    program = chromium()
    if program is None:
        pytest.skip("no Chromium is installed: make test brings it on Debian, as root")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Chromium's own sandbox needs user namespaces, which containers seldom have. All that is shown is ours.
        launched = playwright.chromium.launch(
            executable_path=str(program), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield launched
        launched.close()


@pytest.fixture
def page_of(browser: Any) -> Iterator[Callable[..., WatchedPage]]:
    """Opens pages; what is wrong in any of them fails the test at its end."""
    opened: list[WatchedPage] = []

    def open_page(served: Served, place: str = "", **options: Any) -> WatchedPage:
        page = WatchedPage(browser.new_context(**options), f"http://{served.ready['http']}/")
        opened.append(page)
        page.go(place)
        return page

    yield open_page
    for page in opened:
        page.context.close()
    for page in opened:
        assert not page.wrong


@contextmanager
def serving(
    folder: Path,
    topics: list[dict[str, Any]],
    tables: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    writes: bool = False,
    python_path: Path | None = None,
) -> Iterator[Served]:
    """A server with the page; its catalogue has these topics in ``public/default``."""
    path = folder / "topics.sqlite"
    folder.mkdir(parents=True, exist_ok=True)
    with SqliteCatalog(path) as catalog:
        lines = "\n".join(map(json.dumps, topics))
        import_topics(catalog, NamespaceName("public", "default"), io.BytesIO(lines.encode()))
    settings: dict[str, Mapping[str, Any]] = {
        "catalog": {"path": str(path), "property_keys": ["region", "team"]},
        "http": {"listen": "127.0.0.1:0", "questions": True},
        "plugins": {"enabled": ["explorer"], "explorer": {"writes": writes}},
        **(tables or {}),
    }
    with Served(folder, settings, python_path=python_path) as served:
        yield served


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with 50 topics, whose page may change them."""
    with serving(tmp_path_factory.mktemp("full"), TOPICS, writes=True) as running:
        yield running


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server without topics."""
    with serving(tmp_path_factory.mktemp("empty"), []) as running:
        yield running


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that asks for passwords: `reader` may list, `chief` may do everything, with the password `secret`."""
    folder = tmp_path_factory.mktemp("guarded")
    users = write_htpasswd(folder / "users", reader="secret", chief="secret")
    tables: dict[str, Mapping[str, Any]] = {
        "authentication": {"methods": ["basic"], "basic": {"file": str(users)}},
        "authorization": {
            "super_roles": ["chief"],
            "rules": [{"roles": ["reader"], "namespaces": ["public/*"], "actions": ["list"]}],
        },
    }
    with serving(folder, TOPICS, tables, writes=True) as running:
        yield running


@pytest.fixture
def explored() -> Iterator[Callable[..., Served]]:
    """Starts servers of a test's own."""
    with ExitStack() as stack:
        yield lambda *arguments, **options: stack.enter_context(serving(*arguments, **options))
