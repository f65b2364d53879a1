"""One estimate decides for all callers: the units are those that a measurement of small work gives, in any order."""

from __future__ import annotations

from broker_core.concurrency import (
    EACH_BYTE,
    EACH_CHANGE,
    EACH_COMPARED_BYTE,
    EACH_EVENT,
    EACH_NAME,
    EACH_PAGE_BYTE,
    EACH_ROW,
    ON_LOOP,
)


def test_what_is_done_on_the_loop_is_about_a_millisecond() -> None:
    most = {
        "names": ON_LOOP / EACH_NAME,
        "bytes": ON_LOOP / EACH_BYTE,
        "bytes of a page": ON_LOOP / EACH_PAGE_BYTE,
        "compared bytes": ON_LOOP / EACH_COMPARED_BYTE,
        "rows": ON_LOOP / EACH_ROW,
        "changes": ON_LOOP // EACH_CHANGE,
        "events": ON_LOOP // EACH_EVENT,
    }
    assert most == {
        "names": 512,
        "bytes": 512 * 1024,
        "bytes of a page": 1024 * 1024,
        "compared bytes": 256 * 1024,
        "rows": 1024,
        "changes": 20,
        "events": 102,
    }
