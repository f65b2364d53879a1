"""The screens of PostgreSQL and Spark in Chromium, with a real database that ends meanwhile, and a real store."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from broker_core_spark.store import open_store
from broker_core_spark.store.publishing import begin_build
from tests.explorer.conftest import TOPICS
from tests.support.postgres_server import PostgresServer
from tests.support.served import Served
from tests.support.spark_catalogues import expected_generation
from tests.support.tour_pictures import VIEW, compare_or_take
from tests.support.watched_page import WatchedPage


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
