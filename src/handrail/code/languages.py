"""The languages that handrail has a grammar for.

Each grammar is a package of its own. All but that of bash are in the extra `code`, and each is imported on first use.
"""

import os
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

import msgspec

from handrail.protocol.errors import ToolError

if TYPE_CHECKING:
    from tree_sitter import Language as Grammar
    from tree_sitter import Query

_ANALYSIS = ";;; analysis\n"
"""Separates the patterns of definitions from those that only an analysis needs."""
_INHERITS = "; inherits: "


class Language(msgspec.Struct, frozen=True):
    """A language and its grammar."""

    name: str
    title: str
    suffixes: tuple[str, ...]
    package: str
    """The module of the grammar."""
    entry: str = "language"
    """The function in it that returns the grammar."""
    extra: str = "code"
    """The extra of handrail that installs the package. Empty: handrail always installs it."""
    names: tuple[str, ...] = ()
    """Names of files without one of the suffixes."""


LANGUAGES: dict[str, Language] = {
    language.name: language
    for language in (
        Language("python", "Python", (".py", ".pyi", ".pyw"), "tree_sitter_python"),
        Language("javascript", "JavaScript", (".js", ".jsx", ".mjs", ".cjs"), "tree_sitter_javascript"),
        Language("typescript", "TypeScript", (".ts", ".mts", ".cts"), "tree_sitter_typescript", "language_typescript"),
        Language("tsx", "TSX", (".tsx",), "tree_sitter_typescript", "language_tsx"),
        Language("go", "Go", (".go",), "tree_sitter_go"),
        Language("rust", "Rust", (".rs",), "tree_sitter_rust"),
        Language("java", "Java", (".java",), "tree_sitter_java"),
        Language("c", "C", (".c", ".h"), "tree_sitter_c"),
        Language("cpp", "C++", (".cpp", ".cc", ".cxx", ".hpp", ".hh", ".hxx", ".ipp"), "tree_sitter_cpp"),
        Language("csharp", "C#", (".cs", ".csx"), "tree_sitter_c_sharp"),
        Language("ruby", "Ruby", (".rb", ".rake", ".gemspec"), "tree_sitter_ruby", names=("Rakefile", "Gemfile")),
        Language("php", "PHP", (".php", ".phtml"), "tree_sitter_php", "language_php"),
        Language("bash", "Bash", (".sh", ".bash"), "tree_sitter_bash", extra="", names=(".bashrc", ".bash_profile")),
        Language("json", "JSON", (".json", ".jsonc", ".json5"), "tree_sitter_json"),
        Language("yaml", "YAML", (".yaml", ".yml"), "tree_sitter_yaml"),
        Language("toml", "TOML", (".toml",), "tree_sitter_toml", names=("Cargo.lock", "uv.lock", "poetry.lock")),
        Language("html", "HTML", (".html", ".htm", ".xhtml"), "tree_sitter_html"),
        Language("css", "CSS", (".css",), "tree_sitter_css"),
        Language("markdown", "Markdown", (".md", ".markdown"), "tree_sitter_markdown"),
    )
}
_BY_NAME = {name: language.name for language in LANGUAGES.values() for name in language.names}
_BY_SUFFIX = {suffix: language.name for language in LANGUAGES.values() for suffix in language.suffixes}


class MissingGrammarError(ToolError):
    """The grammar of a language is not installed, or does not fit the installed tree-sitter."""

    def __init__(self, language: Language) -> None:
        install = f"pip install 'handrail[{language.extra}]'" if language.extra else "reinstall handrail"
        super().__init__("UNAVAILABLE", f"The grammar of {language.title} is not installed: {install}.")
        self.language = language.name


def find_language(path: str) -> str | None:
    """The name of the language of a file, by its name. None if handrail has no grammar for it."""
    name = path.rpartition("/")[2]
    suffix = f".{name.rpartition('.')[2].lower()}" if "." in name else ""
    return _BY_NAME.get(name) or _BY_SUFFIX.get(suffix)


@cache
def load_grammar(name: str) -> "Grammar":
    """MissingGrammarError if its package is not installed."""
    from tree_sitter import Language as Grammar  # noqa: PLC0415  only for files of a known language

    language = LANGUAGES[name]
    try:
        capsule: object = getattr(import_module(language.package), language.entry)()
        return Grammar(capsule)
    except (ImportError, AttributeError, ValueError):
        raise MissingGrammarError(language) from None


@cache
def load_query(name: str, *, analysis: bool = False) -> "Query":
    """The query of a language: its definitions, or with `analysis` everything in its file."""
    from tree_sitter import Query  # noqa: PLC0415  only for files of a known language

    return Query(load_grammar(name), _read_patterns(name, analysis=analysis))


def _read_patterns(name: str, *, analysis: bool) -> str:
    with open(os.path.join(os.path.dirname(__file__), "queries", f"{name}.scm"), encoding="utf-8") as file:
        text = file.read()
    first, _, rest = text.partition("\n")
    inherited = ""
    if first.startswith(_INHERITS):
        inherited = _read_patterns(first.removeprefix(_INHERITS), analysis=analysis)
        text = rest
    definitions, _, more = text.partition(_ANALYSIS)
    return f"{definitions}\n{inherited}\n{more if analysis else ''}"
