"""Programs that search in files."""

import re

from handrail.policy.commands.reading import PathUse
from handrail.policy.commands.revisions import list_hidden_uses
from handrail.policy.names import may_name_credential
from handrail.policy.tables.form import ParsedArgs, ProgramSpec

_CHOOSING = frozenset({"--include", "-g", "--glob", "--iglob", "--type-add"})
"""Options whose value says by a pattern which files are searched."""
_SOUGHT = frozenset({"-e", "--regexp", "--and"})
_DASHED = re.compile(r"-[A-Za-z.-]")

_GREP_LONG = (
    "extended-regexp fixed-strings basic-regexp perl-regexp ignore-case no-ignore-case word-regexp line-regexp "
    "null-data "
    "no-messages invert-match version help byte-offset line-number line-buffered with-filename no-filename "
    "only-matching quiet silent text recursive dereference-recursive files-without-match files-with-matches count "
    "initial-tab null no-group-separator color= colour= binary"
)
_RG_LONG = (
    "auto-hybrid-regex binary block-buffered byte-offset case-sensitive column count count-matches "
    "crlf debug files files-with-matches files-without-match fixed-strings follow glob-case-insensitive heading help "
    "hidden ignore-case ignore-file-case-insensitive include-zero invert-match json line-buffered line-number "
    "line-regexp max-columns-preview mmap multiline multiline-dotall no-auto-hybrid-regex no-binary no-block-buffered "
    "no-byte-offset no-column no-config no-context-separator no-crlf no-encoding no-filename no-fixed-strings "
    "no-follow "
    "no-glob-case-insensitive no-heading no-hidden no-ignore no-ignore-dot no-ignore-exclude "
    "no-ignore-file-case-insensitive "
    "no-ignore-files no-ignore-global no-ignore-messages no-ignore-parent no-ignore-vcs no-include-zero "
    "no-invert-match "
    "no-json no-line-buffered no-line-number no-max-columns-preview no-messages no-mmap no-multiline "
    "no-multiline-dotall no-one-file-system no-pcre2 no-pcre2-unicode no-pre no-require-git no-search-zip no-stats "
    "no-text no-trim no-unicode null null-data one-file-system only-matching passthru passthrough pcre2 pcre2-unicode "
    "pcre2-version pretty quiet require-git ignore ignore-dot ignore-exclude ignore-files ignore-global "
    "ignore-messages ignore-parent ignore-vcs messages smart-case sort-files no-sort-files stats stop-on-nonmatch "
    "text trace trim type-list unicode unrestricted version vimgrep with-filename word-regexp"
)


def _chosen(parsed: ParsedArgs) -> tuple[PathUse, ...]:
    """Patterns that choose credentials, as good as named."""
    values = [value for name, value in parsed.options if name in _CHOOSING and value and not value.startswith("!")]
    names = [name for value in values for name in re.split("[{},:/]", value)]
    aimed = [PathUse(name, "read", is_glob=True) for name in names if may_name_credential(name)]
    return (*aimed, *(use for name in names for use in list_hidden_uses(name)))


def _refuse_dashed(parsed: ParsedArgs) -> str | None:
    """Of some options some versions take what looks like one for another option, not for the value."""
    odd = next((value for name, value in parsed.options if name not in _SOUGHT and _DASHED.match(value or "")), None)
    return odd and f"{odd} may be an option of its own"


