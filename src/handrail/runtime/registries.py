"""The package registries of installed clients, from the variables and files that a command sees. No client is run."""

import os
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from glob import escape, glob
from io import BytesIO
from typing import NamedTuple

from handrail.protocol.errors import ToolError
from handrail.sandbox.confinement import SandboxProfile
from handrail.sandbox.host import SandboxHost
from handrail.sandbox.variables.approved import list_approved_variables
from handrail.sandbox.view.mounts import Mount, is_shown, is_within
from handrail.sandbox.view.view import build_base_view, build_view
from handrail.workspace.resolve import READ_FILE
from handrail.workspace.workspace import Workspace

_MAX_CONFIG_BYTES = 1 << 16
_MAX_SOURCE_BYTES = 1 << 18
_MAX_ARCHIVE_BYTES = 1 << 22
_MAX_LINE_CHARS = 2_000


class _Client(NamedTuple):
    settings: tuple[str, ...]
    """Variables and keys of files with the same meaning. The first source counts, or each after `+`."""
    files: tuple[str, ...] = ()
    """Nearest first. `./`: in the command's folder and those above it. `$NAME/`: a variable. `<program>/`: where the
    program is installed. `archive!member`: part of a zip file."""


_INDEX = "pip/_internal/models/index.py"
_PIP = (
    f"<python3>/lib/python3*/*-packages/{_INDEX}",
    f"<python3>/versions/*/lib/python3*/*-packages/{_INDEX}",
    f"<python3>/lib/python3*/ensurepip/_bundled/pip-*.whl!{_INDEX}",
    f"<python3>/share/python-wheels/pip-*.whl!{_INDEX}",
)
_PIP_FILES = ("$VIRTUAL_ENV/pip.conf", "<python3>/pip.conf", "$HOME/.config/pip/pip.conf", "$HOME/.pip/pip.conf")
_DEFINITIONS = "@npmcli/config/lib/definitions/definitions.js"
_NPM = ("./.npmrc", "$HOME/.npmrc", "<npm>/npmrc", "<node>/etc/npmrc", f"<npm>/node_modules/{_DEFINITIONS}")
_NPM = (*_NPM, f"<npm>/../{_DEFINITIONS}", "<npm>/lib/utils/config/definitions.js")
_NPM_REGISTRY = "NPM_CONFIG_REGISTRY npm_config_registry registry *"
_GEM = ("$HOME/.gemrc", "/etc/gemrc", "<ruby>/lib/ruby/*/rubygems/defaults.rb")
_CLIENTS = {
    "pip": _Client(
        ("PIP_INDEX_URL index-url *", "+PIP_EXTRA_INDEX_URL extra-index-url"),
        ("$PIP_CONFIG_FILE", *_PIP_FILES, "/etc/xdg/pip/pip.conf", "/etc/pip.conf", *_PIP),
    ),
    "uv": _Client(
        (
            "UV_DEFAULT_INDEX UV_INDEX_URL index.default-url index-url *",
            "+UV_INDEX UV_EXTRA_INDEX_URL index.url index extra-index-url",
        ),
        ("$UV_CONFIG_FILE", "./uv.toml", "./pyproject.toml", "$HOME/.config/uv/uv.toml", "/etc/uv/uv.toml", *_PIP),
    ),
    "poetry": _Client(("source.default-url *", "+source.url"), ("./pyproject.toml", *_PIP)),
    "pdm": _Client(
        ("PDM_PYPI_URL source.default-url pypi.url *", "+source.url"), ("./pdm.toml", "./pyproject.toml", *_PIP)
    ),
    "pipenv": _Client(("PIPENV_PYPI_MIRROR source.default-url source.url *", "+source.url"), ("./Pipfile", *_PIP)),
    "uv publish": _Client(("UV_PUBLISH_URL publish-url",), ("./uv.toml", "./pyproject.toml")),
    "npm": _Client((_NPM_REGISTRY, "+scope-registry"), _NPM),
    "bun": _Client((f"BUN_CONFIG_REGISTRY {_NPM_REGISTRY}", "+scope-registry"), ("./bunfig.toml", *_NPM)),
    "yarn": _Client(
        ("YARN_NPM_REGISTRY_SERVER YARN_REGISTRY npmregistryserver registry", "+scope-registry"),
        ("./.yarnrc.yml", "./.yarnrc", "./.npmrc"),
    ),
    "deno": _Client(("JSR_URL", _NPM_REGISTRY), _NPM),
    "cargo": _Client(("registry", "+index"), ("./.cargo/config.toml", "./.cargo/config", "$CARGO_HOME/config.toml")),
    "go": _Client(("GOPROXY goproxy", "GOSUMDB gosumdb"), ("$HOME/.config/go/env", "$GOROOT/go.env", "<go>/go.env")),
    "gem": _Client(("sources *",), _GEM),
    "bundle": _Client(("source *",), ("./Gemfile", *_GEM)),
    "composer": _Client(("*", "+url"), ("./composer.json",)),
    "dotnet": _Client(("*",), ("./NuGet.Config", "./nuget.config")),
    "mix": _Client(("HEX_MIRROR_URL HEX_MIRROR",)),
    "mvn": _Client(("*",), ("<mvn>/lib/maven-model-builder-*.jar!org/apache/maven/model/pom-4.0.0.xml",)),
    "conda": _Client(("*",), ("<conda>/lib/python3*/site-packages/conda/base/constants.py",)),
    "dart": _Client(("PUB_HOSTED_URL", "+FLUTTER_STORAGE_BASE_URL")),
}
_DEFAULTS = {
    "index.py": r"""^PyPI = PackageIndex\(\s*["'](https?://[^"']+)["'],\s*file_storage_domain=["']([\w.-]+)""",
    "definitions.js": r"""\('registry', \{\s*default: ["'`](https?://[^"'`]+)""",
    "defaults.rb": r"""def self\.default_sources\s+%w\[(https?://[^\]\s]+)""",
    "pom-4.0.0.xml": r"<url>(https?://[^<]+)</url>",
    "constants.py": r"""^DEFAULT_CHANNEL(?:_ALIAS|S_UNIX)\b[^=\n]*=\s*\(?\s*["'](https?://[^"']+)""",
    "nuget.config": r'<add key="[^"]*" value="(https?://[^"]+)"',
}
"""Where the source of a client, or a file without keys, has its registries. By file name, lower-case."""
_SECTION = re.compile(r"\[+\s*([^\[\]]*?)\s*\]+\Z")
_PAIR = re.compile(r"""["':]?([@A-Za-z][\w@./-]*(?::registry)?)["']?\s*[=: ]\s*(.*)""")
_URL = re.compile(r"""(["']?)(https?://[^\s"'<>]++)\1(?=[\s,\]};]|\Z)""")
_PRIMARY = frozenset({("default", "true"), ("name", "pypi"), ("priority", "primary"), ("priority", "default")})
"""Entries of an index with one of these settings replace the default index."""
_GO = frozenset({"GOPROXY", "GOSUMDB"})
Source = Mapping[str, list[str]]
"""The values of each variable, or of each key of a file. `*`: the default of a client."""


