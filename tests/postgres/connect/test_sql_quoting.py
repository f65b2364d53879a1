"""Quoting for SQL: PostgreSQL reads back the text that was quoted."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core_postgres.connect.sql_quoting import quote_identifier, quote_literal


@pytest.mark.parametrize("text", ["", "plain", "it's", 'a "quoted" one', "back\\slash", "new\nline", "é"])
async def test_a_literal_is_the_text(connection: Any, text: str) -> None:
    assert await connection.fetchval(f"SELECT {quote_literal(text)}") == text


@pytest.mark.parametrize("name", ["plain", "Upper", 'a "quoted" one', "dot.dot", "é"])
async def test_an_identifier_is_the_name(connection: Any, name: str) -> None:
    row = await connection.fetchrow(f"SELECT 1 AS {quote_identifier(name)}")
    assert list(row.keys()) == [name]
