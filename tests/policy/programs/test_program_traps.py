"""Options that make reading programs write, run others, reach out or never end are not proven."""

import pytest
from tests.policy.programs.support import read, words

from handrail.policy.programs.registry import classify
from handrail.policy.shell.lexer import lex
from handrail.policy.shell.syntax import Script, SimpleCommand, Word

WRITES = (
    "sort -o a a", "sort a -o a", "sort -uoa a", "sort -nro a b", "sort --output=a a", "sort --output a",
    "sort -T x a", "sort --temporary-directory x", "uniq a b", "uniq -c a b", "uniq a -c b", "uniq - b", "uniq a*",
    "xxd a b", "xxd -r a", "xxd -r -p a b", "xxd a -r", "xxd -c 5 a b", "xxd -rp", "tree -o x", "tree -ao x",
    "tree -Lo 2 x", "tree --output x", "tree -R -H x -L 1", "file -C -m x", "file --compile", "file -p a",
    "date -s 2020-01-01", "date 010100002020", "date --set x", "date -u 0101", "hostname x", "hostname -F x",
    "shuf -o x a", "shuf -zo x a", "iconv -o x a", "iconv --output=x a", "yq -i .a=1 a", "yq --inplace . a",
    "yq -ri . a", "yq --in-place . a", "yq -s .a a", "yq -I -i . a", "sed -i 5p a", "sed -n '5w x' a", "sed -ni 5p a",
    "sed --in-place=x 5p a", "sed -n -s -i 1p a", "find . -delete", "find . -fprint x", "find . -fprint0 x",
    "find . -fprintf x y", "find . -fls x", "find . -name x -o -delete", "printf -v x y", "ulimit -n 5", "umask 0",
    "objdump -i", "df --sync", "xxd -group 4 a", "unzip -l -- -l a", "zipinfo -- -h -M a", "uniq a -c", "uniq a -f 1",
)  # fmt: skip
RUNS = (
    "sort --compress-program=sh a", "sort --compress-prog sh a", "diff -l a b", "diff --paginate a b",
    "diff -urNl a b", "file -z a", "file -Zb a", "find . -exec id {} +", "find . -execdir id ';'",
    "find . -ok id ';'", "find . -okdir id ';'", "find . -print -exec sh x ';'", "fd -x id", "fd -X id",
    "fd --exec id", "fd --exec=id", "fd --exec-batch id", "fd -Hx id", "fd . -l", "fdfind --list-details",
    "fdfind -x id", "rg --pre id x", "rg --pre=id x", "rg --hostname-bin=id x", "rg -z x",
    "rg --context-separator -- --pre sh x", "rg --search-zip x", "rg --engine --pre=id x", "rg -g --pre=id x",
    "rg --engine=--pre=id x", "rg --context-separator -- -e x", "fd -E -x id", "fd -E --exec=id",
    "rg -nz x", "rg --pre-glob x y", "sed -n '1e id' a", "sed s/a/id/e a", "sed 1e a", "env id", "env -S id",
    "env -i id", "env --split-string=id", "command id", "command -p id", "nm --plugin x.so a", "getconf -v x y",
    "locale -m", "unzip -lM a", "zipinfo -M a", "tree -LR 2", "yq 'system(\"id\")' a", "test -v 'a[$(id)]'",
    "test -R 'a[$(id)]'", "[ -v 'a[$(id)]' ]", "test x -a -v y", "test ! -v y", "printf %n 'a[$(id)]'",
    "printf '%-5n' x", "printf '%(%s)T' -1", "printf -- -v%n x", "bash --version -c id",
)  # fmt: skip
READS_WHAT_IS_NOT_NAMED = (
    "wc --files0-from=x", "du --files0-from x", "sort --files0-from=x", "find -files0-from x", "file -f x",
    "file --files-from=x", "file -m x a", "sha256sum -c x", "md5sum --check x", "jq -f x a", "jq --from-file x a",
    "jq -L x . a", "jq -rf x", "jq 'import \"x\" as x; .' a", "jq 'include \"x\"; .' a",
    "jq '\n import \"x\" as x; .'", "jq '$ENV' a", "jq env a", "jq -n 'env|keys'", "jq '{a: env}' a",
    "jq '\"x\" | modulemeta'", "jq '#\nimport \"x\" as y; .'", "yq 'load(\"x\")' a", "yq '.a * load_yaml(\"x\")' a",
    "yq 'env(X)' a", "yq 'strenv(X)' a", "yq 'eval(.x)' a", "yq --from-file x a", "yq '.. load(\"x\")' a",
    "yq '..load(\"x\")' a", "strings @x", "nm @x", "size @x a", "readelf -w a", "objdump -S a", "strings -n @x a",
    "rg -f=/etc/x a", "ps e", "ps axe", "lscpu -s x", "tail -20c x", "tail -1c x", "head -20c x", "head -5qc x",
    "ps eoargs=", "ps axeoargs=", "ps -eo pid,environ", "ps axo pid,environ", "ps -O environ", "ps --format=environ",
    "ps ao args eopid=,", "iconv -f ../x a", "iconv -f ./x -t utf-8 a", "iconv -t /etc/x a", "iconv --to-code=x/y a",
    "column -n x", "yq --indent env x", "git log -5n x", "git log -5S x",
)  # fmt: skip
NEVER_ENDS_OR_REACHES_OUT = (
    "tail -f a", "tail -F a", "tail -5f a", "tail --follow a", "tail --follow=name a", "tail --retry a",
    "tail --pid=1 a", "tail -n1 -f a", "tail +5f a", "sleep infinity", "free -s 1", "hostname -f", "hostname -i",
    "who --lookup", "tail -20cf a", "shuf -r a", "shuf -re a b", "shuf --repeat -i 1-9", "seq inf", "seq 1 INFINITY",
    "seq 1 nan 5", "seq 1 1e30", "seq 99999999999999999999", "seq -f %g infinity", "sleep 99999d", "sleep 20m",
    "sleep 300 300 1",
)  # fmt: skip
NO_PROGRAM_THAT_ONLY_READS = (
    "split a", "tee a", "xargs id", "awk 1 a", "less a", "more a", "man ls", "vi a", "dc a", "ldd a",
    "tar tf a", "pkill x", "ptx a b", "yarn --version", "cargo --version", "sdiff a b", "csplit a 5",
)  # fmt: skip


