#!/bin/sh
# Makes a folder the root of the namespaces that it runs in, and starts systemd there as the first
# process: tests/package/machine.py calls it.
#
#   boot.sh ROOT
set -e
root=$1
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/shm" "$root/dev/pts"
ln -s /proc/self/fd "$root/dev/fd"
ln -s pts/ptmx "$root/dev/ptmx"
: >"$root/dev/console"
# It would start again and again on a console that is a file.
ln -sf /dev/null "$root/etc/systemd/system/console-getty.service"
ip link set lo up
cd "$root"
pivot_root . mnt
exec chroot . sh -c 'umount -l /mnt
    exec env -i container=sunproxy PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=multi-user.target'
