"""`handrail completion`: scripts that complete command lines in a shell."""

from argparse import ArgumentParser
from shlex import quote
from types import SimpleNamespace

from handrail.cli.exits import OK
from handrail.cli.output import print_out
from handrail.cli.parser import COMMANDS as TABLE
from handrail.cli.parser import Command, list_groups, list_subcommands
from handrail.cli.usage import list_option_names
from handrail.protocol.tool_spec import BASE_NAMES
from handrail.settings import list_settings

_FIRST_WORDS = {word: text for rows in list_groups().values() for word, text in rows.items()}
_SHELLS = ("bash", "zsh", "fish")
_ZSH = "(( $+functions[compdef] )) || { autoload -U compinit && compinit }\nautoload -U bashcompinit && bashcompinit\n"
_BASH = """\
_handrail() {
    local words= second=
    [ "$COMP_CWORD" -le 2 ] || second=${COMP_WORDS[2]}
    case "$COMP_CWORD ${COMP_WORDS[1]} $second" in
@CASES@
    esac
    COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _handrail handrail
"""


def run(options: SimpleNamespace) -> int:
    bash = _BASH.replace("@CASES@", "\n".join(_render_cases()))
    print_out({"bash": bash, "zsh": _ZSH + bash}.get(options.shell) or "\n".join((*_render_fish(), "")))
    return OK


def _list_words(name: str) -> list[str]:
    """The words that may follow the name of a command."""
    known = {"call": BASE_NAMES, "help": _FIRST_WORDS, "config": list_settings(), "completion": _SHELLS}
    below = [other.partition(" ")[2] for other in list_subcommands(name)]
    return [*below, *known.get(name, ()), *(list_option_names(name) if name in TABLE else ())]


def _list_names() -> list[str]:
    """Every command and first word. Commands of two words come first: the first word alone would match them too."""
    return sorted({*TABLE, *_FIRST_WORDS}, key=lambda name: (" " not in name, name))


def _render_cases() -> list[str]:
    first = [f"    1\\ *) words='{' '.join(_FIRST_WORDS)}' ;;"]
    patterns = {name: name.replace(" ", "\\ ") if " " in name else f"{name}\\ *" for name in _list_names()}
    return first + [f"    *\\ {patterns[name]}) words='{' '.join(_list_words(name))}' ;;" for name in patterns]


def _render_fish() -> list[str]:
    start = "complete -c handrail -n"
    lines = [f"{start} __fish_use_subcommand -a {word} -d {quote(text)}" for word, text in _FIRST_WORDS.items()]
    for name in _list_names():
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in name.split())
        words = (f"-l {word[2:]}" if word.startswith("--") else f"-a {word}" for word in _list_words(name))
        lines += [f"{start} '{seen}' {word}" for word in words]
    return lines


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("shell", metavar="SHELL", choices=_SHELLS, help="bash, zsh or fish")


_EXAMPLES = ("handrail completion bash > ~/.handrail.bash", "handrail completion fish | source")
COMMANDS = {"completion": Command(run, _add_arguments, _EXAMPLES)}
