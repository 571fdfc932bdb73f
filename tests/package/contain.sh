#!/bin/sh
# Makes a folder the root of the namespaces that it runs in, which cannot be written, and starts a
# program there as the first process, without privileges: tests/package/container.py calls it.
#
#   contain.sh ROOT USER GROUP VOLUME LIMITS PROGRAM ARGUMENT...
#
# LIMITS is a folder with files that stand for those of the control group, or "".
set -e
root=$1 user=$2 group=$3 volume=$4 limits=$5
shift 5
mount --bind "$root" "$root"
mount -o "mode=755,uid=$user,gid=$group" -t tmpfs tmpfs "$root$volume"
mount -t tmpfs tmpfs "$root/tmp"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mount -o remount,bind,ro "$root"
if [ -n "$limits" ]; then
    mount -t tmpfs tmpfs "$root/sys"
    mkdir -p "$root/sys/fs/cgroup"
    cp "$limits"/* "$root/sys/fs/cgroup/"
fi
ip link set lo up
cd "$root"
pivot_root . mnt
exec chroot . /usr/bin/env -i sh -c 'umount -l /mnt; user=$1 group=$2; shift 2
    exec setpriv --reuid "$user" --regid "$group" --clear-groups --bounding-set=-all --inh-caps=-all \
        --no-new-privs "$@"' sh "$user" "$group" "$@"
