"""Work in steps gives the same wherever its steps run; sockets of the loop are served between quick ones."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest

from broker_core.concurrency.cpu_threads import Steps, finished, in_turns


def work(kinds: str, done: list[threading.Thread]) -> Steps[str]:
    """A step for each letter behind the first one: `q` for a quick one. Notes the threads of all of them."""
    done.append(threading.current_thread())
    for kind in kinds:
        yield kind == "q"
        done.append(threading.current_thread())
    return kinds.upper()


@pytest.mark.parametrize("kinds", ["", "q", "qq", "x", "qxq"])
def test_all_steps_are_done_at_once(kinds: str) -> None:
    done: list[threading.Thread] = []
    assert finished(work(kinds, done)) == kinds.upper()
    assert done == [threading.current_thread()] * (len(kinds) + 1)


@pytest.mark.parametrize(("kinds", "here"), [("", 1), ("q", 2), ("qqq", 4), ("x", 1), ("qxqq", 2)])
async def test_from_the_first_step_that_is_not_quick_on_they_are_done_in_a_thread(
    kinds: str, here: int
) -> None:
    done: list[threading.Thread] = []
    assert await in_turns(work(kinds, done), "a") == kinds.upper()
    assert len(done) == len(kinds) + 1
    assert done[:here] == [threading.current_thread()] * here
    assert all(thread is not threading.current_thread() for thread in done[here:])


async def test_what_a_socket_has_during_a_step_is_served_before_the_next_one() -> None:
    order: list[str] = []
    near, far = socket.socketpair()
    near.setblocking(False)

    def serve() -> None:
        order.append(near.recv(1).decode())

    def steps() -> Steps[None]:
        for number in range(3):
            far.send(b"abc"[number : number + 1])
            order.append(str(number))
            yield True
        order.append("end")

    asyncio.get_running_loop().add_reader(near, serve)
    try:
        await in_turns(steps(), "a")
    finally:
        asyncio.get_running_loop().remove_reader(near)
        near.close()
        far.close()
    assert order == ["0", "a", "1", "b", "2", "c", "end"]


@pytest.mark.parametrize("kinds", ["q", "x"])
async def test_what_a_step_raises_is_raised(kinds: str) -> None:
    def failing() -> Steps[None]:
        yield from work(kinds, [])
        raise LookupError("no such step")

    with pytest.raises(LookupError, match="no such step"):
        await in_turns(failing(), "a")
    with pytest.raises(LookupError, match="no such step"):
        finished(failing())
