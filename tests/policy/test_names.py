"""Protected names: every spelling of them, and nothing that only looks like one."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.policy.names import folded, protection

CREDENTIALS = [
    ".env", ".env.local", ".env.production", ".env.example.local", ".envrc", ".ssh", ".ssh/config", "a/.ssh/b/c",
    ".aws/credentials", ".gnupg/x", ".kube/config", ".docker/config.json", "id_rsa", "id_ed25519", "x/id_ecdsa",
    "server.pem", "a.key", "a.p12", "store.jks", ".netrc", ".pgpass", ".npmrc", ".pypirc", ".git-credentials",
    "credentials.json",
]  # fmt: skip
PROTECTED = [
    ".git", "sub/.git", ".git/hooks/pre-commit", ".git/config", ".git/info/attributes", ".git/modules/x/config",
    ".git/worktrees/x/gitdir", ".git/commondir", "sub/.git/hooks", ".github/workflows/ci.yml", ".gitlab-ci.yml",
    ".vscode/tasks.json", ".idea/x", ".claude/settings.json", ".mcp.json", "handrail.toml", "x/handrail.toml",
    ".handrail/tools/x.py", ".husky/pre-commit", ".gitattributes", ".gitmodules", "Jenkinsfile", ".bashrc",
    ".pre-commit-config.yaml",
]  # fmt: skip
ORDINARY = [
    ".", "a.txt", ".env.example", ".env.sample", ".env.template", ".env.dist", ".env.local.example", "env",
    "environment", ".environment", "my.env.txt", "id_rsa.pub", "server.pub.pem", "key.txt", "a.keys", ".gitignore",
    ".git/HEAD", ".git/index", ".git/refs/heads/x", "git/hooks/pre-commit", "github/workflows/x", "handrail.toml.md",
    "ssh/config", "x.github", "config", "hooks/pre-commit", "",
]  # fmt: skip


@pytest.mark.parametrize("path", CREDENTIALS)
def test_credentials(path: str) -> None:
    assert protection(path) == "credential"


@pytest.mark.parametrize("path", PROTECTED)
def test_what_steers_tools(path: str) -> None:
    assert protection(path) == "protected"


@pytest.mark.parametrize("path", ORDINARY)
def test_ordinary_names(path: str) -> None:
    assert protection(path) is None


def test_a_credential_counts_more_than_a_protected_folder() -> None:
    assert protection(".github/.env") == "credential"


letters = st.sampled_from([*CREDENTIALS, *PROTECTED])


@given(letters, st.data())
def test_case_dots_and_spaces_around_a_name_change_nothing(path: str, data: st.DataObject) -> None:
    """On a file system that folds case, or drops dots at the end, they are the same file."""
    mixed = "".join(data.draw(st.sampled_from([letter.lower(), letter.upper()])) for letter in path)
    ended = "/".join(part + data.draw(st.sampled_from(["", ".", " ", ". .", "..."])) for part in mixed.split("/"))
    spelled = data.draw(st.sampled_from(["", "./", "a/b/", "/abs/"])) + ended
    assert protection(spelled) == protection(path)


@given(st.text(max_size=20))
def test_a_folded_name_is_the_same_in_every_normal_form_and_case(name: str) -> None:
    assert folded(unicodedata.normalize("NFD", name)) == folded(unicodedata.normalize("NFC", name))
    assert folded(folded(name)) == folded(name)


@pytest.mark.parametrize("path", [".\u017fsh/config", "\u212aube/../.\u212aube/x", ".ENV\u2024".rstrip("\u2024")])
def test_letters_that_fold_to_others_are_those(path: str) -> None:
    assert protection(path) == "credential"
