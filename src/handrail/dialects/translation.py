"""Translations that several dialects share."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from handrail.dialects.dialect import Answered, Canonical
from handrail.dialects.session_view import Surface
from handrail.protocol.errors import ToolError
from handrail.workspace.glob import build_matcher

OPERATIONS = (
    "goToDefinition|findReferences|hover|documentSymbol|workspaceSymbol|goToImplementation"
    "|prepareCallHierarchy|incomingCalls|outgoingCalls"
)
"""What the language tool of some systems can be asked."""
_LSP_TOOLS = {
    "goToDefinition": "lsp_definition",
    "findReferences": "lsp_references",
    "hover": "lsp_hover",
    "documentSymbol": "lsp_symbols",
    "workspaceSymbol": "lsp_symbols",
}
_MAX_OPTIONS = 20
"""Options of one question."""
_TYPES = """
c=*.{c,h} cpp=*.{cpp,cc,cxx,hpp,hh,hxx,h,inl} cs=*.cs css=*.{css,scss} csv=*.csv docker=*Dockerfile* go=*.go
graphql=*.{graphql,graphqls} html=*.{htm,html,ejs} java=*.{java,jsp,jspx,properties} js=*.{js,jsx,vue,cjs,mjs}
json=*.{json,sarif} kotlin=*.{kt,kts} lua=*.lua make={[Mm]akefile,GNUmakefile,*.mk,*.mak}
markdown,md=*.{md,markdown,mdown,mdx,mkd,mkdn} perl=*.{pl,pm,t} php=*.{php,php3,php4,php5,phtml} py,python=*.{py,pyi}
ruby=*.{rb,gemspec,rake} rust=*.rs scala=*.{scala,sbt} sh=*.{sh,bash,zsh,ksh,bashrc,zshrc} sql=*.{sql,psql}
svelte=*.svelte swift=*.swift toml=*.toml ts,typescript=*.{ts,tsx,cts,mts} txt=*.txt xml=*.{xml,xsd,xsl,xslt,dtd,svg}
yaml=*.{yaml,yml} zig=*.zig
"""
_FILE_TYPES: dict[str, str] = {
    name: glob for names, _, glob in (row.partition("=") for row in _TYPES.split()) for name in names.split(",")
}
"""Globs of file types, named as ripgrep names them."""


def edit_or_create(_: Any, given: dict[str, Any], surface: Surface) -> Canonical:
    """`edit`. An empty old text creates a file that does not exist."""
    if not given["oldText"] and surface.is_missing(given["path"]):
        return "write", {"path": given["path"], "content": given["newText"]}
    return "edit", given


def search_type(args: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Restricts a search to a file type. A glob goes before it, and `filter_type` checks both."""
    if args.type is not None:
        given.setdefault("filePattern", find_type_glob(args.type))
    return given


def look_up(args: Any, given: dict[str, Any], _: Surface) -> Canonical:
    tool = _LSP_TOOLS.get(args.operation)
    if tool is None:
        raise ToolError("UNAVAILABLE", f"operation: {args.operation} is not available here. Nothing was run.")
    if tool != "lsp_symbols":
        return tool, given
    query = {"query": args.query or ""} if args.operation == "workspaceSymbol" else {}
    return tool, {"path": given["path"], **query}


def ask_questions(args: Any, _: Any, __: Surface) -> Canonical:
    """Several questions become one with all their options. A person chooses for each, or answers in own words."""
    questions = args.questions
    if len(questions) == 1:
        return "question", build_question(
            questions[0].question, questions[0].options, multiple=_is_multiple(questions[0])
        )
    texts = "\n\n".join(f"{number}. {_describe_question(asked)}" for number, asked in enumerate(questions, 1))
    labels = [f"{number}. {option.label}" for number, asked in enumerate(questions, 1) for option in asked.options]
    options = list(dict.fromkeys(labels)) if len(labels) <= _MAX_OPTIONS else []
    return "question", {"question": texts, "options": options, "multiple": bool(options), "custom": True}


def _is_multiple(asked: Any) -> bool:
    return bool(getattr(asked, "multiSelect", False) or getattr(asked, "multiple", False))


def _describe_question(asked: Any) -> str:
    options = (f"   - {option.label}: {option.description}" for option in asked.options)
    how = "any" if _is_multiple(asked) else "one"
    return "\n".join((f"{asked.question} (choose {how})" if asked.options else asked.question, *options))


def build_question(question: str, options: Sequence[Any], *, multiple: bool, custom: bool = True) -> dict[str, Any]:
    """The arguments of `question`. Its options have no descriptions, so these stand below the question."""
    described = [f"{option.label}: {option.description}" for option in options if option.description]
    labels = [option.label for option in options]
    return {"question": "\n".join((question, *described)), "options": labels, "multiple": multiple, "custom": custom}


def find_type_glob(name: str) -> str:
    glob = _FILE_TYPES.get(name)
    if glob is None:
        raise ToolError(
            "INVALID_ARGUMENT", f"type: there is no file type {name[:40]}; there are {', '.join(_FILE_TYPES)}"
        )
    return glob


def build_path_filter(globs: Iterable[str]) -> Callable[[str], bool]:
    """Whether a path or its name matches one of the globs."""
    matchers = [build_matcher(glob) for glob in globs]
    return lambda path: any(matches(path.encode()) for matches in matchers)


def filter_type(one: Answered, found: Iterable[Any]) -> list[Any]:
    """The matches, or the files, that also fit the file type, if the call has a glob as well."""
    if one.args.glob is None or one.args.type is None:
        return list(found)
    fits = build_path_filter([find_type_glob(one.args.type)])
    return [match for match in found if fits(match.path)]
