"""A real Chromium and Firefox for the tests of the page, and servers for it: with topics and without, with rights."""

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
from tests.support.machine import chromium, firefox
from tests.support.served import Served
from tests.support.watched_page import WatchedPage

#: What is in the catalogue of most tests: 50 topics, of which `orders-7` is of another region.
TOPICS: Final = [
    {"name": f"orders-{number}", "properties": {"region": "us" if number == 7 else "eu", "team": "sales"}}
    for number in range(1, 41)
] + [{"name": f"sensor-{number:02}", "partitions": 2, "properties": {"region": "us"}} for number in range(10)]

#: A name of the attacker's, which means 127.0.0.1 in the browser.
REBOUND: Final = "rebound.test"
#: What a name may not become: markup, a link, a script, a format, another line.
HOSTILE: Final = [
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)",
    '"><svg onload=alert(1)>',
    "javascript:alert(1)",
    "${alert(1)}",
    "{{7*7}}",
    "%3Cb%3E",
    "&lt;b&gt;",
    "__proto__",
    "constructor",
    "....",
    "..",
    "?pattern=x#y",
    "a b",
    "' OR 1=1 --",
    "\u202egnirts",
    "\u0645\u0631\u062d\u0628\u0627",
    "e\u0301",
    "\u200b",
    "🚚" * 40,
    "x" * 2000,
    "=cmd|' C calc'!A0",
    "-partition-",
    "on",
    "%",
    "%2F",
    "%00",
    "\\",
    "|",
    "^$.*+",
    "(",
    "[",
    "`",
]
HOSTILE_NAMES: Final = [f"{name}~{number}" for number in range(7) for name in HOSTILE][:200]
#: A plugin whose screen shows what its route says, in 30 lines of Python and JavaScript.
STOCK: Final = """
from pathlib import Path
from broker_core import HttpSite, hookimpl

@hookimpl
def broker_core_http_routes():
    site = HttpSite("/stock", Path(__file__).parent)
    site.route("GET", "/status", lambda request: {"shelves": 3, "name": "<b>shelf</b>"}, needs="monitor")
    site.screen("stock", "Stock", "screen.js")
    return site
"""
#: A plugin that hides names from all but `chief`, and keeps others out of a tenant.
HIDER: Final = """
import pyarrow.compute as pc
from broker_core import Refused, hookimpl

@hookimpl
def broker_core_visible(request, topics):
    if request.asker.role != "chief":
        return pc.invert(pc.match_substring(topics, "sensor-00"))

@hookimpl
def broker_core_authorize(access):
    if access.namespace.tenant == "internal" and access.asker.role != "chief":
        return Refused(f"only chief may {access.action} here")
"""
STOCK_SCREEN: Final = """
export default function ({ html, useAsk, parts, api }) {
  return function Stock() {
    const ask = useAsk(() => api.get('stock/status'), []);
    return html`<${parts.Answer} ask=${ask} what="the stock">${(data) => html`
      <${parts.Facts} items=${[['Shelves', data.shelves], ['Name', data.name]]} />`}<//>`;
  };
}
"""


def _chromium(playwright: Any) -> Any:
    program = chromium()
    if program is None:
        pytest.skip("no Chromium is installed: make test brings it on Debian, as root")
    # Chromium's own sandbox needs user namespaces, which containers seldom have. All that is shown is ours.
    return playwright.chromium.launch(
        executable_path=str(program),
        args=[
            "--no-sandbox",
            "--disable-dev-shm-usage",
            f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1",
            # Chromium's own guard of the local network, which other browsers have not: the server's is tested.
            "--disable-features=LocalNetworkAccessChecks",
        ],
    )


def _firefox(playwright: Any) -> Any:
    program = firefox()
    if program is None:
        pytest.skip("no Firefox is installed: make test brings it on Debian, as root")
    # A Firefox as it is released, by WebDriver BiDi (https://w3c.github.io/webdriver-bidi/).
    return playwright.firefox.launch(channel="moz-firefox", executable_path=str(program))


