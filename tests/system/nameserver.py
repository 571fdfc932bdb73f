"""A nameserver that says whatever its names ask for: ADDRESS to listen on.

  127-0-0-1.a.test           A 127.0.0.1
  0-0-0-0-0-0-0-1.aaaa.test  AAAA ::1
  127-0-0-1.rebind.test      A 1.1.1.1 at first, then 127.0.0.1, in turns
Anything else does not exist.
"""

import collections
import socket
import struct
import sys

A, AAAA = 1, 28


def parse(query):
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode())
        at += 1 + query[at]
    kind = struct.unpack(">H", query[at + 1 : at + 3])[0]
    return labels, kind, query[12 : at + 5]


def address(labels, kind, asked):
    family = labels[1] if len(labels) == 3 else ""
    try:
        if family in ("a", "rebind") and kind == A:
            if family == "rebind":
                asked[labels[0]] += 1
                if asked[labels[0]] % 2:
                    return socket.inet_aton("1.1.1.1")
            return socket.inet_aton(labels[0].replace("-", "."))
        if family == "aaaa" and kind == AAAA:
            return socket.inet_pton(socket.AF_INET6, labels[0].replace("-", ":"))
    except OSError:
        pass
    return None


def main():
    asked = collections.Counter()
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((sys.argv[1], 53))
    print("ready", flush=True)
    while True:
        query, peer = s.recvfrom(4096)
        labels, kind, question = parse(query)
        data = address(labels, kind, asked)
        known = len(labels) == 3 and labels[1] in ("a", "aaaa", "rebind")
        flags = 0x8580 if known else 0x8583  # NXDOMAIN
        answer = query[:2] + struct.pack(">HHHHH", flags, 1, 1 if data else 0, 0, 0) + question
        if data:
            answer += struct.pack(">HHHIH", 0xC00C, kind, 1, 0, len(data)) + data
        s.sendto(answer, peer)


main()
