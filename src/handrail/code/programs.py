"""Formatters and linters as tables, and which of them a project uses."""

import posixpath
import shlex
from collections.abc import Callable, Iterable

import msgspec

_JAVASCRIPT = ("javascript", "typescript", "tsx")
_PRETTIER = (*_JAVASCRIPT, "json", "yaml", "html", "css", "markdown")


class CodeProgram(msgspec.Struct, frozen=True, kw_only=True):
    """A program that formats or checks files."""

    name: str
    languages: tuple[str, ...]
    command: str
    """A linter checks {paths}. A formatter reads the file {path} from stdin and prints it formatted."""
    in_place: str = ""
    """The command of a formatter that rewrites the file {path}."""
    signs: tuple[str, ...] = ()
    """Files that show that a project uses it. Behind `#` a text that must be in the file."""
    install: str
    executable: str = ""
    """The file to look for, if it has another name than the first word of the command."""

    @property
    def file(self) -> str:
        return self.executable or self.command.split()[0]


def _list_pyproject_signs(name: str, *files: str) -> tuple[str, ...]:
    return (f"pyproject.toml#[tool.{name}", *files)


_PRETTIER_FILES = tuple(
    f".prettierrc{suffix}" for suffix in ("", ".json", ".yml", ".yaml", ".json5", ".js", ".cjs", ".mjs", ".ts", ".toml")
) + ("prettier.config.js", "prettier.config.mjs", "prettier.config.cjs", 'package.json#"prettier"')
_ESLINT_FILES = tuple(f"eslint.config.{suffix}" for suffix in ("js", "mjs", "cjs", "ts")) + (
    *(f".eslintrc{suffix}" for suffix in ("", ".js", ".cjs", ".json", ".yml", ".yaml")),
    'package.json#"eslint"',
)
_CLANG_FILES = (".clang-format", "_clang-format")

FORMATTERS: tuple[CodeProgram, ...] = (
    CodeProgram(
        name="ruff",
        languages=("python",),
        command="ruff format --no-cache --stdin-filename {path} - < {path}",
        in_place="ruff format --no-cache --quiet {path}",
        signs=_list_pyproject_signs("ruff.format"),
        install="pip install ruff",
    ),
    CodeProgram(
        name="black",
        languages=("python",),
        command="black --quiet --stdin-filename {path} - < {path}",
        in_place="black --quiet {path}",
        signs=_list_pyproject_signs("black]"),
        install="pip install black",
    ),
    CodeProgram(
        name="yapf",
        languages=("python",),
        command="yapf < {path}",
        in_place="yapf --in-place {path}",
        signs=_list_pyproject_signs("yapf", ".style.yapf", "setup.cfg#[yapf]"),
        install="pip install yapf",
    ),
    CodeProgram(
        name="autopep8",
        languages=("python",),
        command="autopep8 - < {path}",
        in_place="autopep8 --in-place {path}",
        signs=_list_pyproject_signs("autopep8", "setup.cfg#[pycodestyle]", "tox.ini#[pycodestyle]"),
        install="pip install autopep8",
    ),
    CodeProgram(
        name="prettier",
        languages=_PRETTIER,
        command="prettier --stdin-filepath {path} < {path}",
        in_place="prettier --write --log-level warn {path}",
        signs=_PRETTIER_FILES,
        install="npm install --save-dev prettier",
    ),
    CodeProgram(
        name="gofmt", languages=("go",), command="gofmt < {path}", in_place="gofmt -w {path}", install="install Go"
    ),
    CodeProgram(
        name="rustfmt",
        languages=("rust",),
        command="rustfmt --emit stdout --quiet < {path}",
        in_place="rustfmt --quiet {path}",
        install="rustup component add rustfmt",
    ),
    CodeProgram(
        name="clang-format",
        languages=("c", "cpp", "java", "csharp"),
        command="clang-format --assume-filename={path} < {path}",
        in_place="clang-format -i {path}",
        signs=_CLANG_FILES,
        install="pip install clang-format",
    ),
    CodeProgram(
        name="shfmt",
        languages=("bash",),
        command="shfmt --filename {path} < {path}",
        in_place="shfmt --write {path}",
        install="install shfmt with your package manager",
    ),
)
LINTERS: tuple[CodeProgram, ...] = (
    CodeProgram(
        name="ruff",
        languages=("python",),
        command="ruff check --no-cache --output-format json --force-exclude {paths}",
        signs=(*_list_pyproject_signs("ruff"), "ruff.toml", ".ruff.toml"),
        install="pip install ruff",
    ),
    CodeProgram(
        name="pylint",
        languages=("python",),
        command="pylint --output-format json {paths}",
        signs=(*_list_pyproject_signs("pylint"), "pylintrc", ".pylintrc", "setup.cfg#[pylint"),
        install="pip install pylint",
    ),
    CodeProgram(
        name="flake8",
        languages=("python",),
        command="flake8 --format default {paths}",
        signs=(".flake8", "setup.cfg#[flake8]", "tox.ini#[flake8]"),
        install="pip install flake8",
    ),
    CodeProgram(
        name="eslint",
        languages=_JAVASCRIPT,
        command="eslint --format json {paths}",
        signs=_ESLINT_FILES,
        install="npm install --save-dev eslint",
    ),
    CodeProgram(
        name="golangci-lint",
        languages=("go",),
        command="golangci-lint run {paths}",
        install="install golangci-lint (golangci-lint.run)",
    ),
    CodeProgram(
        name="clippy",
        languages=("rust",),
        command="cargo clippy --quiet --message-format json",
        install="rustup component add clippy",
        executable="cargo-clippy",
    ),
    CodeProgram(
        name="shellcheck",
        languages=("bash",),
        command="shellcheck --format json {paths}",
        install="install shellcheck with your package manager",
    ),
)

_LOCAL_FOLDERS = (".venv/bin", "venv/bin", "node_modules/.bin")
"""Where a project has its own programs."""


class Project(msgspec.Struct, frozen=True):
    """What is asked about the project of a file."""

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


def _list_folders(path: str) -> list[str]:
    """The folder of a file in the workspace and those above it, up to the root."""
    folder, folders = posixpath.dirname(path), list[str]()
    while folder.strip("/."):
        folders.append(folder)
        folder = posixpath.dirname(folder)
    return [*folders, ""]


def choose_program(programs: Iterable[CodeProgram], path: str, project: Project) -> CodeProgram:
    """The first program that the project uses, else the first installed, else the first."""
    candidates = list(programs)
    used = (program for program in candidates if project.is_used(program, path))
    installed = (program for program in candidates if project.find_executable(program, path) is not None)
    return next(used, None) or next(installed, None) or candidates[0]


def build_command(template: str, executable: str, paths: Iterable[str]) -> str:
    """The command with its paths quoted. A path never begins with a dash."""
    quoted = [shlex.quote(f"./{path}" if path.startswith("-") else path) for path in paths]
    program, _, rest = template.partition(" ")
    is_other = posixpath.basename(executable) != program  # cargo runs cargo-clippy
    words = rest.replace("{paths}", " ".join(quoted)).replace("{path}", quoted[0])
    return f"{program if is_other else shlex.quote(executable)} {words}"
