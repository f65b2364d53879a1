from __future__ import annotations

import os
import threading
import traceback

from broker_core.logs.captured_prints import CapturedPrints


def test_lines_are_handed_on_without_their_ends() -> None:
    lines: list[str] = []
    text = CapturedPrints(2, lines.append)
    print("one", file=text)
    print("two", "three", sep="\n", end="", file=text, flush=True)
    assert lines == ["one", "two"]
    text.end()
    text.end()
    assert lines == ["one", "two", "three"]


def test_it_is_a_text_stream_of_its_descriptor() -> None:
    text = CapturedPrints(1, lambda _line: None)
    assert text.writable()
    assert not text.readable()
    assert text.fileno() == 1
    assert text.isatty() == os.isatty(1)
    assert text.encoding == "utf-8"
    assert text.write("ö") == 1


def test_a_line_without_an_end_is_bounded() -> None:
    lines: list[str] = []
    text = CapturedPrints(2, lines.append)
    for _ in range(1000):
        text.write("x" * 1000)
    assert sum(map(len, lines)) >= 900_000


def test_threads_do_not_tear_each_others_lines() -> None:
    lines: list[str] = []
    text = CapturedPrints(2, lines.append)

    def say(word: str) -> None:
        for _ in range(2000):
            print(word * 10, word * 9, file=text)

    threads = [threading.Thread(target=say, args=(word,)) for word in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(set(lines)) == [
        "a" * 10 + " " + "a" * 9,
        "b" * 10 + " " + "b" * 9,
        "c" * 10 + " " + "c" * 9,
    ]
    assert len(lines) == 6000


def test_a_traceback_can_be_printed_to_it() -> None:
    lines: list[str] = []
    try:
        raise ValueError("odd")
    except ValueError:
        traceback.print_exc(file=CapturedPrints(2, lines.append))
    assert lines[0].startswith("Traceback")
    assert lines[-1] == "ValueError: odd"
