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
# KEEP=1       keeps the folder, and what was built in it; the next run with KEEP=1 uses it again
# LIMIT        seconds that each command may take, by default 7200; then it is ended
#
# Needs root, debootstrap and 6 GB. The network is this machine's. Mounts and processes are in
# namespaces of their own, so that none is left, however this script ends. What was said stays in
# build/test-debian-RELEASE.log. The last line is that of the tests, "N passed, N failed", if they came
# to their end. The exit status is that of the first command that failed, 137 if it was ended; 69 if
# nothing can be run here.
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
limit=${LIMIT:-7200}

if [ "$(id -u)" != 0 ]; then
    say "a chroot needs root"
    exit 69
fi
for tool in debootstrap unshare setpriv pivot_root chroot flock; do
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

# The process that holds the namespaces, while there is one.
holder=

# Runs a command in namespaces of its own for mounts and processes. All that it has started ends with
# it, and with this script. It runs in the background, so that a signal is handled at once.
contained() {
    setpriv --pdeathsig KILL unshare --mount --propagation private --pid --fork --kill-child \
        --mount-proc -- "$@" </dev/null 3>&- 9>&- &
    holder=$!
    wait "$holder"
    local status=$?
    holder=
    return "$status"
}

# The first process of the namespace ends after all others in it, and the holder after that one.
end_contained() {
    local first=
    [ -n "$holder" ] || return
    read -r first _ <"/proc/$holder/task/$holder/children"
    kill -KILL "${first:-$holder}"
    wait "$holder"
} 2>/dev/null

# A folder in which debootstrap did not come to its end is of no use to the next run.
finish() {
    local status=$?
    trap '' INT TERM HUP
    end_contained
    if [ -z "${KEEP:-}" ] || [ ! -e "$chroot/root/.made" ]; then
        rm -rf --one-file-system "$chroot"
    fi
    exec >&3 2>&3
    wait "$tee"
    grep -aE '^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$' "$log" | tail -n 1
    exit "$status"
}

# The one that makes the folder has it; one that is there must be whole, and in nobody's use.
if ! mkdir "$chroot" 2>/dev/null && [ ! -e "$chroot/root/.made" ]; then
    say "$chroot is there, or cannot be made, and is no chroot of this script's"
    exit 69
fi
exec 9<"$chroot"
if ! flock -n 9; then
    say "$chroot is in use by another run"
    exit 69
fi
mkdir -p build
log=$PWD/build/test-debian-$release.log
: >"$log"
exec 3>&1 > >(exec tee -i -a "$log") 2>&1
tee=$!
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP
if [ -z "${KEEP:-}" ]; then
    find "$chroot" -xdev -mindepth 1 -maxdepth 1 -exec rm -rf --one-file-system {} +
fi
if [ ! -e "$chroot/root/.made" ]; then
    say "making $chroot"
    contained timeout -s KILL "$limit" debootstrap --variant=minbase \
        --include=ca-certificates,git,make "$release" "$chroot" "$mirror" >>"$log" 2>&1 ||
        { say "debootstrap failed: $log"; exit 69; }
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
    # The folder becomes the root of the mount namespace: a process that enters one (nsenter) has that
    # root, not what chroot made its own. A background job ignores SIGINT, which the programs under
    # test may not.
    # shellcheck disable=SC2016 # for the inner shells
    contained sh -c '
        root=$1 datasets=$2 limit=$3 command=$4
        shift 4
        mount --bind "$root" "$root" && mount -t proc proc "$root/proc" &&
            mount --rbind /dev "$root/dev" && mount -t sysfs -o ro sysfs "$root/sys" &&
            mount -t tmpfs tmpfs "$root/run" || exit 69
        if [ -n "$datasets" ]; then
            mkdir -p "$root/root/shared/datasets" &&
                mount --bind -o ro "$datasets" "$root/root/shared/datasets" || exit 69
        fi
        cd "$root" && pivot_root . mnt || exit 69
        exec chroot . /usr/bin/env -i --default-signal "$@" sh -c \
            '\''umount -l /mnt && cd /root/sunproxy || exit 69
            timeout -s KILL "$1" sh -c "$2"; exit $?'\'' sh "$limit" "$command"
    ' sh "$chroot" "$datasets" "$limit" "$command" "${variables[@]}"
    status=$?
    say "$release: $command: exit status $status after $((SECONDS - started)) s"
    [ "$status" = 0 ] || break
done
exit "$status"
