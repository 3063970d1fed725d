"""git config, as far as it only reads."""

from handrail.policy.tables.form import ParsedArgs, ProgramSpec

_READS_CONFIG = frozenset(["--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list", "-l"])


def _refuse_setting(parsed: ParsedArgs) -> str | None:
    """`git config NAME` shows a value, `git config NAME VALUE` sets one, `git config edit` opens an editor."""
    if any(name in _READS_CONFIG for name, _ in parsed.options):
        return None
    shows = len(parsed.operands) == 1 and "." in parsed.operands[0]
    return None if shows else "git config sets a value unless it is told to get one"


_CONFIG = {
    "flags": "z",
    "long_flags": """global system local worktree null name-only show-origin show-scope includes no-includes bool int
        bool-or-int bool-or-str path expiry-date no-type""",
    "long_values": "type default",
}
CONFIGURATION = (
    ProgramSpec(
        name="git config",
        flags=_CONFIG["flags"] + "l",
        long_flags=f"{_CONFIG['long_flags']} get get-all get-regexp get-urlmatch list",
        long_values=_CONFIG["long_values"],
        paths={"-f": "read", "--file": "read"},
        operands="text",
        most=2,
        reject=_refuse_setting,
        match=(
            "git config --get user.name", "git config --list", "git config -l --show-origin", "git config user.email",
            "git config --get-regexp '^remote'", "git config --global --get core.editor", "git config --get-all a.b",
            "git config -f .gitmodules --list", "git config --get --type=bool core.bare",
        ),
        no_match=(
            "git config user.name me", "git config --add a.b c", "git config --unset a.b", "git config -e",
            "git config edit",
            "git config --edit", "git config --replace-all a.b c", "git config --global user.name me",
            "git config set a.b c",
            "git config --rename-section a b", "git config --remove-section a", "git config --list --unset a.b",
            "git config",
        ),
    ),
    ProgramSpec(
        name="git config get",
        flags=_CONFIG["flags"],
        long_flags=f"{_CONFIG['long_flags']} all show-names no-show-names regexp fixed-value",
        long_values=f"{_CONFIG['long_values']} value url",
        paths={"-f": "read", "--file": "read"},
        operands="text",
        most=1,
        match=("git config get user.name", "git config get --all --show-origin remote.origin.fetch"),
        no_match=("git config get a.b c", "git config get -e"),
    ),
    ProgramSpec(
        name="git config list",
        flags=_CONFIG["flags"],
        long_flags=_CONFIG["long_flags"],
        paths={"-f": "read", "--file": "read"},
        operands=None,
        match=("git config list", "git config list --global --show-origin"),
        no_match=("git config list x",),
    ),
)  # fmt: skip
