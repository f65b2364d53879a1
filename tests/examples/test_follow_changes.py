"""The follower of changes, between a real server and a real receiver: at least once, in order, from its position."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from broker_core.catalog import SqliteCatalog
from broker_core.names import NamespaceName, TopicName
from tests.support.catalogue_topics import create_topics
from tests.support.distributions import ROOT
from tests.support.eventually import eventually
from tests.support.forked_programs import forked_program
from tests.support.narrowed import present
from tests.support.ports import free_port
from tests.support.served import Served

PROGRAM = ROOT / "examples" / "follow_changes" / "follow_changes.py"
NAMESPACE = "public/default"


def topic(name: str) -> TopicName:
    return TopicName.parse(f"persistent://{NAMESPACE}/{name}")


@dataclass
class Receiver:
    """What was posted, and what is answered next: 200, if there is nothing else."""

    url: str = ""
    events: list[dict[str, Any]] = field(default_factory=list)
    refusals: list[int] = field(default_factory=list)
    before_answer: Callable[[dict[str, Any]], None] = lambda event: None

    async def take(self, request: web.Request) -> web.Response:
        assert request.headers["Content-Type"] == "application/cloudevents+json; charset=utf-8"
        if self.refusals:
            return web.Response(status=self.refusals.pop(), headers={"Location": self.url})
        event = await request.json()
        self.events.append(event)
        self.before_answer(event)
        return web.Response(status=204)

    @property
    def kinds(self) -> list[tuple[str, str | None]]:
        return [
            (each["type"].removeprefix("broker-core."), each.get("subject", "/").rpartition("/")[2])
            for each in self.events
        ]

    @property
    def ids(self) -> list[str]:
        return [each["id"] for each in self.events]


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    made = Receiver()
    app = web.Application()
    app.router.add_post("/events", made.take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0]
    made.url = f"http://{host}:{port}/events"
    yield made
    await runner.cleanup()


class Following:
    """A server with a catalogue, and the program in a process of its own; all ends with the test."""

    def __init__(self, folder: Path, receiver: Receiver) -> None:
        self.folder = folder
        self.receiver = receiver
        self.catalogue = folder / "topics.sqlite"
        self.position = folder / "position.json"
        self.errors = folder / "errors.txt"
        self.http = f"127.0.0.1:{free_port()}"
        settings = {"http": {"listen": self.http}, "catalog": {"path": str(self.catalogue)}}
        self.server = Served(folder / "server", settings)
        self.process: subprocess.Popen[bytes] | None = None
        self.python = forked_program("python")

    def start(self, *options: str) -> subprocess.Popen[bytes]:
        words = [f"http://{self.http}", NAMESPACE, self.receiver.url, "--position", str(self.position)]
        with self.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                [
                    self.python,
                    "-W",
                    "error",
                    str(PROGRAM),
                    *words,
                    "--longest-pause",
                    "0.5",
                    *options,
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )
        return self.process

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    async def ended(self) -> int:
        process = present(self.process)
        await eventually(lambda: process.poll() is not None, what="the end of the program")
        return process.returncode

    async def once(self, *options: str) -> int:
        self.start("--once", *options)
        return await self.ended()

    def change(self, *names: str) -> None:
        create_topics(self.catalogue, *(topic(name) for name in names), properties={"region": "eu"})

    @property
    def saved(self) -> str:
        return str(json.loads(self.position.read_text())["version"])

    def version(self) -> str:
        with SqliteCatalog(self.catalogue) as catalogue:
            return str(catalogue.version(NamespaceName.parse(NAMESPACE)))


@pytest.fixture
async def following(tmp_path: Path, receiver: Receiver) -> AsyncIterator[Following]:
    made = Following(tmp_path, receiver)
    with made.server:
        try:
            yield made
        finally:
            made.kill()


def test_a_mistake_at_the_command_line_is_one_line() -> None:
    words = ["http://127.0.0.1:1", "persistent://public/default", "http://127.0.0.1:1/events"]
    said = subprocess.run(
        [forked_program("python"), str(PROGRAM), *words], check=False, capture_output=True, text=True
    )
    assert (said.returncode, said.stdout) == (2, "")
    assert said.stderr == (
        "follow_changes: argument NAMESPACE: 'persistent://public/default' is not TENANT/NAMESPACE\n"
    )


async def test_each_change_is_an_event_after_one_resync(following: Following, receiver: Receiver) -> None:
    following.change("there-before")
    following.start()
    await eventually(following.position.exists, what="a position")
    following.change("orders")
    with SqliteCatalog(following.catalogue) as catalogue:
        catalogue.delete(topic("orders"))
    await eventually(lambda: len(receiver.events) == 3, what="three events")
    assert receiver.kinds == [
        ("namespace.resync", ""),
        ("topic.create", "orders"),
        ("topic.delete", "orders"),
    ]
    resync, created, _ = receiver.events
    assert resync["data"]["since"] is None
    assert resync["data"]["version"] in resync["id"]
    for event in receiver.events:
        assert event["specversion"] == "1.0"
        assert event["source"] == f"http://{following.http}/v1/namespaces/{NAMESPACE}"
        assert event["datacontenttype"] == "application/json"
    catalogue_id, number, *_ = created["id"].split(":")
    assert following.version().startswith(f"{catalogue_id}:")
    assert created["data"]["version"] == int(number) == 2
    assert created["data"]["properties"] == {"region": "eu"}
    assert created["time"] == created["data"]["time"]
    await eventually(lambda: following.saved.startswith(following.version()), what="the last position")


async def test_what_was_sent_and_not_saved_comes_again_with_its_id(
    following: Following, receiver: Receiver
) -> None:
    assert await following.once() == 0
    following.change("a", "b")
    before = following.saved
    following.python = sys.executable  # a forked one would outlive what stands for it here

    def kill_at_the_last(event: dict[str, Any]) -> None:
        if event.get("subject", "").endswith("/b"):
            following.kill()

    receiver.before_answer = kill_at_the_last
    following.start()
    await following.ended()
    assert following.saved == before
    receiver.before_answer = lambda event: None
    assert await following.once() == 0
    assert receiver.kinds[1:] == [("topic.create", "a"), ("topic.create", "b")] * 2
    assert receiver.ids[1:3] == receiver.ids[3:]
    assert len(set(receiver.ids)) == 3
    assert await following.once() == 0
    assert len(receiver.events) == 5, "what is saved does not come again"


async def test_a_receiver_that_refuses_gets_all_later(following: Following, receiver: Receiver) -> None:
    assert await following.once() == 0
    receiver.refusals = [429, 400, 307, 503]
    following.change("a", "b")
    assert await following.once() == 0
    assert receiver.kinds[1:] == [("topic.create", "a"), ("topic.create", "b")]
    errors = following.errors.read_text()
    assert re.findall(r"again in [\d.]+ s: the receiver answers (\d+)", errors) == [
        "503",
        "307",
        "400",
        "429",
    ]


async def test_a_server_that_is_away_is_asked_again(following: Following, receiver: Receiver) -> None:
    following.start()
    await eventually(following.position.exists, what="a position")
    following.server.stop()
    await eventually(lambda: "again in" in following.errors.read_text(), what="an error")
    following.change("meanwhile")
    following.server.start()
    await eventually(lambda: len(receiver.events) == 2, what="the change")
    assert receiver.kinds[1:] == [("topic.create", "meanwhile")]


async def test_a_log_that_does_not_reach_back_is_one_resync(following: Following, receiver: Receiver) -> None:
    assert await following.once() == 0
    following.change("a")
    before = following.saved
    following.server.stop()
    for file in following.folder.glob("topics.sqlite*"):
        file.unlink()
    following.change("of-another-catalogue")
    following.server.start()
    receiver.refusals = [503]
    assert await following.once() == 0
    assert await following.once() == 0
    following.change("later")
    assert await following.once() == 0
    assert receiver.kinds[1:] == [("namespace.resync", ""), ("topic.create", "later")]
    resync = receiver.events[1]["data"]
    assert resync["since"] == before
    assert resync["version"].partition(":")[0] != before.partition(":")[0]


async def test_a_restored_catalogue_has_other_ids(following: Following, receiver: Receiver) -> None:
    """Its versions come again, for other changes: a receiver must not take them for those that it has."""
    following.change("kept")
    assert await following.once() == 0
    following.server.stop()
    shutil.copy(following.catalogue, following.folder / "copy.sqlite")
    following.server.start()
    changes = []
    for region in ("us", "asia"):
        with SqliteCatalog(following.catalogue) as catalogue:
            catalogue.set_properties(topic("kept"), {"region": region})
        assert await following.once() == 0
        changes.append(receiver.events[-1])
        following.server.stop()
        for file in following.folder.glob("topics.sqlite*"):
            file.unlink()
        shutil.copy(following.folder / "copy.sqlite", following.catalogue)
        following.server.start()
        assert await following.once() == 0
        assert receiver.events[-1]["type"] == "broker-core.namespace.resync"
    first, second = changes
    assert first["data"]["version"] == second["data"]["version"]
    assert first["data"]["topic_id"] == second["data"]["topic_id"]
    assert first["id"] != second["id"]
    assert len(set(receiver.ids)) == len(receiver.ids)


@pytest.mark.parametrize(
    ("text", "said"),
    [("{", "is no position"), ('{"namespace": "acme/shop", "version": "x:1"}', "is a position in acme/shop")],
)
async def test_a_file_of_something_else_is_left_as_it_is(
    following: Following, receiver: Receiver, text: str, said: str
) -> None:
    following.position.write_text(text)
    assert await following.once() == 1
    assert said in following.errors.read_text()
    assert (following.position.read_text(), receiver.events) == (text, [])


async def test_a_server_that_wants_a_token_ends_it_without_one(receiver: Receiver, tmp_path: Path) -> None:
    async def refuse(_request: web.Request) -> web.Response:
        return web.json_response({"detail": "credentials are needed here"}, status=401)

    app = web.Application()
    app.router.add_get("/v1/namespaces/public/default/changes", refuse)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0]
    process = await asyncio.create_subprocess_exec(
        forked_program("python"), str(PROGRAM), f"http://{host}:{port}", NAMESPACE, receiver.url, "--once",
        cwd=tmp_path, stderr=subprocess.PIPE,
    )  # fmt: skip
    _, said = await process.communicate()
    await runner.cleanup()
    assert process.returncode == 1
    assert b"the server answers 401" in said


async def test_a_server_that_cannot_follow_ends_it(following: Following, receiver: Receiver) -> None:
    following.position.write_text(json.dumps({"namespace": NAMESPACE, "version": "no version"}))
    assert await following.once() == 1
    assert "the server answers 400" in following.errors.read_text()
    assert receiver.events == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["127.0.0.1:8080", "a/b", "http://127.0.0.1:1/"], "'127.0.0.1:8080' is no URL such as http://"),
        (["http://127.0.0.1:1", "a", "http://127.0.0.1:1/"], "'a' is not TENANT/NAMESPACE"),
        (["http://127.0.0.1:1", "a/b", "nowhere"], "'nowhere' is no URL such as http://"),
        (
            ["http://127.0.0.1:1", "a/b", "http://127.0.0.1:1/", "--longest-pause", "nan"],
            "invalid seconds value",
        ),
        (["http://127.0.0.1:1", "a/b", "http://127.0.0.1:1/", "--position", "none/p.json"], "'none/p.json'"),
    ],
)
def test_what_can_never_be_is_no_reason_to_try_again(tmp_path: Path, words: list[str], said: str) -> None:
    command = [forked_program("python"), "-W", "error", str(PROGRAM), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert said in done.stderr
