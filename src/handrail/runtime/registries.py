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

from handrail.sandbox.confinement import SandboxProfile
from handrail.sandbox.host import SandboxHost
from handrail.sandbox.variables.approved import list_approved_variables
from handrail.sandbox.view.mounts import Mount, is_shown
from handrail.sandbox.view.view import build_base_view, build_view
from handrail.workspace.resolve import READ_FILE
from handrail.workspace.roots import find_descriptor_path

_MAX_CONFIG_BYTES, _MAX_SOURCE_BYTES, _MAX_ARCHIVE_BYTES = 1 << 16, 1 << 18, 1 << 22
_MAX_VALUE_CHARS = 2_000
_INDEX = "pip/_internal/models/index.py"
_PIP = (
    f"<python3>/lib/python3*/*-packages/{_INDEX}|versions/*/lib/python3*/*-packages/{_INDEX}"
    f"|lib/python3*/ensurepip/_bundled/pip-*.whl!{_INDEX}|share/python-wheels/pip-*.whl!{_INDEX}"
)
_PIP_CONF = "$PIP_CONFIG_FILE $VIRTUAL_ENV/pip.conf <python3>/pip.conf $HOME/.config/pip/pip.conf /etc/pip.conf"
_CONFIG_JS = "@npmcli/config/lib/definitions/definitions.js"
_NPM = f"./.npmrc $HOME/.npmrc <npm>/npmrc <npm>/node_modules/{_CONFIG_JS} <npm>/../{_CONFIG_JS}"
_GEM = "$HOME/.gemrc /etc/gemrc <ruby>/lib/ruby/*/rubygems/defaults.rb"
_CLIENTS = {
    "pip": ("PIP_INDEX_URL index-url *, +PIP_EXTRA_INDEX_URL extra-index-url", f"{_PIP_CONF} {_PIP}"),
    "uv": (
        "UV_DEFAULT_INDEX UV_INDEX_URL index.main index-url *, +UV_INDEX UV_EXTRA_INDEX_URL index.url extra-index-url",
        f"./uv.toml ./pyproject.toml $HOME/.config/uv/uv.toml /etc/uv/uv.toml {_PIP}",
    ),
    **dict.fromkeys(["poetry", "pdm", "pipenv"], ("source.main *, +source.url", f"./pyproject.toml ./Pipfile {_PIP}")),
    "npm": ("registry *, +scope-registry", _NPM),
    "yarn": ("YARN_NPM_REGISTRY_SERVER YARN_REGISTRY npmregistryserver registry", "./.yarnrc.yml ./.yarnrc ./.npmrc"),
    "cargo": ("registry, +index", "./.cargo/config.toml $CARGO_HOME/config.toml"),
    "go": ("GOPROXY goproxy, GOSUMDB gosumdb", "$HOME/.config/go/env $GOROOT/go.env <go>/go.env"),
    "gem": ("sources *", _GEM),
    "bundle": ("source *", f"./Gemfile {_GEM}"),
}
"""Settings and files, nearest first. A setting has variables and keys. Its first source counts, after `+` each source.
`*`: a default. `./`: the folder and those above. `<x>/a|b`: a or b where x is installed. `a!b`: b in the zip file a."""
_DEFAULTS = {
    "index.py": r"""^PyPI = PackageIndex\(\s*["'](https?://[^"']+)["'],\s*file_storage_domain=["']([\w.-]+)""",
    "definitions.js": r"""\('registry', \{\s*default: ["'`](https?://[^"'`]+)""",
    "defaults.rb": r"""def self\.default_sources\s+%w\[(https?://[^\]\s]+)""",
}
_SECTION = re.compile(r"^[ \t]*\[++([^\[\]\n]++)\]++[ \t\r]*$", re.MULTILINE)
_PAIR = re.compile(
    r"""^[ \t]*+["':]?([@A-Za-z][\w@./-]*+(?::registry)?)["']?[ \t]*[=: ](.*(?:\n[ \t"'-]*+https?://.*)*)""",
    re.MULTILINE,
)
_URL = re.compile(r"""(["']?)(?:sparse\+)?(https?://[^\s"'<>,|]++)\1(?=[\s,|\]};]|\Z)(?![^\s"']*@)""")
_BARE_HOST = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)+")
_PRIMARY = {("default", "true"), ("name", "pypi"), ("priority", "primary")}
"""Marks of an index that replaces the default."""


class _CommandView(NamedTuple):
    """What a command sees once a person approved it."""

    roots: tuple[str, ...]
    """The first one is the workspace."""
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


