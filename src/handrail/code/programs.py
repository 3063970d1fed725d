"""Formatters, linters: their commands as tables, with the files that show which of them a project uses."""

import posixpath
import re
import shlex
from collections.abc import Callable, Iterable, Iterator

import msgspec


class CodeProgram(msgspec.Struct, frozen=True, kw_only=True):
    """A program that formats or checks files."""

    name: str
    languages: tuple[str, ...]
    install: str
    command: str
    """A linter checks {paths}. A formatter prints the file {path} formatted."""
    in_place: str = ""
    """The command of a formatter that rewrites the file {path}."""
    signs: tuple[str, ...] = ()
    """Files that show that a project uses it. Behind `#` a text that must be in the file."""
    executable: str = ""
    """The file to look for, if it has another name than the first word of the command."""
    option: str = ""
    """A file of the project, a pattern that is in it, and the option that gets its value."""

    @property
    def file(self) -> str:
        return self.executable or self.command.split()[0]


_FORMATTERS = r"""
ruff: python: pip install ruff
  < ruff format --no-cache --stdin-filename {path} - < {path}
  w ruff format --no-cache --quiet {path}
  # pyproject.toml#[tool.ruff.format] ruff.toml#[format] .ruff.toml#[format]
black: python: pip install black
  < black --quiet --stdin-filename {path} - < {path}
  w black --quiet {path}
  # pyproject.toml#[tool.black]
yapf: python: pip install yapf
  < yapf {path}
  w yapf --in-place {path}
  # pyproject.toml#[tool.yapf] setup.cfg#[yapf] .style.yapf
autopep8: python: pip install autopep8
  < autopep8 {path}
  w autopep8 --in-place {path}
  # pyproject.toml#[tool.autopep8] setup.cfg#[pycodestyle] tox.ini#[pycodestyle]
prettier: javascript typescript tsx json yaml html css markdown: npm install --save-dev prettier
  < prettier --stdin-filepath {path} < {path}
  w prettier --write --log-level warn {path}
  # .prettierrc .prettierrc.json .prettierrc.yml .prettierrc.yaml .prettierrc.json5 .prettierrc.js .prettierrc.cjs
  # .prettierrc.mjs .prettierrc.ts .prettierrc.toml prettier.config.js prettier.config.mjs prettier.config.cjs
  # prettier.config.ts package.json#"prettier"
gofmt: go: install Go
  < gofmt < {path}
  w gofmt -w {path}
rustfmt: rust: rustup component add rustfmt
  < rustfmt --quiet < {path}
  w rustfmt --quiet {path}
  o Cargo.toml edition\s*=\s*"(\d+)" --edition
clang-format: c cpp java csharp: pip install clang-format
  < clang-format --assume-filename={path} < {path}
  w clang-format -i {path}
  # .clang-format _clang-format
shfmt: bash: install shfmt with your package manager
  < shfmt --filename {path} < {path}
  w shfmt --write {path}
"""
_LINTERS = """
ruff: python: pip install ruff
  < ruff check --no-cache --output-format json {paths}
  # pyproject.toml#[tool.ruff ruff.toml .ruff.toml
pylint: python: pip install pylint
  < pylint --output-format json {paths}
  # pyproject.toml#[tool.pylint setup.cfg#[pylint pylintrc .pylintrc
flake8: python: pip install flake8
  < flake8 --format default {paths}
  # .flake8 setup.cfg#[flake8] tox.ini#[flake8]
eslint: javascript typescript tsx: npm install --save-dev eslint
  < eslint --format json {paths}
  # eslint.config.js eslint.config.mjs eslint.config.cjs eslint.config.ts .eslintrc .eslintrc.js .eslintrc.cjs
  # .eslintrc.json .eslintrc.yml .eslintrc.yaml package.json#"eslint"
golangci-lint: go: install golangci-lint
  < golangci-lint run {paths}
  # go.mod
clippy: rust: rustup component add clippy
  < cargo clippy --quiet --message-format json
  x cargo-clippy
  # Cargo.toml
shellcheck: bash: install shellcheck with your package manager
  < shellcheck --format json {paths}
"""
_FIELDS = {"<": "command", "w": "in_place", "x": "executable", "o": "option"}


