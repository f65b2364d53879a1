"""Keys and tokens of `broker-core tokens` and of the real `pulsar tokens`: either reads what the other has made."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from broker_core.cli.command_tree import run
from broker_core.settings import Algorithm
from tests.interop.maven import PeerUnavailable
from tests.interop.pulsar_peer.jars import peer_jars

pytestmark = pytest.mark.interop

Ours = Callable[..., str]


@pytest.fixture
def ours(capfd: pytest.CaptureFixture[str]) -> Ours:
    """What `broker-core tokens` prints."""

    def run_it(*arguments: str | Path) -> str:
        assert run(["tokens", *map(str, arguments)]) == 0
        return capfd.readouterr().out.strip()

    return run_it


@pytest.fixture(scope="module")
def jars() -> Path:
    try:
        return peer_jars()
    except PeerUnavailable as error:
        pytest.skip(str(error))


def pulsar_tokens(jars: Path, *arguments: str | Path) -> str:
    command = [
        "java",
        "-cp",
        f"{jars}/*",
        "org.apache.pulsar.utils.auth.tokens.TokensCliUtils",
        *map(str, arguments),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("ours_makes", [True, False])
def test_secrets(jars: Path, ours: Ours, tmp_path: Path, ours_makes: bool) -> None:
    secret, file = tmp_path / "secret", tmp_path / "token"
    if ours_makes:
        ours("create-secret-key", "-o", secret)
    else:
        pulsar_tokens(jars, "create-secret-key", "-o", secret)
    theirs = pulsar_tokens(jars, "create", "-s", "bob", "-sk", secret)
    assert ours("create", "-s", "bob", "-sk", secret) == theirs
    file.write_text(theirs + "\n", encoding="utf-8")
    assert ours("validate", "-sk", secret, "-f", file) == "{sub=bob}"
    assert pulsar_tokens(jars, "validate", "-sk", secret, theirs) == "{sub=bob}"


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "ES384"])
@pytest.mark.parametrize("ours_makes", [True, False])
def test_key_pairs(
    jars: Path,
    ours: Ours,
    tmp_path: Path,
    algorithm: Algorithm,
    ours_makes: bool,
) -> None:
    private, public, file = tmp_path / "private", tmp_path / "public", tmp_path / "token"
    making = (
        "create-key-pair",
        "-a",
        algorithm,
        "--output-private-key",
        private,
        "--output-public-key",
        public,
    )
    if ours_makes:
        ours(*making)
    else:
        pulsar_tokens(jars, *making)
    token = ours("create", "-s", "bob", "-pk", private, "-hs", "kid=k", "-e", "1h")
    shown = pulsar_tokens(jars, "validate", "-a", algorithm, "-pk", public, token)
    assert shown.startswith("{sub=bob, exp=")
    file.write_text(
        pulsar_tokens(jars, "create", "-a", algorithm, "-s", "bob", "-pk", private), encoding="utf-8"
    )
    assert ours("validate", "-pk", public, "-f", file) == "{sub=bob}"
