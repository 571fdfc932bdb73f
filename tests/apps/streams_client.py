#!/usr/bin/env python3
"""The WebSocket client of streams.py, on the library of python3-websockets.

    streams_client.py direct|reverse HOST:PORT PATH
    streams_client.py tunnel|absolute HOST:PORT PATH PROXY_PORT

`tunnel` connects by CONNECT, as browsers do for ws, `absolute` sends the opening handshake to the proxy
in absolute form. Prints "ok", or what is wrong.
"""

import asyncio
import base64
import os
import socket
import sys

import websockets
from websockets.frames import OP_TEXT

MESSAGES = ["", "short", "ä" * 1000, "x" * 70000, bytes(range(256)) * 8192]
PARALLEL = 20


def open_tunnel(proxy_port, address):
    connection = socket.create_connection(("127.0.0.1", proxy_port))
    connection.sendall(f"CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n".encode())
    head = b""
    while b"\r\n\r\n" not in head:
        part = connection.recv(1)
        if not part:
            break
        head += part
    if b" 200 " not in head.split(b"\r\n")[0]:
        sys.exit(f"CONNECT: {head!r}")
    return connection


async def converse(address, path, proxy_port):
    options = {"max_size": None, "open_timeout": None, "close_timeout": 60}
    if proxy_port:
        options["sock"] = open_tunnel(proxy_port, address)
    async with websockets.connect(f"ws://{address}{path}", **options) as connection:
        for message in MESSAGES:
            await connection.send(message)
        for message in MESSAGES:
            if await connection.recv() != message:
                sys.exit(f"a message of {len(message)} came back changed")
        await (await connection.ping())
        await connection.send("close")
        try:
            await connection.recv()
            sys.exit("the server's close does not arrive")
        except websockets.ConnectionClosed as closed:
            if (closed.code, closed.reason) != (4000, "as asked"):
                sys.exit(f"closed with {closed.code} {closed.reason}")


def frame(text):
    """A client's text frame with a mask, of at most 125 bytes."""
    mask = os.urandom(4)
    data = bytes(byte ^ mask[at % 4] for at, byte in enumerate(text.encode()))
    return bytes([0x80 | OP_TEXT, 0x80 | len(data)]) + mask + data


async def ask_in_absolute_form(address, path, proxy_port):
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy_port)
    key = base64.b64encode(os.urandom(16)).decode()
    writer.write(f"GET http://{address}{path} HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\n"
                 f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n"
                 .encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    accept = websockets.utils.accept_key(key)
    if " 101 " not in head.split("\r\n")[0] or accept not in head:
        sys.exit(f"the handshake fails: {head!r}")
    writer.write(frame("hello"))
    answer = await reader.readexactly(7)
    if answer != bytes([0x80 | OP_TEXT, 5]) + b"hello":
        sys.exit(f"the echo is {answer!r}")
    writer.close()


async def main():
    way, address, path = sys.argv[1:4]
    proxy_port = int(sys.argv[4]) if len(sys.argv) > 4 else None
    talk = ask_in_absolute_form if way == "absolute" else converse
    await asyncio.gather(*(talk(address, path, proxy_port) for _ in range(PARALLEL)))
    print("ok")


if __name__ == "__main__":
    asyncio.run(main())
