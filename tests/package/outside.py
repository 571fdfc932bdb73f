#!/usr/bin/env python3
"""Serve what the pages on deployments have outside of the machine: members of a service, the web.

  outside.py FOLDER ADDRESS:PORT...

Every address answers every host and path over http, on port 443 over https with FOLDER/site.pem, and
writes its first line of the request to FOLDER/outside.log. It ends with SIGTERM.
"""

import http.server
import pathlib
import ssl
import sys
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fields = {"/": [("Last-Modified", "Sat, 28 Nov 2026 08:00:00 GMT")],
              "/account": [("Cache-Control", "private")],
              "/static/": [("Set-Cookie", "visit=1")]}

    def log_message(self, form, *arguments):
        with open(self.server.log, "a") as log:
            print(*self.server.server_address, form % arguments, file=log)

    def do_GET(self):
        body = f"{self.headers['Host']} {self.path}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        for prefix, fields in self.fields.items():
            if self.path == prefix or prefix == "/static/" and self.path.startswith(prefix):
                for field in fields:
                    self.send_header(*field)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.do_GET()


def main(folder, *addresses):
    folder = pathlib.Path(folder)
    for address in addresses:
        host, port = address.split(":")
        server = http.server.ThreadingHTTPServer((host, int(port)), Handler)
        server.log = folder / "outside.log"
        if port == "443":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(folder / "site.pem")
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever).start()


main(*sys.argv[1:])
