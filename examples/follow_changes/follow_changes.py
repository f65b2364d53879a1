"""Follow the changes of a namespace, and send each as a CloudEvent to a receiver, at least once and in their order.

    python follow_changes.py SERVER NAMESPACE RECEIVER [--position FILE] [--once]
    python follow_changes.py http://127.0.0.1:8080 public/default http://127.0.0.1:9000/events

The position, which is a version of the namespace, is saved after the receiver has taken all events that lead to it.
Without a position, and if the server's log does not reach back to it, one event `resync` says so: its receiver lists
the namespace. It prints a line when it begins, and one for each failure and resync, until it is interrupted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Final, Literal, NoReturn, TypeVar
from urllib.parse import urlsplit

import aiohttp
from pydantic import BaseModel, ConfigDict, Field, ValidationError

_WAIT: Final = 30  # seconds that the server waits for a change; it allows no more
_TIMEOUT: Final = aiohttp.ClientTimeout(total=_WAIT + 30, sock_connect=10)
_FIRST_PAUSE: Final = 0.1  # seconds; each next one is twice as long
#: Answers of the server that may be another one soon.
_AGAIN: Final = frozenset({408, 429, 500, 502, 503, 504})
_SMALL: Final = 300  # bytes of an answer that are shown

A = TypeVar("A")
R = TypeVar("R")


class Change(BaseModel):
    """One topic that was created, updated or deleted; the receiver gets all that the server says of it."""

    model_config = ConfigDict(extra="allow")
    version: int
    operation: Literal["create", "update", "delete"]
    topic: str = Field(min_length=1)
    topic_id: str = Field(min_length=1)
    time: str = Field(min_length=1)


class Page(BaseModel):
    """An answer of the server: the changes, and the version that they lead to."""

    version: str = Field(min_length=1)
    changes: list[Change]


class Gone(BaseModel):
    """The answer if the log does not reach back: the version of now, and why."""

    version: str = Field(min_length=1)
    detail: str


class Position(BaseModel):
    """Content of the file: changes up to this version of this namespace have been taken."""

    namespace: str
    version: str = Field(min_length=1)

    @classmethod
    def read(cls, file: Path, namespace: str) -> str | None:
        """The version in the file, or none without a file. Raises :exc:`ValueError` for a file of something else."""
        try:
            found = cls.model_validate_json(file.read_bytes())
        except FileNotFoundError:
            if not file.parent.is_dir():
                raise  # before the receiver gets what could not be saved
            return None
        except ValidationError as error:
            raise ValueError(f"{file} is no position: remove it to begin with a resync") from error
        if found.namespace != namespace:
            raise ValueError(f"{file} is a position in {found.namespace}, not in {namespace}")
        return found.version

    def save(self, file: Path) -> None:
        """Replace the file whole or not at all, also if the machine loses its power."""
        new = file.with_name(f"{file.name}.new")
        with new.open("w", encoding="utf-8") as stream:
            stream.write(self.model_dump_json())
            stream.flush()
            os.fsync(stream.fileno())
        new.replace(file)
        folder = os.open(file.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


class TryAgain(Exception):
    """The server or the receiver is away, or refuses for now; ``after``: the seconds that it asks to wait."""

    def __init__(self, why: str, after: float = 0) -> None:
        super().__init__(why)
        self.after = after


class Refused(Exception):
    """The server refuses for good: the namespace, the right or the settings are wrong."""


class Follower:
    """Brings the changes of one namespace of a server to a receiver."""

    def __init__(self, session: aiohttp.ClientSession, options: argparse.Namespace) -> None:
        self._session = session
        self._options = options
        self._source = f"{options.server.rstrip('/')}/v1/namespaces/{options.namespace}"

    async def run(self) -> None:
        """Follow; with ``--once`` until there are no more changes."""
        position = Position.read(self._options.position, self._options.namespace)
        print(f"follows {self._source} from {position or 'now'}", flush=True)
        while True:
            found = await self._patiently(self._ask, position)
            version = found.version
            if isinstance(found, Page) and position is not None:
                events = self._events(version, found.changes)
            else:
                why = found.detail if isinstance(found, Gone) else "there is no position yet"
                print(f"resync at {version}: {why}", flush=True)
                events = iter([self._resync(position, version, why)])
            for event in events:
                await self._patiently(self._send, event)
            if version != position:
                Position(namespace=self._options.namespace, version=version).save(self._options.position)
            elif self._options.once:
                return
            position = version

    async def _ask(self, since: str | None) -> Page | Gone:
        asked = {"limit": str(self._options.limit)}
        if since is not None:
            asked |= {"since": since, "wait": "0" if self._options.once else str(_WAIT)}
        headers = {"Accept": "application/json"}
        if self._options.token_file is not None:  # read each time: it may be replaced
            headers["Authorization"] = f"Bearer {self._options.token_file.read_text().strip()}"
        async with self._session.get(
            f"{self._source}/changes", params=asked, headers=headers, allow_redirects=False
        ) as answer:
            body = await answer.read()
            if answer.status == 200:
                return Page.model_validate_json(body)
            if answer.status == 410:
                return Gone.model_validate_json(body)
            why = f"the server answers {answer.status}: {shown(body)}"
            # The file of the token may be replaced.
            if answer.status in _AGAIN or (answer.status == 401 and "Authorization" in headers):
                raise TryAgain(why, retry_after(answer))
            raise Refused(why)

    async def _send(self, event: dict[str, Any]) -> None:
        body = json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
        headers = {"Content-Type": "application/cloudevents+json; charset=utf-8"}
        # A redirect would make a GET of it, which loses the event.
        async with self._session.post(
            self._options.receiver, data=body, headers=headers, allow_redirects=False
        ) as answer:
            said = await answer.content.read(_SMALL)
            if not 200 <= answer.status < 300:
                raise TryAgain(f"the receiver answers {answer.status}: {shown(said)}", retry_after(answer))

    async def _patiently(self, attempt: Callable[[A], Awaitable[R]], argument: A) -> R:
        """Until it succeeds: nothing is left out, whatever the receiver says of it."""
        pause = _FIRST_PAUSE
        while True:
            try:
                return await attempt(argument)
            except aiohttp.InvalidURL:
                raise
            except (TryAgain, aiohttp.ClientError, TimeoutError, ValidationError) as failure:
                wait = max(pause, getattr(failure, "after", 0)) * random.uniform(1, 1.5)
                wait = min(wait, self._options.longest_pause)
                why = shown(str(failure).encode()) or type(failure).__name__
                print(f"again in {wait:.1f} s: {why}", file=sys.stderr, flush=True)
                await asyncio.sleep(wait)
                pause *= 2

    def _events(self, version: str, changes: list[Change]) -> Iterator[dict[str, Any]]:
        catalogue = version.partition(":")[0]
        for change in changes:
            # With its time, since the versions of a restored catalogue come again with other changes.
            parts = (catalogue, change.version, change.operation, change.topic_id, change.time)
            yield self._event(
                ":".join(map(str, parts)),
                f"broker-core.topic.{change.operation}",
                change.model_dump(),
                subject=change.topic,
                time=change.time,
            )

    def _resync(self, since: str | None, version: str, why: str) -> dict[str, Any]:
        data = {"namespace": self._options.namespace, "since": since, "version": version, "reason": why}
        return self._event(f"{version}:resync:{since or ''}", "broker-core.namespace.resync", data)

    def _event(self, id_: str, type_: str, data: dict[str, Any], **more: str) -> dict[str, Any]:
        of_event = {"specversion": "1.0", "id": id_, "source": self._source, "type": type_}
        return of_event | more | {"datacontenttype": "application/json", "data": data}


def shown(body: bytes) -> str:
    """The beginning of an answer, in one line, without what a terminal would obey."""
    text = " ".join(body[:_SMALL].decode(errors="replace").split())
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)


def retry_after(answer: aiohttp.ClientResponse) -> float:
    """The seconds of the header, if it has any."""
    said = answer.headers.get("Retry-After", "")
    return float(said) if said.isascii() and said.isdigit() else 0


def url(text: str) -> str:
    """A URL of HTTP. Raises :exc:`argparse.ArgumentTypeError`."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise argparse.ArgumentTypeError(f"{text!r} is no URL such as http://127.0.0.1:8080")
    return text


