"""Misbehaving installed plugins in a real server process: it keeps running, and stops by a signal."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker_core.client import LookupSession, ServerRefused
from tests.support.served import Served

#: One source for a plain and an async plugin: they do what the property `do` says, where `kind` is theirs.
SOURCE = """
import asyncio
import sys
import threading
import time

from broker_core import TopicListingResult, hookimpl
from broker_core.errors import ListingFailed, ServerError, TooManyRequests

success = TopicListingResult.success
never = threading.Event()


class NoText(Exception):
    def __str__(self):
        raise SystemExit("no text")

    __repr__ = __str__


class Empty(ListingFailed):
    def __init__(self):
        pass


class Proxy:  # as one of a web framework, whose class is that of what it stands for
    @property
    def __class__(self):
        raise RuntimeError("outside of a request")


class ExitProxy:
    @property
    def __class__(self):
        raise SystemExit(9)


class TextAsCause(Exception):
    __cause__ = "text"


class InterruptsAsCause(Exception):
    @property
    def __cause__(self):
        raise KeyboardInterrupt

    __context__ = __traceback__ = __suppress_context__ = __class__ = __cause__


def forged(**fields):
    result = object.__new__(TopicListingResult)
    for name in set(TopicListingResult.__slots__) - {"__weakref__"}:
        object.__setattr__(result, name, fields.get(name, getattr(success([]), name)))
    return result


def changed(**fields):
    error = ListingFailed("text")
    vars(error).update(fields)
    raise error


def recursion():
    recursion()


def cause_without_end():
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    raise first


def fail(error):
    raise error


def do(what, broker, request):
    topic = f"persistent://{request.namespace}/mine"
    table = {
        "fine": lambda: success([topic]),
        "raise": lambda: fail(RuntimeError("secret")),
        "no-text": lambda: fail(NoText()),
        "empty": lambda: fail(Empty()),
        "exit": lambda: sys.exit(3),
        "interrupt": lambda: fail(KeyboardInterrupt()),
        "generator-exit": lambda: fail(GeneratorExit()),
        "cancelled": lambda: fail(asyncio.CancelledError()),
        "group": lambda: fail(BaseExceptionGroup("g", [SystemExit(1)])),
        "recursion": recursion,
        "causes": cause_without_end,
        "memory": lambda: fail(MemoryError()),
        "code": lambda: fail(ListingFailed("m", code="MetadataError")),
        "code-later": lambda: changed(code="MetadataError"),
        "message-later": lambda: changed(message=None),
        "long": lambda: fail(ListingFailed("x" * 3_000_000)),
        "surrogate": lambda: fail(ListingFailed("\\ud800", code=ServerError.PersistenceError)),
        "terminal": lambda: fail(ValueError("\\x1b[2J" * 1000)),
        "too-many": lambda: fail(TooManyRequests("later", reason=None)),
        "list": lambda: [topic],
        "set": lambda: success({topic}),
        "none-inside": lambda: success([topic, None]),
        "other-namespace": lambda: success(["persistent://other/one/a"]),
        "hidden": lambda: object.__new__(TopicListingResult),
        "proxy": Proxy,
        "exit-proxy": ExitProxy,
        "text-as-cause": lambda: fail(TextAsCause("x")),
        "interrupts-as-cause": lambda: fail(InterruptsAsCause("x")),
        "forged": lambda: forged(topics=5),
        "forged-nothing": lambda: forged(topics=None, version=1),
        "mutate": lambda: request.properties.update(a="b"),
        "problems": lambda: broker.report_problems(None),
        "no-namespace": lambda: broker.topics_changed(5),
    }
    return table[what]()


def mine(request, kind):
    return request.properties.get("do") if request.properties.get("kind") == kind else None


class Plain:
    @hookimpl
    def broker_core_startup(self, broker):
        self.broker = broker

    @hookimpl
    def broker_core_list_topics(self, request):
        what = mine(request, "plain")
        if what is None:
            return None
        if what == "hang":
            never.wait()
        if what == "thread":
            self.broker.topics_changed(None)
            self.broker.report_problems("told by a thread")
            return success([])
        return do(what, self.broker, request)


class Later:
    @hookimpl
    async def broker_core_startup(self, broker):
        self.broker = broker

    @hookimpl
    async def broker_core_list_topics(self, request):
        what = mine(request, "later")
        if what is None:
            return None
        while what == "hang":
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                pass
        if what == "block":
            time.sleep(0.7)
            return success([])
        return do(what, self.broker, request)


