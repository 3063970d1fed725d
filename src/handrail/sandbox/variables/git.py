"""What keeps git from starting programs that a repository's own settings name, for commands that only look.

External diffs and text converters are disabled by options (`policy/programs/git_history.py`), filters by their names
(`workspace/facts.py`). git hands these variables on to the git that it starts in a submodule.
"""

from collections.abc import Iterable

_SETTINGS = (
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("log.showSignature", "false"),
    # Neither the program that a repository names nor any other checks signatures, whatever format.pretty shows.
    *((f"gpg.{part}program", "/dev/null") for part in ("", "openpgp.", "x509.", "ssh.")),
    ("log.diffMerges", "separate"),  # to merge again would run a merge driver
    # Both start git in a submodule without the options against converters.
    ("diff.submodule", "short"),
    ("status.submoduleSummary", "false"),
    ("alias.whatchanged", "log --raw --no-merges"),  # newer versions of git let an alias replace this command
)


def build_git_variables(settings: Iterable[tuple[str, str]] = ()) -> dict[str, str]:
    """The variables for git. `settings`: more of them, name and value, as they disable what the workspace defines."""
    return {
        "GIT_OPTIONAL_LOCKS": "0",
        # A partial clone fetches what is missing while one looks, with the programs that its remote names.
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_CONFIG_PARAMETERS": " ".join(_quoted(name, value) for name, value in (*_SETTINGS, *settings)),
    }


def _quoted(name: str, value: str) -> str:
    """As `git -c` hands a setting on. A name with `=` in it takes the form that git before 2.31 cannot read."""
    name, value = (text.replace("'", r"'\''") for text in (name, value))
    return f"'{name}'='{value}'" if "=" in name else f"'{name}={value}'"
