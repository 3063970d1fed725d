"""Both engines over the same folders, and a tree with everything that is odd."""

import os
import sysconfig
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from handrail.kernel.files import has_openat2
from handrail.protocol.errors import ToolError
from handrail.workspace.search.engine import FileHits, Pattern, SearchScope, to_sort_key
from handrail.workspace.search.filters import list_protected_names
from handrail.workspace.search.python_engine import PythonEngine
from handrail.workspace.search.ripgrep import Ripgrep, find_ripgrep
from handrail.workspace.workspace import Workspace

Names = list[bytes] | str
"""Paths in order; the code of a refusal."""
Hits = list[FileHits] | str


SOME = settings.default if settings.default.max_examples > 50 else settings(max_examples=20)
"""How many examples are tried where each takes several runs of a program: every day fewer than elsewhere."""


class Both:
    """Asks ripgrep and Python the same."""

    def __init__(self) -> None:
        program = find_ripgrep([])
        assert program is not None, "the wheel `ripgrep` is among the requirements"
        self.ripgrep = Ripgrep(program)
        self.python = PythonEngine()

    def files(self, root: Path, below: str = ".", **options: Any) -> tuple[Names, Names]:
        """What Python and what ripgrep name."""
        found = [_files(engine, root, below, options) for engine in (self.python, self.ripgrep)]
        return found[0], found[1]

    def files_in_python(self, root: Path) -> Names:
        """What Python alone names."""
        return _files(self.python, root, ".", {})

    def hits_in_python(self, root: Path, pattern: Pattern, below: str = ".") -> Hits:
        """What Python alone finds."""
        return _hits(self.python, root, below, pattern, {})

    def hits(self, root: Path, pattern: Pattern, below: str = ".", **options: Any) -> tuple[Hits, Hits]:
        """What Python and what ripgrep find."""
        found = [_hits(engine, root, below, pattern, options) for engine in (self.python, self.ripgrep)]
        return found[0], found[1]


def _files(engine: PythonEngine | Ripgrep, root: Path, below: str, options: dict[str, Any]) -> Names:
    with _Opened(root, below) as (folder, top):
        try:
            batches = engine.files(SearchScope(folder, top, below, has_openat2(), **options), lambda: False)
            return sorted(chain.from_iterable(batches), key=to_sort_key)
        except ToolError as error:
            return error.code


def _hits(engine: PythonEngine | Ripgrep, root: Path, below: str, pattern: Pattern, options: dict[str, Any]) -> Hits:
    with _Opened(root, below) as (folder, top):
        try:
            found = list(engine.hits(SearchScope(folder, top, below, has_openat2(), **options), pattern, lambda: False))
        except ToolError as error:
            return error.code
    return sorted(found, key=lambda hits: to_sort_key(hits.path))


class _Opened:
    def __init__(self, root: Path, below: str) -> None:
        self._descriptors = (os.open(root / below, os.O_RDONLY), os.open(root, os.O_RDONLY))

    def __enter__(self) -> tuple[int, int]:
        return self._descriptors

    def __exit__(self, *_: object) -> None:
        for descriptor in self._descriptors:
            os.close(descriptor)


@pytest.fixture
def protected(workspace: Path) -> Callable[..., set[bytes]]:
    """The names that a search of the workspace withholds, up to the last result if that is given."""

    def listed(last: bytes | None = None, **options: Any) -> set[bytes]:
        with Workspace(str(workspace)) as one, one.open_folder(".") as opened:
            one.sensitive_paths.scan(one.roots)
            scope = SearchScope(
                opened.descriptor,
                opened.root.descriptor,
                opened.relative,
                one.kernel,
                protected=one.sensitive_paths.list_known(opened.root, opened.relative),
                **options,
            )
            return set(list_protected_names(scope, last) or ())

    return listed


@pytest.fixture(scope="session")
def both() -> Both:
    """The two engines."""
    return Both()


