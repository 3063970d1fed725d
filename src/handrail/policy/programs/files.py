"""Programs that search folders: ls, find, grep, rg, fd."""

import re

from handrail.policy.names import may_name_credential
from handrail.policy.programs.git_paths import list_hidden_uses
from handrail.policy.programs.options import list_path_uses, parse_args
from handrail.policy.programs.spec import ParsedArgs, PathUse, ProgramSpec
from handrail.policy.shell.syntax import Word

_GNU = "help version"
_TREE = ProgramSpec(
    name="tree",
    flags="acdDfFghiJlnNpqQrsStuUvxXAC",
    values="HILPT",
    long_flags=f"""gitignore ignore-case matchdirs metafirst prune info noreport si du inodes device dirsfirst
        filesfirst nolinks fromfile fromtabfile fflinks opt-toggle {_GNU}""",
    long_values="charset filelimit timefmt sort",
    paths={"--gitfile": "read", "--infofile": "read", "--hintro": "read", "--houtro": "read"},
)
# tree reads on after a letter with a value, and takes the value from the next word: `-LR 2` is -L 2 -R.
_TREE_WORD = re.compile(rf"(?!-)|--|-(?:[{_TREE.flags}]+|[{_TREE.flags}]*[{_TREE.values}]|L[0-9]+)\Z")


def _parse_tree(words: tuple[Word, ...]) -> tuple[PathUse, ...] | str:
    parsed = parse_args(_TREE, words)
    if isinstance(parsed, str):
        return parsed
    odd = next((word.text for word in words if not _TREE_WORD.match(word.text)), None)
    return f"tree reads {odd} in its own way" if odd else list_path_uses(_TREE, parsed)


_FIND_OPTIONS = frozenset(("-H", "-L", "-P", "-O0", "-O1", "-O2", "-O3"))
_FIND_PLAIN = frozenset(
    (
        "(", ")", "!", ",", "-not", "-a", "-and", "-o", "-or", "-d", "-depth", "-daystart", "-follow", "-help",
        "--help", "-version", "--version", "-mount", "-xdev", "-noleaf", "-nowarn", "-warn",
        "-ignore_readdir_race", "-noignore_readdir_race", "-true", "-false", "-empty", "-executable", "-readable",
        "-writable", "-nouser", "-nogroup", "-print", "-print0", "-ls", "-prune", "-quit",
    )
)  # fmt: skip
_FIND_TEXT = frozenset(
    (
        "-maxdepth", "-mindepth", "-amin", "-atime", "-cmin", "-ctime", "-mmin", "-mtime", "-context", "-fstype",
        "-gid", "-group", "-ilname", "-iname", "-inum", "-ipath", "-iregex", "-iwholename", "-links", "-lname",
        "-name", "-path", "-perm", "-printf", "-regex", "-regextype", "-size", "-type", "-uid", "-used", "-user",
        "-wholename", "-xtype",
    )
)  # fmt: skip
_FIND_FILE = frozenset({"-newer", "-anewer", "-cnewer", "-samefile"}) | {
    f"-newer{left}{right}" for left in "aBcm" for right in "aBcm"
}
_FIND_TIME = frozenset({f"-newer{left}t" for left in "aBcm"})
_FIND_VALUED = _FIND_TEXT | _FIND_FILE | _FIND_TIME


def _parse_find(words: tuple[Word, ...]) -> tuple[PathUse, ...] | str:
    """The paths that find starts from and compares with, or the first word of its expression that may do more."""
    rest = list(words)
    while rest and rest[0].text in _FIND_OPTIONS:
        del rest[0]
    found: list[PathUse] = []
    while rest and not (rest[0].text[:1] == "-" or rest[0].text in _FIND_PLAIN):
        word = rest.pop(0)
        found.append(PathUse(word.text, "read", bool(word.globs)))
    return _parse_find_expression(rest, found)


def _parse_find_expression(words: list[Word], found: list[PathUse]) -> tuple[PathUse, ...] | str:
    rest = iter(words)
    for word in rest:
        if word.text in _FIND_PLAIN:
            continue
        if word.text not in _FIND_VALUED:
            return f"find's {word.text} is not a known read-only action"
        value = next(rest, None)
        if value is None or value.globs:
            lacks = f"find's {word.text} lacks its value"
            return lacks if value is None else f"{value.text} is a pattern behind find's {word.text}"
        if word.text in _FIND_FILE:
            found.append(PathUse(value.text, "read"))
    return tuple(found)


