"""The rules of plain English, and the texts that they apply to.

A page is one of the five files in the root, or a page of docs. A message is a string of several words in src. The code
is read, never run.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
GENERATED = "<!-- Generated:"
"""Stands on the pages that scripts/protocol or scripts/reference makes. Their code may be wide."""
MAX_WHAT = 8.0
"""Uses of "what" outside questions, per 1,000 words."""
MAX_SENTENCE = 18.0
"""Words in a sentence, on average."""
MAX_ORPHANS = 4.0
"""Sentences that begin with a pronoun, per 100 sentences. A reader of such a sentence alone misses its subject."""
MAX_MESSAGE_SENTENCE = 25
"""Words in each sentence of a message."""
MAX_COLUMNS = 80
"""Of a line of code on a page."""
README_LINES = 150
README_WORDS = 700

FORBIDDEN = re.compile(
    r"""\b(nobody|somebody|whoever
    |(?:is|are|was|were|be|been)\ (?:told|said|looked\ for|asked\ about)
    |as\ said|what\ there\ is|what\ is\ there|what\ it\ is\ that|(?:is|are)\ none|there\ is\ none|is\ had|can\ be\ had
    |(?:go|goes|gone|going|went)\ on\ with|no\ answer|which\ there\ is\ no|those\ that\ go\ on|go(?:es)?\ round\ us
    |throw-away|any\ more|anew|(?:take|takes|taken|took|taking)\ (?:it\ |them\ )?back|(?:go|goes|going)\ round
    |(?:is|are)\ at\ work|(?:lies|lie)\ in|switched\ o(?:n|ff)|(?:is|are)\ there\ already|goes\ on|of\ ours|came\ of\ it
    |(?<!there\ )(?:is|are|was|were)\ no\ (?!longer\b)\w+)\b""",
    re.VERBOSE | re.IGNORECASE,
)
REPLACED = (
    "A command is tried in a throw-away copy first",
    "one policy that explains itself",
    "be the tools of the agent that you have",
    "a model at work, killed in the middle",
    "switched off, where it lets us",
    "whatever is called `handrail` there",
    "the extras are for who wants them",
    "everything of session cli",
    "what each leaves of the tools",
    "what is piped in is material",
    "keys typed ahead are no answer",
    "what goes round us still",
    "the house and its decisions",
    "what happened, once more and in other systems' words",
    "Be the tools of another program's agent",
    "Be the agent of an editor",
    "Judge the calls of before",
    "commands that go on in the background",
    "Let a project loosen the settings",
    "why a line of a file is there",
    "where a file was changed since, only what is as it was",
    "cannot be used, or a defect",
    "a traceback after a defect",
    "make runs what the project's build says",
    "writes ask in ask mode",
    "a word of the shell's own language",
    "it names no host that can be opened",
    "A question waits: it appears when",
    "of the network it has what a person opened",
    "the beginning and the end of very much",
    "The person answers it, and nobody else",
    "memory and processes of a command are watched",
    "no client is told of handrail",
    "nothing is open to commands; a yes opens",
    "not known: the call named no message",
    "what it was at the start is not known",
    "for what you want to take back by hand",
    "which there is no tool of here",
    "the hosts of the moment nothing to it",
    "Whichever handrail of the session is there",
    "lets go of its connections",
    "did not say why it ended is none",
)
"""The texts that WORDS.md replaced, by a part that has no other use. None may come back."""

UNCONVERTED: frozenset[str] = frozenset()
"""Pages that are not converted yet. A page that passes must leave the list."""

_MIN_WORDS = 3
"""A shorter string is a name or a label."""
_SENTENCE_WORD = re.compile(r"\b(the|a|an|is|are|was|were|not|no|of|to|in|with|and|or|for|it|this|that|cannot|be)\b")
_SHORT = re.compile(r"\bswitched o(?:n|ff)\b", re.IGNORECASE)
"""These phrases are found in a string of any length."""
_SQL = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|PRAGMA|ALTER|WITH|ATTACH|BEGIN|COMMIT|REPLACE)\b")
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_HIDDEN = re.compile(r"<!--.*?-->", re.DOTALL)
_TABLE = re.compile(r"\n +\S|\(\?:|^\W*-\w|\n\w+\*? ")
"""A table of options or of a dialect, or a pattern, and no prose."""
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_INLINE_CODE = re.compile(r"(`+).*?\1", re.DOTALL)
_BLOCK_START = re.compile(r"\s*(?:[-*]|\d+\.)\s+|\||#")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')*]*\s+")
_WORD = re.compile(r"[A-Za-z0-9][\w'’./-]*")
_WHAT = re.compile(r"\bwhat\b", re.IGNORECASE)
_ORPHAN = re.compile(
    r"""[\s\-*"'(\d.]*(?:
    (?:It|Its|They|Their|Them|Those)\b
    |(?:This|That|These)\ (?:is|are|was|were|has|have|does|do|can|cannot|may|must|also)\b
    |(?:This|That|These)\ (?:needs?|appl(?:y|ies)|works?|covers?|means?)\b
    |So\ (?:is|are|was|were|has|have|does|do|did|can)\b
    |One\ (?:that|which|who|is|has|with|over|whose)\b
    |Then\ (?:it|its|they|their)\b)""",
    re.VERBOSE,
)
"""The beginning of a sentence that names its subject only by a pronoun."""
_MIN_CELL_WORDS = 12
"""A shorter cell of a table is no sentence."""


class Figures(NamedTuple):
    """The measures of a text."""

    words: int
    what: float
    """Per 1,000 words."""
    sentence: float
    """Words in a sentence, on average."""
    orphans: float
    """Sentences that begin with a pronoun, per 100."""
    forbidden: tuple[str, ...]
    wide: tuple[int, ...]
    """Line numbers of code that is too wide."""

    def list_faults(self) -> Iterator[str]:
        for phrase in self.forbidden:
            yield f'forbidden: "{phrase}"'
        if self.what > MAX_WHAT:
            yield f'"what" {self.what:.1f} times per 1,000 words; at most {MAX_WHAT:.0f}'
        if self.sentence > MAX_SENTENCE:
            yield f"{self.sentence:.1f} words in a sentence; at most {MAX_SENTENCE:.0f}"
        if self.orphans > MAX_ORPHANS:
            yield f"{self.orphans:.1f} of 100 sentences begin with a pronoun; at most {MAX_ORPHANS:.0f}"
        if self.wide:
            yield f"code wider than {MAX_COLUMNS} columns in lines {', '.join(map(str, self.wide))}"


class Message(NamedTuple):
    """A string of the code that people or models read."""

    path: str
    line: int
    text: str


def list_pages(root: Path) -> list[str]:
    """Lists the pages that the rules apply to."""
    names = ["README.md", "CONTRIBUTING.md", "THREAT_MODEL.md", "ARCHITECTURE.md", "CHANGELOG.md"]
    pages = sorted((root / "docs").rglob("*.md"))
    prompts = sorted((root / "tests/agent/prompts").glob("*.md"))
    return names + [str(page.relative_to(root)) for page in (*pages, *prompts)]


def measure_page(text: str) -> Figures:
    """Measures a page of Markdown."""
    sentences = list(_split_sentences(text))
    words = sum(len(_WORD.findall(one)) for one in sentences)
    full = [one for one in sentences if _WORD.search(one) and not one.startswith("|")]
    what = sum(len(_WHAT.findall(one)) for one in sentences if not one.endswith("?"))
    return Figures(
        words,
        1000 * what / max(words, 1),
        sum(len(_WORD.findall(one)) for one in full) / max(len(full), 1),
        100 * sum(bool(_ORPHAN.match(one)) for one in full) / max(len(full), 1),
        tuple(found[0] for one in sentences for found in FORBIDDEN.finditer(one)),
        () if GENERATED in text else tuple(sorted(set(_list_wide_lines(text)))),
    )


def _split_sentences(text: str) -> Iterator[str]:
    """Splits the prose of a page. A short cell of a table begins with a bar."""
    text = _HIDDEN.sub("", _FENCE.sub("", text))
    text = _LINK.sub(r"\1", _INLINE_CODE.sub("Code", re.sub(r"^    .*$", "", text, flags=re.MULTILINE)))
    for block in _split_blocks(text):
        if block.startswith("|"):
            for cell in block.strip("|").split("|"):
                is_long = len(_WORD.findall(cell)) >= _MIN_CELL_WORDS
                yield from _SENTENCE_END.split(cell.strip()) if is_long else (f"|{cell.strip()}",)
        elif block.startswith("#"):
            yield f"|{block}"
        else:
            yield from _SENTENCE_END.split(block)


def _split_blocks(text: str) -> Iterator[str]:
    block: list[str] = []
    for line in [*text.splitlines(), ""]:
        if block and (not line.strip() or _BLOCK_START.match(line) or block[0].startswith(("|", "#"))):
            yield " ".join(block)
            block = []
        if line.strip():
            block.append(line.strip())


def _list_wide_lines(text: str) -> Iterator[int]:
    for fence in _FENCE.finditer(text):
        first = text.count("\n", 0, fence.start()) + 1
        for number, line in enumerate(fence[0].splitlines(), first):
            if len(line) > MAX_COLUMNS:
                yield number
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("    ") and line.strip() and len(line) > MAX_COLUMNS and not _is_continued(text, number):
            yield number


def _is_continued(text: str, number: int) -> bool:
    """Whether an indented line belongs to a list item, or to a fence, and not to a block of code."""
    lines = text.splitlines()
    above = next((line for line in reversed(lines[: number - 1]) if not line.startswith("    ")), "")
    return bool(above.strip())


def list_messages(tree: ast.Module, path: str) -> Iterator[Message]:
    """Lists the prose of a module: all strings of several words but docstrings, patterns and SQL.

    A string may reach a person through a variable, a table, a default or a helper, so its place does not matter.
    """
    hidden = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re."):
            hidden |= {id(one) for one in ast.walk(node)}
        elif isinstance(node, ast.JoinedStr):
            hidden |= {id(part) for part in node.values}
            if id(node) not in hidden and _is_prose(text := _join(node)):
                yield Message(path, node.lineno, text)
        elif isinstance(node, ast.Constant) and id(node) not in hidden and _is_prose(node.value):
            yield Message(path, node.lineno, str(node.value))


def _is_prose(text: object) -> bool:
    """Whether a string has words of a sentence. A command line, a pattern or a name has none."""
    if not isinstance(text, str):
        return False
    if _SHORT.search(text):
        return True
    return len(text.split()) >= _MIN_WORDS and bool(_SENTENCE_WORD.search(text)) and not _SQL.match(text)


def _join(node: ast.JoinedStr) -> str:
    parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return "".join(str(part) for part in parts)


def measure_messages(messages: Sequence[Message]) -> Figures:
    """Measures all messages as one text, without their forbidden phrases."""
    texts = [_INLINE_CODE.sub("Code", one.text) for one in messages if " " in one.text]
    sentences = [part for text in texts for part in _SENTENCE_END.split(text)]
    counts = [len(_WORD.findall(one)) for one in sentences]
    what = sum(len(_WHAT.findall(one)) for one in sentences if not one.endswith("?"))
    return Figures(sum(counts), 1000 * what / max(sum(counts), 1), sum(counts) / max(len(counts), 1), 0, (), ())


def list_message_faults(messages: Sequence[Message]) -> list[str]:
    """Lists the messages with a forbidden phrase."""
    return [
        f'{one.path}:{one.line}: forbidden: "{found[0]}" in "{one.text[:80]}"'
        for one in messages
        for found in FORBIDDEN.finditer(one.text)
    ]


def list_long_sentences(messages: Sequence[Message]) -> Iterator[str]:
    """Lists the sentences of messages that are too long. Tables of words have hardly a word of a sentence."""
    for one in messages:
        for sentence in () if _TABLE.search(one.text) else _SENTENCE_END.split(_INLINE_CODE.sub("Code", one.text)):
            count = len(_WORD.findall(sentence))
            if count > MAX_MESSAGE_SENTENCE and 10 * len(_SENTENCE_WORD.findall(sentence)) > count:
                yield f'{one.path}:{one.line}: {count} words in "{sentence[:80]}"; at most {MAX_MESSAGE_SENTENCE}'


def list_page_faults(root: Path, unconverted: frozenset[str]) -> list[str]:
    """Lists the faults of all pages."""
    faults: list[str] = []
    for name in list_pages(root):
        own = list(measure_page((root / name).read_text()).list_faults())
        if name not in unconverted:
            faults += [f"{name}: {fault}" for fault in own]
        elif not own:
            faults.append(f"{name}: passes; remove it from UNCONVERTED in scripts/prose_rules.py")
    return faults + [f"{name}: in UNCONVERTED, but no page" for name in unconverted - set(list_pages(root))]


def list_replaced(texts: dict[str, str]) -> list[str]:
    """Lists the sentences that came back."""
    joined = {path: " ".join(re.sub(r'"\s*\n\s*f?"', "", text).split()) for path, text in texts.items()}
    return [f'{path}: "{old}" was replaced' for path, text in joined.items() for old in REPLACED if old in text]


def check_readme(text: str) -> Iterator[str]:
    """Checks the length of the README."""
    lines, words = len(text.splitlines()), len(text.split())
    if lines > README_LINES or words > README_WORDS:
        yield f"README.md: {lines} lines, {words} words; at most {README_LINES} and {README_WORDS}"


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """Prints the figures and the faults. Returns the exit code."""
    sources = {str(path.relative_to(root)): path.read_text() for path in sorted((root / "src").rglob("*.py"))}
    messages = [one for path, text in sources.items() for one in list_messages(ast.parse(text), path)]
    pages = {name: (root / name).read_text() for name in list_pages(root)}
    if "--check" not in arguments:
        print(f"{'words':>6} {'what':>5} {'sentence':>8} {'pronoun':>7} {'forbidden':>9} {'wide':>5}")
        named = {name: measure_page(text) for name, text in pages.items()} | {"messages": measure_messages(messages)}
        for name, one in named.items():
            rates = f"{one.what:5.1f} {one.sentence:8.1f} {one.orphans:7.1f}"
            print(f"{one.words:6} {rates} {len(one.forbidden):9} {len(one.wide):5}  {name}")
    faults = [
        *check_readme(pages["README.md"]),
        *list_page_faults(root, UNCONVERTED),
        *list_replaced(pages | sources),
        *list_message_faults(messages),
        *list_long_sentences(messages),
        *(f"messages: {fault}" for fault in measure_messages(messages).list_faults()),
    ]
    for fault in faults:
        print(f"prose: {fault}")
    return 1 if faults else 0
