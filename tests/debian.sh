#!/usr/bin/env bash
# Runs the README's two commands, make demo and make test, on a release of Debian with nothing
# installed: in a chroot of its own, which debootstrap makes, with a clone of this repository's last
# commit in /root.
#
#   make test-debian RELEASE=trixie
#   tests/debian.sh RELEASE [COMMAND...]    other commands, each a word for sh -c
#
# MIRROR       the archive of packages; by default the one that this system's apt uses for Debian
# CHROOT       the chroot's folder; by default /var/tmp/sunproxy-RELEASE
# KEEP=1       keeps the folder, and what was built in it, and uses it again in the next run
#
# Needs root, debootstrap and 6 GB. The network is this machine's, the mounts are in a namespace of
# their own. What was said stays in build/test-debian-RELEASE.log. The exit status is that of the
# first command that failed; 69 if nothing can be run here.
set -u
cd "$(dirname "$0")/.." || exit 69

release=${1:-}
shift
say() {
    printf 'test-debian: %s\n' "$*" >&2
}
if [[ ! $release =~ ^[a-z]+$ ]]; then
    say "RELEASE is the name of a release of Debian, such as trixie"
    exit 64
fi
commands=("$@")
[ $# = 0 ] && commands=("make demo" "make test")
chroot=${CHROOT:-/var/tmp/sunproxy-$release}

if [ "$(id -u)" != 0 ]; then
    say "a chroot needs root"
    exit 69
fi
for tool in debootstrap unshare chroot; do
    if ! command -v "$tool" >/dev/null; then
        say "$tool is not installed"
        exit 69
    fi
done

# Of a host that has Debian's own archive: its URI, without updates and the security archive.
host_mirror() {
    # shellcheck disable=SC2016 # apt's variables
    apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        sed -n 's/^Debian|Debian|//p' | head -n 1
}
mirror=${MIRROR:-$(host_mirror)}
if [ -z "$mirror" ]; then
    say "apt is not configured with Debian's archive here; MIRROR=URL names one"
    exit 69
fi

mkdir -p build
log=$PWD/build/test-debian-$release.log
: >"$log"
if [ -e "$chroot" ] && [ ! -e "$chroot/root/.made" ]; then
    say "$chroot is there and is no chroot of this script's"
    exit 69
fi
[ -n "${KEEP:-}" ] || trap 'rm -rf --one-file-system "$chroot"' EXIT
if [ ! -e "$chroot/root/.made" ]; then
    say "making $chroot"
    debootstrap --variant=minbase --include=ca-certificates,git,make "$release" "$chroot" "$mirror" \
        >>"$log" 2>&1 || { say "debootstrap failed: $log"; exit 69; }
    # What this host's apt needs to reach the archive, the chroot's needs, too.
    apt-config dump Acquire >"$chroot/etc/apt/apt.conf.d/99host"
    touch "$chroot/root/.made"
fi
cp -L /etc/resolv.conf /etc/hosts "$chroot/etc/"
# Authorities that this host trusts beside the usual ones.
if [ -n "$(ls /usr/local/share/ca-certificates 2>/dev/null)" ]; then
    cp -r /usr/local/share/ca-certificates "$chroot/usr/local/share/"
    chroot "$chroot" update-ca-certificates >>"$log" 2>&1
fi
if [ -d "$chroot/root/sunproxy" ]; then
    git push -q --force "$chroot/root/sunproxy" HEAD:refs/heads/under-test &&
        git -C "$chroot/root/sunproxy" -c safe.directory='*' checkout -q -f --detach under-test
else
    git clone -q --no-hardlinks . "$chroot/root/sunproxy"
fi || exit 69

variables=("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" HOME=/root LANG=C.UTF-8)
for name in http_proxy https_proxy no_proxy NPM_CONFIG_REGISTRY; do
    [ -n "${!name:-}" ] && variables+=("$name=${!name}")
done
datasets=${SUNPROXY_DATASETS:-$PWD/../shared/datasets}
[ -d "$datasets" ] || datasets=

status=0
for command in "${commands[@]}"; do
    say "$release: $command"
    started=$SECONDS
    # A mount of its own for /: tests make namespaces of theirs, in which it must be one.
    # shellcheck disable=SC2016 # for the inner shell
    unshare --mount --propagation private --pid --fork --kill-child sh -c '
        root=$1 datasets=$2 command=$3
        shift 3
        mount --bind "$root" "$root" && mount -t proc proc "$root/proc" &&
            mount --rbind /dev "$root/dev" && mount -t sysfs -o ro sysfs "$root/sys" &&
            mount -t tmpfs tmpfs "$root/run" || exit 69
        if [ -n "$datasets" ]; then
            mkdir -p "$root/root/shared/datasets" &&
                mount --bind -o ro "$datasets" "$root/root/shared/datasets" || exit 69
        fi
        exec chroot "$root" /usr/bin/env -i "$@" sh -c "cd /root/sunproxy && $command" </dev/null
    ' sh "$chroot" "$datasets" "$command" "${variables[@]}" 2>&1 | tee -a "$log"
    status=${PIPESTATUS[0]}
    say "$release: $command: exit status $status after $((SECONDS - started)) s"
    [ "$status" = 0 ] || break
done
exit "$status"
