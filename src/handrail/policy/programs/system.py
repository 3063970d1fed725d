"""Small programs of every system: shell built-ins, calculators, system information."""

import re

from handrail.policy.programs.spec import ParsedArgs, PathUse, ProgramSpec
from handrail.policy.shell.syntax import Word

_GNU = "help version"
# `ps aux`: letters without a dash are options. The letter e shows the environment of other programs.
_PS_OPERAND = re.compile(r"[a-df-zA-Z]+\Z|[0-9]+(?:,[0-9]+)*\Z")
# After a final o come the columns: `ps axo pid,comm=`.
_PS_COLUMN_OPTION = re.compile(r"[a-df-zA-Z]*o\Z")
_PS_COLUMNS = re.compile(r"[a-z%]+(?:[,=][a-z%]*)*\Z")


def _refuse_clock_change(parsed: ParsedArgs) -> str | None:
    odd = next((text for text in parsed.operands if not text.startswith("+")), None)
    return odd and f"date may set the clock to {odd}"


def _refuse_environment(parsed: ParsedArgs) -> str | None:
    columns = False
    for text in parsed.operands:
        if "environ" in text or not (_PS_COLUMNS if columns else _PS_OPERAND).match(text):
            return f"ps's {text} is not a known option for listing processes"
        columns = not columns and bool(_PS_COLUMN_OPTION.match(text))
    odd = next((value for _, value in parsed.options if value and "environ" in value.lower()), None)
    return odd and f"ps's {odd} shows what programs have in their environment"


_PRINTF_CONVERSION = r"%[-+ #0']*(?:[0-9]+|\*)?(?:\.(?:[0-9]*|\*))?(?:hh|h|ll|l|L|j|z|t)?[diouxXfFeEgGaAcsbqQ]"
_PRINTF_FORMAT = re.compile(rf"(?:[^%]|%%|{_PRINTF_CONVERSION})*\Z", re.DOTALL)
_TEST_FILE = frozenset(f"-{letter}" for letter in "bcdefghkprsuwxGLNOS")
_TEST_FILES = frozenset({"-nt", "-ot", "-ef"})
# -a also tests a file. -v and -R look up a variable, and bash runs a substitution in its index.
_TESTS = _TEST_FILE | _TEST_FILES | {"-a", "-o", "-n", "-z", "-t", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"}
_NUMBER = re.compile(r"-[0-9]+\Z")
_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]*)?[smhd]?\Z")
_UNITS = {"m": 60, "h": 3600, "d": 86400}
_MAX_SLEEP_SECONDS = 600
"""No command may run longer."""


def _parse_text(words: tuple[Word, ...]) -> tuple[PathUse, ...]:
    """All words are text, but bash reads folders to expand globs."""
    return tuple([PathUse(word.text, "read", is_glob=True) for word in words if word.globs])


def _parse_printf(words: tuple[Word, ...]) -> tuple[PathUse, ...] | str:
    rest = words[1:] if words and words[0].text == "--" else words
    if not rest or rest[0].globs or (rest is words and rest[0].text[:1] == "-"):
        return "printf only prints with its format first"
    if not _PRINTF_FORMAT.match(rest[0].text):
        return f"printf's format {rest[0].text} may set a variable"
    return _parse_text(rest)


def _parse_test(words: tuple[Word, ...]) -> tuple[PathUse, ...] | str:
    for word in words:
        if word.text[:1] == "-" and word.text not in _TESTS and not _NUMBER.match(word.text):
            return f"test's {word.text} is not a known read-only option"
    texts = [word.text for word in words]
    found = list(_parse_text(words))
    for place, text in enumerate(texts):
        if text in _TEST_FILE or text in _TEST_FILES or text == "-a":
            found += [PathUse(after, "read") for after in texts[place + 1 : place + 2]]
        if text in _TEST_FILES:
            found += [PathUse(before, "read") for before in texts[max(place - 1, 0) : place]]
    return tuple(found)


def _parse_bracket(words: tuple[Word, ...]) -> tuple[PathUse, ...] | str:
    return _parse_test(words[:-1]) if words and words[-1].text == "]" else "[ lacks its ]"


def _refuse_long_sleep(parsed: ParsedArgs) -> str | None:
    odd = next((text for text in parsed.operands if not _SECONDS.match(text)), None)
    if odd:
        return f"sleep's {odd} is not a finite time"
    seconds = sum(float(text.rstrip("smhd")) * _UNITS.get(text[-1], 1) for text in parsed.operands)
    return f"sleep takes longer than {_MAX_SLEEP_SECONDS} seconds" if seconds > _MAX_SLEEP_SECONDS else None


