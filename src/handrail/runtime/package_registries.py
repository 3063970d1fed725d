"""The package registries of installed clients, from the variables and files that a command sees. No client is run."""

import os
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from glob import escape, glob
from io import BytesIO
from typing import NamedTuple

from handrail.sandbox.environment import list_approved_variables
from handrail.sandbox.mounts import Mount, is_shown
from handrail.sandbox.profile import SandboxHost, SandboxProfile
from handrail.sandbox.view import build_base_view, build_view
from handrail.workspace.resolve import READ_FILE
from handrail.workspace.roots import find_descriptor_path

_MAX_CONFIG_BYTES, _MAX_SOURCE_BYTES, _MAX_WHEEL_BYTES = 1 << 16, 1 << 18, 1 << 22
_PIP_INDEX = "pip/_internal/models/index.py"
_PIP_DEFAULT = r"""^PyPI = PackageIndex\(\s*["'](https?://[^"']+)["'],\s*file_storage_domain=["']([\w.-]+)"""


class _Client(NamedTuple):
    """Where a client is told which registries it uses."""

    program: str
    """It lies in `bin` of a prefix, which holds the client's own files."""
    defaults: tuple[str, ...]
    """The client's own files, below the prefix."""
    default: re.Pattern[str]
    variables: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """Configuration files, below the prefix too. Files that may hold credentials, such as `.npmrc`, are not read."""
    keys: tuple[str, ...] = ()
    """A key or variable with `extra` in its name adds registries. Any other replaces the default."""


_PIP = _Client(
    program="python3",
    defaults=(f"lib/python3*/*-packages/{_PIP_INDEX}", "lib/python3*/ensurepip/_bundled/pip-*.whl"),
    default=re.compile(_PIP_DEFAULT, re.MULTILINE),
    variables=("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"),
    files=("pip.conf", "/etc/pip.conf"),
    keys=("index-url", "extra-index-url"),
)
_CLIENTS = {
    "pip": _PIP,
    "uv": _PIP._replace(
        variables=("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL"),
        files=("/etc/uv/uv.toml",),
    ),
    "npm": _Client(
        program="npm",
        defaults=(
            "node_modules/@npmcli/config/lib/definitions/definitions.js",
            "lib/node_modules/npm/node_modules/@npmcli/config/lib/definitions/definitions.js",
            "share/nodejs/@npmcli/config/lib/definitions/definitions.js",
        ),
        default=re.compile(r"""\('registry', \{\s*default: ["'`](https?://[^"'`]+)"""),
    ),
    "go": _Client(
        program="go",
        defaults=("go.env",),
        default=re.compile(r"^GOPROXY=(https?://[^,|\s]+)[^\n]*\nGOSUMDB=([\w.-]+)", re.MULTILINE),
        variables=("GOPROXY",),
    ),
}


class _CommandView(NamedTuple):
    """What a command sees once a person approved it."""

    variables: Mapping[str, str]
    mounts: tuple[Mount, ...]

    def read(self, path: str, most: int) -> bytes:
        """The beginning of a regular file; nothing if a command does not see one there."""
        with suppress(OSError, ValueError):
            real = os.path.realpath(path)
            if is_shown(self.mounts, real):
                with open(os.open(real, READ_FILE), "rb") as file:
                    is_regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
                    return file.read(most) if is_regular and find_descriptor_path(file.fileno()) == real else b""
        return b""


def find_registry_urls(name: str, host: SandboxHost, roots: tuple[str, ...]) -> list[str]:
    """The URLs of the registries that a client is configured for, or its defaults. Empty if they are not known."""
    client = _CLIENTS.get(name)
    if client is None:
        return []
    profile = SandboxProfile(origin="approved", cwd="/", read_only=(), writable=roots)
    view = _CommandView(list_approved_variables(host, roots), build_view(profile, build_base_view(host, roots)))
    prefixes = list(_list_prefixes(client.program, view))
    urls = [(key, url) for key, value in _list_configured(client, view, prefixes) for url in _split_urls(value)]
    main = [url for key, url in urls if "extra" not in key.lower()] or _find_default(client, view, prefixes)
    return [*main, *(url for key, url in urls if "extra" in key.lower())] if main else []


def _list_prefixes(program: str, view: _CommandView) -> Iterator[str]:
    for entry in view.variables.get("PATH", "").split(":"):
        path = f"{entry}/{program}"
        if os.path.isfile(path):
            yield from dict.fromkeys(
                os.path.dirname(os.path.dirname(place)) for place in (path, os.path.realpath(path))
            )


def _list_configured(client: _Client, view: _CommandView, prefixes: list[str]) -> Iterator[tuple[str, str]]:
    """Settings with their values. A value that replaces the default is the strongest one."""
    yield from ((name, view.variables[name]) for name in client.variables if name in view.variables)
    paths = [
        path for name in client.files for path in ([name] if name[0] == "/" else [f"{p}/{name}" for p in prefixes])
    ]
    text = "\n".join(view.read(path, _MAX_CONFIG_BYTES).decode(errors="replace") for path in paths)
    for key in client.keys:
        pattern = rf"^[ \t]*{key.replace('-', '[-_]')}[ \t]*=(.*(?:\n[ \t]+\S.*)*)"  # indented lines go on
        for match in re.finditer(pattern, text, re.MULTILINE):
            yield key, match[1]


def _split_urls(value: str) -> list[str]:
    """A URL with a user may have commas in it, so only blanks divide such values."""
    words = value.split() if "@" in value else re.split(r"[\s,|]+", value)
    return [word.strip("\"'") for word in words if "://" in word]


def _find_default(client: _Client, view: _CommandView, prefixes: list[str]) -> list[str]:
    patterns = [f"{escape(prefix)}/{pattern}" for prefix in prefixes for pattern in client.defaults]
    for path in (path for pattern in patterns for path in sorted(glob(pattern))):
        if path.endswith(".whl"):
            text = _read_wheel(view.read(path, _MAX_WHEEL_BYTES))
        else:
            text = view.read(path, _MAX_SOURCE_BYTES).decode(errors="replace")
        if match := client.default.search(text):
            return [value if "://" in value else f"https://{value}" for value in match.groups()]
    return []


def _read_wheel(archive: bytes) -> str:
    """The module of pip that names its index, from the wheel that Python bundles."""
    errors = (zipfile.BadZipFile, zlib.error, KeyError, OSError, ValueError, RuntimeError, EOFError)
    with suppress(*errors), zipfile.ZipFile(BytesIO(archive)) as opened, opened.open(_PIP_INDEX) as file:
        if opened.getinfo(_PIP_INDEX).compress_type == zipfile.ZIP_DEFLATED:
            return file.read(_MAX_SOURCE_BYTES).decode(errors="replace")
    return ""
