"""git log, diff, show."""

import re
from collections.abc import Iterator

from handrail.policy.names import find_protection, is_credential_glob, may_name_credential, normalize_name
from handrail.policy.programs.spec import ParsedArgs, PathUse, ProgramSpec

# § [policy.tables.git_options] Options that many of git's sub-commands share, and what among their values asks.
# § Where git takes a value only behind `=`, the option is listed with its equals sign: of `--format --output=x` git
# § would obey the second word, so it must not pass as the value of the first.

DIFF_FLAGS = "puswbRaWz"
DIFF_ATTACHED = "MCBUX"
DIFF_VALUES = "SGlI"
DIFF_LONG = """
    patch no-patch unified== raw patch-with-raw patch-with-stat indent-heuristic no-indent-heuristic minimal patience
    histogram anchored== diff-algorithm== stat= stat-width== stat-count== stat-name-width== stat-graph-width==
    compact-summary numstat shortstat dirstat= cumulative dirstat-by-file= summary name-only name-status color=
    no-color color-moved= no-color-moved color-moved-ws== no-color-moved-ws word-diff= word-diff-regex== color-words=
    no-renames rename-empty no-rename-empty check ws-error-highlight== full-index binary abbrev= no-abbrev
    break-rewrites= find-renames= find-copies= find-copies-harder irreversible-delete diff-filter== find-object==
    pickaxe-all pickaxe-regex skip-to== rotate-to== relative= no-relative text ignore-cr-at-eol ignore-space-at-eol
    ignore-space-change ignore-all-space ignore-blank-lines ignore-matching-lines== inter-hunk-context==
    function-context exit-code quiet no-ext-diff no-textconv ignore-submodules= src-prefix== dst-prefix== no-prefix
    default-prefix line-prefix== output-indicator-new== output-indicator-old== output-indicator-context==
"""

WALK_FLAGS = "iEFPg"
WALK_LONG = """
    all branches= tags= remotes= glob== exclude== merges no-merges min-parents== max-parents== no-min-parents
    no-max-parents first-parent exclude-first-parent-only not reflog walk-reflogs merge boundary left-only right-only
    cherry-mark cherry-pick cherry left-right date-order author-date-order topo-order reverse simplify-by-decoration
    simplify-merges show-pulls full-history dense sparse ancestry-path= date== relative-date parents children
    abbrev-commit no-abbrev-commit encoding== all-match invert-grep regexp-ignore-case basic-regexp extended-regexp
    fixed-strings perl-regexp remove-empty no-walk= do-walk since-as-filter== graph no-graph pretty= format== oneline
    notes= no-notes show-notes= no-standard-notes expand-tabs= no-expand-tabs show-linear-break= ignore-missing
    no-show-signature
"""
WALK_VALUES = "max-count skip since until after before author grep grep-reflog"

LOG_FLAGS = DIFF_FLAGS + WALK_FLAGS + "cmtq"
LOG_VALUES = DIFF_VALUES + "nL"
LOG_LONG = f"""{DIFF_LONG} {WALK_LONG}
    decorate= no-decorate decorate-refs== decorate-refs-exclude== clear-decorations source follow full-diff log-size
    mailmap no-mailmap use-mailmap no-use-mailmap diff-merges== no-diff-merges cc combined-all-paths
"""
LOG_LONG_VALUES = f"{WALK_VALUES} committer"

FORMATS = frozenset(["oneline", "short", "medium", "full", "fuller", "reference", "email", "mboxrd", "raw"])
_MERGES = frozenset(
    ["off", "none", "on", "m", "first-parent", "1", "separate", "c", "combined", "cc", "dense-combined"]
)
_RUNS_A_PROGRAM = re.compile(r"%[-+ ]?G|%[-+ ]?\([^)]*(?:signature|describe)")


def refuse_format(parsed: ParsedArgs) -> str | None:
    """A format that checks signatures runs gpg, one that describes runs git again; another name stands for either."""
    for name, value in parsed.options:
        if value is None:
            continue
        if _RUNS_A_PROGRAM.search(value):
            return f"{name}={value} runs another program"
        if name == "--diff-merges" and value not in _MERGES:
            return f"{name}={value} may write to the repository"
        if name in {"--pretty", "--format"} and not _is_plain(value):
            return f"{name}={value} names a format that configuration defines"
    return None


