"""Loop or thread: work that is estimated to take a millisecond at most is done on the event loop.

To hand work to a thread and back costs about as much: the thread and the loop wait for each other's interpreter lock,
and wake each other up, several times. An estimate is made of units, in microseconds of one core (2.3 GHz, Python 3.11),
of which each has its share of what a small number of them costs besides.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "EACH_ACL",
    "EACH_BYTE",
    "EACH_CHANGE",
    "EACH_COMPARED_BYTE",
    "EACH_EVENT",
    "EACH_NAME",
    "EACH_PAGE_BYTE",
    "EACH_ROW",
    "EACH_TOPIC_OF_TABLE",
    "ON_LOOP",
]

#: The most microseconds of work that is done on the event loop.
ON_LOOP: Final = 1024.0
#: A name that is checked, ordered and encoded: 1.9 of 500, 0.5 of 2,000.
EACH_NAME: Final = 2.0
#: A byte of names that is gathered, and hashed: 1.9 for each KiB of 110.
EACH_BYTE: Final = 2 / 1024
#: A byte of names of a page that is read, or copied and hashed: 0.4 to 1.1 for each KiB.
EACH_PAGE_BYTE: Final = 1 / 1024
#: A byte of two versions of names that are compared.
EACH_COMPARED_BYTE: Final = 4 / 1024
#: A short text that is joined to others.
EACH_ROW: Final = 1.0
#: A topic of a table whose columns are looked through: 0.1 of 10,000.
EACH_TOPIC_OF_TABLE: Final = 0.1
#: An access control list that is compared with a filter.
EACH_ACL: Final = 1.0
#: A change of a topic that is written as JSON.
EACH_CHANGE: Final = 50.0
#: A name that is written as an event.
EACH_EVENT: Final = 10.0
