#!/usr/bin/env bash
# Installs what tests need besides .venv: PySpark and the other libraries of requirements/batch.txt (by hash), the programs
# of a PostgreSQL server, pgbouncer, a JRE 17 or 21, Chromium, Firefox and nginx. As root on Debian it installs missing programs by apt;
# otherwise it says what to install. Run by `make test`; safe to run again.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

if ! .venv/bin/python -m tests.support.machine postgres; then
  may_use_apt || fail "no PostgreSQL server (14 or later) found: install it (Debian: apt install postgresql)"
  # The tests start servers of their own, so Debian must not start one on the usual port.
  no_cluster=/etc/postgresql-common/createcluster.d/broker-core-tests.conf
  mkdir -p "$(dirname $no_cluster)"
  echo "create_main_cluster = false" > $no_cluster
  apt_install postgresql || { rm -f $no_cluster; fail "apt brought no PostgreSQL: install it by hand"; }
  rm -f $no_cluster
fi
if ! PATH="$PATH:/usr/sbin" command -v pgbouncer >/dev/null; then
  # Only a few tests need it; without it they are skipped with a message.
  if may_use_apt && apt_install pgbouncer; then say "pgbouncer is installed"; else say "no pgbouncer: its tests are skipped"; fi
fi
if ! .venv/bin/python -m tests.support.machine java; then
  may_use_apt || fail "no Java 17 or 21 found: install one (Debian: apt install openjdk-17-jre-headless) or set JAVA_HOME"
  apt_install openjdk-17-jre-headless || apt_install openjdk-21-jre-headless
fi
if [ -z "${CHROMIUM:-}" ] && ! command -v chromium-headless-shell >/dev/null && may_use_apt; then
  # Chromium without its windows: another one does as well, and takes three times as long to open a page.
  apt_install chromium-headless-shell || .venv/bin/python -m tests.support.machine chromium || apt_install chromium || true
fi
.venv/bin/python -m tests.support.machine chromium || say "no Chromium: the tests of the explorer's page are skipped"
if ! .venv/bin/python -m tests.support.machine firefox >/dev/null; then
  # 80 MB, for one walk over the page in an engine of its own.
  if may_use_apt && apt_install firefox-esr; then say "Firefox is installed"; else say "no Firefox: the page is tested in Chromium alone"; fi
fi
if ! .venv/bin/python -m tests.support.machine nginx >/dev/null; then
  if may_use_apt && apt_install nginx-light; then say "nginx is installed"; else say "no nginx: the page is not tested behind a proxy"; fi
fi
[ -w "${HOME:-/nonexistent}" ] || export UV_NO_CACHE=1
export VIRTUAL_ENV="$PWD/.venv"
say "installing PySpark, Playwright and what else tests need (about a minute the first time)"
# PySpark is a source distribution: built with the locked setuptools, so nothing unlocked is fetched. Its wheel is unpacked
# at once: compressing it took most of the installation.
.venv/bin/uv pip install --quiet --no-build-isolation --config-settings-package "pyspark:--build-option=--compression=stored" \
  --require-hashes -r requirements/batch.txt
say "storing the classes of Spark, so that the JVMs of tests start quickly, and compiling the tests beside that"
.venv/bin/pytest --collect-only -q >/dev/null &
.venv/bin/python -m tests.support.quick_java
wait $! || true # what cannot be collected is said by `make test`
say "done: everything that tests need"
