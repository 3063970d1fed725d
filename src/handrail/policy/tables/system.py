"""Programs that say something about the machine, the user, the time or the environment."""

import re

from handrail.policy.tables.form import ParsedArgs, ProgramSpec

_GNU = "help version"
# `ps aux`: letters without a dash are options too. One of them, e, shows what other programs have in their environment.
_PROCESSES = re.compile(r"[a-df-zA-Z]+\Z|[0-9]+(?:,[0-9]+)*\Z")
# Behind an o that ends such letters stands what to show: `ps axo pid,comm=`.
_ASKS_COLUMNS = re.compile(r"[a-df-zA-Z]*o\Z")
_COLUMNS = re.compile(r"[a-z%]+(?:[,=][a-z%]*)*\Z")


def _only_a_format(parsed: ParsedArgs) -> str | None:
    odd = next((text for text in parsed.operands if not text.startswith("+")), None)
    return odd and f"date may set the clock to {odd}"


def _only_processes(parsed: ParsedArgs) -> str | None:
    columns = False
    for text in parsed.operands:
        if "environ" in text or not (_COLUMNS if columns else _PROCESSES).match(text):
            return f"ps's {text} is not among those that only list processes"
        columns = not columns and bool(_ASKS_COLUMNS.match(text))
    odd = next((value for _, value in parsed.options if value and "environ" in value.lower()), None)
    return odd and f"ps's {odd} shows what programs have in their environment"


TABLES = (
    ProgramSpec(
        name="date",
        flags="uR",
        values="d",
        attached="I",
        long_flags=f"debug iso-8601= resolution rfc-email utc universal {_GNU}",
        long_values="date rfc-3339",
        paths={"-r": "read", "--reference": "read", "-f": "read", "--file": "read"},
        operands="text",
        reject=_only_a_format,
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
        long_flags="all kernel-name nodename kernel-release kernel-version machine processor hardware-platform "
        f"operating-system {_GNU}",
        operands=None,
        match=("uname", "uname -a", "uname -sr", "uname --machine"),
        no_match=("uname x", "uname -x"),
    ),
    # Its other options ask the network for names.
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
        reject=_only_processes,
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
        long_flags="list-name list-full inverse lightweight count full ignore-case newest oldest exact "
        "ignore-ancestors help "
        "version",
        long_values="delimiter pgroup group older parent session terminal euid uid runstates cgroup ns nslist",
        paths={"-F": "read", "--pidfile": "read"},
        operands="text",
        match=("pgrep node", "pgrep -af 'python.*x'", "pgrep -u root -l"),
        no_match=("pgrep --signal 9 x", "pgrep -9 x", "pkill x"),
    ),
    ProgramSpec(
        name="free",
        flags="bkmghltvwV",
        long_flags="bytes kilo mega giga tera peta kibi mebi gibi tebi pebi human si lohi total committed wide help "
        "version",
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
        long_flags="all boot dead heading ips login process count runlevel short time mesg users message writable "
        f"{_GNU}",
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
)  # fmt: skip
