"""Secrets, recognized by the name of a variable or by the form of a value."""

import re

_WORD = re.compile(r"[A-Z]+|[0-9]+")
_SECRET_WORDS = frozenset({"PASS", "PWD", "PAT", "AUTH", "PIN", "SALT", "SIG", "CREDS", "CRED", "KEYS", "OTP", "CERT"})
_SECRET_PARTS = (
    *("TOKEN", "SECRET", "PASSW", "PASSPHRASE", "PASSCODE", "CREDENTIAL", "APIKEY", "PRIVATE", "COOKIE", "BEARER"),
    *("OAUTH", "AUTHORIZATION", "AUTHENTICATION", "AUTHKEY", "AUTHTOKEN", "JWT", "WEBHOOK", "SIGNATURE", "SASL"),
)

_SET_FOR_COMMANDS = frozenset(
    {
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TMP", "TEMP", "PWD", "OLDPWD", "LANG", "TZ",
        "SHLVL", "PAGER", "_",
    }
)  # fmt: skip
_STEERING = frozenset(
    {
        # shells
        "ENV", "SHELLOPTS", "BASHOPTS", "CDPATH", "GLOBIGNORE", "IFS", "PS0", "PS1", "PS2", "PS4", "PROMPT_COMMAND",
        "POSIXLY_CORRECT", "EXECIGNORE", "FIGNORE", "FUNCNEST", "HISTFILE", "INPUTRC", "ZDOTDIR", "FPATH", "OPTIND",
        "OPTERR", "MAILPATH", "MAIL", "FCEDIT",
        # the loader and the C library
        "GCONV_PATH", "LOCPATH", "NLSPATH", "GETCONF_DIR", "HOSTALIASES", "LOCALDOMAIN", "RES_OPTIONS", "TZDIR",
        "GLIBC_TUNABLES", "RESOLV_HOST_CONF", "NIS_PATH",
        # interpreters and virtual machines
        "NODE_OPTIONS", "NODE_PATH", "NODE_REPL_EXTERNAL_MODULE", "PERL5OPT", "PERL5LIB", "PERL5DB", "PERLLIB",
        "PERLIO_DEBUG", "RUBYOPT", "RUBYLIB", "RUBYSHELL", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS",
        "JAVA_OPTS", "CLASSPATH", "LUA_INIT", "LUA_PATH", "LUA_CPATH", "PHPRC", "PHP_INI_SCAN_DIR", "R_PROFILE",
        "R_ENVIRON", "GUILE_LOAD_PATH", "ERL_FLAGS", "ERL_AFLAGS", "ERL_ZFLAGS", "DOTNET_STARTUP_HOOKS",
        # programs that other programs start
        "EDITOR", "VISUAL", "BROWSER", "MANPAGER", "LESSOPEN", "LESSCLOSE", "LESS", "SYSTEMD_PAGER", "DELTA_PAGER",
        "SUDO_ASKPASS", "SSH_ASKPASS", "RSYNC_RSH", "CVS_RSH", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER",
        # options that programs take from the environment
        "GREP_OPTIONS", "RIPGREP_CONFIG_PATH", "TAR_OPTIONS", "GZIP", "XZ_OPT", "XZ_DEFAULTS", "ZSTD_CLEVEL", "UNZIP",
        "ZIPOPT", "MAKEFLAGS", "MFLAGS", "GNUMAKEFLAGS", "MAKEFILES", "JQ_LIBRARY_PATH",
    }
)  # fmt: skip
_STEERING_STARTS = ("BASH_", "LD_", "DYLD_", "GIT_", "PYTHON", "MALLOC_", "LC_", "HANDRAIL_", "NPM_CONFIG_", "DBUS_")


def find_withheld_reason(name: str) -> str | None:
    """Why commands never get an environment variable of this name. None if they may."""
    upper = name.upper()
    if upper in _SET_FOR_COMMANDS:
        return "is set again for every command"
    if upper in _STEERING or upper.startswith(_STEERING_STARTS):
        return "controls how programs start and what they load"
    return "has the name of a secret" if is_secret_name(name) else None


def is_secret_name(name: str) -> bool:
    """Whether a variable of this name probably holds a secret."""
    upper = name.upper()
    if any(part in upper for part in _SECRET_PARTS):
        return True
    words = _WORD.findall(upper)
    return any(word in _SECRET_WORDS or word.endswith("KEY") for word in words)


_SECRET_FORMS = re.compile(
    r"""
      ://[^/\s:@]*:[^/\s@]+@                                   # a URL with a password
    | https?://[^/\s@]+@                                       # or with a token as the user
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
_DIGIT_CHANGE = re.compile(r"(?<=[0-9])[A-Za-z]|(?<=[A-Za-z])[0-9]")
_CASE_CHANGE = re.compile(r"(?<=[a-z])[A-Z]")


def is_secret_value(value: str) -> bool:
    """Whether a text contains a secret of a known form."""
    return _SECRET_FORMS.search(value) is not None


def is_random_value(value: str) -> bool:
    """Whether a text contains a long run of letters and digits that looks like a key."""
    return any(_is_random(run) for run in _RUN.findall(value))


def _is_random(run: str) -> bool:
    """Keys alternate between letters, digits and capitals more often than names do."""
    digit_changes = len(_DIGIT_CHANGE.findall(run))
    return not run.startswith("/") and digit_changes >= 3 and digit_changes + len(_CASE_CHANGE.findall(run)) >= 6
