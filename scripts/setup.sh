#!/usr/bin/env bash
# Creates .venv from the lock: python3 -m venv, uv inside it, everything of requirements/dev.txt (by hash), and the
# distributions of this repository editable. Run by `make setup`; safe to run again.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/common.sh

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }
# On Debian and Ubuntu, venv's ensurepip is in a separate package.
has_venv() { "$1" -c 'import ensurepip, venv' 2>/dev/null; }

find_python() {
  local candidate
  for candidate in "${PYTHON:-python3}" python3 python3.13 python3.12 python3.11; do
    if new_enough "$candidate"; then command -v "$candidate"; return; fi
  done
  return 1
}

say "making .venv from requirements/ (about half a minute the first time)"
if ! .venv/bin/python -c '' 2>/dev/null; then
  if ! python=$(find_python); then
    may_use_apt || fail "no Python 3.11 or later found: install it, or name one: make setup PYTHON=/path/to/python3"
    apt_install python3 python3-venv
    python=$(find_python) || fail "apt brought no Python 3.11 or later: name one: make setup PYTHON=/path/to/python3"
  fi
  if ! has_venv "$python"; then
    version=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    if may_use_apt; then apt_install "$version" || apt_install python3-venv; fi
    has_venv "$python" || fail "$python has no ensurepip: install the package $version (apt install $version), then run make again"
  fi
  "$python" -m venv --clear .venv
fi

uv=.venv/bin/uv
if [ ! -x $uv ] || ! grep -q "^uv==$($uv --version | cut -d' ' -f2) " requirements/uv.txt; then
  .venv/bin/python -m pip --version >/dev/null 2>&1 || .venv/bin/python -m ensurepip >/dev/null
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt
fi

[ -w "${HOME:-/nonexistent}" ] || export UV_NO_CACHE=1
export VIRTUAL_ENV="$PWD/.venv"
$uv pip install --quiet --require-hashes -r requirements/dev.txt
# Without build isolation: the build backend is in the lock too, so nothing unlocked is fetched.
$uv pip install --quiet --no-deps --no-build-isolation --editable . --editable plugins/explorer --editable plugins/postgres --editable plugins/spark
say "done: .venv/bin/broker-core"
