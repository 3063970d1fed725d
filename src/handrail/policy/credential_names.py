"""Names of credentials: keys, tokens, passwords, the folders that hold them. Normalized."""

import re

CREDENTIAL_FOLDERS = frozenset(
    {
        ".ssh", ".aws", ".gnupg", ".azure", ".kube", ".docker", ".password-store", ".gcloud", ".oci", ".mozilla",
        ".thunderbird", ".snowsql", ".terraform.d",
    }
)  # fmt: skip
CREDENTIAL_FILES = frozenset(
    {
        ".env", ".envrc", ".netrc", "_netrc", ".pgpass", ".git-credentials", ".npmrc", ".pypirc", ".htpasswd",
        "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk", "credentials.json",
        ".vault-token", ".dockercfg", "service-account.json", ".credentials.json", "oauth_creds.json", ".my.cnf",
        ".mylogin.cnf", ".s3cfg", ".boto", ".databrickscfg", ".terraformrc", "rclone.conf", ".rclone.conf", ".authinfo",
        ".msmtprc", ".fetchmailrc", ".smbcredentials", ".bash_history", ".zsh_history", ".psql_history",
        ".mysql_history", ".claude.json", ".dev.vars",
    }
)  # fmt: skip
CREDENTIAL_ENDINGS = (
    *(".pem", ".key", ".p12", ".pfx", ".p8", ".pk8", ".jks", ".keystore", ".kdbx", ".kdb", ".ppk", ".asc.key"),
    *(".keychain", ".keychain-db", ".ovpn"),
)
PLAIN_FILES = frozenset(
    {
        # Not secrets.py: that is source code, and a module of the standard library.
        *("secrets.yaml", "secrets.yml", "secrets.json", "secrets.toml", "secrets.ini", "secrets.txt"),
        *("secrets.properties", "secrets.conf", "secrets.cfg", "secrets.xml"),
        *("kubeconfig", "kubeconfig.yaml", "kubeconfig.yml", "application_default_credentials.json"),
        *("ssh_host_rsa_key", "ssh_host_dsa_key", "ssh_host_ecdsa_key", "ssh_host_ed25519_key"),
    }
)  # fmt: skip
"""Credentials with ordinary names. A glob targets one only if it fixes the whole word."""
PLAIN_ENDINGS = (".env", ".tfvars", ".tfvars.json", ".tfstate", ".tfstate.backup", ".kubeconfig")
"""Ordinary endings. A glob targets one only if it has the whole ending."""
PUBLIC_ENDINGS = (
    *(".pub.pem", ".pub.key"),
    *(f"{word}{ending}" for word in ("example", "sample", "template") for ending in (".env", ".tfvars")),
)
VARIANTS = (".env.", ".dev.vars.")
"""Names that begin so are credentials, except templates: `.env.local`, not `.env.example`."""
TEMPLATES = frozenset({"example", "examples", "sample", "template", "tmpl", "dist", "defaults", "schema"})
CREDENTIAL_PLACES = frozenset(
    {
        ".config/gcloud", ".config/gh", ".config/glab-cli", ".config/hub", ".config/op", ".config/sops",
        ".config/doctl", ".config/rclone", ".config/github-copilot", ".config/google-chrome", ".config/chromium",
        ".config/git/credentials", ".config/containers/auth.json", ".local/share/keyrings",
        ".local/share/opencode/auth.json", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials",
        ".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties", ".subversion/auth",
        ".codex/auth.json",
    }
)  # fmt: skip
"""Paths that are credentials, although no name on them is one alone."""

ORDINARY_NAME = re.compile(
    r"(?ai)[a-z_][\w.-]*\.(?:c|cc|cpp|css|go|h|html|java|js|jsx|md|py|pyi|rb|rs|rst|scss|svg|ts|tsx)",
    re.ASCII | re.IGNORECASE,
)
"""Names that no credential has, in any spelling. A tree has so many that looking closer takes long."""
