"""Files of keys are private and never overwritten; tokens are those of Pulsar's tool."""

from __future__ import annotations

import base64
import stat
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.support.files import file_with
from tests.support.pulsar_tokens import RECORDED


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def make_pair(cli: Cli, folder: Path, *options: str) -> tuple[Path, Path]:
    private, public = folder / "private.der", folder / "public.der"
    said = cli(
        "tokens", "create-key-pair", *options, "--output-private-key", private, "--output-public-key", public
    )
    assert (said.code, said.out, said.err) == (0, "", "")
    return private, public


def test_a_secret_is_in_a_private_file_that_is_never_overwritten(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "secret.key"
    assert cli("tokens", "create-secret-key", "-o", file).code == 0
    secret = file.read_bytes()
    assert (len(secret), mode_of(file)) == (32, 0o600)
    assert (
        "is there already, and a key is never overwritten"
        in cli("tokens", "create-secret-key", "-o", file).only_error
    )
    assert file.read_bytes() == secret


def test_a_secret_is_printed_as_base64(cli: Cli) -> None:
    assert (
        len(base64.b64decode(cli("tokens", "create-secret-key", "-b", "-a", "HS512").out, validate=True))
        == 64
    )
    assert "RS256 signs by a key pair" in cli("tokens", "create-secret-key", "-a", "RS256").only_error


def test_of_a_pair_the_private_key_alone_is_private(cli: Cli, tmp_path: Path) -> None:
    private, public = make_pair(cli, tmp_path, "-a", "ES256")
    assert mode_of(private) == 0o600
    assert mode_of(public) & 0o077 != 0


def test_none_of_a_pair_is_written_if_one_is_there(cli: Cli, tmp_path: Path) -> None:
    private, public = tmp_path / "private.der", tmp_path / "public.der"
    public.write_bytes(b"of another key")
    said = cli("tokens", "create-key-pair", "--output-private-key", private, "--output-public-key", public)
    assert f"{public} is there already" in said.only_error
    assert not private.exists()
    assert public.read_bytes() == b"of another key"


@pytest.mark.parametrize("written", ["file:{}", "file://{}", "{}"])
def test_a_token_by_a_secret_in_a_file(cli: Cli, tmp_path: Path, written: str) -> None:
    file = file_with(tmp_path / "secret.key", base64.b64decode(RECORDED["secret"]["key"]))
    said = cli("tokens", "create", "-s", "bob", "-sk", written.format(file))
    assert (said.out, said.err) == (RECORDED["secret"]["token"] + "\n", "")


@pytest.mark.parametrize("form", ["{}", "data:;base64,{}"])
def test_a_key_in_the_command_line_is_warned_of(cli: Cli, form: str) -> None:
    said = cli("tokens", "create", "-s", "bob", "--secret-key", form.format(RECORDED["secret"]["key"]))
    assert said.out == RECORDED["secret"]["token"] + "\n"
    assert "every user of this machine can read a key in a command line" in said.err


def test_a_token_by_a_private_key_of_the_environment(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGNING_KEY", RECORDED["rsa"]["private"])
    said = cli("tokens", "create", "--subject", "bob", "--private-key", "env:SIGNING_KEY")
    assert said.out == RECORDED["rsa"]["token"] + "\n"


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("1h", 3600), ("3D", 259_200), ("2w", 1_209_600), ("1y", 31_536_000)]
)
def test_the_end_of_a_token(cli: Cli, tmp_path: Path, text: str, seconds: int) -> None:
    private, public = make_pair(cli, tmp_path, "-a", "ES256")
    file = file_with(tmp_path / "token", cli("tokens", "create", "-s", "bob", "-pk", private, "-e", text).out)
    shown = cli("tokens", "validate", "-pk", public, "-f", file).out
    end = int(shown.removeprefix("{sub=bob, exp=").removesuffix("}\n"))
    assert abs(end - time.time() - seconds) < 60


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ([], "give the key that signs the token: --secret-key or --private-key"),
        (["-sk", "a", "-pk", "b"], "--secret-key or --private-key, not both"),
        (["-sk", "no such file"], "--secret-key: it is no file, and no Base64 text of a key"),
        (["-sk", "file:none"], "--secret-key: none: no such file or directory"),
        (["-sk", "file:/dev/null"], "--secret-key: /dev/null is no file"),
        (["-sk", "c2hvcnQ="], "--secret-key: it is a secret of 5 bytes, and HS256 needs at least 32"),
        (["-sk", RECORDED["rsa"]["private"]], "--secret-key: it is no secret, which HS256 needs"),
        (["-pk", "bm9uZQ=="], "--private-key: it is no private key in DER or PEM"),
        (["-sk", "a", "-e", "1x"], "--expiry-time: '1x' is not a duration"),
        (["-sk", "a", "-e", "0"], "--expiry-time: '0' is over at once"),
        (["-sk", "a", "-e", "9999y"], "--expiry-time: it ends after the year 9999"),
        (["-sk", "a", "-s", " "], "--subject ' ': the role must name the client"),
        (["-sk", RECORDED["secret"]["key"], "-hs", "kid"], "--headers 'kid': expected NAME=VALUE"),
        (["-sk", RECORDED["secret"]["key"], "-hs", "alg=none"], "--headers 'alg=none': it is set by itself"),
        (["-sk", RECORDED["secret"]["key"], "-hs", "a=1", "-hs", "a=2"], "--headers: 'a' is given twice"),
        (
            ["-sk", RECORDED["secret"]["key"], "-a", "RS256"],
            "is a secret of 32 bytes, which is not one for RS256",
        ),
    ],
)
def test_what_makes_no_token(cli: Cli, options: list[str], wrong: str) -> None:
    said = cli("tokens", "create", *(["-s", "bob"] if "-s" not in options else []), *options)
    assert (said.code, said.out) == (2, "")
    assert wrong in said.err.splitlines()[-1]
