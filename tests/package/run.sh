#!/usr/bin/env bash
# Builds the packages of debian/, and tests what they do to a system of their own:
#
#   make package-test RELEASE=bookworm
#   tests/package/run.sh        in a chroot of tests/debian.sh, which make package-test calls
#
# Changes the system that it runs on (packages, a user), so it refuses any but such a chroot. What it
# builds stays in /var/tmp/packages there. The last line is "N passed, N failed".
set -euo pipefail
cd "$(dirname "$0")/../.."

work=/var/tmp/packages
if [ ! -e /root/.made ]; then
    echo "package-test: this is for a chroot of tests/debian.sh: make package-test" >&2
    exit 69
fi
export DEBIAN_FRONTEND=noninteractive

say() {
    printf 'package-test: %s\n' "$*" >&2
}

apt() {
    apt-get -q -y -o Dpkg::Use-Pty=0 "$@" >>"$work/apt.log" 2>&1 || { tail -n 20 "$work/apt.log" >&2; return 1; }
}

# An ordinary user, without a network.
build() { # folder, arguments of dpkg-buildpackage
    local folder=$1
    shift
    (cd "$folder" && unshare --net setpriv --reuid builder --regid builder --clear-groups --reset-env \
        dpkg-buildpackage -us -uc "$@" >"$work/build-${folder##*/}.log" 2>&1) ||
        { tail -n 20 "$work/build-${folder##*/}.log" >&2; return 1; }
}

rm -rf "$work"
mkdir -p "$work"
version=$(sed -n 's/^VERSION := //p' Makefile)
source=$work/sunproxy-$version

began=$SECONDS
say "installing what the build needs"
apt update
apt install --no-install-recommends build-essential ca-certificates debhelper debootstrap devscripts \
    e2fsprogs iproute2 lintian python3
apt build-dep --no-install-recommends "$PWD"

say "building $version"
id builder >/dev/null 2>&1 || useradd --home-dir "$work" builder
git archive --prefix="sunproxy-$version/" HEAD | tar -xC "$work"
chown -R builder:builder "$work"
build "$source"
printf 'from an empty system to the packages: %d s\n' $((SECONDS - began)) >&2

# The next version is the same, but for its number and a file of configuration. The daemon's file is
# another one.
say "building the next version"
cp -a "$source" "$work/next"
echo '# A later build.' >>"$work/next/packaging/logrotate.conf"
cat - "$source/debian/changelog" >"$work/next/debian/changelog" <<END
sunproxy ($version+next) unstable; urgency=medium

  * A later build.

 -- sunproxy authors <nobody@sunproxy.invalid>  $(date -R)

END
build "$work/next" -b -nc

say "lintian"
lintian_status=0
(cd "$work" && setpriv --reuid builder --regid builder --clear-groups --reset-env \
    lintian --fail-on error,warning --tag-display-limit 0 -I "sunproxy_${version}_"*.changes) >&2 || lintian_status=1

say "making a system without any of it"
mirror=$(sed -n 's/^deb \([^ ]*\) .*/\1/p' /etc/apt/sources.list | head -n 1)
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
debootstrap --variant=minbase --include=ca-certificates,curl,dbus,logrotate,procps,systemd,systemd-sysv \
    "$release" "$work/fresh" "$mirror" >"$work/debootstrap.log" 2>&1
cp /etc/apt/apt.conf.d/99host "$work/fresh/etc/apt/apt.conf.d/"
cp -L /etc/resolv.conf /etc/hosts "$work/fresh/etc/"
# What the packages need of others, but not they themselves: the tests have no network.
needs=$(for package in sunproxyd sunproxy; do
    dpkg-deb -f "$work/${package}_${version}_"*.deb Depends
done | paste -sd ,)
chroot "$work/fresh" sh -c 'apt-get -q update && apt-get -q -y satisfy --no-install-recommends "$1"' \
    sh "$needs" >>"$work/apt.log" 2>&1 || { tail -n 20 "$work/apt.log" >&2; exit 1; }

# What docs/DEPLOY_*.md install besides, and what sunproxyd recommends.
chroot "$work/fresh" apt-get -q -y --download-only --no-install-recommends install hitch rpcbind >>"$work/apt.log" 2>&1

say "installing, upgrading and removing"
exec python3 -B tests/package/life.py --packages "$work" --fresh "$work/fresh" --version "$version" \
    --lintian "$lintian_status"
