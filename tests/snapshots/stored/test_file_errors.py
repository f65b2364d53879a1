"""The counts of what became of stored files, and what the log says of an error."""

from __future__ import annotations

import errno

import pytest

from broker_core.snapshots.stored.file_errors import EVENTS, FileCounts, RefusedFile, reason_of


def test_every_event_is_there_from_the_start_and_counted() -> None:
    counts = FileCounts()
    assert counts.read() == dict.fromkeys(EVENTS, 0)
    counts.add("read")
    counts.add("removed", 3)
    assert (counts.read()["read"], counts.read()["removed"]) == (1, 3)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.EROFS, "Read-only file system", ".1234.part"), "Read-only file system"),
        (OSError("the disk is left to others"), "the disk is left to others"),
        (RefusedFile("it is no file"), "it is no file"),
    ],
)
def test_the_log_has_the_words_of_an_error(error: Exception, reason: str) -> None:
    assert reason_of(error) == reason