@pytest.fixture(scope="package")
def browsers() -> Iterator[Callable[[str], Any]]:
    """Each browser by its name, launched when it is first asked for."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = {}

        def browser(name: str) -> Any:
            if name not in launched:
                launched[name] = {"chromium": _chromium, "firefox": _firefox}[name](playwright)
            return launched[name]

        yield browser
        for each in launched.values():
            each.close()


@pytest.fixture
def browser(browsers: Callable[[str], Any]) -> Any:
    return browsers("chromium")


@pytest.fixture
def page_of(browsers: Callable[[str], Any]) -> Iterator[Callable[..., WatchedPage]]:
    """Opens pages; what is wrong in any of them fails the test at its end."""
    opened: list[WatchedPage] = []

    def open_page(
        served: Served, place: str = "", *, browser: str = "chromium", **options: Any
    ) -> WatchedPage:
        page = WatchedPage(browsers(browser).new_context(**options), f"http://{served.ready['http']}/")
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
    more: Mapping[str, list[str]] | None = None,
) -> Iterator[Served]:
    """A server with the page; its catalogue has these topics in ``public/default``, and ``more`` in others."""
    path = folder / "topics.sqlite"
    folder.mkdir(parents=True, exist_ok=True)
    others = {name: [{"name": each} for each in names] for name, names in (more or {}).items()}
    with SqliteCatalog(path) as catalog:
        for namespace, those in {"public/default": topics, **others}.items():
            lines = "\n".join(map(json.dumps, those))
            import_topics(catalog, NamespaceName.parse(namespace), io.BytesIO(lines.encode()))
    settings: dict[str, Mapping[str, Any]] = {
        "catalog": {"path": str(path), "property_keys": ["region", "team"]},
        "http": {"listen": "127.0.0.1:0", "questions": True},
        "plugins": {"enabled": ["explorer"], "explorer": {"writes": writes}},
        **(tables or {}),
    }
    with Served(folder, settings, python_path=python_path) as served:
        yield served


def plugin_site(folder: Path, name: str, files: Mapping[str, str]) -> Path:
    """A folder for ``PYTHONPATH`` with a distribution of one plugin."""
    package, info = folder / "site" / name, folder / "site" / f"{name}-1.dist-info"
    for each, texts in {
        package: files,
        info: {
            "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n",
            "entry_points.txt": f"[broker_core]\n{name} = {name}\n",
        },
    }.items():
        each.mkdir(parents=True)
        for file, text in texts.items():
            (each / file).write_text(text, encoding="utf-8")
    return folder / "site"


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with 50 topics, whose page may change them."""
    with serving(tmp_path_factory.mktemp("full"), TOPICS, writes=True) as running:
        yield running


@pytest.fixture(scope="package")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with the topics `orders` in public/default and 200 names of hostile clients in public/hostile."""
    folder = tmp_path_factory.mktemp("hostile")
    with serving(folder, [{"name": "orders"}], more={"public/hostile": HOSTILE_NAMES}) as running:
        yield running


@pytest.fixture(scope="package")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that asks for the password `secret`, with rules, a gate and a mask: `reader` may list, `chief` may do
    everything.
    """
    folder = tmp_path_factory.mktemp("guarded")
    users = write_htpasswd(folder / "users", reader="secret", chief="secret")
    tables: dict[str, Mapping[str, Any]] = {
        "authentication": {"methods": ["basic"], "basic": {"file": str(users)}},
        "authorization": {
            "super_roles": ["chief"],
            "rules": [{"roles": ["reader"], "namespaces": ["public/*"], "actions": ["list"]}],
        },
        "plugins": {"enabled": ["explorer", "hider"], "explorer": {"writes": True}},
    }
    site = plugin_site(folder, "hider", {"__init__.py": HIDER})
    with serving(folder, TOPICS, tables, python_path=site, more={"internal/audit": ["log"]}) as running:
        yield running


@pytest.fixture
def explored() -> Iterator[Callable[..., Served]]:
    """Starts servers of a test's own."""
    with ExitStack() as stack:
        yield lambda *arguments, **options: stack.enter_context(serving(*arguments, **options))
