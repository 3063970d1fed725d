"""A server and its client, both in here, by TCP and by a socket that is a file."""

import http.server
import os
import socket
import threading
import urllib.request


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"served")

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with urllib.request.urlopen(f"http://localhost:{server.server_port}/") as reply:
        print(reply.read().decode(), "by TCP")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.path.join(os.environ.get("TMPDIR", "/tmp"), "sample.sock"))
    listener.listen()
    client = socket.socket(socket.AF_UNIX)
    client.connect(listener.getsockname())
    client.sendall(b"by a file")
    print("served", listener.accept()[0].recv(100).decode())


if __name__ == "__main__":
    main()
