"""The page in Chromium, on real servers: each screen, by mouse and by keyboard, with rights and without."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from broker_core.catalog import SqliteCatalog
from broker_core.names import TopicName
from broker_core_explorer import plugin
from tests.explorer.conftest import CHANGE, HOSTILE, HOSTILE_NAMES, TOPICS, as_shown, signed_in
from tests.support.eventually import eventually_sync
from tests.support.served import Served
from tests.support.watched_page import WatchedPage

Open = Callable[..., WatchedPage]

NARROW: Final = {"viewport": {"width": 360, "height": 720}, "color_scheme": "dark"}


def test_from_a_namespace_to_why_by_keyboard_alone(page_of: Open, served: Served) -> None:
    page = page_of(served)
    keyboard = page.page.keyboard
    page.see("public/default")
    keyboard.press("/")
    keyboard.type("def")
    page.holds("location.hash.includes('find=def')")
    page.see("1 namespace")
    keyboard.press("Enter")
    page.see(re.compile("^60 names"))
    page.holds("document.activeElement.textContent === 'public/default'")
    keyboard.press("/")
    keyboard.type("orders-.*")
    page.see(re.compile("^40 names"))
    keyboard.press("Escape")
    page.see(re.compile("^60 names"))
    keyboard.type("orders-8")
    page.see(re.compile("^1 name"))
    keyboard.press("Enter")
    page.holds("document.activeElement.textContent === 'orders-8'")
    page.page.go_back()
    page.see(re.compile("^1 name"))
    keyboard.press("/")
    keyboard.type("orders-.*")
    page.see(re.compile("^40 names"))
    keyboard.press("Enter")  # of many, to the list
    page.holds("document.activeElement.role === 'listbox'")
    page.holds("document.querySelector('[aria-selected=true] .topic')?.textContent === 'orders-1'")
    keyboard.press("/")
    keyboard.press("ArrowDown")
    page.holds("document.activeElement.role === 'listbox'")
    keyboard.press("End")
    page.holds("document.querySelector('[aria-selected=true] .topic')?.textContent === 'orders-9'")
    keyboard.press("ArrowUp")
    keyboard.press("Enter")
    page.holds("document.querySelector('h1').textContent === 'orders-8'")
    page.holds("document.activeElement.textContent === 'orders-8'")
    keyboard.press("Control+k")
    page.holds("document.activeElement.role === 'combobox'")
    keyboard.type("why not")
    page.holds(
        "document.querySelector('dialog [aria-selected=true]')?.textContent === 'Why not? in public/default'"
    )
    keyboard.press("Enter")
    page.see("Which topic?")
    page.holds("document.activeElement.textContent === 'public/default'")
    keyboard.press("?")
    page.see("What RE2 refuses")
    keyboard.press("Escape")
    page.see("Which topic?")
    page.holds("document.activeElement.textContent === 'public/default'")
    # Where what had it goes, the focus goes to the heading around it.
    for place, button in {
        "topics/public/default?as=1&role=bob": "As myself",
        "topics/public/default?p=x%3D1": "Take x away",
    }.items():
        page.go(place)
        page.page.get_by_role("button", name=button).press("Enter")
        page.holds("location.hash === '#/topics/public/default'")
        page.holds("document.activeElement.tagName === 'H1'")
    page.page.get_by_role("button", name="Keep, copy, export").focus()
    keyboard.press("?")
    page.see("What RE2 refuses")
    keyboard.press("Escape")
    page.holds("document.activeElement.textContent === 'Keep, copy, export'")
    page.go("help")
    page.page.get_by_label("Keys of one character").uncheck()
    page.page.reload()
    page.see("What RE2 refuses")
    page.page.locator("h1").focus()
    for pressed in ("g", "n", "?", "r"):
        keyboard.press(pressed)
    page.go("why/public/default")
    page.see("Which topic?")
    keyboard.press("/")
    keyboard.press("?")
    page.holds("location.hash === '#/why/public/default' && document.activeElement.localName === 'h1'")
    page.go("help")
    page.page.get_by_label("Keys of one character").check()
    page.page.locator("h1").focus()
    keyboard.press("g")
    keyboard.press("n")
    page.holds("location.hash === '#/namespaces'")
    page.go("why/public/default")
    page.see("Which topic?")
    keyboard.press("Control+k")
    page.page.get_by_role("dialog").wait_for()
    page.page.go_back()
    page.page.get_by_role("dialog").wait_for(state="hidden")


def test_an_old_page_says_so(page_of: Open, tmp_path: Path, explored: Callable[..., Served]) -> None:
    """Also one that only stands there; the screens of the page itself go on, in its own version."""
    package = Path(plugin.__file__).parent
    copied = shutil.copytree(package, tmp_path / "site" / package.name)
    running = explored(tmp_path, TOPICS)
    page = page_of(running, "help", own=True)
    page.see("What RE2 refuses")
    page.see("Kafka")
    running.stop()
    with (copied / "static" / "app.css").open("a", encoding="utf-8") as styles:
        styles.write("\n")
    address = {"http": {"listen": running.ready["http"]}}
    explored(tmp_path / "renewed", TOPICS, address, python_path=copied.parent, fresh=True)
    page.see("The server has a newer page than this one.")
    assert not page.axe()
    loaded = (
        "performance.getEntriesByType('resource').filter((each) => /server\\.js$/.test(each.name)).length"
    )
    for screen, says in {"kafka": "No Kafka client has asked", "held": "No listing is held"}.items():
        page.go(f"screen/{screen}")
        page.see(says)
    assert page.page.evaluate(loaded) == 1
    page.page.get_by_role("button", name="Load the new page").click()
    page.page.get_by_text("The server has a newer page").wait_for(state="hidden")
    page.see("No listing is held")


def test_a_slow_server_and_requests_of_earlier_keys(page_of: Open, served: Served) -> None:
    page = page_of(served, "topics/public/default?q=orders-(.*)", **NARROW)
    page.page.locator(".captured").first.wait_for()
    page.page.evaluate(
        "{ const before = fetch; window.ended = []; window.fetch = (url, options) => before(url, options).catch("
        "(error) => { ended.push(`${error.name} ${url}`); throw error; }); }"
    )
    page.page.route(re.compile(r"/topics\?.*orders-1"), lambda route: None)  # an answer that does not come
    pattern = page.page.get_by_label("Pattern of names", exact=True)
    pattern.fill("orders-1.*")
    page.see("The server is slow")
    assert page.page.locator(".stale .row").count()
    assert not page.axe()  # the answer before is fainter, and can be read
    pattern.fill("orders-2.*")
    page.holds("/^AbortError .*orders-1/.test(ended[0])")
    page.see(re.compile("^11 names"))
    page.page.route("**/server/plugins", lambda route: None)
    page.go("plugins")
    page.see("Still waiting for the plugins: the server is slow to answer.")
    assert not page.axe()


def test_a_connection_that_ends_under_a_request(page_of: Open, served: Served) -> None:
    """As of a server that closes it, or of a machine whose network changes: Chromium fails all that is under way."""
    page = page_of(served, "help")
    asked: list[str] = []

    def lost_once(route: Any) -> None:
        asked.append(route.request.method)
        if asked.count(route.request.method) == 1:
            route.abort("connectionreset")
        else:
            route.continue_()

    page.page.route(re.compile("/v1/(server/plugins|.*/topics/orders-1$)"), lost_once)
    page.go("plugins")
    page.see("broker-core-explorer")
    assert asked == ["GET", "GET"]
    page.go("topic/public/default/orders-1")
    page.page.get_by_role("button", name="Change…").click()
    page.page.get_by_label("Value").first.fill("ap")
    page.page.get_by_label("Confirm: region: eu → ap").check()
    page.page.get_by_role("button", name="Change the topic").click()
    page.see("No answer came: it may be changed or not.")
    assert asked.count("PATCH") == 1


def test_a_page_that_may_change_nothing_says_so(page_of: Open, hostile: Served) -> None:
    page = page_of(hostile, "topic/public/default/orders")
    page.see("Pages change nothing on this server: [plugins.explorer] writes = true allows it.")
    assert page.page.get_by_role("button", name="Delete…").is_disabled()
    page.go("topics/public/default?q=new")
    page.see("Pages change nothing on this server")
    page.page.keyboard.press("Control+k")
    page.see("Topics of public/default")
    assert page.page.get_by_role("option", name="Make a topic").count() == 0


#: Makes the page take its tab for `hidden`, or for `visible`.
_SEEN: Final = (
    "Object.defineProperty(document, 'visibilityState', {value: '%s', configurable: true}) &&"
    " document.dispatchEvent(new Event('visibilitychange'))"
)


def test_a_hidden_tab_costs_no_stream(page_of: Open, served: Served) -> None:
    page = page_of(served, "live/public/default?q=hidden-.*")
    page.see("Nothing has changed yet")
    streams = (
        "fetch('v1/server/watchers').then((said) => said.json()).then((said) =>"
        " said.items.some((each) => each.pattern === 'public/default/hidden-.*' && each.streams))"
    )
    eventually_sync(lambda: page.page.evaluate(streams), what="the stream is open")
    asked: list[str] = []
    page.page.on("request", lambda request: asked.extend(re.findall(r"/topics\?", request.url)))
    page.page.evaluate(_SEEN % "hidden")
    eventually_sync(lambda: not page.page.evaluate(streams), what="the stream is closed")
    assert not asked  # nor opened again
    page.page.evaluate(_SEEN % "visible")
    eventually_sync(lambda: page.page.evaluate(streams), what="the stream is open again")


def test_what_a_new_user_asks(page_of: Open, served: Served) -> None:
    """Which topics a consumer with region=eu sees, why orders-7 is not among them, and what it would take."""
    page = page_of(served)
    page.page.get_by_role("option", name="public/default").click()
    page.page.get_by_label("Property region").fill("eu")
    page.see(re.compile("^39 names"))
    page.page.get_by_label("Name of the missing topic").fill("orders-7")
    page.page.get_by_role("button", name="Why not?").click()
    page.see("orders-7 is not listed for you")
    step = page.page.locator(".steps li.bad")
    assert "Properties" in step.text_content()
    assert "region=eu" in step.locator(".needs").text_content()
    page.go("why/public/default?topic=%20")
    page.see("the topic must be made")
    page.settled()
    assert page.page.locator(".steps :is(code, a)").count() == 0
    page.page.get_by_role("button", name="Ask again").click()
    page.settled()
    page.go("why/public/other?topic=orders-7")
    page.see("No such namespace is known")  # it may be a mistake
    page.settled()
    assert page.page.locator(".steps code").count() == 1
    page.go("why/public/default?p=region=eu&p=nothing=selects&topic=orders-77")
    page.see("the topic must be made, with region=eu")
    page.page.get_by_role("button", name="Make the topic").press("Enter")
    page.page.get_by_role("dialog").wait_for()
    page.page.keyboard.press("Escape")
    page.holds("document.activeElement.textContent === 'Make the topic…'")
    command = page.page.locator(".steps code").text_content()
    said = subprocess.run(["bash", "-c", command], check=True, capture_output=True, text=True).stdout
    assert json.loads(said)["properties"] == {"region": "eu"}
    page.go("why/public/default?p=region=us&topic=orders-77")
    page.see("the property region=us of the topic, or another question")
    subprocess.run(
        ["bash", "-c", page.page.locator(".steps code").text_content()], check=True, capture_output=True
    )
    page.page.locator(".steps").get_by_role("button", name="Copy").focus()
    page.page.keyboard.press("r")
    page.see("orders-77 is listed for you")
    page.holds("document.activeElement.tagName === 'H1'")  # what had the focus is gone
    page.go("why/public/default?p=region=eu&topic=orders-77")
    page.page.get_by_role("button", name="Change the topic…").click()
    dialog = page.page.get_by_role("dialog")
    dialog.get_by_label("Confirm: region: us → eu").check()
    dialog.get_by_role("button", name="Change the topic").click()
    page.see("orders-77 is listed for you")
    page.holds("document.activeElement.tagName === 'H1'")
    said = page.page.get_by_role("status").get_by_role("link", name="Look at it")
    said.wait_for()
    page.page.keyboard.press("Escape")
    said.wait_for(state="detached")
    page.page.get_by_role("link", name="Look at the topic").click()
    why = page.page.get_by_role("link", name="Is it listed, and why?")
    assert why.get_attribute("href") == "#/why/public/default?p=region%3Deu&topic=orders-77"
    deleted(page, "orders-77")
    page.go("why/public/default?topic=sensor-00-partition-7")
    page.see("the topic has 8 partitions then, and they only grow")
    assert """-d '{"partitions":8}'""" in page.page.locator(".steps code").text_content()
    page.go("why/public/default?topic=orders-7&q=(%3F!a)b")
    page.see("orders-7 is sent to you")
    page.go("why/public/default?topic=ORDERS-40%20")
    page.page.get_by_role("link", name="orders-40").wait_for()
    page.go("topic/public/default/sensor-00-partition-1")
    page.see("A partition of")
    page.see("What the topic is")
    page.page.get_by_role("button", name="Delete the whole topic…").wait_for()
    page.page.get_by_role("button", name="Show the defaults").click()
    page.see("retention.ms")
    page.holds("document.activeElement.textContent === 'Show fewer'")
    page.page.keyboard.press("Enter")
    page.see("None is set: the defaults of Kafka count.")
    page.go("topics/public/default?q=orders-.*&p=region=eu")
    row = page.page.locator(".scroller .row", has_text="orders-10")
    with page.page.context.expect_page() as opened:
        row.click(button="middle")
    opened.value.close()
    row.click()
    page.see("Full name")
    back = page.page.get_by_role("navigation", name="Where it is").get_by_role("link")
    assert back.get_attribute("href") == "#/topics/public/default?q=orders-.*&p=region%3Deu"
    back.click()
    tab = page.page.locator(".tabs").get_by_role("link", name="Why not?")
    assert tab.get_attribute("href") == "#/why/public/default?q=orders-.*&p=region%3Deu"
    page.go("why/public/default?topic=other/ns/payments")
    assert (
        page.page.get_by_role("link", name="Ask in other/ns").get_attribute("href")
        == "#/why/other/ns?topic=payments"
    )


def test_many_namespaces_are_few_elements(
    page_of: Open, tmp_path: Path, explored: Callable[..., Served]
) -> None:
    with SqliteCatalog(tmp_path / "topics.sqlite", create=True) as catalog:  # imports take six times as long
        for number in range(1100):
            catalog.create(TopicName.parse(f"persistent://team/of-{number:04}/one"))
    page = page_of(explored(tmp_path, TOPICS), own=True)
    page.see("1,101 namespaces")
    page.see("No more are shown: find the others by their names.")
    rows = page.page.get_by_role("listbox", name="Namespaces")
    assert rows.locator("*").count() <= 300
    assert not page.axe()
    rows.focus()
    page.page.keyboard.press("End")
    last = rows.get_by_role("option", selected=True)
    assert "team/of-0998" in last.text_content()
    assert last.get_attribute("aria-setsize") == "1000"
    page.page.keyboard.press("Enter")
    page.see("1 name")
    page.holds("location.hash === '#/topics/team/of-0998'")


def test_what_a_question_may_have_meant_instead(page_of: Open, served: Served) -> None:
    page = page_of(served)
    for typed, meant in {
        "sensor-00-partition-0": "sensor-00",
        "orders-*": "orders-.*",
        "orders-1 ": "orders-1",
        "^orders-1|^orders-2": "^orders-1|orders-2",
        "orders": ".*orders.*",
    }.items():
        page.page.evaluate(
            "(typed) => { location.hash = `#/topics/public/default?q=${encodeURIComponent(typed)}`; }", typed
        )
        page.page.locator("form .hint .link", has_text=re.compile(f"^{re.escape(meant)}$")).click()
        page.holds(f"document.querySelector('[data-search]').value === {json.dumps(meant)}")
    page.see(re.compile("^40 names"))
    assert not page.page.locator("form .hint .link").count()
    page.page.get_by_label("Pattern of names", exact=True).fill("other/ns/a.*")
    page.page.get_by_role("link", name="Ask in other/ns").wait_for()
    page.page.get_by_label("Pattern of names", exact=True).fill(".*orders.*")
    page.page.get_by_label("Property region").fill("EU")
    page.see("No topic that matches without it (40 names) has region=EU, but: eu us")
    page.page.locator(".empty").get_by_role("link", name="eu").click()
    page.see(re.compile("^39 names"))
    page.page.get_by_label("Pattern of names", exact=True).fill("nothing.*")
    page.see("Without region=eu no topic matches either.")


def test_a_list_comes_back_as_it_was_left(page_of: Open, served: Served) -> None:
    page = page_of(served, "topics/public/default", locale="de-DE")
    page.see(re.compile("^60 names"))
    row = page.page.locator(".scroller .row", has_text="sensor-07-partition-1")
    page.page.locator(".scroller").evaluate("(box) => { box.scrollTop = 1200; }")
    row.click()
    page.see("Full name")
    page.see(re.compile(r"^\d\d\.\d\d\.\d{4}, \d\d:\d\d:\d\d \("))  # as the browser's language has it
    page.page.go_back()
    page.holds(
        "document.querySelector('[aria-selected=true] .topic')?.textContent === 'sensor-07-partition-1'"
    )
    page.holds("document.querySelector('.scroller').scrollTop > 600")


def test_the_values_of_a_property_are_suggested_with_their_topics(page_of: Open, served: Served) -> None:
    page = page_of(served, "topics/public/default")
    page.page.get_by_label("Property region").focus()
    options = page.page.locator("datalist option")
    options.first.wait_for(state="attached")
    assert options.evaluate_all("(all) => all.map((each) => [each.value, each.textContent])") == [
        ["eu", "39 names"],
        ["us", "21 names"],
    ]


def test_literal_and_captured_parts_are_marked(page_of: Open, served: Served) -> None:
    page = page_of(served, "topics/public/default?q=sensor-(.*)")
    page.see(re.compile("^20 names"))
    # A pattern is asked of the name without the suffix of a partition.
    assert page.page.locator(".topic").first.text_content() == "sensor-00-partition-0"
    assert page.page.locator(".topic").first.locator("mark").all_text_contents() == ["sensor-", "00"]
    page.go("topics/public/default?q=orders-([12]).*")
    page.see(re.compile("^22 names"))
    first = page.page.locator(".topic").nth(1)
    assert first.text_content() == "orders-10"
    assert first.locator("mark").evaluate_all(
        "(all) => all.map((each) => [each.className, each.textContent])"
    ) == [
        ["literal", "orders-"],
        ["captured", "1"],
        ["captured", "0"],
    ]


def test_where_re2_refuses_a_pattern(page_of: Open, served: Served) -> None:
    page = page_of(served, "topics/public/default?q=a(?!b)")
    page.see("The server refuses this pattern")
    pattern = page.page.get_by_label("Pattern of names", exact=True)
    said = page.page.locator(f"#{pattern.get_attribute('aria-describedby')}").text_content()
    assert "invalid perl operator" in said
    assert pattern.get_attribute("aria-invalid") == "true"
    assert page.page.locator(".wrong").text_content().startswith("(?!")
    pattern.fill("a" * 1100)
    page.see("longer than the maximum of 1024")
    page.page.get_by_text("RE2").locator("visible=true").wait_for(state="hidden")


def test_a_question_as_others_write_it(page_of: Open, served: Served) -> None:
    page = page_of(
        served,
        "topics/public/default?q=orders-.*&p=region=eu",
        permissions=["clipboard-read", "clipboard-write"],
    )
    page.page.get_by_role("button", name="Keep, copy, export").click()
    dialog = page.page.get_by_role("dialog")
    page.holds("getSelection().toString() === 'orders-.* region=eu'")  # what is typed stands in its place
    dialog.get_by_role("button", name="Copy the names").click()
    dialog.get_by_role("status").get_by_text("Copied").wait_for()  # what is behind a dialog is not read
    names = page.page.evaluate("navigator.clipboard.readText()").split()
    assert (len(names), names[0]) == (39, "persistent://public/default/orders-1")
    text = dialog.text_content()
    assert "--data-urlencode 'pattern=public/default/orders-.*'" in text
    assert "broker-core list public/default" in text
    assert "--property region=eu" in text
    assert "urlencode(question)" in text
    with page.page.expect_download() as downloading:
        dialog.get_by_role("button", name="CSV of all").click()
    with Path(downloading.value.path()).open(encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file))
    assert lines[:2] == [
        ["name", "partitions", "properties"],
        ["persistent://public/default/orders-1", "0", '{"region":"eu","team":"sales"}'],
    ]
    assert len(lines) == 40
    dialog.get_by_label("Keep it in this browser as").press("Enter")
    page.see("Kept: it is under Namespaces")
    page.go("topics/public/default?q=orders-.*&p=region=eu&mode=all")
    page.page.get_by_role("button", name="Keep, copy, export").click()
    name = dialog.get_by_label("Keep it in this browser as")
    assert name.input_value() == "orders-.* region=eu (2)"
    name.fill("orders-.* region=eu")
    page.see("The question of this name would be lost.")
    dialog.get_by_role("button", name="Replace it").wait_for()
    page.page.keyboard.press("Escape")
    dialog.wait_for(state="hidden")
    page.go("namespaces")
    page.page.get_by_role("button", name="Forget orders").press("Enter")
    page.see("Forgotten: orders-.* region=eu")
    page.holds("document.activeElement.localName === 'h1'")
    page.page.get_by_role("link", name="Look at it").click()  # and keep it again
    page.see(re.compile("^39 names"))
    page.go("topic/public/default/sensor-00-partition-1")
    page.page.get_by_role("button", name="Copy the full name").click()
    page.see("Copied")
    copied = page.page.evaluate("navigator.clipboard.readText()")
    assert copied == "persistent://public/default/sensor-00-partition-1"


def made(page: WatchedPage, name: str, **topic: Any) -> None:
    """Make a topic from within a page."""
    assert page.page.evaluate(CHANGE, ["PUT", name, json.dumps(topic), {}]) == 201


def deleted(page: WatchedPage, name: str) -> None:
    assert page.page.evaluate(CHANGE, ["DELETE", name, None, {}]) == 204


def test_a_list_either_way_round_that_refreshes_itself(page_of: Open, served: Served) -> None:
    page = page_of(served, own=True)
    page.page.clock.install()
    page.go("topics/public/default?q=sensor-.*")
    page.see(re.compile("^20 names"))
    first = page.page.locator(".scroller [role=option]").first
    assert first.text_content() == "sensor-00-partition-0, partitions: 2, region=us"
    page.page.get_by_role("button", name="Name, ascending").click()
    page.page.get_by_role("button", name="Name, descending").wait_for()
    page.holds("document.querySelector('.topic')?.textContent === 'sensor-09-partition-1'")
    page.page.locator(".scroller").press("End")
    page.holds(
        "document.querySelector('[aria-selected=true] .topic')?.textContent === 'sensor-00-partition-0'"
    )
    page.page.locator(".scroller").press("Home")
    page.page.evaluate(_SEEN % "hidden")
    asked: list[str] = []
    page.page.on("request", lambda request: asked.extend(re.findall(r"/topics\?", request.url)))
    page.page.get_by_label("Refresh every 5 s").check()
    page.holds("location.hash.includes('renew=1') && location.hash.includes('order=last')")
    page.page.clock.fast_forward(60_000)
    assert not asked
    page.page.evaluate(_SEEN % "visible")
    with page.page.expect_response(lambda answer: "/topics?" in answer.url) as answered:
        page.page.clock.fast_forward(5000)
    assert answered.value.status == 304
    # The clock of the page goes on besides, so either of two requests may bring what has changed.
    made(page, "sensor-10")
    page.page.clock.fast_forward(5000)
    page.see(re.compile("^21 names"))
    page.holds("document.querySelector('.topic')?.textContent === 'sensor-10'")
    deleted(page, "sensor-10")
    page.page.clock.fast_forward(5000)
    page.see(re.compile("^20 names"))


def test_live_shows_what_comes_and_goes(page_of: Open, served: Served) -> None:
    page = page_of(served, "live/public/default?q=new-.*")
    page.see("Nothing has changed yet")
    other = page_of(served, "topics/public/default")
    made(other, "new-1")
    page.see("persistent://public/default/new-1")
    page.page.get_by_role("button", name="Pause").click()
    page.see("paused")
    deleted(other, "new-1")
    page.see("1 since the pause")
    page.page.get_by_role("button", name="Go on").click()
    page.page.locator(".events .removed").wait_for()
    assert page.page.locator(".events li").count() == 2
    row = page.page.locator(".events .removed a")
    assert row.get_attribute("href") == "#/topic/public/default/new-1?q=new-.*"
    page.page.get_by_role("button", name="Clear").click()
    page.see("0 came, 0 went")
    page.holds("document.activeElement.tagName === 'H1'")  # since the button has nothing more to clear
    # Many changes are one drawing: here no frame comes until all of them have.
    page.page.evaluate(
        "() => { window.frames_ = []; window.requestAnimationFrame = (draw) => frames_.push(draw); }"
    )
    names = [f"new-{number}" for number in range(2, 8)]
    beside = page_of(served, "live/public/default?q=new-.*")
    beside.see("Nothing has changed yet")
    for name in names:
        made(other, name)
    beside.see("6 came, 0 went")
    page.see("0 came, 0 went")
    drawn = "frames_.splice(0).map((draw) => draw()) && /6 came/.test(document.querySelector('.result').textContent)"
    eventually_sync(lambda: page.page.evaluate(drawn), what="the changes are drawn")
    for name in names:
        deleted(other, name)


def test_live_says_how_many_changes_it_no_longer_keeps(
    page_of: Open, tmp_path: Path, explored: Callable[..., Served]
) -> None:
    running = explored(tmp_path, TOPICS, writes=True)
    page = page_of(running, "live/public/default?q=new-.*", own=True)
    page.see("Nothing has changed yet")
    page.page.get_by_role("button", name="Pause").click()
    page.see("paused")
    request = urllib.request.Request(
        f"http://{running.ready['http']}/v1/namespaces/public/default/topics:import",
        b"".join(b'{"name": "new-%d"}\n' % number for number in range(1500)),
        {"Content-Type": "application/x-ndjson"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 200
    page.see("1,500 came, 0 went, 1,500 since the pause; no longer kept: 1,000 changes")
    assert page.page.get_by_text("Nothing has changed yet").count() == 0
    page.page.get_by_role("button", name="Go on").click()
    page.see("1 to 60 of 500")
    page.see("1,500 came, 0 went; no longer kept: 1,000 changes")
    assert page.page.get_by_role("button", name="Newer").is_disabled()
    for first in range(61, 500, 60):
        page.page.get_by_role("button", name="Older").click()
        page.see(f"{first} to {min(first + 59, 500)} of 500")
    page.see("paused")  # what is looked at stays
    assert page.page.locator(".events li").count() == 20
    assert page.page.get_by_role("button", name="Older").is_disabled()
    assert not page.axe()
    page.page.get_by_role("button", name="Newer").click()
    page.see("421 to 480 of 500")
    page.page.get_by_role("button", name="Go on").click()
    page.see("1 to 60 of 500")


def test_a_topic_is_changed_and_deleted(page_of: Open, served: Served) -> None:
    page = page_of(served)
    # Properties may be named as what each object of JavaScript has.
    made(page, "spare", properties={"__proto__": "eu"})
    page.go("topic/public/default/spare")
    page.page.get_by_role("button", name="Change…").click()
    page.page.get_by_label("Value").first.fill("ap")
    command = page.page.get_by_role("dialog").locator(".command code")
    assert """-d '{"properties":{"__proto__":"ap"}}'""" in command.text_content()
    assert command.text_content().endswith("/v1/namespaces/public/default/topics/spare")
    page.see("A topic that is not partitioned stays so.")
    page.page.get_by_role("button", name="Add a property").press("Enter")
    page.holds("document.activeElement === [...document.querySelectorAll('dialog .line input')].at(-2)")
    page.page.keyboard.type("__proto__")
    page.see("The property __proto__ stands here twice.")
    page.see("An empty value is kept")
    assert page.page.get_by_role("button", name="Change the topic").is_disabled()
    page.page.get_by_role("button", name="Take __proto__ away").first.click()
    page.holds("document.activeElement.textContent === 'Add a property'")
    page.page.get_by_role("button", name="Take __proto__ away").click()
    page.holds(
        """document.querySelector('dialog code').textContent.includes('{"properties":{"__proto__":null}}')"""
    )
    page.page.get_by_role("button", name="Add a property").click()
    page.page.get_by_label("Name", exact=True).fill("constructor")
    page.page.get_by_label("Value").fill("ap")
    page.page.get_by_role("button", name="Change the topic").click()
    page.holds("document.activeElement.type === 'checkbox'")
    page.page.get_by_label("Confirm: __proto__: eu → none").check()
    page.page.get_by_role("button", name="Change the topic").click()
    page.page.locator("ins", has_text="ap").wait_for()
    assert page.page.locator(".difference li").all_inner_texts() == [
        "__proto__: eu → none",
        "constructor: none → ap",
    ]
    page.holds("document.activeElement.textContent === 'Change…'")
    page.see("spare is changed")
    page.page.get_by_role("button", name="Delete…").click()
    page.page.get_by_text("spare is changed").wait_for(state="detached")  # nor in the dialog
    delete = page.page.get_by_role("button", name="Delete the topic")
    assert delete.is_disabled()
    page.page.get_by_label("to delete it").fill("spare")
    delete.click()
    page.holds("location.hash === '#/topics/public/default'")
    page.go("topic/public/default/spare")
    page.see("There is no such topic now")
    page.see("Deleted")
    page.page.get_by_role("button", name="Make it again…").click()
    dialog = page.page.get_by_role("dialog")
    assert dialog.get_by_label("Name", exact=True).input_value() == "constructor"
    dialog.get_by_role("button", name="Make the topic").click()
    page.see("Made again")
    page.see("Full name")
    page.holds("document.activeElement.tagName === 'H1'")
    page.page.get_by_role("button", name="Delete…").click()
    page.page.get_by_label("to delete it").fill("spare")
    deleted(page, "spare")
    page.page.keyboard.press("Enter")
    page.see("Somebody deleted spare meanwhile")


def test_a_topic_is_made_and_the_question_stays(page_of: Open, served: Served) -> None:
    page = page_of(served, "topics/public/default?q=orders-.*&p=region=eu")
    page.see(re.compile("^39 names"))
    page.page.get_by_label("Pattern of names").focus()
    dialog = page.page.get_by_role("dialog")
    page.page.keyboard.press("Control+k")
    page.page.keyboard.type("make a topic")
    page.page.keyboard.press("Enter")
    page.holds("document.activeElement.labels?.[0].textContent === 'Name of the topic'")
    page.page.keyboard.type("orders-99")
    page.page.keyboard.press("Escape")
    page.holds("document.activeElement.matches('[data-search]')")
    page.page.get_by_role("button", name="Make a topic…").click()
    dialog.get_by_label("Name of the topic").fill("..")  # which no browser asks for
    assert dialog.get_by_role("button", name="Make the topic").is_disabled()
    dialog.get_by_label("Name of the topic").fill("orders-1")
    make = dialog.get_by_role("button", name="Make the topic")
    make.click()
    page.see("There is a topic of this name already.")
    dialog.get_by_label("Name of the topic").fill("orders-99")
    dialog.get_by_role("alert").wait_for(state="detached")
    partitions = dialog.get_by_role("spinbutton", name="Partitions")
    partitions.fill("1000")
    page.see("Confirm: partitions: none → 1,000")
    assert not page.axe()
    make.click()
    page.holds("document.activeElement.type === 'checkbox'")
    partitions.fill("2")
    make.click()
    dialog.wait_for(state="hidden")
    page.see(re.compile("^41 names"))
    page.holds("document.activeElement.textContent === 'Make a topic…'")
    page.page.get_by_role("status").get_by_role("link", name="Look at it").click()
    page.see("Full name")
    assert page.page.url.endswith("#/topic/public/default/orders-99?q=orders-.*&p=region%3Deu")
    assert page.page.locator(".said").text_content() == ""
    deleted(page, "orders-99")


def test_properties_that_would_fill_the_screen(page_of: Open, served: Served) -> None:
    page = page_of(served)
    made(
        page, "heavy", properties={"a-note": "n" * 40_000, **{f"key-{at:03}": "v" * 20 for at in range(500)}}
    )
    page.go("topics/public/default?q=heavy")
    page.see(re.compile("^1 name"))
    assert len(page.page.locator(".scroller .row").text_content()) < 500
    page.go("topic/public/default/heavy")
    page.see("(40,000 characters)")
    page.see("and 481 more")  # in its history
    assert page.page.evaluate("document.querySelector('main').scrollHeight") < 6000
    page.page.get_by_role("button", name="Show all of 501 properties").click()
    page.see("n" * 40_000)
    page.holds("document.activeElement.textContent === 'Show fewer'")
    page.page.get_by_role("button", name="Change…").click()
    dialog = page.page.get_by_role("dialog")
    dialog.get_by_role("button", name="Show more of 501").click()
    page.holds("document.querySelectorAll('dialog .line[role=group]').length === 100")
    page.page.keyboard.press("Escape")
    deleted(page, "heavy")


def test_the_question_of_somebody_else_and_each_step_that_takes_a_topic_away(
    page_of: Open, guarded: Served
) -> None:
    page = page_of(guarded, "topics/public/default")
    page.holds("document.activeElement.name === 'user'")
    signed_in(page, "chief")
    page.see(re.compile("^60 names"))
    shown: dict[str, str | re.Pattern[str]] = {
        "topics/public/default?as=1&role=reader": re.compile("^58 names for reader"),
        "topics/public/default?as=1&role=nobody": "The role nobody may not see the topics",
        "topics/internal/audit?as=1&role=reader": "The role reader may not see the topics",
        "why/public/default?as=1&role=reader&topic=sensor-00": "it is hidden from this client",
        "why/public/default?as=1&role=nobody&topic=orders-7": "a rule that allows role 'nobody' to list it",
        "why/public/default?as=1&role=reader&topic=public/default/orders-7": "orders-7 is listed for the role reader",
        "why/public/default?topic=orders-7&q=a(": "The server refuses this pattern",
        "topic/public/default/orders-7": "rule 1: reader may list in public/*",
        "topic/public/default/orders-7?as=1&role=reader": "Asked for the role reader, not for you.",
        "live/public/default?as=1&role=reader": "Live shows what you see, not what the role reader sees.",
        "topics/public/shut?as=1&role=warden": "A plugin refuses: it must let this client pass.",
        "topics/public/broken": "What it would take: the plugin must answer.",
    }
    for place, says in shown.items():
        page.page.evaluate("(place) => { location.hash = place; }", f"#/{place}")
        page.see(says)
    # Of a listing that fails, the one step by which it does.
    for place, verdict in {
        "why/public/broken?topic=b": "It fails at: Existence, plugin 'breaker' failed: LookupError.",
        "why/public/shut?as=1&role=warden&topic=b": "It fails at: Gates of plugins, it is night.",
    }.items():
        page.go(place)
        page.see(verdict)
        page.settled()
        main = page.page.locator("main")
        assert main.locator(".badge", has_text="fails").count() == 1
        assert main.get_by_text("What it would take:").first.is_visible()
        assert main.get_by_role("alert").count() == 0
        assert not page.axe()
    page.page.get_by_role("button", name="chief").click()
    who = page.page.get_by_role("dialog", name="Who asks")
    who.get_by_text("all of them").first.wait_for()
    who.get_by_role("button", name="Sign in as somebody else").click()
    signed_in(page, "warden")
    page.go("topic/public/default/sensor-00")
    page.see("This topic is hidden from you")
    assert not page.page.get_by_role("button", name="Make it again…").count()
    page.see("hider: it is hidden from this client")
    page.go("topics/public/shut")
    page.see("A plugin refuses: it must let this client pass.")


def test_signing_in(page_of: Open, guarded: Served) -> None:
    page = page_of(guarded, "topics/public/default")
    dialog = page.page.get_by_role("dialog", name="Sign in")
    dialog.wait_for()
    assert not page.axe()
    dialog.get_by_label("User").fill("reader")
    dialog.get_by_label("Password").fill("wrong")
    dialog.get_by_role("button", name="Sign in").click()
    dialog.get_by_role("alert").wait_for()
    signed_in(page, "reader")
    page.see("orders-12")
    page.see("To ask why, or to make topics, you need the right admin in this namespace.")
    page.go("why/public/default?topic=orders-7")
    assert page.page.get_by_role("button", name="Ask again").is_disabled()
    page.page.go_back()
    page.see("orders-12")
    assert page.page.get_by_role("button", name="Why not?").is_disabled()
    barred = page.page.locator("nav a[title]").evaluate_all(
        "(all) => all.map((each) => [each.textContent, each.title])"
    )
    assert ["Why not?", "You lack the right admin"] in barred
    assert ["Server", "You lack the right monitor"] in barred
    assert ["Held listings", "You lack the right admin"] in barred
    page.page.keyboard.press("Control+k")
    page.see("Topics of public/default")
    marked = page.page.locator("[role=option][title]").all_text_contents()
    assert {"Server", "Held listings", "Why not? in public/default"} <= set(marked)
    assert "Topics of public/default" not in marked
    assert page.page.get_by_role("option", name="Make a topic").count() == 0
    assert "secret" not in page.page.url
    assert (
        page.page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])").count(
            "secret"
        )
        == 0
    )
    page.page.reload()
    page.page.get_by_role("dialog", name="Sign in").wait_for()


def test_the_server_checks_its_settings_and_shows_caches_and_followed_questions(
    page_of: Open, served: Served
) -> None:
    page = page_of(served, "server")
    page.see("snapshots")
    page.page.get_by_role("button", name="Check the settings").click()
    checks = page.page.get_by_role("table", name="What the check says")
    checks.get_by_text("catalog.path").first.wait_for(timeout=300_000)  # a program starts
    page.page.get_by_role("button", name="All metrics").click()
    metrics = page.page.get_by_role("table", name="Metrics that are not zero")
    metrics.get_by_role("row", name="build_info").wait_for()
    page.page.get_by_role("textbox", name="With").fill("http_requests 200")
    metrics.get_by_role("row", name=re.compile("^http_requests_total .* 200")).first.wait_for()
    metrics.get_by_role("row", name="build_info").wait_for(state="detached")
    assert not page.axe()
    page_of(served, "live/public/default?q=new-.*").see("Nothing has changed yet")
    page.go("screen/watchers")
    followed = page.page.get_by_role("table", name="Followed questions")
    followed.get_by_role("link", name="public/default/new-.*").click()
    page.holds("location.hash.startsWith('#/topics/public/default?q=')")


#: Rows from the upper to the lower end of what is seen of a list; it draws them after it was scrolled.
_ROWS_ARE_DRAWN: Final = """(() => {
  const box = document.querySelector('.scroller').getBoundingClientRect();
  const rows = [...document.querySelectorAll('.row:has(.topic)')].map((row) => row.getBoundingClientRect());
  return rows.some((row) => row.top < box.top + 10) && rows.some((row) => row.bottom > box.bottom - 10);
})()"""


def test_names_of_hostile_clients_are_text(page_of: Open, hostile: Served) -> None:
    names = HOSTILE_NAMES
    page = page_of(hostile, "topics/public/hostile")
    page.see(re.compile("^200 names"))
    listed = page.page.evaluate(
        "fetch('v1/namespaces/public/hostile/topics?limit=10000').then((one) => one.json()).then((one) => one.items)"
    )
    before = page.page.evaluate("[...document.querySelectorAll('script, img, iframe, object')].length")
    seen: dict[str, str] = {}
    for _ in range(40):
        page.holds(_ROWS_ARE_DRAWN)
        rows = page.page.locator(".scroller .row:has(.topic)").evaluate_all(
            "(all) => all.map((each) => [each.querySelector('.topic')?.textContent, each.getAttribute('href')])"
        )
        seen.update(rows)
        if len(seen) == len(names):
            break
        page.page.locator(".scroller").evaluate("(box) => { box.scrollTop += box.clientHeight - 30; }")
    assert {name.removeprefix("persistent://public/hostile/") for name in listed} == set(names)
    assert set(seen) == set(map(as_shown, names))
    assert (
        page.page.evaluate("[...document.querySelectorAll('script, img, iframe, object')].length") == before
    )
    for name in names[: len(HOSTILE)]:
        shown = as_shown(name)
        page.page.evaluate("(place) => { location.hash = place; }", seen[shown])
        page.holds(f"document.querySelector('h1').textContent === {json.dumps(shown)}")
        page.see("Full name")
    assert not page.axe()
    page.go("topics/public/hostile")
    page.page.get_by_role("button", name="Keep, copy, export").click()
    with page.page.expect_download() as downloading:
        page.page.get_by_role("button", name="CSV of all").click()
    with Path(downloading.value.path()).open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    assert [row[0] for row in rows] == listed
    # A program of tables takes such a cell for a formula.
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
