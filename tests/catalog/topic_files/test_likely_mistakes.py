from __future__ import annotations

import json

import pytest

from broker_core.catalog.catalog_errors import NotNames
from tests.catalog.topic_files.test_topic_file_reader import Dripping, names_of, refused
from tests.support.narrowed import of_type


@pytest.mark.parametrize("space", [*" \t\x0b\x0c\x1c\x1f", "\x85", "\xa0", "\u2003", "\u2029", "\u3000"])
@pytest.mark.parametrize("line", ["{}a", "a{}", "{}"])
def test_white_space_at_an_end_of_a_name_is_refused_with_what_to_do(line: str, space: str) -> None:
    data = ("one\ntw\xa0o\n" + line.format(space) + "\n").encode()
    error = of_type(refused(data), NotNames)
    assert error.line == 3
    assert "which is hardly meant. Such a name is written as JSON" in error.reason
    assert names_of(data, as_names=True) == {"one", "tw\xa0o", line.format(space)}
    assert names_of(json.dumps({"name": line.format(space)}).encode()) == {line.format(space)}


def test_a_tab_anywhere_in_a_name_is_refused() -> None:
    assert "a tab" in refused(b"a\tb\n").reason
    assert refused(b"a\nb\tc").line == 2


@pytest.mark.parametrize("step", [3, 1000])
@pytest.mark.parametrize("line", ['{"name": "b", "partitions": 3}', '{ "name":"b"}', '{"name": b}', '{"'])
def test_json_after_a_plain_name_is_refused(line: str, step: int) -> None:
    data = f"a\n{{b}}\n{line}\n".encode()
    with pytest.raises(NotNames, match="looks like JSON") as raised:
        names_of(Dripping(data, step))  # type: ignore[arg-type]
    assert raised.value.line == 3
    assert names_of(data, as_names=True) == {"a", "{b}", line}
    assert names_of(f"a\npersistent://a/b/{line}".encode()) == {"a", line}


def test_a_carriage_return_in_some_lines_alone_is_refused() -> None:
    error = refused(b"a\nb\r\nc\n")
    assert (error.line, isinstance(error, NotNames)) == (2, True)
    assert names_of(b"a\nb\r\nc\n", as_names=True) == {"a", "b\r", "c"}
    assert names_of(b"a\rb\n") == {"a\rb"}


@pytest.mark.parametrize("step", [3, 1000])
def test_a_file_that_looks_like_another_kind_of_file_is_refused(step: int) -> None:
    arrays = (b'["a", "b"]', b"[a]\nb", b' [{"name": "a"}]', b'  \t [\n"a"]')
    tables = (
        b"name,partitions\norders,3\nsales,1\n",
        b"NAME,partitions\na,1",
        b"Name;Partitions\na;1\nb;2\n",
    )
    for data in (*arrays, *tables, b'"name","partitions"\n"a","1"\n', b"name\tpartitions\na\t1\n"):
        with pytest.raises(NotNames) as raised:
            names_of(Dripping(data, step))  # type: ignore[arg-type]
        assert raised.value.line == 1
        assert "JSON lines" in raised.value.reason or "one object a line" in raised.value.reason
        assert names_of(data, as_names=True) == set(data.decode().split("\n")) - {""}
    assert "array" in refused(b'\n\n[\n"a"]').reason
    assert "as many semicolons" in refused(b"name;a\nb;c").reason
    assert "as many tabs" in refused(b"name\ta\nb\tc").reason
    assert "CSV" in refused(b"name,a").reason
    assert names_of(b'{"name":"a"}\n{2}', as_names=True) == {'{"name":"a"}', "{2}"}
    for names in (
        b"name;a\nb,c",
        b"names,a\nb,c",
        b'"name,a\nb,c',
        b"name,a\nb\n",
        b"name,a\nb,c\nd,e,f",
        b"a,b\nc,d",
        b"a\n[b]",
    ):
        assert names_of(Dripping(names, step)) == set(names.decode().split("\n")) - {""}  # type: ignore[arg-type]
