#!/usr/bin/env python3
"""Starts a program with descriptors passed as a service manager passes them (sd_listen_fds(3)).

  pass_sockets.py FD[=NAME],... PROGRAM [ARGUMENT...]

The descriptors become 3, 4, ... in this order; the program replaces this one, and so has its pid.
"""

import os
import sys


def main():
    rows = [item.partition("=") for item in sys.argv[1].split(",")]
    # First out of the way: a target may be the number of another one's source.
    high = [os.dup2(int(fd), 100 + n, inheritable=False) for n, (fd, _, _) in enumerate(rows)]
    for n, fd in enumerate(high):
        os.dup2(fd, 3 + n, inheritable=True)
    os.environ["LISTEN_PID"] = str(os.getpid())
    os.environ["LISTEN_FDS"] = str(len(rows))
    os.environ["LISTEN_FDNAMES"] = ":".join(name for _, _, name in rows)
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