def refuse_fields(parsed: ParsedArgs) -> str | None:
    """As `refuse_format`, where a format is made of fields and never a name: branch, tag, for-each-ref."""
    for name, value in parsed.options:
        if value is None:
            continue
        # To sort by a field shows it too, whatever stands before it: --sort=-v:*signature.
        if _RUNS_A_PROGRAM.search(value) or (name == "--sort" and re.search("signature|describe", value)):
            return f"{name}={value} runs another program"
    return None


def _is_plain(value: str) -> bool:
    # An empty one shows nothing of the commit; no name is empty.
    return not value or "%" in value or value in FORMATS or value.startswith(("format:", "tformat:"))


# § [policy.commands.revisions] The paths in what git takes as operands: revisions, `revision:path`, and paths with
# § git's own patterns.

_RANGE = re.compile(r"\.{2,3}(?!/)")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_WILD = re.compile(r"[*?]|\[[!^]?.[^\]]*\]", re.DOTALL)
_LONG_MAGIC = re.compile(r":\(([^)]*)\)(.*)", re.DOTALL)


def list_content_paths(parsed: ParsedArgs) -> tuple[PathUse, ...]:
    """What a git command that shows contents reads. A word that may be a branch as well as a file is uncertain, but for
    one that leads elsewhere or has a credential's name."""
    return tuple(dict.fromkeys(_uses(parsed)))


def list_named_paths(parsed: ParsedArgs) -> tuple[PathUse, ...]:
    """What a git command that shows only names looks at: whether `.env` is ignored is no secret."""
    return tuple(use for use in list_content_paths(parsed) if use.is_certainly_path and _elsewhere(use.path))


def _uses(parsed: ParsedArgs) -> Iterator[PathUse]:
    for name, value in parsed.options:
        if name == "-L" and value:  # log -L10,20:src/a.py
            for colon in re.finditer(":", value):  # braces in front of it may be anything
                yield from _reads(value[colon.end() :])
    # A pattern of bash's too: where it stands for no file, git gets it as it is.
    for place, text in enumerate(parsed.operands):
        if parsed.ended is not None and place >= parsed.ended:
            yield from _limit(text)
        else:
            yield from _either(text)


def _limit(text: str) -> Iterator[PathUse]:
    """An operand behind `--`: a path, or a pattern that git itself compares with paths."""
    path = _without_magic(text) if text.startswith(":") else text
    if path:
        yield from _reads(path)


def _either(text: str) -> Iterator[PathUse]:
    if text.startswith(":"):
        yield from _limit(text)
        if text[1:2] in {"", "/", "(", "!", "^"}:
            return
    behind = [path for piece in _RANGE.split(text) for path in _behind_colons(piece)]
    for path in behind:
        yield from _reads(path)
    if not behind and _is_pattern(text):
        yield from _reads(text)
    elif not behind:
        yield PathUse(text, "read", is_certainly_path=_elsewhere(text) or find_protection(text) == "credential")


def _behind_colons(text: str) -> Iterator[str]:
    """What stands behind each colon, as in `HEAD:a.py` and `:2:a.py`; one in braces belongs to a date or a message."""
    depth = 0
    for place, letter in enumerate(text):
        if letter == "{":
            depth += 1
        elif letter == "}":
            depth = max(0, depth - 1)
        elif letter == ":" and not depth and text[place + 1 :]:
            yield text[place + 1 :]


def _without_magic(text: str) -> str:
    """The path of `:(top)src`, `:/src` and `:src`; empty where the words say what is left out, as in `:!src`."""
    long = _LONG_MAGIC.fullmatch(text)
    if long:
        return "" if "exclude" in long[1].split(",") else long[2]
    path = text[1:].lstrip("/!^")
    signs = text[1 : len(text) - len(path)]
    return "" if "!" in signs or "^" in signs else path.removeprefix(":")


def _reads(path: str) -> Iterator[PathUse]:
    """A path; in git's patterns a backslash makes the next sign mean itself."""
    if path:
        for text in dict.fromkeys((path, _ESCAPE.sub(r"\1", path))):
            yield PathUse(text, "read", _is_pattern(text))
            yield from list_hidden_uses(text)


