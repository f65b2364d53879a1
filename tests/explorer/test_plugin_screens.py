"""The screens of PostgreSQL and Spark in Chromium, with a real database that ends meanwhile, and a real store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.support.postgres_server import PostgresServer
from tests.support.served import Served
from tests.support.watched_page import WatchedPage


def test_postgres_and_spark_show_their_state_and_what_is_wrong(
    page_of: Callable[..., WatchedPage], tmp_path: Path, explored: Callable[..., Served]
) -> None:
    (tmp_path / "store").mkdir()
    with PostgresServer() as database_server:
        database = database_server.create_database()
        tables = {
            "plugins": {
                "enabled": ["explorer", "spark", "postgres"],
                "postgres": {"dsn": database.dsn},
                "spark": {"store": str(tmp_path / "store")},
            }
        }
        running = explored(tmp_path / "served", [], tables)
        page = page_of(
            running, "screen/postgres", viewport={"width": 360, "height": 720}, color_scheme="dark"
        )
        page.see("Listings can be served from this database.")
        page.see("Change log")
        assert not page.axe()
        assert page.too_wide() <= 0
        database_server.stop("immediate")
        page.go("screen/spark")
        page.see("No generation is served")
        assert not page.axe()
        page.page.go_back()
        page.page.locator(".notice.bad").first.wait_for()
        page.see("primary")
        assert not page.axe()
