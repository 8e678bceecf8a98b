"""A git server on loopback that tests start: well-behaved, silent, dripping, redirecting."""

from __future__ import annotations

import base64
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TOKEN = "ghp_FAKE0000"
BASIC = base64.b64encode(f"x-token:{TOKEN}".encode()).decode()


class GitServer(ThreadingHTTPServer):
    """`git http-backend` on loopback; asks for a token, or answers with one status only."""

    daemon_threads = True

    def __init__(self, root: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.root = root
        self.token_wanted = False
        self.status = 0
        self.redirect_to = ""
        self.authorizations: list[str | None] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: GitServer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's
        pass

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        authorization = self.headers.get("Authorization")
        self.server.authorizations.append(authorization)
        if self.server.redirect_to:
            self._refuse(301, "Location", self.server.redirect_to + self.path)
        elif self.server.status:
            self._refuse(self.server.status)
        elif self.server.token_wanted and authorization != f"Basic {BASIC}":
            self._refuse(401, "WWW-Authenticate", 'Basic realm="git"')
        else:
            self._serve()

    def _refuse(self, status: int, name: str = "X-Nothing", value: str = "") -> None:
        self.send_response(status)
        self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _serve(self) -> None:
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.server.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "HOME": "/nonexistent",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type") or "",
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding") or "",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol") or "",
        }
        done = subprocess.run(
            ["git", "http-backend"], input=body, env=environment, check=True, capture_output=True
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = [line.partition(": ") for line in head.decode().split("\r\n")]
        status = next(
            (int(value.split()[0]) for name, _, value in headers if name == "Status"), 200
        )
        self.send_response(status)
        for name, _, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def serving(server: GitServer) -> Iterator[GitServer]:
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def git(*arguments: str, directory: Path = Path("/")) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    command = ["git", *identity, *arguments]
    done = subprocess.run(command, cwd=directory, env=environment, check=True, capture_output=True)
    return done.stdout.decode().strip()


@contextmanager
def listening(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that accepts, and does with each connection what it is told."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threads: list[threading.Thread] = []
        open_now: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                open_now.append(connection)
                thread = threading.Thread(target=serve, args=(connection,))
                threads.append(thread)
                thread.start()

        def serve(connection: socket.socket) -> None:
            with connection:
                answer(connection)

        acceptor = threading.Thread(target=accept)
        acceptor.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/r.git"
        except BaseException:
            # A test that failed waits no more for those who wait for an answer.
            for connection in open_now:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            raise
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            acceptor.join()
        for thread in threads:
            thread.join()


def silence(connection: socket.socket) -> None:
    while connection.recv(4_096):
        pass


def drip(connection: socket.socket) -> None:
    connection.recv(4_096)
    kind = b"application/x-git-upload-pack-advertisement"
    try:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: " + kind + b"\r\n\r\n")
        for byte in b"001e# service=git-upload-pack\n" * 20:
            connection.sendall(bytes([byte]))
            time.sleep(0.2)
    except OSError:
        return


def processes_with(words: str) -> list[str]:
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = place.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if words in line:
            found.append(line)
    return found


def files_that_hold(folder: Path, words: str) -> list[Path]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if words.encode() in path.read_bytes()]