def list_hidden_uses(path: str) -> Iterator[PathUse]:
    """The credentials that the shell's pattern would not match: git's also stands for a dot in front."""
    names = path.split("/")
    for place, name in enumerate(names):
        if not _WILD.match(name):
            continue
        rest = name.lstrip("*?")
        aimed = [hidden for hidden in (rest, f".{rest}") if may_name_credential(hidden)]
        if not aimed and is_credential_glob(normalize_name(name), hidden=True):
            aimed = [_WILD.sub(".*", name)]
        for hidden in aimed:
            spelled = "/".join([*names[:place], hidden, *names[place + 1 :]])
            yield PathUse(spelled, "read", _is_pattern(spelled))


def _is_pattern(path: str) -> bool:
    return any(letter in path for letter in "*?[")


def _elsewhere(path: str) -> bool:
    return path.startswith(("/", "~")) or ".." in path.split("/")


# § [policy.tables.git_history] git's sub-commands that show history and contents, as far as they only read.

_GUARDS = "--no-ext-diff --no-textconv"
_NEVER = ("--output=x", "--output x", "--ext-diff", "--textconv", "-O order", "--outpu=x")


def _log(name: str, *, examples: tuple[str, ...] = (), **others: str) -> ProgramSpec:
    """A sub-command that takes what `git log` takes."""
    bad = (*_NEVER, "--show-signature", "--format=%G?", "--pretty=mine", "--format --output=x", "--remerge-diff")
    return ProgramSpec(
        name=name,
        flags=LOG_FLAGS + others.get("flags", ""),
        attached=DIFF_ATTACHED,
        values=LOG_VALUES,
        long_flags=f"{LOG_LONG} {others.get('long_flags', '')}",
        long_values=LOG_LONG_VALUES,
        numbers=True,
        operands="text",
        guards=_GUARDS,
        extra_paths=list_content_paths,
        reject=refuse_format,
        grantable=False,
        match=(name, f"{name} -5", f"{name} -n 5 --oneline --stat", *(f"{name} {words}" for words in examples)),
        no_match=tuple(f"{name} {words}" for words in bad),
    )


def _diff(
    name: str, *, flags: str = "", long_flags: str = "", values: str = DIFF_VALUES, examples: tuple[str, ...] = ()
) -> ProgramSpec:
    """A sub-command that takes what `git diff` takes."""
    return ProgramSpec(
        name=name,
        flags=DIFF_FLAGS + flags,
        attached=DIFF_ATTACHED + ("" if values else DIFF_VALUES),
        values=values,
        long_flags=f"{DIFF_LONG} {long_flags}",
        operands="text",
        guards=_GUARDS if values else "",  # with an option, `stash show` shows a patch; it starts no program anyway
        extra_paths=list_content_paths,
        reject=refuse_format,
        grantable=False,
        match=(name, f"{name} --stat", f"{name} -M90% -U5 --name-only", *(f"{name} {words}" for words in examples)),
        no_match=tuple(f"{name} {words}" for words in (*_NEVER, "--no-index a b")),
    )


def _refuse_subcommand(parsed: ParsedArgs) -> str | None:
    # `git reflog WORD` is `git reflog show WORD`, unless the word is a sub-command of today's or tomorrow's git.
    if any(not operand.startswith(("HEAD", "@", "refs/")) for operand in parsed.operands):
        return "git reflog may have a sub-command of that name"
    return refuse_format(parsed)