def _parse_programs(table: str) -> Iterator[CodeProgram]:
    """A program begins with its name, its languages and its installation. Each line below has a mark for its field."""
    for block in re.split(r"\n(?=\S)", table.strip()):
        head, *lines = block.split("\n")
        name, languages, install = head.split(": ", 2)
        rows = [line.split(maxsplit=1) for line in lines]
        fields = {_FIELDS[mark]: text for mark, text in rows if mark in _FIELDS}
        signs = tuple(sign for mark, text in rows if mark == "#" for sign in text.split())
        yield CodeProgram(name=name, languages=tuple(languages.split()), install=install, signs=signs, **fields)


FORMATTERS = tuple(_parse_programs(_FORMATTERS))
LINTERS = tuple(_parse_programs(_LINTERS))
_LOCAL_FOLDERS = (".venv/bin", "venv/bin", "node_modules/.bin")
"""Where a project has its own programs."""


class ProjectFiles(msgspec.Struct, frozen=True):
    """The access to the project of a file."""

    read: Callable[[str], bytes | None]
    """The beginning of a file of the workspace. None if there is none."""
    find_on_path: Callable[[str], bool]
    """Whether a program is on PATH."""

    def is_used(self, program: CodeProgram, path: str) -> bool:
        """Whether a file beside the path, or above it, says that its project uses the program."""
        for folder in _list_folders(path):
            for sign in program.signs:
                name, _, text = sign.partition("#")
                data = self.read(posixpath.join(folder, name))
                if data is not None and text.encode() in data:
                    return True
        return False

    def find_executable(self, program: CodeProgram, path: str) -> str | None:
        """The program as a command names it: that of the project, else that on PATH."""
        for folder in _list_folders(path):
            for local in _LOCAL_FOLDERS:
                own = posixpath.join(folder, local, program.file)
                if self.read(own) is not None:
                    return own
        return program.file if self.find_on_path(program.file) else None

    def find_option(self, program: CodeProgram, path: str) -> str:
        """The option of the program with the value that the nearest file of the project has. Empty if none has one."""
        name, pattern, option = program.option.split() if program.option else ("", "", "")
        files = (self.read(posixpath.join(folder, name)) or b"" for folder in _list_folders(path) if name)
        found = (re.search(pattern.encode(), data) for data in files)
        return next((f"{option}={match[1].decode()} " for match in found if match), "")


def _list_folders(path: str) -> list[str]:
    """The folder of a file in the workspace and those above it, up to the root."""
    folder, folders = posixpath.dirname(path), list[str]()
    while folder.strip("/."):
        folders.append(folder)
        folder = posixpath.dirname(folder)
    return [*folders, ""]


def choose_program(programs: Iterable[CodeProgram], path: str, project: ProjectFiles) -> CodeProgram:
    """The first program that the project uses, else the first installed, else the first."""
    candidates = list(programs)
    used = (program for program in candidates if project.is_used(program, path))
    installed = (program for program in candidates if project.find_executable(program, path) is not None)
    return next(used, None) or next(installed, None) or candidates[0]


def build_command(template: str, executable: str, paths: Iterable[str], option: str = "") -> str:
    """The command with its paths quoted. A path never begins with a dash, and the program is never an assignment."""
    quoted = [shlex.quote(f"./{path}" if path.startswith("-") else path) for path in paths]
    program, _, rest = template.partition(" ")
    is_other = posixpath.basename(executable) != program  # cargo runs cargo-clippy
    if "/" in executable and not executable.startswith("/"):
        executable = f"./{executable}"
    words = rest.replace("{paths}", " ".join(quoted)).replace("{path}", quoted[0])
    return f"{program if is_other else shlex.quote(executable)} {option}{words}"
