"""A client on python-vxi11's RPC module: PORT URL; the body goes to standard output."""

import sys

from vxi11 import rpc


def main():
    port, url = int(sys.argv[1]), sys.argv[2]
    client = rpc.RawTCPClient("127.0.0.1", 0x23451111, 1, port)
    client.packer = rpc.Packer()
    client.unpacker = rpc.Unpacker("")
    client.make_call(0, None, None, None)
    body = client.make_call(1, url.encode(), client.packer.pack_string,
                            client.unpacker.unpack_string)
    sys.stdout.buffer.write(body)
    client.close()


main()
