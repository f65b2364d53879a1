# Functions of the setup scripts: messages, failing, and apt if it may be used.
say() { echo "setup: $*" >&2; }
fail() { say "$*"; exit 1; }
may_use_apt() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }
apt_install() (
  say "installing $* by apt"
  # Tests start servers of their own: Debian must not start those of its packages at their usual ports.
  policy=/usr/sbin/policy-rc.d
  if [ ! -e $policy ]; then
    trap 'rm -f $policy' EXIT
    printf '#!/bin/sh\nexit 101\n' > $policy && chmod +x $policy
  fi
  export DEBIAN_FRONTEND=noninteractive
  { apt-get update -q && apt-get install -q -y --no-install-recommends "$@"; } </dev/null >&2
)
