"""Variables and values that look secret."""

import re

# § [policy.variables] Names of environment variables that commands never get, whoever asks for them.

_WORD = re.compile(r"[A-Z]+|[0-9]+")
_SECRET_WORDS = frozenset({"PASS", "PWD", "PAT", "AUTH", "PIN", "SALT", "SIG", "CREDS", "CRED", "KEYS", "OTP", "CERT"})
_SECRET_PARTS = (
    *("TOKEN", "SECRET", "PASSW", "PASSPHRASE", "PASSCODE", "CREDENTIAL", "APIKEY", "PRIVATE", "COOKIE", "BEARER"),
    *("OAUTH", "AUTHORIZATION", "AUTHENTICATION", "AUTHKEY", "AUTHTOKEN", "JWT", "WEBHOOK", "SIGNATURE", "SASL"),
)

_MADE_HERE = frozenset(
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
    """Why commands never get a variable of this name, in words; None where they may."""
    upper = name.upper()
    if upper in _MADE_HERE:
        return "is made anew for every command"
    if upper in _STEERING or upper.startswith(_STEERING_STARTS):
        return "steers how programs start and what they load"
    return "has the name of a secret" if is_secret_name(name) else None


def is_secret_name(name: str) -> bool:
    """Whether a variable of this name holds a secret, as far as a name can tell."""
    upper = name.upper()
    if any(part in upper for part in _SECRET_PARTS):
        return True
    words = _WORD.findall(upper)
    return any(word in _SECRET_WORDS or word.endswith("KEY") for word in words)


# § [policy.secret_values] Texts that are secrets by their form, whatever the name is that they stand under.

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
