"""The origin of the page: a proxy with a prefix, and a hostile name that was made to stand for the server."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any, Final

import pytest

from tests.explorer.conftest import CHANGE, REBOUND
from tests.support.machine import nginx
from tests.support.nginx import nginx_before
from tests.support.served import Served
from tests.support.watched_page import WatchedPage


def test_behind_nginx_with_tls_and_a_prefix_it_reads_changes_and_follows(
    browser: Any, served: Served, tmp_path: Path
) -> None:
    program = nginx()
    if program is None:
        pytest.skip("no nginx")
    with nginx_before(program, served.ready["http"], tmp_path) as root:
        context = browser.new_context(ignore_https_errors=True)
        page, live = WatchedPage(context, root), WatchedPage(context, root)
        try:
            live.go("live/public/default")
            live.see("Nothing has changed yet")
            page.go("topics/public/default?q=sensor-0.*")
            page.see(re.compile("^20 names"))
            page.page.get_by_role("button", name="Keep, copy, export").click()
            assert (
                f"{root}v1/namespaces/public/default/topics" in page.page.get_by_role("dialog").inner_text()
            )
            page.go("topic/public/default/sensor-09")
            page.page.get_by_role("button", name="Change…").click()
            page.page.get_by_label("Value").first.fill("sa")
            page.page.get_by_role("button", name="Change the topic").click()
            page.page.locator("ins", has_text="sa").wait_for()
            assert page.page.evaluate(CHANGE, ["PUT", "through-nginx", "{}", {}]) == 201
            live.see("through-nginx")  # a stream that nginx passes on as it comes
            assert page.page.evaluate(CHANGE, ["DELETE", "through-nginx", None, {}]) == 204
        finally:
            context.close()
        assert not page.wrong
        assert not live.wrong


#: What a page tries that runs in the browser of somebody who can reach the server: to read, and to change.
ATTACK: Final = """async (root) => {
  const ask = (path, options) => fetch(root + path, options).then(
    async (said) => [said.status, await said.text()], (error) => [error.name, '']);
  const json = {'Content-Type': 'application/json'};
  return Promise.all([
    ask('/v1/namespaces'), ask('/v1/me'), ask('/v1/namespaces/public/default/topics'), ask('/v1/server/metrics'),
    ask('/v1/namespaces/public/default/topics', {headers: {Accept: 'text/event-stream'}}),
    ask('/v1/namespaces/public/default/explain', {method: 'POST', headers: json, body: '{}'}),
    ask('/'), ask('/metrics'),
    ask('/v1/namespaces/public/default/topics/stolen', {method: 'PUT', headers: json, body: '{}'}),
    ask('/v1/namespaces/public/default/topics/orders-1', {method: 'DELETE'}),
    ask('/v1/namespaces/public/default/topics:import', {method: 'POST', mode: 'no-cors', body: '{"name":"stolen"}'}),
  ]);
}"""


def test_a_page_of_a_name_that_was_made_to_stand_for_the_server_reads_and_changes_nothing(
    browser: Any, served: Served
) -> None:
    """DNS rebinding: the page comes from a hostile server, and its name means 127.0.0.1 from then on."""
    listed = f"http://{served.ready['http']}/v1/namespaces/public/default/topics"
    port = served.ready["http"].rpartition(":")[2]
    rebound, elsewhere = f"http://{REBOUND}:{port}", f"http://{REBOUND}:8888"
    with contextlib.closing(browser.new_context()) as context:
        page = context.new_page()
        before = page.request.get(listed).json()["items"]
        for origin in (rebound, elsewhere):
            page.route(f"{origin}/attack", lambda route: route.fulfill(body="<p>", content_type="text/html"))
            page.goto(f"{origin}/attack")
            # The browser takes it for the page's own server, or for another one whose answers it does not show.
            said = page.evaluate(ATTACK, "" if origin == rebound else f"http://{served.ready['http']}")
            statuses = {status for status, _ in said}
            assert statuses == ({421} if origin == rebound else {"TypeError"}), said
            assert all("orders" not in text and "broker_core" not in text for _, text in said)
        assert len(before) == len(page.request.get(listed).json()["items"]) > 0
