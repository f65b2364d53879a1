"""The memory of an answer is used again for the next, whichever thread makes it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from broker_core.memory.allocator import keep_freed_memory

#: Three pieces of a MiB are taken and freed, as for an answer; how many pages the system gave for the last of them, and
#: for those of another thread.
_PROGRAM = """
import resource
from threading import Thread
from broker_core.memory.allocator import keep_freed_memory
{begin}
def pages():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    pieces = [bytearray(b"x") * (1 << 20) for _ in range(3)]
    del pieces
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
counts = [pages() for _ in range(5)]
thread = Thread(target=lambda: counts.append(pages()))
thread.start()
thread.join()
print(*counts[-2:])
"""


def _pages(begin: str) -> list[int]:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(begin=begin)], capture_output=True, text=True, check=True
    )
    return [int(count) for count in done.stdout.split()]


def test_the_system_does_not_give_the_same_pages_again_and_again() -> None:
    if not keep_freed_memory({}):
        pytest.skip("the C library has no choice of it")
    assert max(_pages("keep_freed_memory({})")) < 50 < min(_pages(""))


@pytest.mark.parametrize(
    "name", ["MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_ARENA_MAX", "GLIBC_TUNABLES"]
)
def test_what_the_operator_chose_stays(name: str) -> None:
    assert not keep_freed_memory({name: "1"})
