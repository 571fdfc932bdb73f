"""What h11, a parser of HTTP/1.1 in Python, makes of request heads: for test_peer_parser.c.

Reads heads from standard input, each behind its length in four bytes (big-endian), and prints a line
for each: "skipped" where h11 is not there, "partial", "refused" and the reason, or "accepted" and
what was read: length of the head, framing of the body (chunked, a number, or -), and in hexadecimal
method, target, version and fields.
"""

import struct
import sys

try:
    import h11
except ImportError:
    h11 = None


def describe(head):
    if not head:
        return "partial"  # to h11, no bytes are the end of the connection
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=65536)
    connection.receive_data(head)
    try:
        event = connection.next_event()
    except h11.RemoteProtocolError as error:
        return f"refused {error}"
    if event is h11.NEED_DATA:
        return "partial"
    used = len(head) - len(connection.trailing_data[0])
    fields = b"".join(name + b":" + value + b"\n" for name, value in event.headers)
    framing = "-"
    for name, value in event.headers:
        if name == b"transfer-encoding":
            framing = value.decode()
        elif name == b"content-length" and framing != "chunked":
            framing = str(int(value))
    parts = [event.method, event.target, event.http_version, fields]
    return f"accepted {used} {framing} " + " ".join(part.hex() for part in parts)


def main():
    data = sys.stdin.buffer.read()
    at = 0
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        at += 4
        print(describe(data[at:at + size]) if h11 else "skipped")
        at += size


if __name__ == "__main__":
    main()
