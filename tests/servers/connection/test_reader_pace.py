"""The pace of an answer: large pieces for fast readers, small ones for slow readers, and a limit."""

from __future__ import annotations

from broker_core.servers.connection.large_answers import LEAST_PIECE, PIECE, ReaderPace

MB = 1_000_000


def pace(size: int = 65 * MB, min_rate: int = 256 * 1024) -> ReaderPace:
    return ReaderPace(size, 100.0, write_timeout=15.0, min_rate=min_rate)


def test_a_peer_that_reads_quickly_gets_large_pieces() -> None:
    made = pace()
    assert made.piece(100.0) == PIECE  # nothing is known of it yet
    made.wrote(10 * MB)
    assert made.piece(100.1) == PIECE


def test_a_peer_that_reads_slowly_gets_small_ones_and_large_ones_when_it_reads_faster() -> None:
    made = pace()
    made.wrote(MB)
    assert made.piece(102.0) == LEAST_PIECE  # half a megabyte a second
    made.wrote(7 * MB)
    assert LEAST_PIECE < made.piece(102.0) == 80_000 < PIECE


def test_patience_is_for_the_peer_alone() -> None:
    made = pace(size=256 * 1024 * 10)
    assert made.patience == 25
    made.waits(110.0)
    made.goes_on(114.0)
    made.goes_on(119.0)  # it did not wait
    assert made.patience == 21
    made.waits(200.0)
    made.goes_on(300.0)
    assert made.patience == 0


def test_without_a_rate_patience_has_no_end() -> None:
    assert pace(min_rate=0).patience == float("inf")
    assert pace(min_rate=0).stall(200.0) == 15


def test_who_was_faster_than_it_must_be_may_stall_for_longer() -> None:
    made = pace(size=64 * 1024 * 1024)
    assert made.stall(100.0) == 15
    made.wrote(32 * 1024 * 1024)  # into the buffers of the kernels, at once
    assert made.stall(101.0) == 127
    assert made.stall(200.0) == 28
    assert made.stall(400.0) == 15
    made.waits(400.0)
    made.goes_on(670.0)
    assert made.stall(670.0) == 1  # of the time for the whole answer


def test_who_reads_slowly_is_known_after_a_moment() -> None:
    made = pace()
    assert made.slowness(100.5) is None
    assert made.slowness(103.0) == 3.0
    made.wrote(5 * MB)
    assert made.slowness(104.0) is None
    assert made.slowness(106.0) == 6.0
