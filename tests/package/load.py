#!/usr/bin/env python3
"""Send requests for one page over HTTP, a connection for each, until SIGTERM, and print what became of them.

  load.py ADDRESS:PORT URL [SOURCE]

SOURCE is the address to send from.

The output is a line when the first one has ended, and at the end a line of JSON: how many were
answered with status 200, and the reason of each other one.
"""

import http.client
import json
import signal
import sys

stopped = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))


def main(server, url, source=""):
    answered, failures = 0, []
    while not stopped:
        connection = http.client.HTTPConnection(server, timeout=60, source_address=(source, 0))
        try:
            connection.request("GET", url)
            response = connection.getresponse()
            response.read()
            if response.status == 200:
                answered += 1
            else:
                failures.append(f"status {response.status}")
        except (OSError, http.client.HTTPException) as error:
            failures.append(repr(error))
        finally:
            connection.close()
        if answered + len(failures) == 1:
            print("begun", flush=True)
    json.dump({"answered": answered, "failures": failures}, sys.stdout)


main(*sys.argv[1:])
