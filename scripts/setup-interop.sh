#!/usr/bin/env bash
# Installs kcat, one of the Kafka clients of `make interop`, as root on Debian by apt. The other clients come from Maven
# Central, npm and PyPI when their tests begin. Run by `make interop`; safe to run again.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

if ! command -v kcat >/dev/null; then
  # Without it one test is skipped with a message.
  if may_use_apt && apt_install kcat; then say "kcat is installed"; else say "no kcat: its test is skipped"; fi
fi
