"""Keys and tokens of `broker-core tokens` and of the real `pulsar tokens`: either reads what the other has made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from broker_core.cli.command_tree import run
from broker_core.settings import Algorithm
from tests.interop.java_programs import JavaProgram, java_program
from tests.interop.maven import PeerUnavailable
from tests.interop.pulsar_peer.jars import peer_jars

pytestmark = pytest.mark.interop

Ours = Callable[..., str]
Theirs = Callable[..., str]


@pytest.fixture
def ours(capfd: pytest.CaptureFixture[str]) -> Ours:
    """What `broker-core tokens` prints."""

    def run_it(*arguments: str | Path) -> str:
        assert run(["tokens", *map(str, arguments)]) == 0
        return capfd.readouterr().out.strip()

    return run_it


@pytest.fixture(scope="module")
def theirs() -> Iterator[Theirs]:
    """What `pulsar tokens` prints, one command after the other in one JVM."""
    source = Path(__file__).parent / "java" / "PulsarTokens.java"
    try:
        command = java_program(source, peer_jars())
    except PeerUnavailable as error:
        pytest.skip(str(error))
    with JavaProgram.running(command) as program:

        def run_it(*arguments: str | Path) -> str:
            done = program.ask([*map(str, arguments)])
            assert done["exit"] == 0, done
            printed: str = done["out"].strip()
            return printed

        yield run_it


@pytest.mark.parametrize("ours_makes", [True, False])
def test_secrets(ours: Ours, theirs: Theirs, tmp_path: Path, ours_makes: bool) -> None:
    secret, file = tmp_path / "secret", tmp_path / "token"
    if ours_makes:
        ours("create-secret-key", "-o", secret)
    else:
        theirs("create-secret-key", "-o", secret)
    made = theirs("create", "-s", "bob", "-sk", secret)
    assert ours("create", "-s", "bob", "-sk", secret) == made
    file.write_text(made + "\n", encoding="utf-8")
    assert ours("validate", "-sk", secret, "-f", file) == "{sub=bob}"
    assert theirs("validate", "-sk", secret, made) == "{sub=bob}"


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "ES384"])
@pytest.mark.parametrize("ours_makes", [True, False])
def test_key_pairs(
    ours: Ours,
    theirs: Theirs,
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
        theirs(*making)
    token = ours("create", "-s", "bob", "-pk", private, "-hs", "kid=k", "-e", "1h")
    shown = theirs("validate", "-a", algorithm, "-pk", public, token)
    assert shown.startswith("{sub=bob, exp=")
    file.write_text(theirs("create", "-a", algorithm, "-s", "bob", "-pk", private), encoding="utf-8")
    assert ours("validate", "-pk", public, "-f", file) == "{sub=bob}"
