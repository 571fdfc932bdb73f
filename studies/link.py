"""A link between a client and a server on this machine: link.py PORT_FILE TARGET_PORT BANDWIDTH.

It accepts connections and forwards each of them to the target. What the server sends passes at
BANDWIDTH bytes a second, which all connections share (a token bucket with a burst of BURST
seconds); what the client sends is not delayed.
"""

import asyncio
import pathlib
import sys
import time

BURST = 0.02
PIECE = 1 << 16


class Link:
    def __init__(self, target, bandwidth):
        self.target = target
        self.bandwidth = bandwidth
        self.paid = 0.0  # the moment at which what has been sent is paid for

    async def copy(self, reader, writer, bounded):
        try:
            while data := await reader.read(PIECE):
                if bounded:
                    now = time.monotonic()
                    if self.paid > now:
                        await asyncio.sleep(self.paid - now)
                    self.paid = max(self.paid,
                                    time.monotonic() - BURST) + len(data) / self.bandwidth
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def serve(self, reader, writer):
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self.target, limit=PIECE)
        except ConnectionError:
            writer.close()
            return
        await asyncio.gather(self.copy(reader, back, False), self.copy(there, writer, True))


async def run(port_file, target, bandwidth):
    server = await asyncio.start_server(Link(target, bandwidth).serve, "127.0.0.1", 0, limit=PIECE)
    draft = pathlib.Path(f"{port_file}.new")
    draft.write_text(f"{server.sockets[0].getsockname()[1]}\n")
    draft.rename(port_file)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
