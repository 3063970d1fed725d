"""Servers on this machine's loopback that real programs fetch from: packages for pip and npm, repositories for git."""

import http.server
import json
import os
import ssl
import subprocess
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.sandbox.proxied import Quiet, web

WHEEL = "sample-1.0-py3-none-any.whl"
_METADATA = "Metadata-Version: 2.1\nName: sample\nVersion: 1.0\n"


def fill_index(folder: Path) -> None:
    """A package index with one package, as pip reads it, and a registry with one, as npm does."""
    simple = folder / "simple" / "sample"
    simple.mkdir(parents=True)
    (simple / "index.html").write_text(f'<!DOCTYPE html><html><body><a href="{WHEEL}">{WHEEL}</a></body></html>')
    with zipfile.ZipFile(simple / WHEEL, "w") as wheel:
        wheel.writestr("sample.py", "")
        wheel.writestr("sample-1.0.dist-info/METADATA", _METADATA)
        wheel.writestr("sample-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("sample-1.0.dist-info/RECORD", "")
    version = {"name": "sample", "version": "4.2.0", "dist": {"tarball": "http://127.0.0.1/x.tgz", "shasum": "0"}}
    document = {"name": "sample", "dist-tags": {"latest": "4.2.0"}, "versions": {"4.2.0": version}}
    (folder / "sample").write_text(json.dumps(document))


def make_repository(folder: Path) -> str:
    """A bare repository at `repository.git`, with one commit; gives the commit."""
    environment = {
        **{f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
    }

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=folder, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    git("init", "--quiet", "--bare", "--initial-branch=main", "repository.git")
    tree = git("-C", "repository.git", "mktree", "--missing")
    commit = git("-C", "repository.git", "commit-tree", tree, "-m", "one")
    git("-C", "repository.git", "update-ref", "refs/heads/main", commit)
    git("-C", "repository.git", "update-server-info")
    return commit


class Git(Quiet):
    """Speaks git's own protocol over HTTP, by git's program for that."""

    def do_GET(self) -> None:  # noqa: N802  as the library calls it
        self._run(b"")

    def do_POST(self) -> None:  # noqa: N802  as above
        self._run(self.rfile.read(int(self.headers["Content-Length"])))

    def _run(self, body: bytes) -> None:
        path, _, query = self.path.partition("?")
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": self.directory,
            "GIT_PROJECT_ROOT": self.directory,
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        done = subprocess.run(
            ["git", "http-backend"], env=environment, input=body, stdout=subprocess.PIPE, timeout=60, check=True
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class Elsewhere(Quiet):
    """Sends everybody to another host."""

    def do_GET(self) -> None:  # noqa: N802  as the library calls it
        self.send_response(302)
        self.send_header("Location", "http://elsewhere.test/taken")
        self.send_header("Content-Length", "0")
        self.end_headers()


@contextmanager
def secure_web(folder: Path) -> Iterator[http.server.HTTPServer]:
    """The same over TLS, with a certificate that it signed itself, at `certificate.pem`."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"),
            *("-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate),
        ],
        capture_output=True,
        check=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with web(folder, wrap=context) as server:
        yield server
