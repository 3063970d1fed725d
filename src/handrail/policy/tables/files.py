"""Programs that say what files there are and what they are."""

import re

from handrail.policy.commands.options import list_path_uses, sort_words
from handrail.policy.commands.reading import PathUse
from handrail.policy.shell.script import Word
from handrail.policy.tables.form import ProgramSpec

_GNU = "help version"

_TREE = ProgramSpec(
    name="tree",
    flags="acdDfFghiJlnNpqQrsStuUvxXAC",
    values="HILPT",
    long_flags="gitignore ignore-case matchdirs metafirst prune info noreport si du inodes device dirsfirst filesfirst "
    f"nolinks fromfile fromtabfile fflinks opt-toggle {_GNU}",
    long_values="charset filelimit timefmt sort",
    paths={"--gitfile": "read", "--infofile": "read", "--hintro": "read", "--houtro": "read"},
)
# The letters behind one that takes a value are letters still, and the value is the next word: `-LR 2` is -L 2 -R.
_TREE_WORD = re.compile(rf"(?!-)|--|-(?:[{_TREE.flags}]+|[{_TREE.flags}]*[{_TREE.values}]|L[0-9]+)\Z")


def _read_tree(words: tuple[Word, ...]) -> tuple[PathUse, ...] | str:
    parsed = sort_words(_TREE, words)
    if isinstance(parsed, str):
        return parsed
    odd = next((word.text for word in words if not _TREE_WORD.match(word.text)), None)
    return f"tree reads {odd} in its own way" if odd else list_path_uses(_TREE, parsed)


TABLES = (
    ProgramSpec(
        name="ls",
        also=("dir", "vdir"),
        flags="aAbBcCdDfFgGhHiklLmnNopqQrRsStuUvxXZ1",
        values="ITw",
        long_flags="all almost-all author escape ignore-backups color= directory dired classify= file-type full-time "
        "group-directories-first no-group human-readable si dereference-command-line "
        "dereference-command-line-symlink-to-dir hyperlink= inode kibibytes dereference numeric-uid-gid literal "
        f"hide-control-chars show-control-chars quote-name reverse recursive size context zero {_GNU}",
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
        long_flags="null all apparent-size bytes total dereference-args human-readable inodes dereference count-links "
        f"no-dereference separate-dirs si summarize time= one-file-system {_GNU}",
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
        custom_parser=_read_tree,
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
        long_flags="brief checking-printout mime apple extension mime-type mime-encoding keep-going list dereference "
        f"no-dereference no-buffer no-pad print0 raw {_GNU}",
        long_values="exclude exclude-quiet separator parameter",
        match=("file a.bin", "file -b --mime-type a", "file -L bin/*"),
        # -C writes; -z runs others; -m and -f have files that steer it; -p sets times; -s reads devices.
        no_match=(
            "file -C -m magic", "file -m magic a", "file -z a", "file -Z a", "file -f list", "file --files-from=list",
            "file -bz a", "file --compile", "file -p a", "file -s a", "file --uncompress a", "file -S a",
        ),
    ),
    ProgramSpec(
        name="realpath",
        flags="emLPqsz",
        long_flags="canonicalize-existing canonicalize-missing logical physical quiet strip no-symlinks zero "
        f"canonicalize {_GNU}",
        paths={"--relative-to": "read", "--relative-base": "read"},
        match=("realpath a", "realpath --relative-to=src src/a.py", "realpath -m a/../b"),
        no_match=("realpath -o x", "realpath --output=x a"),
    ),
    ProgramSpec(
        name="readlink",
        flags="femnqsvz",
        long_flags="canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose zero "
        f"{_GNU}",
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
)  # fmt: skip
