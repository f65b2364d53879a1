from __future__ import annotations

from typing import Any

from broker_core_postgres.fill.copy_text import escape_names


async def test_names_come_back_as_they_were(connection: Any) -> None:
    names = ["plain", "\\N", "\\.", "a\tb", "a\nb", "a\r", "\\", "é😀"]
    await connection.execute("CREATE TEMPORARY TABLE copied (name text)")

    async def rows() -> Any:
        yield "".join(f"{name}\n" for name in escape_names(names)).encode()

    await connection.copy_to_table("copied", source=rows(), format="text")
    assert [name for (name,) in await connection.fetch("SELECT name FROM copied")] == names
    assert escape_names(["x", "y"]) == ["x", "y"]