_FILE_PATTERNS = frozenset({"--include", "-g", "--glob", "--iglob", "--type-add"})
"""Options whose value is a pattern for the files to search."""
_SEARCH_PATTERNS = frozenset({"-e", "--regexp", "--and"})
_OPTION_LIKE = re.compile(r"-[A-Za-z.-]")
_GREP_LONG = """extended-regexp fixed-strings basic-regexp perl-regexp ignore-case no-ignore-case word-regexp
    line-regexp null-data no-messages invert-match version help byte-offset line-number line-buffered with-filename
    no-filename only-matching quiet silent text recursive dereference-recursive files-without-match files-with-matches
    count initial-tab null no-group-separator color= colour= binary"""
_RG_LONG = """auto-hybrid-regex binary block-buffered byte-offset case-sensitive column count count-matches crlf debug
    files files-with-matches files-without-match fixed-strings follow glob-case-insensitive heading help hidden
    ignore-case ignore-file-case-insensitive include-zero invert-match json line-buffered line-number line-regexp
    max-columns-preview mmap multiline multiline-dotall no-auto-hybrid-regex no-binary no-block-buffered no-byte-offset
    no-column no-config no-context-separator no-crlf no-encoding no-filename no-fixed-strings no-follow
    no-glob-case-insensitive no-heading no-hidden no-ignore no-ignore-dot no-ignore-exclude
    no-ignore-file-case-insensitive no-ignore-files no-ignore-global no-ignore-messages no-ignore-parent no-ignore-vcs
    no-include-zero no-invert-match no-json no-line-buffered no-line-number no-max-columns-preview no-messages no-mmap
    no-multiline no-multiline-dotall no-one-file-system no-pcre2 no-pcre2-unicode no-pre no-require-git no-search-zip
    no-stats no-text no-trim no-unicode null null-data one-file-system only-matching passthru passthrough pcre2
    pcre2-unicode pcre2-version pretty quiet require-git ignore ignore-dot ignore-exclude ignore-files ignore-global
    ignore-messages ignore-parent ignore-vcs messages smart-case sort-files no-sort-files stats stop-on-nonmatch text
    trace trim type-list unicode unrestricted version vimgrep with-filename word-regexp"""


def _list_chosen_credentials(parsed: ParsedArgs) -> tuple[PathUse, ...]:
    """Patterns that choose credentials count as their names."""
    values = [value for name, value in parsed.options if name in _FILE_PATTERNS and value and not value.startswith("!")]
    names = [name for value in values for name in re.split("[{},:/]", value)]
    aimed = [PathUse(name, "read", is_glob=True) for name in names if may_name_credential(name)]
    return (*aimed, *(use for name in names for use in list_hidden_uses(name)))


def _refuse_dashed(parsed: ParsedArgs) -> str | None:
    """Some versions take a value that looks like an option for an option."""
    odd = next(
        (value for name, value in parsed.options if name not in _SEARCH_PATTERNS and _OPTION_LIKE.match(value or "")),
        None,
    )
    return odd and f"{odd} may be an option of its own"


