"""An origin that answers each path with fixed bytes, and counts what comes."""

import re
import select
import socket
import threading


class RawOrigin:
    """Until the test ends. `answers` has the bytes for each path; other paths get 200 and "fine".
    After bytes from `closing` paths the connection is closed; otherwise it is kept. `workers`
    bounds the connections that are served at a time; 0 is no bound."""

    FINE = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine"

    def __init__(self, test, answers=None, closing=(), workers=0):
        self.answers = answers or {}
        self.closing = closing
        self.lock = threading.Lock()
        self.open = self.connections = 0
        self.arrivals = []  # (method, path) of each request that was read to its end
        self.connection_of = []  # the number of the connection that each of them came on
        self.heads = []
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self.socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.places = threading.Semaphore(workers) if workers else None
        self.ending, self.wake = socket.socketpair()
        self.thread = threading.Thread(target=self._accept)
        self.thread.start()
        test.addCleanup(self.end)

    def end(self):
        """Nothing listens there afterwards."""
        self.wake.close()
        self.thread.join()
        self.socket.close()
        self.ending.close()

    def _accept(self):
        threads = []
        while True:
            if self.places and not self._wait_for_place():
                break
            if self.ending in select.select([self.socket, self.ending], [], [])[0]:
                break
            connection, _ = self.socket.accept()
            with self.lock:
                self.connections += 1
                self.open += 1
                number = self.connections
            threads.append(threading.Thread(target=self._serve, args=(connection, number)))
            threads[-1].start()
        for thread in threads:
            thread.join()

    def _wait_for_place(self):
        while not self.places.acquire(timeout=0.05):
            if select.select([self.ending], [], [], 0)[0]:
                return False
        return True

    def _serve(self, connection, number):
        try:
            with connection:
                self._answer(connection, number)
        except ConnectionError:
            pass
        with self.lock:
            self.open -= 1
        if self.places:
            self.places.release()

    def _answer(self, connection, number):
        data = b""
        while True:
            while not (request := self._take(data)):
                if self.ending in select.select([connection, self.ending], [], [])[0]:
                    return
                more = connection.recv(65536)
                if not more:
                    return
                data += more
            head, data = request
            method, path = head.split(b" ", 2)[:2]
            path = path.decode()
            with self.lock:
                self.arrivals.append((method.decode(), path))
                self.connection_of.append(number)
                self.heads.append(head)
            connection.sendall(self.answers.get(path, self.FINE))
            if path in self.closing:
                return

    @staticmethod
    def _take(data):
        """The head of a request that has come whole, and what is behind it."""
        head, end, rest = data.partition(b"\r\n\r\n")
        if not end:
            return None
        stated = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
        length = int(stated[1]) if stated else 0
        return (head, rest[length:]) if len(rest) >= length else None
