"""sed, as far as it only prints lines by their numbers: its programs can write files and run others."""

import re

from handrail.policy.tables.form import ParsedArgs, ProgramSpec

# 5p, 1,20p, $p, 10,+5p, 2~3p, 20q, $= and lists of these. None of these commands takes a file or anything else.
_LINE = r"(?:[0-9]+(?:~[0-9]+)?|\$)"
_STEP = rf"{_LINE}(?:,(?:\+?[0-9]+|\$))?p|{_LINE}[q=]|="
_SCRIPT = re.compile(rf"\s*(?:{_STEP})(?:\s*;\s*(?:{_STEP}))*\s*(?:;\s*)?\Z", re.ASCII)


def _refuse(parsed: ParsedArgs) -> str | None:
    scripts = [value or "" for name, value in parsed.options if name in {"-e", "--expression"}]
    scripts = scripts or list(parsed.operands[:1])
    odd = next((script for script in scripts if not _SCRIPT.match(script)), None)
    if odd is None and scripts:
        return None
    return f"sed's program {odd} does more than print lines by number" if scripts else "sed has no program"


SED = (
    ProgramSpec(
        name="sed",
        flags="nErsuz",
        values="e",
        long_flags="quiet silent regexp-extended separate unbuffered null-data zero-terminated posix sandbox debug "
        "help "
        "version",
        long_values="expression",
        first="text",
        unless_options=frozenset({"-e", "--expression"}),
        reject=_refuse,
        grantable=False,
        match=(
            "sed -n 1,20p a.txt", "sed -n '5p' a.txt", "sed -n '1,5p;10p;$p' a", "sed -n '10,$p' a", "sed -ne 3p a",
            "sed --quiet --expression=7p a", "sed -n '100,120p;120q' a", "sed 10q a", "sed -n '$=' a",
            "sed -n 3,+2p a",
        ),
        no_match=(
            "sed -i 5p a", "sed -n -i 5p a", "sed -n '1w out' a", "sed -n '1e id' a", "sed s/a/b/ a", "sed -n /x/p a",
            "sed --in-place 5p a", "sed -f script a", "sed -n '1r other' a", "sed -n 1,2pw a", "sed -n",
            "sed -nf 5p a", "sed -n -e 5p -e '1e id' a", "sed 's/.*/id/e' a", "sed -n '1p\\nw x' a", "sed -n 1p* a",
            "sed -ni 1p a",
        ),
    ),
)  # fmt: skip
