"""A hundred and sixty mistakes at the command line: each is reported in one line that names it, and nothing is made.

A row is what is typed, and words of the line. ``c.sqlite`` is a catalogue with two topics of ``a/b``, ``t.toml``
settings that name it, ``names.txt`` a file of names. ``SERVER`` runs with tokens, for `list` of ``a/*`` by ``team``.
"""

from __future__ import annotations

import io
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.support.catalogue_topics import create_topics
from tests.support.forked_programs import forked_program
from tests.support.narrowed import present
from tests.support.ports import free_port
from tests.support.tokens import SECRET, token

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
topics show a --catalog c.sqlite                                | 'a' is no namespace (tenant/namespace) and no full
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
topics import a/b mixed.txt --catalog c.sqlite                  | line 2: the line looks like JSON
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
list a/b --url pulsar://127.0.0.1:PORT                          | : Connection refused; is the server running?
list a/b --url http://127.0.0.1:PORT                            | : Connection refused; is the server running?
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
kafka topics list --bootstrap-server nowhere             | nowhere
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
--config t.toml serve                                           | `broker-core serve --config FILE`
serve t.toml                                                    | settings are given by --config FILE
serve now                                                       | `broker-core serve --help`
start                                                           | `broker-core --help` shows all
topics list a/b                                                 | `broker-core topics --help` shows all
list persistent://a/b                                           | tenant/namespace
list a/b --url http://127.0.0.1:PORT/admin/v2                   | a service URL has no path
list a/b --url kafka://127.0.0.1:PORT                           | https://host:port
list a/b --url pulsar://127.0.0.1:PORT --token-file names.der   | there is no token in it
list a/b --url pulsar+ssl://127.0.0.1:PORT --ca names.txt       | no certificate in PEM form
list a/* --url pulsar://127.0.0.1:PORT                          | the namespace '*'
list a/b --detail colour --url http://127.0.0.1:PORT            | partitions, topic_id, properties
topics create a/b x/y --catalog c.sqlite                        | x/y
topics create a/b orders-partition-0 --partitions 3 --catalog c.sqlite | the name of a partition
topics import a/b header.txt --catalog c.sqlite                 | CSV
topics import a/b . --catalog c.sqlite                          | Is a directory
topics import a/b c.sqlite --catalog c.sqlite                   | not valid UTF-8
topics set-properties a/b k=v --pattern ^^orders --catalog c.sqlite | such as 'a/b/orders'
topics delete a/b --pattern a/b/(?=x) --catalog c.sqlite        | Unsupported topics pattern
kafka topics create x --config retention.ms=1 --bootstrap 127.0.0.1:PORT | --config-entry is KEY=VALUE
kafka acls add a/b --allow-principal carol --topic x --catalog c.sqlite | write User:NAME
kafka acls add a/b --allow-principal User:c --operation Fly --topic x --catalog c.sqlite | Describe
kafka acls remove a/b --allow-principal User:c --topic x --catalog c.sqlite | There is no binding
kafka cluster describe --bootstrap pulsar://127.0.0.1:PORT      | HOST:PORT
tokens create --secret-key private.pem --subject x              | it is no secret
tokens create --secret-key names.txt --subject x                | needs at least 32
tokens create --secret-key absent --subject x --expiry-time 3z  | '2w', '1y'
tokens validate --secret-key long.key --token-file names.der    | not ASCII
reload --config t.toml                                          | admin.socket
reload --config socket.toml                                     | cannot connect to /
clients --broker pulsar://127.0.0.1:PORT                        | http://HOST:PORT
top --once --broker http://127.0.0.1:PORT                       | is the server running?
serve --config t.toml --pulsar 6650                             | HOST:PORT
serve --config rule.toml                                        | 'acme/*'
serve --config action.toml                                      | 'list', 'lookup', 'monitor', 'admin'
serve --config rules.toml                                       | it is a table
serve --config private.toml                                     | it is a private key
serve --config short.toml                                       | needs at least 32
serve --config tls.toml                                         | no certificate in PEM
explain a/b --role '' --config t.toml                           | the role is empty
tokens create-key-pair --output-private-key k --output-public-key ./k | --output-public-key
tokens create --subject x                                       | --secret-key or --private-key
tokens create-secret-key --output t.toml                        | never overwritten
topics import a/b key.jsonl --catalog c.sqlite                  | did you mean "partitions"
topics import a/b slash.txt --catalog c.sqlite                  | line 1
topics describe --id AAAAAAAAAAAAAAAAAAAAAA --catalog c.sqlite  | AAAAAAAAAAAAAAAAAAAAAA
list a/b --config free.toml                                     | the line `ready`
clients disconnect --config t.toml                              | say which clients
kafka acls add a/b --catalog c.sqlite                           | no principal is named
kafka topics list --user cat --bootstrap 127.0.0.1:PORT         | --password-file
plugins new 9lives                                              | a letter first
serve --config twice.toml                                       | twice
serve --config bool.toml                                        | valid boolean
serve --config effect.toml                                      | 'allow' or 'deny'
serve --config monitor.toml                                     | without topics
serve --config user.toml                                        | 'User:NAME'
serve --config network.toml                                     | 10.0.0.0/33
serve --config config.toml                                      | retention.minutes
serve --config both.toml                                        | leave one of them out
list a/b --url pulsar://SERVER                                  | --token-file FILE
list a/b --url http://HTTP                                      | --token-file FILE
list a/b --url pulsar://HTTP                                    | its URL is http://
list a/b --url pulsar://KAFKA                                   | another protocol (Kafka?)
list a/b --url http://SERVER                                    | closed the connection without an answer
list a/b --url pulsar+ssl://HTTP                                | speaks no TLS
list a/b --url pulsar://SERVER --token-file guest.token         | no right to list in namespace a/b
list b/c --url http://HTTP --token-file team.token              | no right to list in namespace b/c
list a/b --url pulsar://SERVER --token-file other.token         | the log of the server says why
list a/b --url http://HTTP --pattern ( --token-file team.token  | (
kafka topics list --bootstrap HTTP                              | name the port of its Kafka listener
kafka topics list --bootstrap SERVER                            | the port of its Kafka listener, where this is
kafka topics list --bootstrap pulsar://SERVER                   | those of Kafka listeners and without a scheme
kafka topics list --bootstrap KAFKA                             | give --user or --token-file
kafka topics list --bootstrap KAFKA --token-file other.token    | the log of the server says why
kafka topics create x --bootstrap KAFKA --token-file team.token | no right to admin
clients --broker http://HTTP --token-file team.token            | no right to monitor
"""
ROWS = [tuple(part.strip() for part in line.split(" | ")) for line in MISTAKES.strip().splitlines()]
TOKENS = "[authentication]\nmethods = ['token']\n[authentication.token]\n"
RULE = "[[authorization.rules]]\nroles = ['a']\nnamespaces = ['a/*']\n"
#: Without a rule the log warns that everything is denied.
ALLOWED = RULE + "actions = ['list']\n"
CATALOG = "[catalog]\npath = 'c.sqlite'\n"
FILES = {
    "names.txt": "orders\n",
    "array.json": '["orders", "bills"]\n',
    "table.csv": "name,partitions\norders,3\n",
    "broken.jsonl": '{"name": \n',
    "blanks.txt": "orders \n",
    "mixed.txt": 'orders\n{"name": bills}\n{"name": "sales", "partitions": 3}\n',
    "bad.toml": "[pulsar\n",
    "typo.toml": "[catalogue]\npath = 'x'\n",
    "wrong.toml": "[pulsar]\nlisten = 'here'\n",
    "mode.toml": "[catalog]\nmode = '0999'\n",
    "plugins.toml": "pulsar.listen = '127.0.0.1:0'\n[plugins]\nenabled = ['absent']\n",
    "folder.toml": "[pulsar]\nlisten = '127.0.0.1:0'\n[catalog]\npath = 'absent/c.sqlite'\n",
    "t.toml": CATALOG,
    "header.txt": "name,partitions\n",
    "names.der": "\u00e9",
    "long.key": "k" * 32,
    "private.pem": "-----BEGIN PRIVATE KEY-----\nMC4CAQ==\n-----END PRIVATE KEY-----\n",
    "socket.toml": "[admin]\nsocket = 'absent.sock'\n",
    "rule.toml": "[[authorization.rules]]\nroles = ['a']\nnamespaces = ['acme']\nactions = ['list']\n",
    "action.toml": RULE + "actions = ['read']\n",
    "rules.toml": "[authorization]\nrules = ['a']\n",
    "private.toml": TOKENS + "key = 'file:private.pem'\n" + CATALOG + ALLOWED,
    "short.toml": TOKENS + "key = 'file:names.txt'\nalgorithms = ['HS256']\n" + CATALOG + ALLOWED,
    "key.jsonl": '{"name": "puma", "partition": 3}\n',
    "slash.txt": "a/b\n",
    "free.toml": "[pulsar]\nlisten = '127.0.0.1:0'\n",
    "twice.toml": "[pulsar]\n[pulsar]\n",
    "bool.toml": "[http]\nwrites = 'maybe'\n",
    "effect.toml": RULE + "actions = ['list']\neffect = 'forbid'\n",
    "monitor.toml": RULE + "actions = ['monitor']\ntopics = ['x*']\n",
    "user.toml": "[kafka]\nlisten = '127.0.0.1:0'\nsuper_users = ['admin']\n",
    "network.toml": "[pulsar]\nhaproxy_from = ['10.0.0.0/33']\n",
    "config.toml": "pulsar.listen = '127.0.0.1:0'\nkafka.listen = '127.0.0.1:0'\n"
    "kafka.configs = {'retention.minutes' = '4'}\n" + CATALOG,
    "both.toml": "[upstream]\nservice_url = 'pulsar://b:6650'\ntoken = 'x'\ntoken_command = ['y']\n",
    "tls.toml": "[pulsar.tls]\nlisten = '127.0.0.1:0'\ncertificate = 'names.txt'\nkey = 'private.pem'\n"
    + CATALOG,
}


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    create_topics(tmp_path / "c.sqlite", *(f"persistent://a/b/{topic}" for topic in ("orders", "bills")))
    for name, role, key in (
        ("team", "team", SECRET),
        ("guest", "guest", SECRET),
        ("other", "team", SECRET[::-1]),
    ):
        (tmp_path / f"{name}.token").write_bytes(token({"sub": role}, key=key, by="HS256") + b"\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"short\n")))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """The addresses of a server by what a row calls them."""
    folder = tmp_path_factory.mktemp("server")
    (folder / "key").write_bytes(SECRET)
    (folder / "s.toml").write_text(
        "[pulsar]\nlisten = '127.0.0.1:0'\n[http]\nlisten = '127.0.0.1:0'\n[kafka]\nlisten = '127.0.0.1:0'\n"
        "namespace = 'a/b'\n[kafka.sasl]\nmechanisms = ['OAUTHBEARER']\n"
        f"{TOKENS}key = 'file:key'\nalgorithms = ['HS256']\n"
        "[[authorization.rules]]\nroles = ['team']\nnamespaces = ['a/*']\nactions = ['list']\n"
    )
    command = [forked_program("broker-core"), "serve", "--config", "s.toml"]
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            addresses = dict(word.split("=") for word in present(process.stdout).readline().split()[1:])
            yield {"SERVER": addresses["pulsar"], "HTTP": addresses["http"], "KAFKA": addresses["kafka"]}
        finally:
            process.terminate()


def test_there_are_many() -> None:
    assert len({typed for typed, _ in ROWS}) == len(ROWS) >= 150


@pytest.mark.parametrize(("typed", "words"), ROWS, ids=[typed for typed, _ in ROWS])
def test_one_line_says_what_is_wrong(
    cli: Cli, tmp_path: Path, request: pytest.FixtureRequest, typed: str, words: str
) -> None:
    places = {"127.0.0.1:PORT": f"127.0.0.1:{free_port()}"}
    if any(place in typed for place in ("SERVER", "HTTP ", "//HTTP", "KAFKA")) or typed.endswith("HTTP"):
        places |= request.getfixturevalue("server")
    before = sorted(tmp_path.iterdir())
    for place, address in places.items():
        typed, words = typed.replace(place, address), words.replace(place, address)
    said = cli(*shlex.split(typed.replace("(", "'('").replace("'('?=x)", "'(?=x)'")))
    line = said.only_error
    assert words in line
    assert "Traceback" not in line
    assert "internal error" not in line
    assert len(line) < 600
    assert said.code in (1, 2)
    assert sorted(tmp_path.iterdir()) == before
