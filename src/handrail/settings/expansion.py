"""`${NAME}` and `${NAME:-else}` in what a server is started with."""

import re
from collections.abc import Iterable, Mapping

_PLACE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class UnsetError(Exception):
    """A variable that is asked for, has no value, and nothing stands for it."""


def expand_variables(text: str, environ: Mapping[str, str]) -> str:
    """The text with the variables of the environment in it. What they hold is not looked through again."""

    def value(found: re.Match[str]) -> str:
        name, otherwise = found[1], found[2]
        if otherwise is not None:
            return environ.get(name) or otherwise
        if name not in environ:
            raise UnsetError(name)
        return environ[name]

    return _PLACE.sub(value, text)


def list_variables(texts: Iterable[str]) -> tuple[str, ...]:
    """The names of the variables that texts ask for, each once."""
    return tuple(dict.fromkeys(found[1] for text in texts for found in _PLACE.finditer(text)))
