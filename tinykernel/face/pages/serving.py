"""Serve one page to the browser of this computer, and to nobody else."""

from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

_HOST = "127.0.0.1"


def serve_page(page: bytes, ready: Callable[[str], None]) -> None:
    """Serve a page on a free port of 127.0.0.1 until Ctrl-C; `ready` takes its address."""
    server = ThreadingHTTPServer((_HOST, 0), _handler_of(page))
    with server, suppress(KeyboardInterrupt):
        address = f"http://{_HOST}:{server.server_port}/"
        # A browser of the terminal returns only when it ends.
        Thread(target=ready, args=(address,), daemon=True).start()
        server.serve_forever()


def _handler_of(page: bytes) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            # A name of another site that resolves to this computer is no request of its user.
            port = self.connection.getsockname()[1]
            if self.headers.get("Host") not in (f"{_HOST}:{port}", f"localhost:{port}"):
                self.send_error(403, "only for this computer")
            elif self.path != "/":
                self.send_error(404)
            else:
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(page)))
                self.end_headers()
                with suppress(ConnectionError):  # the browser went away
                    self.wfile.write(page)

        def log_message(self, *_: object) -> None:
            """Say nothing: the page is for one person."""

    return Handler
