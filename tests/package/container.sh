#!/usr/bin/env bash
# Builds the image of packaging/Containerfile on a base that debootstrap makes, and tests it:
#
#   make container-test RELEASE=bookworm
#   tests/package/container.sh     in a chroot of tests/debian.sh, which make container-test calls
#
# The last line is "N passed, N failed".
set -euo pipefail
cd "$(dirname "$0")/../.."

work=/var/tmp/container
if [ ! -e /root/.made ]; then
    echo "container-test: this is for a chroot of tests/debian.sh: make container-test" >&2
    exit 69
fi
export DEBIAN_FRONTEND=noninteractive
# The image is built where there is no daemon, and within this chroot.
export BUILDAH_ISOLATION=chroot BUILDAH_FORMAT=docker
storage=(--storage-driver vfs --root "$work/storage" --runroot "$work/run")

say() {
    printf 'container-test: %s\n' "$*" >&2
}

logged() {
    "$@" >>"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; return 1; }
}

rm -rf "$work"
mkdir -p "$work"
say "installing buildah"
logged apt-get -q update
logged apt-get -q -y install --no-install-recommends buildah ca-certificates curl debootstrap iproute2 netavark \
    python3

say "making the base"
mirror=$(sed -n 's/^deb \([^ ]*\) .*/\1/p' /etc/apt/sources.list | head -n 1)
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
logged debootstrap --variant=minbase "$release" "$work/base" "$mirror"
cp /etc/apt/apt.conf.d/99host "$work/base/etc/apt/apt.conf.d/"
# As Debian's images are delivered.
rm -rf "$work/base/var/lib/apt/lists" "$work/base/var/cache/apt/archives"/*.deb
base=$(buildah "${storage[@]}" from scratch)
logged buildah "${storage[@]}" add "$base" "$work/base" /
logged buildah "${storage[@]}" commit "$base" localhost/base

say "building the image"
mkdir "$work/source"
git archive HEAD | tar -xC "$work/source"
# Limits that this host has: buildah's own defaults may be above them.
logged buildah "${storage[@]}" bud --ulimit "nofile=$(ulimit -Hn):$(ulimit -Hn)" \
    --ulimit "nproc=$(ulimit -Hu):$(ulimit -Hu)" --build-arg BASE=localhost/base -f packaging/Containerfile \
    -t localhost/sunproxy "$work/source"
image=$(buildah "${storage[@]}" from localhost/sunproxy)
buildah "${storage[@]}" inspect "$image" >"$work/image.json"

say "running it"
exec python3 -B tests/package/container.py --base "$work/base" --description "$work/image.json" \
    --root "$(buildah "${storage[@]}" mount "$image")"