TABLES: tuple[ProgramSpec, ...] = (
    ProgramSpec(
        name="ls",
        also=("dir", "vdir"),
        flags="aAbBcCdDfFgGhHiklLmnNopqQrRsStuUvxXZ1",
        values="ITw",
        long_flags=f"""all almost-all author escape ignore-backups color= directory dired classify= file-type full-time
            group-directories-first no-group human-readable si dereference-command-line
            dereference-command-line-symlink-to-dir hyperlink= inode kibibytes dereference numeric-uid-gid literal
            hide-control-chars show-control-chars quote-name reverse recursive size context zero {_GNU}""",
        long_values="block-size format hide indicator-style ignore quoting-style sort time time-style tabsize width",
        match=(
            "ls", "ls -la", "ls -lah src", "ls -1 --sort=time", "ls -d src/*", "ls --color=never -R a b",
            "ls -I '*.pyc'",
        ),
        no_match=("ls --output=x", "ls -P", "ls --sor=time"),
    ),
    ProgramSpec(
        name="stat",
        flags="Lft",
        values="c",
        long_flags=f"dereference file-system terse {_GNU}",
        long_values="cached format printf",
        match=("stat a.txt", "stat -c %s a.txt", "stat -f .", "stat --printf='%n\\n' a"),
        no_match=("stat --output=x a", "stat -x a"),
    ),
    ProgramSpec(
        name="du",
        flags="0abcDHhkLlmPSsx",
        values="Bdt",
        long_flags=f"""null all apparent-size bytes total dereference-args human-readable inodes dereference count-links
            no-dereference separate-dirs si summarize time= one-file-system {_GNU}""",
        long_values="block-size max-depth threshold time-style exclude",
        paths={"-X": "read", "--exclude-from": "read"},
        match=("du -sh .", "du -h --max-depth=1 src", "du -ad1", "du --exclude='*.o' -c a b"),
        no_match=("du --files0-from=list", "du --files0-from -", "du -o x"),
    ),
    ProgramSpec(
        name="df",
        flags="ahHiklPTv",
        values="Btx",
        long_flags=f"all human-readable si inodes local no-sync output= portability total print-type {_GNU}",
        long_values="block-size type exclude-type",
        match=("df -h", "df -h .", "df --output=avail,target /"),
        no_match=("df --sync", "df -o x"),
    ),
    ProgramSpec(
        name="tree",
        custom_parser=_parse_tree,
        grantable=False,
        match=(
            "tree", "tree -L 2 src", "tree -aL 2 -I 'node_modules|.git'", "tree -L2", "tree --gitignore -d",
            "tree -- a",
        ),
        # -R runs tree again, with -o.
        no_match=(
            "tree -o x", "tree -ao x", "tree --output=x", "tree -R", "tree -LR 2", "tree -LRo 2 x", "tree -Io 2 x",
            "tree -L 2 -R -H .",
        ),
    ),
    ProgramSpec(
        name="file",
        flags="bchiklLnNr0v",
        values="eFP",
        long_flags=f"""brief checking-printout mime apple extension mime-type mime-encoding keep-going list dereference
            no-dereference no-buffer no-pad print0 raw {_GNU}""",
        long_values="exclude exclude-quiet separator parameter",
        match=("file a.bin", "file -b --mime-type a", "file -L bin/*"),
        # -C writes, -z runs programs, -m and -f read files that steer it, -p sets times, -s reads devices.
        no_match=(
            "file -C -m magic", "file -m magic a", "file -z a", "file -Z a", "file -f list", "file --files-from=list",
            "file -bz a", "file --compile", "file -p a", "file -s a", "file --uncompress a", "file -S a",
        ),
    ),
    ProgramSpec(
        name="realpath",
        flags="emLPqsz",
        long_flags=f"""canonicalize-existing canonicalize-missing logical physical quiet strip no-symlinks zero
            canonicalize {_GNU}""",
        paths={"--relative-to": "read", "--relative-base": "read"},
        match=("realpath a", "realpath --relative-to=src src/a.py", "realpath -m a/../b"),
        no_match=("realpath -o x", "realpath --output=x a"),
    ),
    ProgramSpec(
        name="readlink",
        flags="femnqsvz",
        long_flags=f"""canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose zero
            {_GNU}""",
        match=("readlink -f a", "readlink a b"),
        no_match=("readlink -o x", "readlink --output=x a"),
    ),
    ProgramSpec(
        name="basename",
        flags="az",
        values="s",
        long_flags=f"multiple zero {_GNU}",
        long_values="suffix",
        operands="text",
        match=("basename src/a.py .py", "basename -a a/b c/d", "basename --suffix=.py a.py"),
        no_match=("basename -o x", "basename --output=x a"),
    ),
    ProgramSpec(
        name="dirname",
        flags="z",
        long_flags=f"zero {_GNU}",
        operands="text",
        match=("dirname src/a.py", "dirname -z a/b c/d"),
        no_match=("dirname -o x", "dirname --output=x a"),
    ),
    ProgramSpec(
        name="find",
        custom_parser=_parse_find,
        grantable=False,
        match=(
            "find", "find . -name '*.py'", "find src tests -type f -not -path '*/.git/*' -print0",
            "find -L . -maxdepth 2 -ls", "find . \\( -name a -o -name b \\) -prune -o -print",
            "find . ! -newer a.txt -mtime -1", "find src/* -size +1M", "find . -type f -printf '%p\\n'",
            "find . -name -exec", "find . -newermt 2024-01-01 -iname x",
        ),
        no_match=(
            "find . -exec rm {} +", "find . -execdir sh -c id", "find . -ok rm {} +", "find . -okdir rm {} +",
            "find . -delete", "find . -name x -delete", "find . -fprint x", "find . -fprint0 x", "find . -fprintf x %p",
            "find . -fls x", "find -files0-from list", "find . -name x -exec id ';'", "find . -D exec", "find . -name",
            "find . -name a*", "find . -newerXY a", "find . -print x",
        ),
    ),
    ProgramSpec(
        name="grep",
        also=("egrep", "fgrep"),
        flags="abcEFGhHiIlLnoPqrRsTUvVwxyZz",
        values="ABCDdem",
        numbers=True,
        long_flags=_GREP_LONG,
        long_values="""regexp max-count label binary-files directories devices include exclude exclude-dir
            before-context after-context context group-separator""",
        paths={"-f": "read", "--file": "read", "--exclude-from": "read"},
        first="text",
        unless_options=frozenset({"-e", "--regexp", "-f", "--file"}),
        extra_paths=_list_chosen_credentials,
        match=(
            "grep foo a.txt", "grep -rn foo src", "grep -A3 -B 3 -rn --include='*.py' -e foo src", "grep -c '' a",
            "grep -rnE 'a|b' --exclude-dir=.git .", "grep -5 foo a", "grep -f patterns a", "egrep -i x a", "grep x -r",
            "grep --color=always -rl foo", "grep -n3 foo a", "grep -- -x a", "grep -rn '[$(]id' src",
        ),
        no_match=("grep --output=x foo a", "grep --unknown foo", "grep -rk foo", "grep --inc='*.py' foo ."),
    ),
    ProgramSpec(
        name="rg",
        flags=".abcFHhIiLlNnoPpqSsUuVvwx0",
        values="ABCEdegjMmrTt",
        long_flags=_RG_LONG,
        long_values="""after-context before-context color colors context context-separator dfa-size-limit encoding
            engine field-context-separator field-match-separator generate glob hyperlink-format iglob max-columns
            max-count max-depth maxdepth max-filesize path-separator regex-size-limit regexp replace sort sortr threads
            type type-add type-clear type-not""",
        paths={"-f": "read", "--file": "read", "--ignore-file": "read"},
        first="text",
        unless_options=frozenset({"-e", "--regexp", "-f", "--file", "--files", "--type-list"}),
        extra_paths=_list_chosen_credentials,
        reject=_refuse_dashed,
        grantable=False,
        match=(
            "rg foo", "rg -n 'def \\w+' src -t py", "rg --files -g '*.py'", "rg -i -C3 foo --glob='!dist'",
            "rg -uuu -l x", "rg --json foo src", "rg -e a -e b src", "rg foo --sort path", "rg -tpy -A2 foo",
            "rg --no-ignore --hidden x", "rg -e --pre src", "rg x -r '->'",
        ),
        no_match=(
            "rg --pre sh foo", "rg --pre=sh foo", "rg foo --pre-glob '*.x'", "rg --hostname-bin=sh foo", "rg -z foo",
            "rg --search-zip foo", "rg -nz foo", "rg --hostname-bin sh --hyperlink-format default x", "rg -f=/etc/x a",
            "rg --context-separator -- --pre sh x", "rg --engine --pre=sh x",
        ),
    ),
    ProgramSpec(
        name="fd",
        also=("fdfind",),
        flags="01aFgHIiLpqsuhV",
        values="cdEejoSt",
        long_flags="""hidden no-hidden no-ignore ignore no-ignore-vcs ignore-vcs no-ignore-parent no-require-git
            unrestricted case-sensitive ignore-case glob regex fixed-strings literal absolute-path relative-path follow
            no-follow full-path print0 prune quiet has-results show-errors strip-cwd-prefix= one-file-system mount xdev
            no-global-ignore-file rg-alias-hidden-ignore help version hyperlink=""",
        long_values="""and max-depth maxdepth min-depth exact-depth exclude type extension size changed-within
            change-newer-than newer changed-after changed-before change-older-than older owner color threads max-results
            batch-size path-separator format""",
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