def find_registry_urls(client: str, host: SandboxHost, roots: tuple[str, ...], folder: str) -> list[str]:
    """The URLs of the registries that a client reaches from a folder. An empty one stands for an unknown registry."""
    profile = SandboxProfile(origin="approved", cwd="/", read_only=(), writable=roots)
    variables = list_approved_variables(host, roots)
    view = _CommandView(roots, variables, build_view(profile, build_base_view(host, roots)))
    settings, patterns = _CLIENTS.get(client, ("*", ""))
    sources = [{name: [value] for name, value in variables.items()}, *_read_sources(patterns, view, folder)]
    return [url for setting in settings.split(", ") for url in _resolve_setting(setting, sources)]


def _resolve_setting(setting: str, sources: list[dict[str, list[str]]]) -> list[str]:
    words = setting.removeprefix("+").split()
    found = [values for source in sources if (values := [one for word in words for one in source.get(word, ())])]
    is_added = setting.startswith("+")
    urls = [url for values in (found if is_added else found[:1]) for value in values for url in _find_urls(value)]
    return urls if urls or is_added or found[:1] == [["off"]] else [""]


def _find_urls(value: str) -> list[str]:
    is_bare = _BARE_HOST.fullmatch(value)
    return [f"https://{value}"] if is_bare else [match[2] for match in _URL.finditer(value[:_MAX_VALUE_CHARS])]


def _read_sources(patterns: str, view: _CommandView, folder: str) -> Iterator[dict[str, list[str]]]:
    """The settings in each file, up to the first default."""
    for path in (path for pattern in patterns.split() for path in _expand_pattern(pattern, view, folder)):
        place, _, member = path.partition("!")
        default = _DEFAULTS.get(os.path.basename(member or place))
        most = _MAX_ARCHIVE_BYTES if member else _MAX_SOURCE_BYTES if default else _MAX_CONFIG_BYTES
        content = view.read(place, most)
        text = (_read_member(content, member) if member else content).decode(errors="replace")
        if default is None:
            yield _parse_settings(text)
        elif match := re.search(default, text, re.MULTILINE):
            yield {"*": list(match.groups())}
            return


def _expand_pattern(pattern: str, view: _CommandView, folder: str) -> Iterator[str]:
    start, slash, rest = pattern.partition("/")
    if start.startswith("$"):
        places = [place for place in [view.variables.get(start[1:])] if place]
    elif start == ".":
        inner = os.path.normpath(os.path.join(view.roots[0], folder)).split("/")
        above = ["/".join(inner[:n]) for n in range(len(inner), 1, -1)]
        places = [place for place in above if any(f"{place}/".startswith(f"{root}/") for root in view.roots)]
    else:
        programs = [f"{entry}/{start.strip('<>')}" for entry in view.variables["PATH"].split(":") if start]
        there = [one for path in programs if os.path.isfile(path) for one in (path, os.path.realpath(path))]
        places = [os.path.dirname(os.path.dirname(path)) for path in there] if start else [""]
    for path, option in ((place, option) for place in dict.fromkeys(places) for option in rest.split("|")):
        inside, mark, member = option.partition("!")
        found = sorted(glob(f"{escape(path)}/{inside}")) if "*" in inside else [f"{path}{slash}{inside}"]
        yield from (f"{one}{mark}{member}" for one in found)


def _read_member(archive: bytes, member: str) -> bytes:
    errors = (zipfile.BadZipFile, zlib.error, KeyError, OSError, ValueError, RuntimeError, EOFError)
    with suppress(*errors), zipfile.ZipFile(BytesIO(archive)) as opened, opened.open(member) as file:
        return file.read(_MAX_SOURCE_BYTES) if opened.getinfo(member).compress_type == zipfile.ZIP_DEFLATED else b""
    return b""


def _parse_settings(text: str) -> dict[str, list[str]]:
    """The values of keys in INI, TOML, npm's and similar files, also by `section.key`."""
    found: dict[str, list[str]] = {}
    parts = ["", *_SECTION.split(text)]
    for section, body in zip(parts[::2], parts[1::2], strict=True):
        pairs = [(match[1].lower().replace("_", "-"), match[2].strip()) for match in _PAIR.finditer(body)]
        primary = any((key, value.strip("\"'")) in _PRIMARY for key, value in pairs)
        for key, value in pairs:
            name = "main" if primary and key == "url" else "scope-registry" if ":" in key else key
            for full in (name, f"{section.strip().rpartition('.')[2]}.{name}"):
                found.setdefault(full, []).append(value)
    return found
