"""The output of one command, separated from other output."""

from __future__ import annotations

import sys
import threading
from contextvars import copy_context

import pytest

from broker_core.testing.command_streams import OwnStreams, own_streams


def test_only_the_command_prints_there(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stdin, sys.stdout, sys.stderr
    streams = OwnStreams("one\ntwo\n")
    with own_streams(streams):
        print(input(), list(sys.stdin))
        sys.stdout.buffer.write(b"bytes\n")
        print("wrong", file=sys.stderr)
        others = threading.Thread(target=print, args=("of another thread",))
        others.start()
        others.join()
    print("afterwards")
    assert streams.printed == ("one ['two\\n']\nbytes\n", "wrong\n")
    assert (sys.stdin, sys.stdout, sys.stderr) == before
    assert capsys.readouterr().out == "of another thread\nafterwards\n"


def test_two_at_a_time() -> None:
    before = sys.stdout
    first, second = OwnStreams(""), OwnStreams("")
    both = threading.Barrier(2, timeout=30)

    def say(streams: OwnStreams, text: str) -> None:
        with own_streams(streams):
            both.wait()
            print(text)
            both.wait()

    threads = [
        threading.Thread(target=copy_context().run, args=(say, streams, text))
        for streams, text in ((first, "1"), (second, "2"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (first.printed[0], second.printed[0]) == ("1\n", "2\n")
    assert sys.stdout is before