_LOGS = (
    _log(
        "git log",
        examples=(
            "main -- src/a.py", "-p --follow src/a.py", "--since='2 weeks ago' --author=me", "-L10,20:src/a.py",
            "--graph --oneline --all --decorate", "--pretty=format:'%h %s'", "--format=%H origin/main..HEAD",
            "-S needle --name-status", "--no-merges --first-parent", "-1 --format=fuller", "--grep fix -i",
        ),
    ),
    _log(
        "git show",
        examples=(
            "HEAD:src/a.py", "HEAD --stat", "v1.0", "abc123 -- src/a.py", ":src/a.py", "-s HEAD",
            "--name-only --format= HEAD", "--pretty= --stat HEAD",
        ),
    ),
    _log("git whatchanged"),
    _log("git stash list"),
    _log("git reflog show", examples=("main",)),
)  # fmt: skip
_REFLOG = ProgramSpec(
    name="git reflog",
    flags=LOG_FLAGS,
    attached=DIFF_ATTACHED,
    values=LOG_VALUES,
    long_flags=LOG_LONG,
    long_values=LOG_LONG_VALUES,
    numbers=True,
    operands="text",
    guards=_GUARDS,
    extra_paths=list_content_paths,
    reject=_refuse_subcommand,
    match=("git reflog", "git reflog -10", "git reflog HEAD", "git reflog --date=iso"),
    no_match=("git reflog expire --all", "git reflog delete HEAD@{1}", "git reflog --format=%GS", "git reflog drop x"),
)
_DIFFS = (
    _diff(
        "git diff",
        flags="cq0123",
        long_flags="cached staged merge-base base ours theirs cc",
        examples=(
            "HEAD~1", "main...HEAD -- src", "--cached", "--staged -w", "src/a.py", "HEAD -- '*.py' ':!*.lock'", "--",
            "HEAD~1 HEAD --word-diff", "--diff-filter=AM --name-status", "a b",
        ),
    ),
    # It takes apart what begins with - and what does not: in `-S 0 -G --output=x` the value of -S is -G.
    _diff(
        "git stash show",
        flags="u",
        long_flags="include-untracked only-untracked",
        values="",
        examples=("-p stash@{1}", "-Sneedle -p"),
    ),
    _diff(
        "git diff-tree",
        flags="rtmcv",
        long_flags="cc root no-commit-id always merge-base pretty= format== oneline no-notes",
        examples=("-r --no-commit-id --name-only HEAD", "--pretty=oneline HEAD"),
    ),
    _diff("git diff-index", flags="mrt", long_flags="cached merge-base", examples=("--cached HEAD", "--quiet HEAD --")),
    _diff("git diff-files", flags="qcr0123", long_flags="base ours theirs cc", examples=("-q",)),
)  # fmt: skip
_WALKS = (
    ProgramSpec(
        name="git rev-list",
        flags=WALK_FLAGS,
        values="n",
        long_flags=f"""{WALK_LONG} count objects objects-edge header timestamp quiet use-bitmap-index disk-usage=
            abbrev= no-abbrev commit-header no-commit-header bisect bisect-all object-names no-object-names""",
        long_values=f"{WALK_VALUES} committer",
        numbers=True,
        operands="text",
        extra_paths=list_content_paths,
        reject=refuse_format,
        match=("git rev-list --count HEAD", "git rev-list --all -n 5", "git rev-list --left-right --count a...b"),
        no_match=("git rev-list --format=%G? HEAD", "git rev-list --stdin", "git rev-list --filter=blob:none HEAD"),
    ),
    ProgramSpec(
        name="git shortlog",
        flags="snecEFPi",
        attached="w",
        long_flags=f"{WALK_LONG} summary numbered email committer group==",
        long_values=WALK_VALUES,
        operands="text",
        extra_paths=list_content_paths,
        reject=refuse_format,
        match=(
            "git shortlog -sn", "git shortlog -sne HEAD", "git shortlog --since=2.weeks -s", "git shortlog -n -s HEAD",
        ),
        no_match=("git shortlog --output=x", "git shortlog --group=format:%GS HEAD", "git shortlog --format=mine HEAD"),
    ),
    ProgramSpec(
        name="git blame",
        also=("git annotate",),
        flags="ltsefnwpbc",
        attached="MC",
        values="L",
        long_flags="""porcelain line-porcelain incremental root date== since== reverse first-parent show-email show-name
            show-number show-stats color-lines color-by-age abbrev= score-debug minimal no-progress encoding==""",
        long_values="ignore-rev",
        paths={"--contents": "read", "--ignore-revs-file": "read", "-S": "read"},
        operands="text",
        guards=_GUARDS,
        extra_paths=list_content_paths,
        match=(
            "git blame src/a.py", "git blame -L 10,20 src/a.py", "git blame -w HEAD~3 -- src/a.py",
            "git blame -C -C --date=short --porcelain src/a.py", "git blame -L10,+5 src/a.py",
        ),
        no_match=("git blame --textconv a", "git blame --ext-diff a", "git blame --output=x a"),
    ),
    ProgramSpec(
        name="git cherry",
        flags="v",
        long_flags="abbrev= verbose",
        operands="text",
        extra_paths=list_content_paths,
        match=("git cherry -v main", "git cherry main feature"),
        no_match=("git cherry --output=x",),
    ),
)  # fmt: skip
HISTORY: tuple[ProgramSpec, ...] = (*_LOGS, _REFLOG, *_DIFFS, *_WALKS)