SEARCHES = (
    ProgramSpec(
        name="grep",
        also=("egrep", "fgrep"),
        flags="abcEFGhHiIlLnoPqrRsTUvVwxyZz",
        values="ABCDdem",
        numbers=True,
        long_flags=_GREP_LONG,
        long_values="regexp max-count label binary-files directories devices include exclude exclude-dir "
        "before-context "
        "after-context context group-separator",
        paths={"-f": "read", "--file": "read", "--exclude-from": "read"},
        first="text",
        unless_options=frozenset({"-e", "--regexp", "-f", "--file"}),
        extra_paths=_chosen,
        match=(
            "grep foo a.txt", "grep -rn foo src", "grep -A3 -B 3 -rn --include='*.py' -e foo src", "grep -c '' a",
            "grep -rnE 'a|b' --exclude-dir=.git .", "grep -5 foo a", "grep -f patterns a", "egrep -i x a",
            "grep x -r", "grep --color=always -rl foo", "grep -n3 foo a", "grep -- -x a", "grep -rn '[$(]id' src",
        ),
        no_match=("grep --output=x foo a", "grep --unknown foo", "grep -rk foo", "grep --inc='*.py' foo ."),
    ),
    ProgramSpec(
        name="rg",
        flags=".abcFHhIiLlNnoPpqSsUuVvwx0",
        values="ABCEdegjMmrTt",
        long_flags=_RG_LONG,
        long_values="after-context before-context color colors context context-separator dfa-size-limit encoding "
        "engine field-context-separator field-match-separator generate glob hyperlink-format iglob max-columns "
        "max-count max-depth maxdepth max-filesize path-separator regex-size-limit regexp replace sort sortr threads "
        "type type-add type-clear type-not",
        paths={"-f": "read", "--file": "read", "--ignore-file": "read"},
        first="text",
        unless_options=frozenset({"-e", "--regexp", "-f", "--file", "--files", "--type-list"}),
        extra_paths=_chosen,
        reject=_refuse_dashed,
        grantable=False,
        match=(
            "rg foo", "rg -n 'def \\w+' src -t py", "rg --files -g '*.py'", "rg -i -C3 foo --glob='!dist'",
            "rg -uuu -l x", "rg --json foo src", "rg -e a -e b src", "rg foo --sort path", "rg -tpy -A2 foo",
            "rg --no-ignore --hidden x", "rg -e --pre src", "rg x -r '->'",
        ),
        no_match=(
            "rg --pre sh foo", "rg --pre=sh foo", "rg foo --pre-glob '*.x'", "rg --hostname-bin=sh foo", "rg -z foo",
            "rg --search-zip foo", "rg -nz foo", "rg --hostname-bin sh --hyperlink-format default x",
            "rg -f=/etc/x a",
            "rg --context-separator -- --pre sh x", "rg --engine --pre=sh x",
        ),
    ),
    ProgramSpec(
        name="fd",
        also=("fdfind",),
        flags="01aFgHIiLpqsuhV",
        values="cdEejoSt",
        long_flags="hidden no-hidden no-ignore ignore no-ignore-vcs ignore-vcs no-ignore-parent no-require-git "
        "unrestricted case-sensitive ignore-case glob regex fixed-strings literal absolute-path relative-path follow "
        "no-follow full-path print0 prune quiet has-results show-errors strip-cwd-prefix= one-file-system mount xdev "
        "no-global-ignore-file rg-alias-hidden-ignore help version hyperlink=",
        long_values="and max-depth maxdepth min-depth exact-depth exclude type extension size changed-within "
        "change-newer-than newer changed-after changed-before change-older-than older owner color threads "
        "max-results batch-size path-separator format",
        paths={"--base-directory": "read", "-C": "read", "--search-path": "read", "--ignore-file": "read"},
        first="text",
        reject=_refuse_dashed,
        grantable=False,
        match=(
            "fd", "fd foo src", "fd -e py", "fd -t f -H foo . --exclude .git", "fdfind -L foo", "fd -g '*.md' -d 2",
            "fd --search-path src foo", "fd . src -tf",
        ),
        # -l runs ls.
        no_match=(
            "fd -x rm", "fd foo -X rm", "fd --exec rm", "fd --exec=rm", "fd --exec-batch rm", "fd -Hx rm", "fd -l",
            "fd -e py -x sh -c id", "fd --list-details", "fd --exec-batch=rm", "fd -C=/etc x",
        ),
    ),
)  # fmt: skip
