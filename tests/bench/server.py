"""A server that a benchmark starts: its CPU time, the CPU that it runs on, its end."""
import os
import signal
import socket
import subprocess
import sys
import time

# A benchmark that is told to end ends its servers, too.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


class Failure(Exception):
    """Something that was to be measured could not be."""


def family_of(pid):
    """The process and its descendants."""
    found, todo = [], [pid]
    while todo:
        found.append(todo.pop())
        try:
            for task in os.listdir(f"/proc/{found[-1]}/task"):
                with open(f"/proc/{found[-1]}/task/{task}/children") as f:
                    todo += [int(child) for child in f.read().split()]
        except FileNotFoundError:
            pass
    return found


class Server:
    """A running server with its processes. It runs in its folder and writes its log there.

    `output` is for Popen: where standard output goes if not to the log.
    """

    def __init__(self, name, argv, port, folder, environment=None, log=None, output=None):
        self.name, self.port, self.log = name, port, folder / (log or f"{name}.log")
        with open(self.log, "wb") as file:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output or file,
                                            stderr=file, cwd=folder, env=environment,
                                            start_new_session=True)

    def wait_until_listening(self):
        for _ in range(1500):
            if self.process.poll() is not None:
                raise Failure(f"{self.name} has ended with status {self.process.returncode}: "
                              + self.log.read_text(errors="replace")[-500:])
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            time.sleep(0.02)
        raise Failure(f"{self.name} does not listen on port {self.port}")

    def pin(self, cpu):
        for pid in family_of(self.process.pid):
            for task in os.listdir(f"/proc/{pid}/task"):
                try:
                    os.sched_setaffinity(int(task), {cpu})
                except ProcessLookupError:
                    pass

    def cpu_seconds(self):
        """User and system time of all its processes so far."""
        ticks = 0
        for pid in family_of(self.process.pid):
            with open(f"/proc/{pid}/stat") as f:
                fields = f.read().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def stop(self):
        if self.process.poll() is None:
            pids = family_of(self.process.pid)
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            for pid in pids[1:]:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
