"""A client on the package sunrpc: PORT URL; the body goes to standard output."""

import sys

import sunrpc
import sunrpc.client
import sunrpc.types


def main():
    port, url = int(sys.argv[1]), sys.argv[2]
    client = sunrpc.client.TCPClient("127.0.0.1", port, 0x23451111, 1)
    client.connect()
    call = client.make_call(1)
    call.pack(sunrpc.types.RpcBytes(url.encode()))
    client.do_call(call)
    sys.stdout.buffer.write(call.unpack(sunrpc.types.RpcBytes()))
    client.close()


main()