@pytest.fixture(scope="session")
def no_person(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder without settings of git."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def at_home(no_person: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Whoever runs the tests may ignore files for all repositories: here nobody does."""
    monkeypatch.setenv("HOME", str(no_person))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return no_person


@pytest.fixture(scope="session")
def real_trees() -> Callable[[bool], list[Path]]:
    """The standard library and the installed packages; every day a part of each."""
    library, packages = Path(sysconfig.get_path("stdlib")), Path(sysconfig.get_path("purelib"))
    return lambda deep: [library, packages] if deep else [library / "json", packages / "_pytest" / "assertion"]


@pytest.fixture(scope="session")
def odd_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Odd names, encodings, line endings, nested ignore files, links, secrets, special and binary files."""
    root = tmp_path_factory.mktemp("odd")
    for name, data in _files_of_odd_tree().items():
        path = os.path.join(os.fsencode(root), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
    (root / "link-out").symlink_to("/etc")
    (root / "link-in.py").symlink_to("src/main.py")
    (root / "loop").symlink_to(".")
    os.mkfifo(root / "fifo")
    return root


def _files_of_odd_tree() -> dict[bytes, bytes]:
    code = b"import os\n\n\ndef main(name):\n    return os.path.join(name, 'x')  # TODO: foo bar\n\n\nmain('K')\n"
    text = "größe = 1\nΣίσυφος\nſtraße K\n日本語 text\n½ ² ǅ İ ı\n😀 emoji 😀\nnaïve_word\n"
    return {
        b"src/main.py": code,
        b"src/a b.py": code.replace(b"\n", b"\r\n"),
        b"src/new\nline.py": code,
        b"src/col:on.py": code,
        b"src/bad\xff\xfename.py": code,
        "src/grün.py".encode(): text.encode(),
        b"src/-dash.py": code,
        b"src/.hidden.py": code,
        b"src/name.": b"foo\n",
        b"src/deep/er/and/deeper/x.py": code,
        b"text/latin-1.txt": text.encode("latin-1", "replace"),
        b"text/utf-8-mark.txt": b"\xef\xbb\xbf" + text.encode(),
        b"text/utf-16-le.txt": b"\xff\xfe" + text.encode("utf-16-le"),
        b"text/utf-16-be.txt": b"\xfe\xff" + text.encode("utf-16-be"),
        b"text/utf-16-odd.txt": b"\xff\xfe" + "foo\nbar".encode("utf-16-le") + b"\x00\xd8x\x00\x41",
        b"text/broken.txt": b"ok foo\n\xff\xfe foo \xc3\nfoo\x80bar \xe2\x82 foo\n\xed\xa0\x80 foo\n",
        b"text/no-newline.txt": b"foo\nlast foo",
        b"text/returns.txt": b"foo\rbar\r\nfoo\r\r\n\r\n\n  \r\nend\r",
        b"text/empty.txt": b"",
        b"text/newlines.txt": b"\n\n\n",
        b"text/long.txt": b"x" * 3_000 + b" foo " + b"y" * 3_000 + b" bar\nfoo " * 40 + b"z" * 700,
        b"text/longer.txt": b"word " * 4_000 + b"foo(bar)\n",
        b"text/many.txt": b"".join(b"line %d foo\nother\n" % number for number in range(500)),
        b"binary/late.bin": b"%b foo\n" % (b"x" * 300) * 400 + b"\0",
        b"binary/early.bin": b"\0foo\nfoo\n",
        b"binary/utf-16-nul.txt": b"\xff\xfef\0o\0o\0\0\0\n\0",
        b".env": b"foo = secret\n",
        b"keys/id_rsa": b"foo\n",
        b".ssh/config": b"foo\n",
        b".git/config": b"foo\n",
        b".git/info/exclude": b"excluded.txt\n",
        b"excluded.txt": b"foo\n",
        b"build": b"foo in a file called build\n",
        b"sub/build/x.py": code,
        b"node_modules/x/index.js": b"foo\n",
        b".gitignore": b"*.log\n!keep.log\n/anchored.txt\ndocs/**/gen/\n# comment\n\\#hash\ntrailing \nescaped\\ \n"
        b"[ab].tmp\n",
        b"a.log": b"foo\n",
        b"keep.log": b"foo\n",
        b"anchored.txt": b"foo\n",
        b"sub/anchored.txt": b"foo\n",
        b"docs/x/gen/y.txt": b"foo\n",
        b"docs/gen/y.txt": b"foo\n",
        b"docs/x/other/gen.txt": b"foo\n",
        b"#hash": b"foo\n",
        b"trailing": b"foo\n",
        b"escaped ": b"foo\n",
        b"a.tmp": b"foo\n",
        b"c.tmp": b"foo\n",
        b"sub/.gitignore": b"!*.log\nonly-here\n",
        b"sub/a.log": b"foo\n",
        b"sub/only-here/x": b"foo\n",
        b"only-here": b"foo\n",
        b"sub/.ignore": b"b.log\n",
        b"sub/b.log": b"foo\n",
        b"sub/.rgignore": b"!b.log\nc.log\n",
        b"sub/c.log": b"foo\n",
        b"crlf/.gitignore": b"x.txt\r\n*.bak\r\n",
        b"crlf/x.txt": b"foo\n",
        b"crlf/y.bak": b"foo\n",
        b"broken/.gitignore": b"a.txt\n\xff\nb.txt\n",
        b"broken/a.txt": b"foo\n",
        b"broken/b.txt": b"foo\n",
        b"mark/.gitignore": b"\xef\xbb\xbfa.txt\nb.txt\n",
        b"mark/a.txt": b"foo\n",
        b"mark/b.txt": b"foo\n",
    }
