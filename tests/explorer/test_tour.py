"""The tour of docs/tutorial/explorer.md in a real Chromium: its pictures show what the page shows now, also of
PostgreSQL and Spark, with a real database that ends meanwhile, and a real store.

``PICTURES=1 pytest -n 0 tests/explorer/test_tour.py`` takes them anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from broker_core.cli.demo_catalog import demo_topics
from broker_core.client.kafka import BlockingAdminClient
from broker_core_spark.store import open_store
from broker_core_spark.store.publishing import begin_build
from tests.explorer.conftest import TOPICS, plugin_site
from tests.support.postgres_server import PostgresServer
from tests.support.served import Served
from tests.support.spark_catalogues import expected_generation
from tests.support.tour_pictures import FOLDER, VIEW, compare_or_take
from tests.support.watched_page import WatchedPage

PAGE: Final = FOLDER.with_suffix(".md")
#: Each picture: the place, and what is there when it is taken.
PICTURES: Final = {
    "namespaces": ("namespaces", "public/default"),
    "topics": ("topics/public/default?q=orders-(.*)&p=region=eu", "orders-eu-partition-2"),
    "why": ("why/public/default?q=orders-.*&p=region=eu&topic=orders-us", "What it would take:"),
    "topic": ("topic/public/default/orders-eu", "no plugin decides about it"),
    "server": ("server", "Memory under permits"),
}
#: A plugin that lists the names of a file, which somebody cuts off.
_LISTER: Final = """
from pathlib import Path
from broker_core import TopicListingResult, hookimpl

@hookimpl
def broker_core_list_topics(request):
    if str(request.namespace) == "acme/shop":
        names = Path(__file__).with_name("names.txt").read_text().split()
        return TopicListingResult.success([f"persistent://acme/shop/{name}" for name in names])
"""


def test_the_pictures_show_what_the_page_shows(
    page_of: Callable[..., WatchedPage], tmp_path: Path, explored: Callable[..., Served]
) -> None:
    page = page_of(explored(tmp_path, list(demo_topics()), writes=True), **VIEW)
    for name, (place, there) in PICTURES.items():
        page.go(place)
        page.see(there)
        page.settled()
        if name == "server":
            page.page.locator(".chart").first.wait_for()  # the first values come after ten seconds
        # Of the server the headings alone: what it has done differs.
        compare_or_take(page, name, of="main h1, main h2" if name == "server" else "main")


def _kafka_client(bootstrap: str) -> None:
    with BlockingAdminClient(bootstrap) as client:
        client.list_topics()


def test_the_states_of_kafka_followed_questions_and_held_listings(
    page_of: Callable[..., WatchedPage], tmp_path: Path, explored: Callable[..., Served]
) -> None:
    names = tmp_path / "site" / "lister" / "names.txt"
    site = plugin_site(
        tmp_path, "lister", {"__init__.py": _LISTER, names.name: "\n".join(map(str, range(40)))}
    )
    tables = {
        "kafka": {"listen": "127.0.0.1:0"},
        "plugins": {"enabled": ["explorer", "lister"], "explorer": {"writes": True}},
        "shrink_guard": {"enabled": True, "max_ratio": 0.5, "min_topics": 2},
    }
    running = explored(tmp_path / "served", list(demo_topics()), tables, python_path=site)
    with ThreadPoolExecutor(1) as beside:  # this thread has the event loop of the browser
        beside.submit(_kafka_client, running.ready["kafka"]).result()
    page = page_of(running, "screen/kafka", **VIEW)
    page.see("ApiVersions")
    compare_or_take(page, "kafka", low=True)
    assert not page.axe()
    page_of(running, "live/public/default?q=orders-.*&p=region=eu", own=True).see("Nothing has changed yet")
    page.go("screen/watchers")
    page.see("public/default/orders-.*")
    compare_or_take(page, "watchers", low=True)
    assert not page.axe()
    page.go("topics/acme/shop")
    page.see(re.compile("^40 names"))
    names.write_text("1", encoding="utf-8")
    page.page.reload()
    page.see("Many topics are missing at once: the listing is held")
    assert not page.axe()
    page.page.locator(".state.failed").get_by_role("link", name="Held listings").click()
    page.see("Let it pass")
    compare_or_take(page, "held", low=True)
    assert not page.axe()
    page.page.get_by_role("button", name="Let it pass").click()
    page.see("1 listing let pass")
    page.go("topics/acme/shop")
    page.see(re.compile("^1 name"))


def test_postgres_and_spark_show_their_state_and_what_is_wrong(
    page_of: Callable[..., WatchedPage], tmp_path: Path, explored: Callable[..., Served]
) -> None:
    store, patterns = tmp_path / "store", tmp_path / "patterns.jsonl"
    store.mkdir()
    with PostgresServer() as database_server:
        database = database_server.create_database()
        tables = {
            "plugins": {
                "enabled": ["explorer", "spark", "postgres"],
                "postgres": {"dsn": database.dsn},
                "spark": {"store": str(store), "refresh": 1.0},
            }
        }
        running = explored(tmp_path / "served", TOPICS, tables)
        page = page_of(running, "screen/spark", viewport={"width": 360, "height": 720}, color_scheme="dark")
        page.see("No generation is served")
        assert not page.axe()
        asked = {"namespace": "public/default", "mode": "PERSISTENT", "pattern": "public/default/orders-.*"}
        patterns.write_text(json.dumps(asked) + "\n", encoding="utf-8")
        catalogue = tmp_path / "served" / "topics.sqlite"
        with begin_build(open_store(str(store))) as begun:
            begun.publish(expected_generation(catalogue, patterns, store, segment_bytes=1 << 16))
        page.go("screen/postgres")
        page.see("Listings can be served from this database.")
        page.see("Change log")
        assert not page.axe()
        assert page.too_wide() <= 0
        shown = page_of(running, "screen/postgres", **VIEW)
        shown.see("Change log")
        compare_or_take(shown, "postgres", low=True)
        shown.go("screen/spark")
        shown.see("published as number")  # a question before that is passed on, and stays in the picture
        shown.go("topics/public/default?q=orders-.*")
        shown.see("orders-12")
        shown.go("screen/spark")
        shown.see("Generation")
        shown.see("questions were answered from the generation")
        compare_or_take(shown, "spark", low=True)
        database_server.stop("immediate")
        page.go("screen/spark")
        page.see("published as number")
        assert not page.axe()
        page.page.go_back()
        page.page.locator(".notice.bad").first.wait_for()
        page.see("primary")
        assert not page.axe()


def test_the_page_has_each_picture_and_no_other() -> None:
    named = set(re.findall(r"\(explorer/(\w+)\.png\)", PAGE.read_text(encoding="utf-8")))
    assert named == {path.stem for path in FOLDER.glob("*.png")}
    assert named >= set(PICTURES)
