"""A real Chromium for the tests of the page, and servers for it: with topics and without, with rights."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from broker_core.catalog import SqliteCatalog, import_topics
from broker_core.names import NamespaceName
from tests.support.htpasswd import write_htpasswd
from tests.support.machine import chromium
from tests.support.ports import free_port
from tests.support.postgres_server import PostgresServer
from tests.support.served import Served
from tests.support.unit_tests import shared_start_of
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
    site.screen("broken", "W" * 60, "broken.js")
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


#: A plugin that fails to list one namespace, and lets nobody but `chief` into another.
BREAKER: Final = """
from broker_core import Refused, hookimpl

@hookimpl
def broker_core_list_topics(request):
    if str(request.namespace) == "public/broken":
        raise LookupError("no registry")

@hookimpl
def broker_core_authorize(access):
    if str(access.namespace) == "public/shut" and access.asker.role != "chief":
        return Refused("it is night")
"""


class Says(NamedTuple):
    """What a screen says of a server with 50 topics, of one without, and to a role that may only list."""

    full: str
    none: str
    denied: str


_SAME: Final = "You may not see this screen"
_UNKNOWN: Final = "No such namespace is known"
SCREENS: Final = {
    "namespaces": Says("1 namespace", "This server has no topics yet", "not counted"),
    "topics/public/default": Says("orders-12", _UNKNOWN, "orders-12"),
    "topics/public/default?q=orders-(.*)&p=region=eu": Says("orders-12", _UNKNOWN, "orders-12"),
    "topics/public/default?q=none": Says("No topic matches", _UNKNOWN, "No topic matches"),
    "topics/public/default?q=a(?!b)": Says(*["The server refuses this pattern"] * 3),
    "topics/public/default?as=1": Says(
        "As the role", "As the role", "To ask as somebody else you need the right"
    ),
    "why/public/default?p=region=eu&topic=orders-7": Says(
        "What it would take:", "is not listed for you", "You may not see why a topic is not listed"
    ),
    "topic/public/default/orders-7": Says(
        "Full name", _UNKNOWN, "To make or change topics you need the right admin"
    ),
    "live/public/default": Says("Nothing has changed yet", _UNKNOWN, "Nothing has changed yet"),
    "plugins": Says("broker-core-explorer", "broker-core-explorer", "You may not see the plugins"),
    "server": Says("Memory under permits", "Memory under permits", "You may not see the last hour"),
    "screen/kafka": Says("No Kafka client has asked", "No Kafka client has asked", _SAME),
    "screen/watchers": Says("Nobody follows topics now", "Nobody follows topics now", _SAME),
    "screen/held": Says("No listing is held", "No listing is held", "You may not see held listings"),
    "screen/postgres": Says("Pools of connections", "Pools of connections", _SAME),
    "screen/spark": Says("No generation is served", "No generation is served", _SAME),
    "screen/broken": Says("", "The screen of the plugin failed", ""),  # of one server alone, as the next one
    "screen/stock": Says("", "<b>shelf</b>", ""),
    "help/patterns": Says(*["What RE2 refuses"] * 3),
    "nowhere": Says(*["The address names no screen."] * 3),
}


def as_shown(name: str) -> str:
    """A name whose characters of control and direction are escaped, which would show another one."""
    return name.replace("\u202e", "\\u{202e}").replace("\u200b", "\\u{200b}")


@pytest.fixture(scope="session", autouse=True)
def together() -> None:
    """What the files of one process share needs it, and ends with it."""


def _process_of(item: pytest.Item) -> str | Path:
    return shared_start_of(item.path) or item.path


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
    """End what files share after their last test: Playwright has the event loop of its thread until then."""
    try:
        yield
    finally:
        if nextitem is None or _process_of(nextitem) != _process_of(item):
            shared: dict[str, Any] = item._fixtureinfo.name2fixturedefs  # type: ignore[attr-defined]
            shared["together"][-1].finish(item._request)  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def playwright(together: None) -> Iterator[Any]:
    if chromium() is None:
        pytest.skip("no Chromium is installed: make test brings it on Debian, as root")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        yield started


@contextmanager
def launched(playwright: Any, *more: str) -> Iterator[Any]:
    """A Chromium with these options."""
    # Chromium's own sandbox needs user namespaces, which containers seldom have. All that is shown is ours.
    options = [
        "--no-sandbox",
        "--disable-dev-shm-usage",
        f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1",
        # Chromium's own guard of the local network, which other browsers have not: the server's is tested.
        "--disable-features=LocalNetworkAccessChecks",
    ]
    with closing(
        playwright.chromium.launch(executable_path=str(chromium()), args=[*options, *more])
    ) as running:
        yield running


@pytest.fixture(scope="session")
def browser(playwright: Any) -> Iterator[Any]:
    """A Chromium for pages that are open for moments: it draws in its own process, and optimizes no script."""
    with launched(playwright, "--in-process-gpu", "--js-flags=--no-maglev --no-turbofan") as running:
        yield running


@pytest.fixture(scope="module")
def idle_pages(browser: Any) -> Iterator[dict[str, list[WatchedPage]]]:
    """Pages that tests have left, by the root of their server: a renderer of its own costs more than a load."""
    idle: dict[str, list[WatchedPage]] = {}
    yield idle
    for page in chain.from_iterable(idle.values()):
        page.context.close()


@pytest.fixture
def page_of(browser: Any, idle_pages: dict[str, list[WatchedPage]]) -> Iterator[Callable[..., WatchedPage]]:
    """Opens pages; what is wrong in any of them fails the test at its end.

    A page is loaded anew in the context of one that a test left, without what was stored and routed there; with
    ``own``, or options, in a context of its own: for a server of the test's own, and for what a context keeps.
    """
    opened: list[tuple[WatchedPage, bool]] = []

    def open_page(served: Served, place: str = "", *, own: bool = False, **options: Any) -> WatchedPage:
        root = f"http://{served.ready['http']}/"
        own = own or bool(options)
        idle = [] if own else idle_pages.get(root, [])
        page = idle.pop() if idle else WatchedPage(browser.new_context(**options), root)
        opened.append((page, own))
        page.go(place)
        return page

    yield open_page
    for page, own in opened:
        if own:
            page.context.close()
        else:
            page.leave()
    for page, own in opened:
        assert not page.wrong
        if not own:
            idle_pages.setdefault(page.root, []).append(page)


@contextmanager
def serving(
    folder: Path,
    topics: list[dict[str, Any]],
    tables: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    writes: bool = False,
    python_path: Path | None = None,
    more: Mapping[str, list[str]] | None = None,
    fresh: bool = False,
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
    with Served(folder, settings, python_path=python_path, fresh=fresh) as served:
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


@pytest.fixture(scope="session")
def served(together: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with 50 topics, whose page may change them."""
    with serving(tmp_path_factory.mktemp("full"), TOPICS, writes=True) as running:
        yield running


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with the topics `orders` in public/default and 200 names of hostile clients in public/hostile."""
    folder = tmp_path_factory.mktemp("hostile")
    with serving(folder, [{"name": "orders"}], more={"public/hostile": HOSTILE_NAMES}) as running:
        yield running


@pytest.fixture(scope="session")
def guarded(together: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that asks for the password `secret`, with rules, a gate and a mask: `reader` may list, `warden`
    administer too, `chief` do everything, `stranger` nothing. No listing of public/broken succeeds.
    """
    folder = tmp_path_factory.mktemp("guarded")
    users = write_htpasswd(
        folder / "users", **dict.fromkeys(("reader", "warden", "chief", "stranger"), "secret")
    )
    tables: dict[str, Mapping[str, Any]] = {
        "authentication": {"methods": ["basic"], "basic": {"file": str(users)}},
        "authorization": {
            "super_roles": ["chief"],
            "rules": [
                {"roles": ["reader"], "namespaces": ["public/*"], "actions": ["list"]},
                {"roles": ["warden"], "namespaces": ["public/*"], "actions": ["list", "admin"]},
            ],
        },
        "plugins": {
            "enabled": ["explorer", "hider", "breaker"],
            "explorer": {"writes": True},
            "breaker": {"namespaces": ["public/broken", "public/shut"]},
        },
    }
    site = plugin_site(folder, "hider", {"__init__.py": HIDER})
    plugin_site(folder, "breaker", {"__init__.py": BREAKER})
    more = {"internal/audit": ["log"], "public/shut": ["door"]}
    with serving(folder, TOPICS, tables, python_path=site, more=more) as running:
        yield running


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """A database with the schema of the plugin."""
    with PostgresServer() as server:
        yield server.create_database().dsn


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory, database: str) -> Iterator[Callable[[str], Served]]:
    """Servers with all plugins: `full` has 50 topics, `none` has none, of `denied` the role `reader` may only list."""
    folder = tmp_path_factory.mktemp("walked")
    store = folder / "store"
    store.mkdir()
    elsewhere = {"namespaces": ["other/*"]}
    plugins = {
        "explorer": {"writes": True},
        "postgres": {"dsn": database, **elsewhere},
        "spark": {"store": str(store), **elsewhere},
    }
    site = plugin_site(
        folder, "stock", {"__init__.py": STOCK, "screen.js": STOCK_SCREEN, "broken.js": "export const x = 1;"}
    )
    plugin_site(folder, "hider", {"__init__.py": HIDER})
    users = write_htpasswd(folder / "users", reader="secret", chief="secret")
    rule = {"roles": ["reader"], "namespaces": ["public/*"], "actions": ["list"]}
    guard: dict[str, Any] = {
        "authentication": {"methods": ["basic"], "basic": {"file": str(users)}},
        "authorization": {"super_roles": ["chief"], "rules": [rule]},
    }
    names = ["explorer", "postgres", "spark"]
    made = {
        # At a port that it has again after a restart.
        "full": serving(
            folder / "full",
            TOPICS,
            {
                "http": {"listen": f"127.0.0.1:{free_port()}", "questions": True},
                "plugins": {"enabled": names, **plugins},
            },
        ),
        "none": serving(
            folder / "none", [], {"plugins": {"enabled": [*names, "stock"], **plugins}}, python_path=site
        ),
        "denied": serving(
            folder / "denied",
            TOPICS,
            {"plugins": {"enabled": [*names, "hider"], **plugins}, **guard},
            python_path=site,
            more={"internal/audit": ["log"]},
        ),
    }
    with made["full"] as full, made["none"] as none, made["denied"] as denied:
        running = {"full": full, "none": none, "denied": denied}
        yield running.__getitem__


def places(state: str) -> dict[str, str]:
    """Each place of this state, and what it says there; without topics those alone that say something else then."""
    found = {
        place: getattr(says, state)
        for place, says in SCREENS.items()
        if state != "none" or says.none != says.full
    }
    return {place: said for place, said in found.items() if said}


@pytest.fixture
def explored() -> Iterator[Callable[..., Served]]:
    """Starts servers of a test's own."""
    with ExitStack() as stack:
        yield lambda *arguments, **options: stack.enter_context(serving(*arguments, **options))


#: Changes a topic of public/default from within a page; its status.
CHANGE: Final = """([method, name, body, by]) => fetch(`v1/namespaces/public/default/topics/${name}`, {
  method, body, headers: body ? {...by, 'Content-Type': 'application/json'} : by,
}).then((done) => done.status)"""


def signed_in(page: WatchedPage, user: str) -> None:
    dialog = page.page.get_by_role("dialog", name="Sign in")
    dialog.get_by_label("User").fill(user)
    dialog.get_by_label("Password").fill("secret")
    dialog.get_by_role("button", name="Sign in").click()
    dialog.wait_for(state="hidden")
