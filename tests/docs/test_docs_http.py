"""docs/reference/http.md has the operations of the OpenAPI document as they are."""

from __future__ import annotations

from tests.docs.http_reference import MARK, PAGE, openapi, operations_page
from tests.docs.pages import read


def test_the_reference_of_http_is_current() -> None:
    _, mark, operations = read(PAGE).partition(MARK)
    assert mark
    assert operations.strip() == operations_page(openapi()).strip(), "run python -m tests.docs.http_reference"