class CommandFiles(NamedTuple):
    """The variables and files that a command sees once a person approved it."""

    workspace: Workspace
    variables: Mapping[str, str]
    mounts: tuple[Mount, ...]

    @classmethod
    def from_host(cls, workspace: Workspace, host: SandboxHost) -> "CommandFiles":
        roots = tuple(root.path for root in workspace.roots)
        profile = SandboxProfile(origin="approved", cwd="/", read_only=(), writable=roots)
        mounts = build_view(profile, build_base_view(host, roots))
        return cls(workspace, list_approved_variables(host, roots), mounts)

    def read(self, path: str, most: int) -> bytes:
        """The beginning of a regular file; nothing if a command does not see one there."""
        real = os.path.realpath(path)
        if not is_shown(self.mounts, real):
            return b""
        try:
            if any(is_within(real, root.path) for root in self.workspace.roots):
                descriptor = self.workspace.open_spelled(self.workspace.parse(real), READ_FILE).descriptor
            else:
                descriptor = os.open(real, READ_FILE)
            with open(descriptor, "rb") as file:
                return file.read(most) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
        except (OSError, ToolError):
            return b""


def find_registry_urls(client: str, files: CommandFiles, folder: str) -> tuple[str, ...]:
    """The URLs of the registries that a client reaches from a folder. Empty ones stand for unknown registries."""
    known = _CLIENTS.get(client, _Client(("*",)))
    variables = {name: [value] for name, value in files.variables.items()}
    sources = [variables, *_read_sources(known.files, files, folder)]
    return tuple(dict.fromkeys(url for setting in known.settings for url in _resolve_setting(setting, sources)))


def _resolve_setting(setting: str, sources: list[Source]) -> list[str]:
    words = setting.removeprefix("+").split()
    found = [values for source in sources if (values := [one for word in words for one in source.get(word, ())])]
    if setting.startswith("+"):
        return [url for values in found for value in values for url in _find_urls(value)]
    values = found[0] if found else []
    urls = [url for value in values for url in (_split_go(value) if words[0] in _GO else _find_urls(value))]
    return urls or ([] if values == ["off"] else [""])


