"""A container as Kubernetes runs one, made of this machine by namespaces: no container runtime is needed.

Its root is read-only. It has the programs of this machine and of this Python, a list of users, and the volumes. Its
user has a name, as the image gives it, and no home, and there is nowhere to write but in the volumes.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["can_run_containers", "run_container"]

ROOT = Path(__file__).parent.parent.parent
#: Makes the root in a namespace of mounts of its own, then enters it as the user. $1 root, $2 uid, $3 gid; then pairs
#: of folders and places ("-" ends them), and the command. A place that ends with ! is read-only.
_SCRIPT = r"""
set -eu
root=$1 uid=$2 gid=$3; shift 3
mount -t tmpfs -o mode=755 none "$root"
for folder in usr etc proc dev/shm tmp; do mkdir -p "$root/$folder"; done
for name in bin sbin lib lib32 lib64; do
    if [ -L "/$name" ]; then ln -s "usr/$name" "$root/$name"
    elif [ -d "/$name" ]; then mkdir "$root/$name"; mount --rbind "/$name" "$root/$name"; fi
done
mount --rbind /usr "$root/usr"
mount --rbind /proc "$root/proc"
mount -t tmpfs none "$root/dev/shm"
for name in null zero random urandom; do : > "$root/dev/$name"; mount --bind "/dev/$name" "$root/dev/$name"; done
ln -s /proc/self/fd "$root/dev/fd"
for name in /etc/java-* /etc/alternatives /etc/ld.so.cache /etc/nsswitch.conf /etc/hosts /etc/ssl; do
    if [ -e "$name" ]; then cp -r "$name" "$root$name" 2>/dev/null || :; fi
done
printf 'root:x:0:0:root:/root:/bin/sh\nbroker-core:x:%s:%s::/var/lib/broker-core:/usr/sbin/nologin\n' "$uid" "$gid" \
    > "$root/etc/passwd"
readonly=
while [ "$1" != - ]; do
    place=${2%!}
    mkdir -p "$root$place"
    mount --bind "$1" "$root$place"
    if [ "$place" != "$2" ]; then readonly="$readonly $root$place"; fi
    shift 2
done
shift
for place in $readonly; do mount -o remount,ro,bind "$place"; done
mount -o remount,ro "$root"
exec unshare --root="$root" --wd=/ --user --map-user="$uid" --map-group="$gid" -- env -i "$@"
"""


def can_run_containers() -> bool:
    """Whether this machine has user namespaces, and this user may make them."""
    try:
        done = subprocess.run(
            ["unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"],
            capture_output=True,
            check=False,
        )
    except OSError:
        return False
    return done.returncode == 0


def run_container(
    root: Path,
    command: Sequence[str],
    *,
    user: int,
    group: int,
    variables: Mapping[str, str],
    volumes: Mapping[str, Path],
    readonly: Sequence[str] = (),
    timeout: float = 300,
) -> subprocess.CompletedProcess[str]:
    """Run a command in a container whose root is made at the empty folder ``root``.

    ``volumes`` are folders of this machine by their places; those of ``readonly`` are read-only.
    """
    pairs = [str(ROOT), f"{ROOT}!"]
    for prefix in {sys.base_prefix, sys.prefix}:
        if not Path(prefix).is_relative_to(ROOT) and not Path(prefix).is_relative_to("/usr"):
            pairs += [prefix, f"{prefix}!"]
    for place, folder in volumes.items():
        pairs += [str(folder), f"{place}!" if place in readonly else place]
    path = f"{sys.prefix}/bin:/usr/local/bin:/usr/bin:/bin"
    own = {"PATH": path, "PYTHONDONTWRITEBYTECODE": "1", **variables}
    given = [f"{name}={value}" for name, value in own.items()]
    outside = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", _SCRIPT, "container"]
    return subprocess.run(
        [*outside, str(root), str(user), str(group), *pairs, "-", *given, *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
