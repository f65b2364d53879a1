"""Whose page it is in Chromium: signing in and out, links of attackers, names that are copied into a shell, and its
origin: a proxy with a prefix, and a hostile name that was made to stand for the server.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import time
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.explorer.conftest import CHANGE, REBOUND, TOPICS, signed_in
from tests.support.machine import nginx
from tests.support.nginx import nginx_before
from tests.support.served import Served
from tests.support.tokens import SECRET, data_url, token
from tests.support.watched_page import WatchedPage

Open = Callable[..., WatchedPage]

#: A function of a module of the page, with what it gives, or the message of its error.
_GIVES: Final = """async ([module, name, given]) => {
  const found = await import(document.querySelector('script[type=module]').src.replace('app.js', module));
  try { return String(found[name](...given)); } catch (error) { return `${error.name} ${error.message}`; }
}"""


def test_links_of_attackers_and_what_is_copied_of_their_names(page_of: Open, guarded: Served) -> None:
    page = page_of(guarded, "constructor")
    page.see("The address names no screen.")
    signed_in(page, "chief")
    page.page.get_by_role("button", name="chief").wait_for()
    asked: list[str] = []
    page.page.on("request", lambda request: asked.append(request.url))
    page.go("topic/a%2F..%2F..%2F..%2F..%2F..%2Fotherapp/b/c")
    page.see("A browser cannot ask for this topic")
    page.go("topic/public/default/..")
    page.see("A browser cannot ask for this topic")
    assert not [url for url in asked if "otherapp" in url.replace("%2Fotherapp", "")]

    def gives(module: str, name: str, *given: str) -> Any:
        return page.page.evaluate(_GIVES, [module, name, given])

    assert gives("page.js", "address", "namespaces/a/b%20c") == f"{page.root}v1/namespaces/a/b%20c"
    for path in ("a/../b", "a/%2e%2E", "a/..%2Fb", "//other/x", "/https://other/x", ".", "a\\..\\b"):
        assert gives("page.js", "address", path).startswith("Error Addresses lose parts"), path
    for name in ("a'b\x1b[31m\\\n\u0085\u202e", "it's", "plain", "x \x00\x03f"):
        shell = gives("page.js", "quoted", name)
        assert shell.isprintable()
        told = subprocess.run(["bash", "-c", f"printf %s {shell}"], capture_output=True, check=True)
        assert told.stdout == name.partition("\0")[0].encode()
    page.go("topics/-a/b?q=%1B%F3%A0%80%81")
    page.page.get_by_role("button", name="Keep, copy, export").click()
    text = page.page.get_by_role("dialog").text_content()
    assert r"-a/b/\\U0000001b" not in text
    assert r"-a/b/\u001b\U000e0001" in text
    assert r"$'-a/b/\x1B\xF3\xA0\x80\x81'" in text
    assert "-- -a/b" in text


def test_what_was_shown_goes_with_the_one_who_signs_out(page_of: Open, guarded: Served) -> None:
    page = page_of(guarded, "live/public/default")
    page.page.get_by_role("dialog", name="Sign in").wait_for()
    page.page.keyboard.press("Escape")
    page.page.get_by_role("main").get_by_role("button", name="Sign in").first.click()
    signed_in(page, "chief")
    page.see("Nothing has changed yet")
    by = {"Authorization": "Basic " + b64encode(b"chief:secret").decode()}
    assert page.page.evaluate(CHANGE, ["PUT", "fleeting", "{}", by]) == 201
    page.see("persistent://public/default/fleeting")
    assert page.page.evaluate(CHANGE, ["DELETE", "fleeting", None, by]) == 204
    page.page.get_by_role("button", name="chief").click()
    page.page.get_by_role("button", name="Sign out").click()
    page.page.get_by_role("dialog", name="Sign in").wait_for()
    page.holds("!/fleeting|chief/.test(document.body.textContent)")
    page.page.keyboard.press("Escape")
    page.page.get_by_role("button", name="Nobody yet").click()
    page.see("Nobody has signed in.")
    page.page.get_by_role("dialog").get_by_role("button", name="Sign in").click()
    signed_in(page, "stranger")
    page.holds("document.activeElement.tagName === 'H1'")
    page.go("namespaces")
    page.see("You may not see the topics of any namespace")
    assert "Make the first one" not in page.page.inner_text("main")
    page.go("topic/public/default/orders-7")
    page.see("You may not see this topic")
    page.settled()
    assert page.page.get_by_role("alert").count() == 1


def test_a_token_that_no_header_can_have(
    page_of: Open, explored: Callable[..., Served], tmp_path: Path
) -> None:
    key = {"key": data_url(SECRET), "algorithms": ["HS256"]}
    claims = {"sub": "chief", "exp": int(time.time()) + 3600}
    given = token(claims, key=SECRET, by="HS256").decode()
    guard: dict[str, Any] = {
        "http": {"listen": "127.0.0.1:0"},
        "authentication": {"methods": ["token"], "token": key},
        "authorization": {"super_roles": ["chief"]},
    }
    page = page_of(explored(tmp_path, TOPICS, guard), own=True)
    page.page.clock.install()
    dialog = page.page.get_by_role("dialog", name="Sign in")
    dialog.wait_for()
    assert dialog.get_by_role("radio").count() == 0
    field = dialog.get_by_role("textbox", name="Token")
    field.press("Enter")
    page.see("Token is missing.")
    page.holds("document.activeElement.name === 'token' && document.activeElement.type === 'password'")
    dialog.get_by_label("Show the token").check()
    field.fill("one two")
    field.press("Enter")
    page.see("A token is one word of ASCII")
    field.fill(f" {given} ")
    field.press("Enter")
    dialog.wait_for(state="hidden")
    page.go("screen/watchers")
    page.see("A setting refuses it to everybody.")
    page.see("set questions = true in the table [http] of the settings")
    page.go("namespaces")
    page.see("1 namespace")
    # The clock of the page is ahead of the server's: that the token ended, the server says by a request without it.
    page.page.route(
        "**/v1/**",
        lambda route: route.continue_(
            headers={name: each for name, each in route.request.headers.items() if name != "authorization"}
        ),
    )
    with page.page.expect_request("**/v1/namespaces*"):  # when the token ends
        page.page.clock.fast_forward(3_601_000)
    page.see(re.compile("^Your sign-in ended at "))
    page.see("60 names")
    page.see("As it was at")


def test_finding_by_many_words(page_of: Open, served: Served) -> None:
    page = page_of(served, "namespaces?find=d+e+f+a+u+l+t+p+b")
    page.see("Only the first 8 words count.")
    page.see("1 namespace")
    page.page.keyboard.press("Control+k")
    page.see("Colours: dark")
    assert page.page.get_by_role("option", name="Sign in").count() == 0
    page.page.keyboard.type("d e f a u l t p b")
    page.page.get_by_role("dialog").get_by_role("option", name="public/default").wait_for()
    page.page.get_by_role("combobox").fill("no such thing")
    page.see("Nothing has this in its name.")
    page.page.keyboard.press("Enter")
    page.page.get_by_role("combobox").fill("DEFAULT")
    page.page.get_by_role("dialog").get_by_role("option", name="public/default").wait_for()


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
            as_before = json.dumps({"properties": {"region": "us"}})  # others have this server too
            assert page.page.evaluate(CHANGE, ["PATCH", "sensor-09", as_before, {}]) == 200
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