def _find_urls(value: str) -> list[str]:
    return [match[2] for match in _URL.finditer(value)]


def _split_go(value: str) -> list[str]:
    """The URLs in Go's lists, and the host of a checksum database, which may precede its key."""
    parts = [part for part in re.split(r"[,|\s]", value) if "." in part]
    return [part if "://" in part else f"https://{part.partition('+')[0]}" for part in parts]


def _read_sources(patterns: tuple[str, ...], files: CommandFiles, folder: str) -> Iterator[Source]:
    """The settings in each file, up to the first file with a default."""
    for path in (path for pattern in patterns for path in _expand_pattern(pattern, files, folder)):
        archive, _, member = path.partition("!")
        default = _DEFAULTS.get(os.path.basename(member or archive).lower())
        most = _MAX_ARCHIVE_BYTES if member else _MAX_SOURCE_BYTES if default else _MAX_CONFIG_BYTES
        content = files.read(archive, most)
        text = (_read_member(content, member) if member else content).decode(errors="replace")
        if default is None:
            yield _parse_settings(text)
        elif matches := list(re.finditer(default, text, re.MULTILINE)):
            addresses = [address for match in matches for address in match.groups()]
            yield {"*": [one if "://" in one else f"https://{one}" for one in addresses]}
            return


def _expand_pattern(pattern: str, files: CommandFiles, folder: str) -> Iterator[str]:
    start, slash, rest = pattern.partition("/")
    if start == ".":
        places = _list_folders_above(files.workspace, folder)
    elif start.startswith("$"):
        places = filter(None, [files.variables.get(start[1:], "")])
    else:
        places = _find_prefixes(start.strip("<>"), files.variables["PATH"]) if start else [""]
    for place in places:
        path, mark, member = f"{rest}".partition("!")
        found = sorted(glob(f"{escape(place)}{slash}{path}")) if "*" in path else [f"{place}{slash}{path}"]
        yield from (f"{one}{mark}{member}" for one in found)


def _list_folders_above(workspace: Workspace, folder: str) -> Iterator[str]:
    here = os.path.normpath(os.path.join(workspace.main.path, folder))
    while any(is_within(here, root.path) for root in workspace.roots):
        yield here
        here = os.path.dirname(here)


def _find_prefixes(program: str, path: str) -> dict[str, None]:
    """Where a program is installed: above the folders of PATH that have it, and above the files they link to."""
    there = [f"{folder}/{program}" for folder in path.split(":") if os.path.isfile(f"{folder}/{program}")]
    return dict.fromkeys(os.path.dirname(os.path.dirname(one)) for at in there for one in (at, os.path.realpath(at)))


def _read_member(archive: bytes, member: str) -> bytes:
    try:
        with zipfile.ZipFile(BytesIO(archive)) as opened:
            if opened.getinfo(member).compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
                return b""
            with opened.open(member) as file:
                return file.read(_MAX_SOURCE_BYTES)
    except (zipfile.BadZipFile, zlib.error, KeyError, OSError, ValueError, RuntimeError, EOFError):
        return b""


def _parse_settings(text: str) -> Source:
    """The values of keys in INI, TOML, npm's and similar files, read by lines. Also by `section.key`."""
    found: dict[str, list[str]] = {}
    for section, block in _split_blocks(text):
        is_primary = any((key, value.strip("\"' ")) in _PRIMARY for key, values in block.items() for value in values)
        for key, values in block.items():
            name = "default-url" if is_primary and key == "url" else key
            for full in (name, f"{section}.{name}"):
                found.setdefault(full, []).extend(values)
    return found


def _split_blocks(text: str) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """The sections of a file, by the last part of their names. A line with only a URL belongs to the key above it."""
    section, key = "", ""
    block: dict[str, list[str]] = {}
    for line in (line[:_MAX_LINE_CHARS].strip() for line in text.splitlines()):
        if header := _SECTION.match(line):
            yield section, block
            section, key, block = header[1].rpartition(".")[2].lower(), "", {}
        elif key and line.lstrip("-\"' ").startswith(("http://", "https://")):
            block[key].append(line)
        elif pair := _PAIR.match(line):
            key = pair[1].lower().replace("_", "-")
            key = "scope-registry" if key.endswith(":registry") else key
            block.setdefault(key, []).append(pair[2])
    yield section, block
