# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's mirror: serves the package repositories over HTTP on the fabric's management address.

    python -m lab.repository.server NETNS ADDRESS FOLDER

The socket is made in the lab's network, the files are read on this machine; nothing outside of the lab can
connect, and a host can only read.
"""
from __future__ import annotations

import functools
import http.server
import sys

from lab import netns

PORT = 80


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def server_bind(self) -> None:
        # Not the base class's: it asks the machine's name service for a name.
        http.server.HTTPServer.allow_reuse_address = True
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), PORT


def main() -> None:
    namespace, address, folder = sys.argv[1:]
    with netns.entered(namespace):
        server = Server((address, PORT), functools.partial(Handler, directory=folder))
    print(f"serving {folder} on {address}:{PORT}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
