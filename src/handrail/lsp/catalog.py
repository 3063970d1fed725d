"""The language servers that handrail knows, with those that are installed here."""

import os
import shlex
import shutil
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from handrail.protocol.errors import UsageError
from handrail.settings.paths import is_located_in

_PYTHON = {"py": "python", "pyi": "python"}
_SCRIPT = {
    **dict.fromkeys(("js", "mjs", "cjs"), "javascript"),
    **dict.fromkeys(("ts", "mts", "cts"), "typescript"),
    "jsx": "javascriptreact",
    "tsx": "typescriptreact",
}
_C = {**dict.fromkeys(("c", "h"), "c"), **dict.fromkeys(("cc", "cpp", "cxx", "hh", "hpp", "hxx"), "cpp")}
_SHELL = {"sh": "shellscript", "bash": "shellscript"}
_PYTHON_MARKERS = ("pyproject.toml", "ty.toml", "pyrightconfig.json", "setup.py", "setup.cfg", "requirements.txt")


class LanguageServerSpec(msgspec.Struct, frozen=True):
    """A language server: how it is started, and for which files."""

    name: str
    words: tuple[str, ...]
    """The program, with its arguments."""
    languages: Mapping[str, str]
    """Language ids by the ending of a file's name."""
    markers: tuple[str, ...] = ()
    """Files in the root of a project. A change of one may change what the server says."""
    options: Mapping[str, Any] = {}
    """`initializationOptions`."""

    def is_relevant(self, name: str) -> bool:
        """Whether a change of a file with this name matters to the server."""
        return get_ending(name) in self.languages or name in self.markers


_CATALOG = (
    LanguageServerSpec("ty", ("ty", "server"), _PYTHON, _PYTHON_MARKERS),
    LanguageServerSpec("basedpyright", ("basedpyright-langserver", "--stdio"), _PYTHON, _PYTHON_MARKERS),
    LanguageServerSpec("pyright", ("pyright-langserver", "--stdio"), _PYTHON, _PYTHON_MARKERS),
    LanguageServerSpec("pylsp", ("pylsp",), {"py": "python"}, _PYTHON_MARKERS),
    LanguageServerSpec(
        "typescript-language-server",
        ("typescript-language-server", "--stdio"),
        _SCRIPT,
        ("package.json", "tsconfig.json", "jsconfig.json"),
        {
            "disableAutomaticTypingAcquisition": True,
            "preferences": {"providePrefixAndSuffixTextForRename": False},  # otherwise imports keep the old name
        },
    ),
    LanguageServerSpec("gopls", ("gopls",), {"go": "go"}, ("go.work", "go.mod")),
    LanguageServerSpec(
        "rust-analyzer",
        ("rust-analyzer",),
        {"rs": "rust"},
        ("Cargo.toml", "rust-project.json"),
        {"cargo": {"targetDir": "/tmp/rust-analyzer"}},  # noqa: S108  in the sandbox, private to the server
    ),
    LanguageServerSpec("clangd", ("clangd",), _C, ("compile_commands.json", "compile_flags.txt", ".clangd")),
    LanguageServerSpec(
        "jdtls",
        ("jdtls", "-data", "/tmp/jdtls"),  # noqa: S108  in the sandbox, private to the server
        {"java": "java"},
        ("pom.xml", "build.gradle", "build.gradle.kts"),
    ),
    LanguageServerSpec("bash-language-server", ("bash-language-server", "start"), _SHELL),
)
"""The servers in the order of choice."""
SERVER_NAMES = tuple(one.name for one in _CATALOG)


def list_programs(chosen: Iterable[str]) -> tuple[LanguageServerSpec, ...]:
    """The servers of `[lsp] servers`, or all that are known. UsageError: an entry names none."""
    return tuple(map(_parse_entry, chosen)) or _CATALOG


def find_program(
    programs: Iterable[LanguageServerSpec], path: str, environ: Mapping[str, str], root: str, *, is_chosen: bool
) -> LanguageServerSpec | None:
    """The first installed server for a file. A program in the workspace counts only if the settings choose it."""
    ending = get_ending(path)
    for one in programs:
        if ending in one.languages and (found := _locate(one.words[0], environ, root, is_chosen)):
            return msgspec.structs.replace(one, words=(found, *one.words[1:]))
    return None


def list_names_for(programs: Iterable[LanguageServerSpec], path: str) -> tuple[str, ...]:
    """The servers that could serve a file, installed or not."""
    ending = get_ending(path)
    return tuple(one.name for one in programs if ending in one.languages)


def get_ending(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[2].lower()


def _parse_entry(entry: str) -> LanguageServerSpec:
    """Reads NAME, NAME=COMMAND or *.ENDING,*.ENDING=COMMAND."""
    name, _, command = entry.partition("=")
    name, words = name.strip(), tuple(shlex.split(command))
    known = next((one for one in _CATALOG if one.name == name), None)
    if known is not None:
        return known if not words else msgspec.structs.replace(known, words=words)
    endings = [glob.strip().removeprefix("*.") for glob in name.split(",")]
    if not words or not name.startswith("*.") or not all(ending.isalnum() for ending in endings):
        raise UsageError(
            f"[lsp] servers: {entry!r} is neither {', '.join(SERVER_NAMES)} nor such as '*.lua=lua-language-server'"
        )
    return LanguageServerSpec(os.path.basename(words[0]), words, {one: one for one in endings})


def _locate(program: str, environ: Mapping[str, str], root: str, is_chosen: bool) -> str | None:
    if "/" in program:
        place = os.path.join(root, os.path.expanduser(program)) if is_chosen else program
        return place if os.access(place, os.X_OK) else None
    folders = [one for one in environ.get("PATH", "").split(os.pathsep) if one.startswith("/")]
    found = shutil.which(program, path=os.pathsep.join(folders))
    return found if found and not is_located_in(found, root) else None
