"""Names of environment variables that commands never get, whoever asks for them."""

import re

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