def _refuse_non_number(parsed: ParsedArgs) -> str | None:
    odd = next((text for text in parsed.operands if not text.isdigit()), None)
    return odd and f"exit's {odd} is not a number"


def _refuse_shell_options(parsed: ParsedArgs) -> str | None:
    """`+n` would run the script."""
    odd = next((text for text in parsed.operands if text.startswith("+")), None)
    return odd and f"{odd} may be an option of the shell"


TABLES: tuple[ProgramSpec, ...] = (
    ProgramSpec(
        name="date",
        flags="uR",
        values="d",
        attached="I",
        long_flags=f"debug iso-8601= resolution rfc-email utc universal {_GNU}",
        long_values="date rfc-3339",
        paths={"-r": "read", "--reference": "read", "-f": "read", "--file": "read"},
        operands="text",
        reject=_refuse_clock_change,
        match=(
            "date", "date +%s", "date -u '+%F %T'", "date -d yesterday +%F", "date -Iseconds", "date -r a.txt",
            "date -I",
        ),
        no_match=("date 01010000", "date -s 2020-01-01", "date --set=x", "date -us x", "date -u 0101"),
    ),
    ProgramSpec(
        name="cal",
        also=("ncal",),
        flags="13jmsyYhV",
        values="n",
        long_flags="one three julian monday sunday year twelve help version",
        long_values="months",
        operands="text",
        match=("cal", "cal -3", "cal 2024", "cal 5 2024"),
        no_match=("cal --unknown", "cal -z"),
    ),
    ProgramSpec(
        name="env",
        flags="0",
        long_flags=f"null {_GNU}",
        operands=None,
        grantable=False,
        match=("env", "env -0", "env --null"),
        no_match=(
            "env ls", "env A=b ls", "env -i ls", "env -S 'sh -c id'", "env -C x", "env -u A", "env A=b", "env - ls",
        ),
    ),
    ProgramSpec(
        name="printenv",
        flags="0",
        long_flags=f"null {_GNU}",
        operands="text",
        match=("printenv", "printenv HOME PATH"),
        no_match=("printenv -x", "printenv --unknown"),
    ),
    ProgramSpec(
        name="id",
        flags="aZgGnruz",
        long_flags=f"context group groups name real user zero {_GNU}",
        operands="text",
        match=("id", "id -un", "id root"),
        no_match=("id -x", "id --unknown"),
    ),
    ProgramSpec(
        name="whoami",
        also=("logname", "arch", "groups", "users"),
        long_flags=_GNU,
        operands=None,
        match=("whoami", "arch", "groups", "users --version"),
        no_match=("whoami x", "logname -x"),
    ),
    ProgramSpec(
        name="uname",
        flags="asnrvmpio",
        long_flags=f"""all kernel-name nodename kernel-release kernel-version machine processor hardware-platform
            operating-system {_GNU}""",
        operands=None,
        match=("uname", "uname -a", "uname -sr", "uname --machine"),
        no_match=("uname x", "uname -x"),
    ),
    # Its other options ask the network.
    ProgramSpec(
        name="hostname",
        flags="sV",
        long_flags="short version",
        operands=None,
        match=("hostname", "hostname -s"),
        no_match=("hostname evil", "hostname -F a", "hostname -f", "hostname -b x", "hostname --file=a", "hostname -i"),
    ),
    ProgramSpec(
        name="uptime",
        flags="phsV",
        long_flags="pretty help since version",
        operands=None,
        match=("uptime", "uptime -p"),
        no_match=("uptime x", "uptime -x"),
    ),
    ProgramSpec(
        name="nproc",
        long_flags=f"all {_GNU}",
        long_values="ignore",
        operands=None,
        match=("nproc", "nproc --all"),
        no_match=("nproc -x", "nproc x"),
    ),
    ProgramSpec(
        name="getconf",
        flags="a",
        operands="read",
        first="text",
        match=("getconf PAGE_SIZE", "getconf -a", "getconf PATH_MAX ."),
        no_match=("getconf -v POSIX_V7 X", "getconf --unknown"),  # -v runs another getconf
    ),
    ProgramSpec(
        name="locale",
        flags="ackvV",
        long_flags=f"all-locales category-name keyword-name verbose {_GNU}",
        operands="text",
        match=("locale", "locale -a", "locale -k LC_TIME"),
        no_match=("locale -m", "locale --charmaps", "locale --unknown"),  # unpacks each with gzip
    ),
    ProgramSpec(
        name="ps",
        flags="AaceFdfHjLlMmNPTVwy",
        values="CGgOopqstUu",
        long_flags="deselect forest context headers no-headers cumulative version help=",
        long_values="Group group pid ppid quick-pid sid tty user User format cols columns width rows lines sort",
        operands="text",
        reject=_refuse_environment,
        match=(
            "ps", "ps aux", "ps -ef", "ps -o pid,cmd -p 1", "ps aux --sort=-%mem", "ps axo pid,comm",
            "ps -eo pid,ppid,args", "ps --forest -u root",
        ),
        no_match=("ps auxe", "ps e", "ps eww", "ps --unknown", "ps ./x", "ps -Z", "ps eoargs=", "ps -eo environ"),
    ),
    ProgramSpec(
        name="pgrep",
        flags="acfiLlnovwxAhV",
        values="dgGOPstuUr",
        long_flags="""list-name list-full inverse lightweight count full ignore-case newest oldest exact
            ignore-ancestors help version""",
        long_values="delimiter pgroup group older parent session terminal euid uid runstates cgroup ns nslist",
        paths={"-F": "read", "--pidfile": "read"},
        operands="text",
        match=("pgrep node", "pgrep -af 'python.*x'", "pgrep -u root -l"),
        no_match=("pgrep --signal 9 x", "pgrep -9 x", "pkill x"),
    ),
    ProgramSpec(
        name="free",
        flags="bkmghltvwV",
        long_flags="""bytes kilo mega giga tera peta kibi mebi gibi tebi pebi human si lohi total committed wide help
            version""",
        operands=None,
        match=("free", "free -h", "free -m -t"),
        no_match=("free -s 1", "free --seconds=1", "free x"),  # does not end
    ),
    ProgramSpec(
        name="lscpu",
        flags="abBcJxyhV",
        attached="Cep",
        long_flags="all online bytes caches= offline json extended= parse= hex physical output-all help version",
        operands=None,
        match=("lscpu", "lscpu -J", "lscpu -p=cpu", "lscpu --extended=CPU"),
        no_match=("lscpu -s /x", "lscpu --sysroot=/x"),
    ),
    ProgramSpec(
        name="tty",
        flags="s",
        long_flags=f"silent quiet {_GNU}",
        operands=None,
        match=("tty", "tty -s"),
        no_match=("tty x", "tty -x"),
    ),
    ProgramSpec(
        name="who",
        flags="abdHlmpqrstTwu",
        long_flags=f"""all boot dead heading ips login process count runlevel short time mesg users message writable
            {_GNU}""",
        operands=None,
        match=("who", "who -b"),
        no_match=("who --lookup", "who x"),
    ),
    ProgramSpec(
        name="w",
        flags="husfoiV",
        long_flags="no-header no-current short from old-style ip-addr help version",
        operands="text",
        match=("w", "w -h"),
        no_match=("w -x", "w --unknown"),
    ),
    ProgramSpec(
        name="echo",
        custom_parser=_parse_text,
        match=("echo", "echo -n foo --bar", "echo src/*.py", "echo '$(id)'"),
        no_match=("echo $(id)", "echo `id`"),
    ),
    ProgramSpec(
        name="printf",
        custom_parser=_parse_printf,
        match=(
            "printf '%s\\n' a b", "printf -- '-x'", "printf '%5.2f%%' 3", "printf '%-10s|%*d' a 5 1", "printf hello",
        ),
        no_match=(
            "printf -v x %s a", "printf %n x", "printf '%5n' x", "printf '%(%F)T' 0", "printf '%hhn' x", "printf",
            "printf -v'a[0]' x", "printf '%s%n' a 'a[$(id)]'", "printf '%' a",
        ),
    ),
    ProgramSpec(
        name="test",
        custom_parser=_parse_test,
        match=("test -f a.txt", "test a = b", "test -d src -a ! -e x", "test 5 -gt -3", "test a -nt b", "test -z ''"),
        no_match=("test -v 'a[$(id)]'", "test -R x", "test ! -v x", "test -n a -a -v x", "test --help"),
    ),
    ProgramSpec(
        name="[",
        custom_parser=_parse_bracket,
        match=("[ -f a.txt ]", "[ a != b ]", "[ -s a -o -s b ]", "[ 1 -eq 1 ]"),
        no_match=("[ -v 'a[$(id)]' ]", "[ -f a", "[", "[ -R x ]"),
    ),
    ProgramSpec(
        name="true",
        also=("false", ":"),
        custom_parser=_parse_text,
        match=("true", "false", ":", "true a"),
        no_match=("true $(id)", "false > `id`"),
    ),
    ProgramSpec(
        name="exit",
        operands="text",
        reject=_refuse_non_number,
        match=("exit", "exit 1"),
        no_match=("exit a", "exit -1", "exit 'a[0]'"),
    ),
    ProgramSpec(
        name="pwd",
        flags="LP",
        operands=None,
        match=("pwd", "pwd -P"),
        no_match=("pwd -W", "pwd a", "pwd --physical"),
    ),
    ProgramSpec(
        name="type",
        flags="afptP",
        operands="text",
        match=("type git", "type -a python3 node", "type -P rg"),
        no_match=("type -x git", "type --all git"),
    ),
    ProgramSpec(
        name="command -v",
        also=("command -V",),
        operands="text",
        match=("command -v git", "command -V git", "command -v git node"),
        no_match=("command git", "command -p git", "command -v -p git", "command -pv git"),
    ),
    ProgramSpec(
        name="help",
        flags="dms",
        operands="text",
        match=("help", "help cd", "help -d test"),
        no_match=("help -x", "help --unknown"),
    ),
    ProgramSpec(
        name="umask",
        flags="pS",
        operands=None,
        match=("umask", "umask -S"),
        no_match=("umask 000", "umask -x"),
    ),
    ProgramSpec(
        name="ulimit -a",
        operands=None,
        match=("ulimit -a",),
        no_match=("ulimit -n 5", "ulimit -a -n 5", "ulimit unlimited"),
    ),
    ProgramSpec(
        name="which",
        flags="as",
        long_flags="all",
        operands="text",
        match=("which git", "which -a python3 node"),
        no_match=("which -i git", "which --read-alias git"),
    ),
    ProgramSpec(
        name="sleep",
        operands="text",
        reject=_refuse_long_sleep,
        match=("sleep 0.1", "sleep 0", "sleep 0s"),
        no_match=("sleep infinity", "sleep inf", "sleep x", "sleep 1d", "sleep --help=x"),
    ),
    ProgramSpec(
        name="expr",
        custom_parser=_parse_text,
        match=("expr 1 + 2", "expr length foo", "expr 5 - 3"),
        no_match=("expr $(id)", "expr `id`"),
    ),
    ProgramSpec(
        name="bc",
        flags="hilqsvw",
        long_flags="help interactive mathlib quiet standard version warn",
        match=("bc", "bc -l", "bc -lq a.bc"),
        no_match=("bc -x", "bc --unknown"),
    ),
    ProgramSpec(
        name="factor",
        flags="h",
        long_flags="exponents help version",
        operands="text",
        match=("factor 12", "factor 2 3"),
        no_match=("factor -x 12", "factor --unknown 12"),
    ),
    ProgramSpec(
        name="bash -n",
        also=("sh -n",),
        reject=_refuse_shell_options,
        match=("bash -n run.sh", "sh -n a.sh b.sh", "bash -n -- a"),
        no_match=("bash -n -c id", "bash -n +n run.sh", "bash -ni a", "bash -n --rcfile x a", "sh -n a +n"),
    ),
    ProgramSpec(
        name="node --check",
        also=("node -c",),
        most=1,
        match=("node --check a.js", "node -c src/a.js"),
        no_match=("node --check -r ./x.js a.js", "node --check --import=x a.js", "node -c a.js b.js"),
    ),
    ProgramSpec(
        name="npm ls",
        also=("npm list",),
        flags="agl",
        long_flags="all json long parseable global link production dev",
        long_values="depth omit include",
        operands="text",
        guards="--no-update-notifier",  # which reaches the registry
        match=("npm ls", "npm ls --depth=0", "npm list --all --json", "npm ls -g --depth 0"),
        no_match=("npm ls --prefix x", "npm ls --script-shell=x", "npm ls --userconfig=x", "npm ls --node-options=x"),
    ),
    # pip takes an abbreviation for an option: `pip show --local x` is --local-log, which writes.
    ProgramSpec(
        name="pip list",
        also=("pip3 list",),
        flags="el",
        long_flags="editable local user not-required exclude-editable",
        long_values="format exclude",
        operands=None,
        match=("pip list", "pip3 list --format=json", "pip list --local"),
        no_match=("pip list -o", "pip list --outdated", "pip --python x list", "pip list --log x", "pip list --lo x"),
    ),
    ProgramSpec(
        name="pip show",
        also=("pip3 show",),
        flags="f",
        long_flags="files",
        operands="text",
        match=("pip show requests", "pip3 show -f requests"),
        no_match=("pip show --local x", "pip show --log=x y", "pip show --lo x"),
    ),
)  # fmt: skip