plain, later = Plain(), Later()
"""

KINDS = ("plain", "later")
WRONG = {
    "raise": "failed: RuntimeError$",
    "no-text": "failed: NoText$",
    "empty": "failed: Empty$",
    "exit": "failed: SystemExit$",
    "interrupt": "failed: KeyboardInterrupt$",
    "generator-exit": "failed: GeneratorExit$",
    "cancelled": "failed: CancelledError$",
    "group": "failed: BaseExceptionGroup$",
    "recursion": "failed: RecursionError$",
    "causes": "failed: ValueError$",
    "memory": "failed: MemoryError$",
    "code": "failed: TypeError$",
    "code-later": "failed: ListingFailed$",
    "message-later": "failed: ListingFailed$",
    "long": "failed: xxx",
    "surrogate": r"failed: \\ud800$",
    "terminal": "failed: ValueError$",
    "too-many": "failed: TypeError$",
    "list": "gave a wrong answer: it returned a list, .*TopicListingResult.success",
    "set": "failed: TypeError$",
    "none-inside": "returned a bad topic: .*leave it out",
    "other-namespace": "returned a bad topic: .* is not in namespace public/default",
    "hidden": "gave a wrong answer: AttributeError",
    "proxy": "gave a wrong answer: RuntimeError",
    "exit-proxy": "gave a wrong answer: SystemExit",
    "text-as-cause": "failed: TextAsCause$",
    "interrupts-as-cause": "failed: InterruptsAsCause$",
    "forged": "gave a wrong answer: the field topics of its answer was changed",
    "forged-nothing": "gave a wrong answer: the field topics of its answer was changed",
    "mutate": "failed: AttributeError$",
    "problems": "failed: TypeError$",
    "no-namespace": "failed: TypeError$",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed distribution of the two plugins."""
    site = tmp_path_factory.mktemp("site")
    (site / "wrong_plugins.py").write_text(SOURCE, encoding="utf-8")
    info = site / "wrong_plugins-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: wrong-plugins\nVersion: 1\n", encoding="utf-8"
    )
    (info / "entry_points.txt").write_text(
        "[broker_core]\nplain = wrong_plugins:plain\nlater = wrong_plugins:later\n", encoding="utf-8"
    )
    return site


@pytest.fixture(params=[None])
def served(site: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Served]:
    """A server whose plugins have a minute for an answer, but that of the parameter half a second."""
    deadlines = {kind: {"deadline": "500ms" if kind == request.param else "60s"} for kind in KINDS}
    settings: dict[str, Any] = {
        "http": {"listen": "127.0.0.1:0"},
        "plugins": {"enabled": [*KINDS], **deadlines},
    }
    with Served(tmp_path / "server", settings, python_path=site) as served:
        yield served


def plugins(served: Served) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://{served.ready['http']}/plugins", timeout=60) as answer:
        return {plugin["name"]: plugin for plugin in json.load(answer)["plugins"]}


async def test_nothing_that_a_plugin_does_ends_a_connection_or_the_server(served: Served) -> None:
    mine = ["persistent://public/default/mine"]
    async with LookupSession(served.service_url) as client:

        async def ask(kind: str, do: str) -> list[str]:
            answer = await client.get_topics("public/default", properties={"kind": kind, "do": do})
            return answer.topics

        for kind in KINDS:
            for do, told in WRONG.items():
                with pytest.raises(ServerRefused, match=f"plugin '{kind}' {told}"):
                    await ask(kind, do)
                assert await ask(kind, "fine") == mine  # and no breaker opens
        assert await ask("plain", "thread") == []
        found = await asyncio.to_thread(plugins, served)
        assert found["later"]["calls"]["list_topics"]["answers"]["error"] == len(WRONG)
        assert (found["plain"]["order"], found["later"]["order"]) == (1, 2)
        assert (found["plain"]["problems"], found["plain"]["state"]) == (["told by a thread"], "error")
        assert client.is_open
    log = served.log.read_text()
    assert "secret" in log  # for the operator
    assert "\x1b" not in log
    assert max(map(len, log.splitlines())) < 40_000
    assert served.stop() == 0


@pytest.mark.parametrize(
    ("served", "slow"),
    [("plain", {"hang": "$"}), ("later", {"hang": "$", "block": ", and held the event loop"})],
    indirect=["served"],
    ids=KINDS,
)
async def test_what_takes_too_long_ends_neither(
    served: Served, slow: dict[str, str], request: pytest.FixtureRequest
) -> None:
    kind = request.node.callspec.id
    async with LookupSession(served.service_url) as client:
        for do, told in slow.items():
            with pytest.raises(ServerRefused, match=f"plugin '{kind}' did not answer within 0.5 s{told}"):
                await client.get_topics("public/default", properties={"kind": kind, "do": do})
        assert client.is_open
    found = await asyncio.to_thread(plugins, served)
    calls = found[kind]["calls"]["list_topics"]
    assert (calls["loop"]["blocked"] >= 1) is ("block" in slow)
    assert calls["answers"]["error"] == len(slow)
    assert served.stop() == 0
