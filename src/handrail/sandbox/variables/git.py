"""What keeps git from starting programs that a repository's own settings name, for commands that only look.

Three things no variable can prevent: `diff.external`, and the drivers and filters that `.gitattributes` names; a
submodule's own settings, since git drops these variables there. What they start, the sandbox contains.
"""

_SETTINGS = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "diff.autoRefreshIndex": "false",  # git diff would write the index
    "log.showSignature": "false",
    # The programs that git takes by itself to check signatures, in the place of those that a repository names.
    "gpg.program": "gpg",
    "gpg.openpgp.program": "gpg",
    "gpg.x509.program": "gpgsm",
    "gpg.ssh.program": "ssh-keygen",
}

GIT_ONLY_LOOKS: dict[str, str] = {
    "GIT_OPTIONAL_LOCKS": "0",
    # A partial clone fetches what is missing while one looks, with the programs that its remote names.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_CONFIG_COUNT": str(len(_SETTINGS)),
    **{f"GIT_CONFIG_KEY_{number}": key for number, key in enumerate(_SETTINGS)},
    **{f"GIT_CONFIG_VALUE_{number}": value for number, value in enumerate(_SETTINGS.values())},
}
