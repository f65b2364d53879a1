"""The gateway's own token: read each time, or kept until it expires or is refused."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from broker_core.client import CredentialsFailed
from broker_core.upstream.pulsar.renewed_token import CommandToken, SourceToken
from tests.support.clock import AGES, time_passes
from tests.support.eventually import eventually
from tests.upstream.pulsar.test_token_expiry import token

NOW = 1_000_000.0


async def test_a_file_is_read_each_time(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    own = SourceToken(file.read_bytes)
    assert await own.current() == b"first"
    assert not await own.after_refusal(b"first")
    file.write_text("second\n")
    assert await own.after_refusal(b"first")
    assert await own.current() == b"second"


async def test_a_source_that_fails(tmp_path: Path) -> None:
    file = tmp_path / "token"
    own = SourceToken(file.read_bytes)
    with pytest.raises(CredentialsFailed, match=r"cannot read .*token: No such file"):
        await own.current()
    file.write_text(" \n")
    with pytest.raises(CredentialsFailed, match="it is empty"):
        await own.current()


@pytest.mark.parametrize("text", [b"first\nsecond", b"Bearer first", b"caf\xc3\xa9", b"a\0b"])
async def test_what_is_no_single_token_is_not_sent(tmp_path: Path, text: bytes) -> None:
    file = tmp_path / "token"
    file.write_bytes(text)
    for own in (SourceToken(file.read_bytes), CommandToken(Runs(text))):
        with pytest.raises(CredentialsFailed, match="it is no single token") as failed:
            await own.current()
        assert "first" not in str(failed.value)


async def test_a_place_that_hangs_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, reads = threading.Event(), 0

    def read() -> bytes:
        nonlocal reads
        reads += 1
        go_on.wait(60)
        return b"token"

    own = SourceToken(read)
    try:
        waiting = [asyncio.create_task(own.current()) for _ in range(20)]
        await eventually(lambda: reads == 1)
        time_passes(monkeypatch, AGES + 1)
        failed = await asyncio.gather(*waiting, return_exceptions=True)
        assert {str(each) for each in failed} == {"upstream.token: not read within 3600 s"}
        again = asyncio.create_task(own.current())
        await asyncio.sleep(0)
    finally:
        go_on.set()
    assert await again == b"token"
    assert reads == 1
    assert await own.current() == b"token"
    assert reads == 2


class Runs:
    """A command that gives its answers one after the other."""

    def __init__(self, *answers: bytes | CredentialsFailed) -> None:
        self.answers = list(answers)
        self.count = 0

    async def __call__(self) -> bytes:
        self.count += 1
        await asyncio.sleep(0)
        answer = self.answers.pop(0)
        if isinstance(answer, CredentialsFailed):
            raise answer
        return answer


def at(seconds: list[float]) -> Callable[[], float]:
    return lambda: seconds[0]


async def test_one_run_for_all_that_wait_and_it_is_kept() -> None:
    runs = Runs(b"opaque")
    own = CommandToken(runs)
    assert await asyncio.gather(*(own.current() for _ in range(20))) == [b"opaque"] * 20
    assert await own.current() == b"opaque"
    assert runs.count == 1


async def test_who_gives_up_does_not_end_the_run_of_others() -> None:
    go_on = asyncio.Event()

    async def run() -> bytes:
        await go_on.wait()
        return b"token"

    own = CommandToken(run)
    first, second = (asyncio.create_task(own.current()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    go_on.set()
    assert await second == b"token"


async def test_it_is_run_again_shortly_before_the_end_of_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = token({"exp": NOW + 100}), token({"exp": NOW + 10_000})
    now = [NOW]
    runs = Runs(old, new)
    own = CommandToken(runs, now=at(now))
    assert await own.current() == old
    now[0] = NOW + 69
    assert await own.current() == old
    time_passes(monkeypatch, 70)
    now[0] = NOW + 71
    assert await own.current() == new
    assert runs.count == 2


async def test_a_failed_run_leaves_the_token_in_use_until_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    old = token({"exp": NOW + 100})
    now = [NOW]
    own = CommandToken(Runs(old, CredentialsFailed("no vault"), CredentialsFailed("no vault")), now=at(now))
    assert await own.current() == old
    time_passes(monkeypatch, 80)
    now[0] = NOW + 80
    assert await own.current() == old
    time_passes(monkeypatch, 110)
    now[0] = NOW + 101
    with pytest.raises(CredentialsFailed, match="no vault"):
        await own.current()


async def test_a_refused_token_is_replaced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = Runs(b"first", b"second", b"second")
    own = CommandToken(runs)
    assert await own.current() == b"first"
    assert not await own.after_refusal(b"first"), "no two runs within 5 seconds"
    time_passes(monkeypatch, 6)
    assert await asyncio.gather(*(own.after_refusal(b"first") for _ in range(5))) == [True] * 5
    assert runs.count == 2
    assert await own.after_refusal(b"first"), "it has another one already"
    time_passes(monkeypatch, 6)
    assert not await own.after_refusal(b"second"), "the command gives the same"
    assert runs.count == 3


async def test_a_token_that_is_expired_when_it_comes() -> None:
    own = CommandToken(Runs(token({"exp": NOW - 1})), now=at([NOW]))
    with pytest.raises(CredentialsFailed, match="the token that it gave has expired"):
        await own.current()
