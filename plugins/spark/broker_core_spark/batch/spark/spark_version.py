"""The versions of Spark that the batch runs on. Others are refused at the start, not by a later failure."""

from __future__ import annotations

import re
from typing import Final

from broker_core_spark.batch.build_errors import SessionFailed

__all__ = ["FIRST", "LAST", "check_spark_version"]

#: The oldest and the newest release. Spark 3.5 has other checks of UTF-8 in SQL, and its Python warns of itself.
FIRST: Final = (4, 0)
LAST: Final = (4, 3)


def check_spark_version(version: str, title: str = "PySpark") -> None:
    """Raise :exc:`SessionFailed` for a version outside 4.0 to 4.3. ``title`` names the program of the version.

    Text after the second number is ignored: managed Sparks add to it.
    """
    found = re.match(r"(\d+)\.(\d+)(?!\d)", version)
    if found is None or not FIRST <= (int(found[1]), int(found[2])) <= LAST:
        first, last = (".".join(map(str, release)) for release in (FIRST, LAST))
        raise SessionFailed(
            f"{title} is {version[:50]}: the batch runs on {first} to {last}. pip install 'pyspark>=4.1,<4.4'"
        )
