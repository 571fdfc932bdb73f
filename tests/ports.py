"""Free TCP ports, held for a test until it ends, or for a benchmark until its process ends."""

import socket

_held = []


def free_port(family=socket.AF_INET):
    """A TCP port of loopback that is free, and that no other process is given until give_back().

    It is bound here and never listened on. A program that sets SO_REUSEADDR can therefore listen on
    it, also once more after a restart; a connection is refused while none does. sunproxyd, the
    origin of the tests, and the servers that benchmarks and cache_tests.py start set it.
    """
    holder = socket.socket(family, socket.SOCK_STREAM)
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1" if family == socket.AF_INET else "::1", 0))
    _held.append(holder)
    return holder.getsockname()[1]


def give_back():
    """Closes the sockets that hold ports: a test ends."""
    while _held:
        _held.pop().close()