TRAPS = (*WRITES, *RUNS, *READS_WHAT_IS_NOT_NAMED, *NEVER_ENDS_OR_REACHES_OUT, *NO_PROGRAM_THAT_ONLY_READS)


@pytest.mark.parametrize("text", TRAPS)
def test_a_trap_is_never_proven(text: str) -> None:
    assert read(text).effect != "proven"


def test_traps_are_refused_by_tables_and_not_by_the_lexer() -> None:
    assert [text for text in TRAPS if not isinstance(lex(text), Script)] == []


@pytest.mark.parametrize(
    "command",
    [
        (Word("printf"), Word("%*", (1,))),
        (Word("find"), Word("."), Word("-name"), Word("a*", (1,))),
        (Word("jq"), Word("a*", (1,)), Word("b")),
        (Word("jq"), Word("--arg"), Word("a*", (1,)), Word("b"), Word(".")),
        (Word("jq"), Word("--arg"), Word("a")),
        (Word("yq"), Word("a*", (1,))),
        (Word("xxd"), Word("a*", (1,))),
        (Word("xxd"), Word("-l")),
        (Word("sed"), Word("-n"), Word("5p*", (2,))),
        words("find", ".", "-name"),
        words("git", "stash list"),
        words("["),
        words("printf"),
        words("sed", "-n"),
    ],
)
def test_a_pattern_or_nothing_where_a_program_has_its_program_is_never_proven(command: tuple[Word, ...]) -> None:
    assert classify(SimpleCommand(command)).effect == "unproven"
