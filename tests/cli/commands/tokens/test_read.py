"""Tokens of Pulsar's tool are shown and validated as it does, and what it refuses badly has one line."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.support.files import file_with
from tests.support.pulsar_tokens import RECORDED
from tests.support.tokens import SECRET, token

SECRET_FORM = f"data:;base64,{RECORDED['secret']['key']}"


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    """A file with a newline at its end, as an editor writes it: Pulsar's tool refuses it."""
    return file_with(tmp_path / "token", RECORDED["secret"]["with_headers"] + "\n")


def test_a_token_is_shown_as_pulsars_tool_shows_it(cli: Cli, token_file: Path) -> None:
    assert cli("tokens", "show", "-f", token_file).out == RECORDED["secret"]["shown"] + "\n"


def test_a_token_is_validated_by_the_key_that_signed_it(cli: Cli, token_file: Path) -> None:
    said = cli("tokens", "validate", "-sk", SECRET_FORM, "-f", token_file)
    assert (said.code, said.out) == (0, RECORDED["secret"]["validated"] + "\n")


@pytest.mark.parametrize("kind", ["rsa", "curve"])
def test_a_public_key_says_which_algorithms_there_may_be(cli: Cli, tmp_path: Path, kind: str) -> None:
    key, file = tmp_path / "public.der", tmp_path / "token"
    key.write_bytes(base64.b64decode(RECORDED[kind]["public"]))
    file.write_text(RECORDED[kind]["token"], encoding="utf-8")
    assert cli("tokens", "validate", "-pk", key, "-f", file).out == "{sub=bob}\n"
    other = "RS512" if kind == "rsa" else "ES256"
    said = cli("tokens", "validate", "-pk", key, "-a", other, "-f", file)
    assert said.code == (1 if kind == "rsa" else 0)


def test_claims_are_printed_as_java_prints_maps(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    claims = {"sub": "a", "n": None, "t": True, "f": False, "l": ["x", 1], "o": {"x": 1.5}}
    monkeypatch.setenv("TOKEN", token(claims, key=SECRET, by="HS256").decode())
    said = cli("tokens", "validate", "-sk", base64.b64encode(SECRET).decode())
    assert said.out == "{sub=a, n=null, t=true, f=false, l=[x, 1], o={x=1.5}}\n"


def test_a_token_comes_by_standard_input_or_is_warned_of(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    text = RECORDED["secret"]["token"]
    said = cli("tokens", "show", text)
    assert said.out == '{"alg":"HS256"}\n---\n{"sub":"bob"}\n'
    assert "every user of this machine can read a token in a command line" in said.err
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode() + b"\r\n")))
    again = cli("tokens", "show", "--stdin")
    assert (again.out, again.err) == (said.out, "")


@pytest.mark.parametrize(
    ("token", "wrong"),
    [
        (RECORDED["secret"]["expired"], "the token is not valid: exp was"),
        (
            RECORDED["secret"]["token"][:-4] + "AAAA",
            "the token is not valid: it is not signed by the key that is given",
        ),
        (
            RECORDED["rsa"]["token"],
            "the token is not valid: it is signed by RS256, which this key does not verify",
        ),
        ("a.b", "it is no token: it has 2 parts"),
    ],
)
def test_what_no_server_lets_in(cli: Cli, monkeypatch: pytest.MonkeyPatch, token: str, wrong: str) -> None:
    monkeypatch.setenv("TOKEN", token)
    said = cli("tokens", "validate", "-sk", SECRET_FORM)
    assert (said.code, said.out) == (1, "")
    assert wrong in said.err


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        (["show"], "there is no token: say --token-file FILE or --stdin, or set the variable TOKEN"),
        (["show", "--token-file", "none"], "--token-file none: no such file or directory"),
        (["show", "a", "-i"], "give the token once"),
        (["show", "a.*.c"], "it is no token: its parts are not Base64url"),
        (["show", "a"], "it is no token: a token has parts with dots between"),
        (["validate", "a.b.c"], "give the key that verifies the token: --secret-key or --public-key"),
        (["validate", "a.b.c", "-pk", RECORDED["rsa"]["private"]], "--public-key: it is a private key"),
        (["validate", "a.b.c", "-sk", RECORDED["rsa"]["public"]], "--secret-key: it is no secret"),
        (["validate", "a.b.c", "-sk", "c2hvcnQ="], "--secret-key: it is a secret of 5 bytes"),
    ],
)
def test_what_is_no_question(cli: Cli, arguments: list[str], wrong: str) -> None:
    said = cli("tokens", *arguments)
    assert (said.code != 0, said.out) == (True, "")
    assert wrong in said.err.splitlines()[-1]


def test_a_terminal_obeys_no_token(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    header, claims = (base64.urlsafe_b64encode(part).decode() for part in (b"{}", b"x\x1b[2J"))
    monkeypatch.setenv("TOKEN", f"{header}.{claims}.x")
    assert cli("tokens", "show").out == "{}\n---\nx\\x1b[2J\n"
