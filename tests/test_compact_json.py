"""Tests of the JSON that the product writes, and that one module decides what it looks like."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import broker_core
from broker_core.compact_json import ascii_json, compact_json, json_encoder, read_json
from tests.support.one_test import in_one_test

_SOURCES = Path(broker_core.__file__).parent
#: What would write JSON in another way.
_OTHERS = {"json.dumps", "json.dump", "json.JSONEncoder", "web.json_response"}
#: The beginning of bytes or of an f-string.
_PREFIXED = re.compile(r"""\b(?:[rR]?[bBfF]|[bBfF][rR])["']""")


def _encoders(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield f"{node.value.id}.{node.attr}"


def _wide_texts(tree: ast.AST) -> Iterator[str]:
    """Texts of JSON made by hand with white space in them; what is shown to people as an example is no such text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
            if '": ' in text and not text[:1].isalpha():
                yield text
        elif isinstance(node, ast.Constant) and isinstance(node.value, bytes) and b'": ' in node.value:
            yield node.value.decode()


def test_json_is_one_compact_line() -> None:
    assert compact_json({"a": [1, "é\n"], "b": None}) == '{"a":[1,"é\\n"],"b":null}'
    assert ascii_json({"a": ["é", "\udcff"]}) == '{"a":["\\u00e9","\\udcff"]}'
    assert json_encoder(ascii_only=True, default=str)({"path": Path("x")}) == '{"path":"x"}'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a":1,"b":{"c":1,"c":2}}', "the key 'c' is there twice"),
        ("[NaN]", "NaN is no number of JSON"),
        ("[-Infinity]", "-Infinity is no number of JSON"),
        ("[1.5, -1e999]", "the number -1e999 is too large"),
    ],
)
def test_json_of_others_has_each_key_once_and_finite_numbers(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_json(text)


@in_one_test("path", sorted(_SOURCES.rglob("*.py")))
def test_no_other_module_decides_it(path: Path) -> None:
    text = path.read_text()
    if path.name != "compact_json.py" and any(other in text for other in _OTHERS):
        assert _OTHERS.isdisjoint(_encoders(ast.parse(text)))
    if '": ' in text and _PREFIXED.search(text):  # of most files the tree would be made for nothing
        assert not list(_wide_texts(ast.parse(text)))