def namespace(text: str) -> str:
    """TENANT/NAMESPACE. Raises :exc:`argparse.ArgumentTypeError`."""
    if [bool(part) for part in text.split("/")] != [True, True]:
        raise argparse.ArgumentTypeError(f"{text!r} is not TENANT/NAMESPACE")
    return text


def seconds(text: str) -> float:
    """More than no seconds. Raises :exc:`ValueError`."""
    found = float(text)
    if not 0 < found < float("inf"):
        raise ValueError
    return found


async def follow(options: argparse.Namespace) -> None:
    """Follow with connections of its own."""
    async with aiohttp.ClientSession(timeout=_TIMEOUT) as session:
        await Follower(session, options).run()


class OneLineParser(argparse.ArgumentParser):
    """A parser whose errors are one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        """End with 2."""
        self.exit(2, f"follow_changes: {message}\n")


def main() -> int:
    """The exit code: 1 if it cannot go on at all."""
    parser = OneLineParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server", metavar="SERVER", type=url, help="the URL of [http] of the server")
    parser.add_argument("namespace", metavar="NAMESPACE", type=namespace, help="TENANT/NAMESPACE")
    parser.add_argument("receiver", metavar="RECEIVER", type=url, help="the URL that events are posted to")
    parser.add_argument("--position", metavar="FILE", type=Path, default=Path("position.json"))
    parser.add_argument("--once", action="store_true", help="end when there are no more changes")
    parser.add_argument("--token-file", metavar="FILE", type=Path, help="a file with a token for the server")
    parser.add_argument("--limit", type=int, default=100, help="changes after which the position is saved")
    parser.add_argument("--longest-pause", metavar="SECONDS", type=seconds, default=60.0)
    try:
        asyncio.run(follow(parser.parse_args()))
    except KeyboardInterrupt:
        return 130
    except (Refused, OSError, ValueError, aiohttp.InvalidURL) as error:
        print(f"follow_changes: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
