"""Systems that packages are installed in: one that systemd runs, and one on a small disk."""

import argparse
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

BOOT = pathlib.Path(__file__).with_name("boot.sh")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENVIRONMENT = {"PATH": PATH, "LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive", "HOME": "/root"}
# What life.py is called with.
settings = argparse.Namespace()


def folder():
    """One that is removed at the end, on the disk: /tmp may be small."""
    return tempfile.TemporaryDirectory(prefix="package-test.", dir="/var/tmp")


class Failed(AssertionError):
    """A command that did not end as expected."""


def finished(argv, expect, **more):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, env=ENVIRONMENT, timeout=300, **more)
    if expect is not None and done.returncode != expect:
        raise Failed(f"{argv}: exit status {done.returncode}, not {expect}:\n{done.stdout[-3000:]}")
    return done


def wait_until(condition, what):
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    raise Failed(f"waited in vain: {what}")


class Machine:
    """A copy of the system, run by systemd in namespaces of its own for mounts, processes, network and
    control groups. It has no network but its loopback, and ends with this process."""

    def __init__(self, fresh, folder):
        self.root = folder / "machine"
        self.cgroups = folder / "cgroup"
        subprocess.run(["cp", "-a", "--reflink=auto", fresh, self.root], check=True)
        self.cgroups.mkdir()
        subprocess.run(["mount", "-t", "cgroup2", "cgroup2", self.cgroups], check=True)
        self.cgroup = self.cgroups / f"sunproxy-package-{os.getpid()}"
        self.cgroup.mkdir()
        self.said = open(folder / "boot.log", "wb")
        self.holder = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--propagation", "private", "--pid",
             "--net", "--uts", "--ipc", "--cgroup", "--fork", "--kill-child", "--mount-proc", "--", BOOT,
             self.root], stdin=subprocess.DEVNULL, stdout=self.said, stderr=self.said,
            preexec_fn=lambda: (self.cgroup / "cgroup.procs").write_text(str(os.getpid())))
        children = pathlib.Path(f"/proc/{self.holder.pid}/task/{self.holder.pid}/children")
        wait_until(lambda: children.read_text().split(), "the first process")
        self.first = children.read_text().split()[0]
        wait_until(self.runs, "systemd")

    def runs(self):
        return self.run("systemctl", "is-system-running", expect=None).stdout.strip() in (
            "running", "degraded")

    def inside(self, *argv):
        return ["nsenter", "-t", self.first, "-m", "-p", "-n", "-u", "-i", "-C", "--", *map(str, argv)]

    def inside_but_for_network(self, pid, *argv):
        """In the network of a process of this system."""
        return ["nsenter", "-t", self.first, "-m", "-p", "-u", "-i", "-C", f"--net=/proc/{pid}/ns/net", "--",
                *map(str, argv)]

    def run(self, *argv, expect=0):
        return finished(self.inside(*argv), expect)

    def begin(self, *argv):
        return subprocess.Popen(self.inside(*argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                env=ENVIRONMENT, text=True)

    def beside(self, *argv, **more):
        """A program of this system in the network of the machine."""
        return subprocess.Popen(["nsenter", "-t", self.first, "-n", "--", *map(str, argv)],
                                stdin=subprocess.DEVNULL, **more)

    def property(self, unit, name):
        return self.run("systemctl", "show", "--property", name, "--value", unit).stdout.strip()

    def stop(self):
        os.kill(int(self.first), 9)
        self.holder.wait()
        self.said.close()
        for folder, _, _ in os.walk(self.cgroup, topdown=False):
            wait_until(lambda folder=folder: self.removed(folder), "processes of the control group")
        subprocess.run(["umount", self.cgroups], check=True)
        self.cgroups.rmdir()
        shutil.rmtree(self.root)

    @staticmethod
    def removed(folder):
        try:
            os.rmdir(folder)
        except OSError:
            return False
        return True


class Disk:
    """A copy of the system on a file system that can be filled; nothing runs in it."""

    def __init__(self, fresh, folder, spare=192 << 20):
        self.root = folder / "disk"
        self.image = folder / "disk.img"
        used = int(subprocess.run(["du", "-sxB1", fresh], check=True, text=True,
                                  stdout=subprocess.PIPE).stdout.split()[0])
        self.root.mkdir()
        with open(self.image, "wb") as image:
            image.truncate(used * 5 // 4 + spare)
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", "-i", "8192", self.image], check=True)
        subprocess.run(["mount", "-o", "loop", self.image, self.root], check=True)
        subprocess.run(["cp", "-a", f"{fresh}/.", self.root], check=True)
        subprocess.run(["mount", "--rbind", "/dev", self.root / "dev"], check=True)
        subprocess.run(["mount", "-t", "proc", "proc", self.root / "proc"], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", self.root / "run"], check=True)

    def run(self, *argv, expect=0):
        return finished(["chroot", self.root, *map(str, argv)], expect)

    def give_space_to(self, folder):
        """A file system of its own, so that a folder has space while the rest is full."""
        path = self.root / folder
        kept = self.root.with_name("kept")
        shutil.copytree(path, kept, symlinks=True)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", path], check=True)
        shutil.copytree(kept, path, symlinks=True, dirs_exist_ok=True)
        shutil.rmtree(kept)

    def fill(self):
        """Until not one block is left, and no folder has space in the blocks that it has."""
        with open(self.root / "filler", "ab", buffering=0) as filler:
            size = 1 << 20
            while size >= 512:
                try:
                    filler.write(bytes(size))
                    os.fsync(filler.fileno())
                except OSError:
                    size //= 2

    def free(self):
        (self.root / "filler").unlink()

    def stop(self):
        subprocess.run(["umount", "-R", "-l", self.root], check=True)
        self.root.rmdir()
        self.image.unlink()
