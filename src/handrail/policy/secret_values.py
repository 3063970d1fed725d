"""Texts that are secrets by their form, whatever the name is that they stand under."""

import re

_FORMS = re.compile(
    r"""
      ://[^/\s:@]*:[^/\s@]+@                                   # a URL with a password
    | https?://[^/\s@]+@                                       # or with a token in the place of the user
    | -----BEGIN\s
    | \beyJ[\w-]{8,}\.[\w-]{8,}                                # a JSON web token
    | \b(?:sk|rk|pk)[-_](?:live[-_]|test[-_]|ant-|proj-|or-)?[\w-]{16,}
    | \bgh[a-z]_\w{16,} | \bgithub_pat_\w{16,} | \bglpat-[\w-]{16,} | \bgl[a-z]{2,5}-[\w-]{20,}
    | \bxox[a-z]-[\w-]{8,} | \bxapp-[\w-]{8,}
    | \b(?:AKIA|ASIA|AGPA|AROA|AIDA)[0-9A-Z]{12,}
    | \bAIza[\w-]{20,} | \bya29\.[\w-]{8,} | \bGOCSPX-[\w-]{8,}
    | \bnpm_\w{20,} | \bpypi-\w{16,} | \bhf_\w{16,} | \bdop_v1_\w{16,} | \bSG\.[\w-]{12,} | \bshp[a-z]{2}_\w{16,}
    | \bAGE-SECRET-KEY-
    | \b(?:bearer|basic)\s+[\w+/=.~-]{8,}
    | (?:pass(?:word|wd|phrase)?|pwd|secret|token|api[-_]?key|account[-_]?key|access[-_]?key|signature|sig)\s*[=:]\s*\S
    """,
    re.VERBOSE | re.IGNORECASE,
)
_RUN = re.compile(r"[A-Za-z0-9+/_=-]{24,}")
_DIGITS = re.compile(r"(?<=[0-9])[A-Za-z]|(?<=[A-Za-z])[0-9]")
_CAPITALS = re.compile(r"(?<=[a-z])[A-Z]")


def is_secret_value(value: str) -> bool:
    """Whether a text has the form of a known kind of secret."""
    return _FORMS.search(value) is not None


def is_random_value(value: str) -> bool:
    """Whether a long run of letters and digits in a text is like a key: no word, no number, no path."""
    return any(_is_random(run) for run in _RUN.findall(value))


def _is_random(run: str) -> bool:
    """Between letters and digits it goes back and forth as nobody writes who thinks of a name."""
    to_and_fro = len(_DIGITS.findall(run))
    return not run.startswith("/") and to_and_fro >= 3 and to_and_fro + len(_CAPITALS.findall(run)) >= 6
