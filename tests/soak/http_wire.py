"""A small HTTP client for the soak: it sends what it is given, reads responses one by one, and states
of each whether it was whole."""

import socket
import time


class NoResponse(Exception):
    """The connection ended, or broke, before the head of a response."""


class Response:
    def __init__(self, status, fields):
        self.status = status
        self.fields = fields  # by name in lower case; the values of one name joined
        self.body = bytearray()
        self.whole = True

    def field(self, name):
        return self.fields.get(name, "")


class Wire:
    """A connection. `pause`: seconds between reads, of a client that reads slowly."""

    def __init__(self, address, pause=0.0):
        self.socket = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
        self.socket.settimeout(30)
        self.socket.connect(address)
        self.rest = bytearray()
        self.pause = pause
        self.was_reset = False

    def close(self):
        self.socket.close()

    def send(self, data):
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise NoResponse(str(error)) from error

    def _more(self):
        if self.pause:
            time.sleep(self.pause)
        try:
            data = self.socket.recv(1 << 16)
        except ConnectionResetError:
            self.was_reset = True
            return False
        self.rest += data
        return bool(data)

    def _until(self, mark):
        """What stands before a mark; None if the connection ends without."""
        searched = 0
        while (at := self.rest.find(mark, searched)) < 0:
            searched = max(0, len(self.rest) - len(mark))
            if not self._more():
                return None
        data = bytes(self.rest[:at])
        del self.rest[:at + len(mark)]
        return data

    def _take(self, response, count):
        """Adds `count` bytes to the body, or what comes of them."""
        while count:
            if not self.rest and not self._more():
                response.whole = False
                return False
            part = self.rest[:count]
            response.body += part
            del self.rest[:count]
            count -= len(part)
        return True

    def receive(self, method="GET"):
        """The next final response, interim ones left out."""
        while True:
            head = self._until(b"\r\n\r\n")
            if head is None:
                raise NoResponse("the connection was closed")
            lines = head.decode("latin-1").split("\r\n")
            status = int(lines[0].split(" ")[1])
            if status >= 200:
                break
        fields = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            name = name.lower()
            fields[name] = f"{fields[name]}, {value.strip()}" if name in fields else value.strip()
        response = Response(status, fields)
        if method != "HEAD" and status not in (204, 304):
            self._body(response)
        return response

    def _body(self, response):
        if response.field("transfer-encoding"):
            while True:
                line = self._until(b"\r\n")
                if not line:
                    response.whole = False
                    return
                size = int(line, 16)
                if size and not self._take(response, size):
                    return
                if self._until(b"\r\n") != b"":
                    response.whole = False
                    return
                if size == 0:
                    return
        elif response.field("content-length"):
            self._take(response, int(response.field("content-length")))
        else:
            while self._more():
                pass
            response.body, self.rest = self.rest, bytearray()
            response.whole = not self.was_reset
