"""Eighty mistakes at the command line: each is told in one line that names it, and nothing is printed or made.

A row is what is typed, and words of the line. ``c.sqlite`` is a catalogue with two topics of ``a/b``, ``t.toml``
settings that name it, ``names.txt`` a file of names.
"""

from __future__ import annotations

import io
import shlex
from pathlib import Path

import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.names import TopicName
from tests.cli.conftest import Cli
from tests.support.ports import free_port

MISTAKES = """
nope                                                            | nope
-x                                                              | -x
config --config absent.toml                                | absent.toml
config --config .                                          | .
config --config bad.toml                                   | bad.toml
config --config typo.toml                                  | catalogue
config --config wrong.toml                                 | pulsar.listen
topics nope                                                     | nope
topics create                                                   | TOPIC
topics create orders --catalog c.sqlite                         | orders
topics create persistent://a/b/ --catalog c.sqlite              | local name is empty
topics create x://a/b/c --catalog c.sqlite                      | Invalid topic domain 'x'
topics create a/b x --partitions -1 --catalog c.sqlite          | --partitions
topics create a/b x --partitions two --catalog c.sqlite         | --partitions
topics create a/b x --partitions 99999999999 --catalog c.sqlite | 99999999999
topics create a/b x --property k --catalog c.sqlite             | KEY=VALUE
topics create a/b orders --catalog c.sqlite                     | orders
topics create a/b x --catalog absent/c.sqlite                   | absent
topics create a/b x --catalog .                                 | folder
topics create a/b x --catalog names.txt                         | names.txt
topics show --catalog absent.sqlite                             | absent.sqlite
topics describe persistent://a/b/absent --catalog c.sqlite      | absent
topics describe a/b --catalog c.sqlite                          | a/b
topics delete --catalog c.sqlite                                | name the topics
topics delete persistent://a/b/absent --catalog c.sqlite        | absent
topics delete a/b --pattern orders.* --catalog c.sqlite         | a/b/orders.*
topics delete a/b --pattern ( --catalog c.sqlite                | (
topics delete a/b --pattern x --file names.txt --catalog c.sqlite | which one counts
topics delete a/b --file absent.txt --catalog c.sqlite          | absent.txt
topics delete --id nope --catalog c.sqlite                      | nope
topics delete --id pLW3lPqvQYyE8maO_j3eRw --catalog c.sqlite    | pLW3lPqvQYyE8maO_j3eRw
topics delete persistent://a/b/orders --max-deletions 1 --catalog c.sqlite | limits
topics set-properties a/b orders --catalog c.sqlite             | No property is given
topics set-properties a/b orders k --catalog c.sqlite           | KEY=VALUE
topics set-properties a/b k=v --pattern orders --catalog c.sqlite | a/b/orders
topics set-properties a/b absent k=v --catalog c.sqlite         | absent
topics import                                                   | NAMESPACE
topics import a/b absent.txt --catalog c.sqlite                 | absent.txt
topics import a names.txt --catalog c.sqlite                    | 'a'
topics import a/b array.json --catalog c.sqlite                 | JSON
topics import a/b table.csv --catalog c.sqlite                  | CSV
topics import a/b broken.jsonl --catalog c.sqlite               | line 1
topics import a/b blanks.txt --catalog c.sqlite                 | white space
topics export a --catalog c.sqlite                              | 'a'
topics export a/b absent/x --catalog c.sqlite                   | absent/x
topics export a/b --format xml --catalog c.sqlite               | xml
list                                                            | NAMESPACE
list a                                                          | 'a'
list a/b/c/d                                                    | a/b/c/d
list a/b --mode none --url pulsar://127.0.0.1:PORT              | none
list a/b --property k --url pulsar://127.0.0.1:PORT             | KEY=VALUE
list a/b --url 127.0.0.1:PORT                                   | 127.0.0.1:PORT
list a/b --url ftp://127.0.0.1                                  | ftp
list a/b --url pulsar://                                        | pulsar://
list a/b --url pulsar://127.0.0.1:99999                         | 99999
list a/b --url pulsar://127.0.0.1:PORT                          | 127.0.0.1:PORT
list a/b --url http://127.0.0.1:PORT                            | 127.0.0.1:PORT
list a/b --url pulsar+ssl://127.0.0.1:PORT --ca absent.pem      | absent.pem
list a/b --url pulsar://127.0.0.1:PORT --ca names.txt           | TLS
list a/b --url pulsar://127.0.0.1:PORT --token-file absent.jwt  | absent.jwt
list a/b --format xml --url pulsar://127.0.0.1:PORT             | xml
list a/b --timeout 0 --url pulsar://127.0.0.1:PORT              | --timeout
list a/b --watch --format json --url pulsar://127.0.0.1:PORT    | --watch
explain a --config t.toml                                       | 'a'
explain a/b --pattern ( --config t.toml                         | (
explain a/b --want colour --config t.toml                       | colour
explain a/b --limit 0 --config t.toml                           | --limit
explain a/b --catalog absent.sqlite --config t.toml             | absent.sqlite
kafka topics list --bootstrap 127.0.0.1:PORT             | 127.0.0.1:PORT
kafka topics list --bootstrap nowhere                    | nowhere
kafka users add alice --catalog c.sqlite                        | --password-stdin
kafka users add alice --password-stdin --catalog c.sqlite       | 8 characters
kafka users add alice --mechanism MD5 --password-stdin --catalog c.sqlite | MD5
kafka users remove nobody --catalog c.sqlite                    | nobody
plugins new Bad-Name!                                           | Bad-Name!
plugins nope                                                    | nope
config --config mode.toml                                  | catalog.mode
serve --config wrong.toml                                       | pulsar.listen
serve --config plugins.toml                                     | absent
serve --config folder.toml                                      | absent
tokens create --secret-key absent.key --subject x               | --secret-key
tokens show --token-file absent.jwt                             | absent.jwt
tokens validate --secret-key absent.key --token-file absent.jwt | --secret-key
shrink-guard accept a --config t.toml                           | 'a'
config nope                                                     | nope
demo --nope                                                     | --nope
"""
ROWS = [tuple(part.strip() for part in line.split(" | ")) for line in MISTAKES.strip().splitlines()]
FILES = {
    "names.txt": "orders\n",
    "array.json": '["orders", "bills"]\n',
    "table.csv": "name,partitions\norders,3\n",
    "broken.jsonl": '{"name": \n',
    "blanks.txt": "orders \n",
    "bad.toml": "[pulsar\n",
    "typo.toml": "[catalogue]\npath = 'x'\n",
    "wrong.toml": "[pulsar]\nlisten = 'here'\n",
    "mode.toml": "[catalog]\nmode = '0999'\n",
    "plugins.toml": "[plugins]\nenabled = ['absent']\n",
    "folder.toml": "[pulsar]\nlisten = '127.0.0.1:0'\n[catalog]\npath = 'absent/c.sqlite'\n",
    "t.toml": "[catalog]\npath = 'c.sqlite'\n",
}


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    with SqliteCatalog(tmp_path / "c.sqlite") as catalog:
        for topic in ("orders", "bills"):
            catalog.create(TopicName.parse(f"persistent://a/b/{topic}"))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"short\n")))


def test_there_are_eighty() -> None:
    assert len({typed for typed, _ in ROWS}) == len(ROWS) >= 80


@pytest.mark.parametrize(("typed", "words"), ROWS, ids=[typed for typed, _ in ROWS])
def test_one_line_says_what_is_wrong(cli: Cli, tmp_path: Path, typed: str, words: str) -> None:
    port = str(free_port())
    before = sorted(tmp_path.iterdir())
    said = cli(*shlex.split(typed.replace("PORT", port).replace("--pattern (", "--pattern '('")))
    line = said.only_error
    assert words.replace("PORT", port) in line
    assert "Traceback" not in line
    assert "internal error" not in line
    assert len(line) < 600
    assert said.code in (1, 2)
    assert sorted(tmp_path.iterdir()) == before
