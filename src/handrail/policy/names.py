"""Names that policy treats apart, compared case-folded and in NFC so that no spelling slips through."""

import unicodedata
from functools import lru_cache
from typing import Literal

Protection = Literal["credential", "protected"]

CREDENTIAL_FOLDERS = frozenset({".ssh", ".aws", ".gnupg", ".azure", ".kube", ".docker", ".password-store"})
CREDENTIAL_FILES = frozenset(
    {
        ".env", ".envrc", ".netrc", "_netrc", ".pgpass", ".git-credentials", ".npmrc", ".pypirc", ".htpasswd",
        "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk", "credentials.json",
        ".vault-token", ".dockercfg", "service-account.json",
    }
)  # fmt: skip
CREDENTIAL_ENDINGS = (".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".asc.key")
PUBLIC_ENDINGS = (".pub.pem", ".pub.key")
TEMPLATES = frozenset({"example", "examples", "sample", "template", "tmpl", "dist", "defaults", "schema"})

_PROTECTED_FOLDERS = frozenset(
    {
        ".github", ".gitlab", ".gitea", ".forgejo", ".circleci", ".buildkite", ".husky", ".lefthook", ".vscode",
        ".idea", ".zed", ".cursor", ".claude", ".codex", ".opencode", ".gemini", ".devcontainer", ".handrail", ".hg",
        ".cargo",
    }
)  # fmt: skip
_PROTECTED_FILES = frozenset(
    {
        "handrail.toml", ".mcp.json", ".gitmodules", ".gitattributes", ".gitconfig", ".pre-commit-config.yaml",
        ".gitlab-ci.yml", ".travis.yml", "azure-pipelines.yml", "jenkinsfile", "bitbucket-pipelines.yml",
        ".bashrc", ".bash_profile", ".bash_login", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin",
        ".ripgreprc", "lefthook.yml", "lefthook.yaml", ".lefthook.yml", ".lefthook.yaml",
    }
)  # fmt: skip
_GIT_INTERNALS = frozenset(
    {"hooks", "config", "config.worktree", "commondir", "modules", "worktrees", "info", "objects", "rebase-merge"}
)


def folded(name: str) -> str:
    """The form in which two spellings of one name are the same."""
    return (
        name.casefold()
        if name.isascii()
        else unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
    )


@lru_cache(maxsize=4096)
def protection(path: str) -> Protection | None:
    """How the names on a path are protected; the strictest counts."""
    parts = [_compared(part) for part in path.split("/") if part not in {"", "."}]
    if any(_credential(part) for part in parts):
        return "credential"
    return "protected" if _protected(parts) else None


def is_credential(name: str) -> bool:
    """Whether a single name is one of a credential file or folder: `protection`, for who looks at many names."""
    return _credential(_compared(name))


def _compared(part: str) -> str:
    return folded(part).rstrip(". ") or part


def _credential(part: str) -> bool:
    if part in CREDENTIAL_FOLDERS or part in CREDENTIAL_FILES:
        return True
    if part.startswith(".env."):
        return part.rpartition(".")[2] not in TEMPLATES
    return part.endswith(CREDENTIAL_ENDINGS) and not part.endswith(PUBLIC_ENDINGS)


def _protected(parts: list[str]) -> bool:
    if any(part in _PROTECTED_FOLDERS for part in parts) or (parts and parts[-1] in _PROTECTED_FILES):
        return True
    if parts and parts[-1] == ".git":  # as a file it says where the repository is, with hooks and configuration
        return True
    return any(part.endswith(".git") and _GIT_INTERNALS & set(parts[n + 1 : n + 2]) for n, part in enumerate(parts))
