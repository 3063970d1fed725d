"""Protected names in every spelling, and ordinary names that look like them."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.policy.credential_names import (
    CREDENTIAL_ENDINGS,
    CREDENTIAL_FILES,
    CREDENTIAL_FOLDERS,
    CREDENTIAL_PLACES,
    VARIANTS,
)
from handrail.policy.names import (
    can_hold_credentials,
    find_protection,
    is_credential,
    is_git_control_name,
    list_possible_repositories,
    may_name_credential,
    normalize_name,
    remove_invisible,
)
from handrail.policy.protected_names import PROTECTED_PLACES

CREDENTIALS = [
    ".env", ".env.local", ".env.production", ".env.example.local", ".envrc", ".ssh", ".ssh/config", "a/.ssh/b/c",
    ".aws/credentials", ".gnupg/x", ".kube/config", ".docker/config.json", "id_rsa", "id_ed25519", "x/id_ecdsa",
    "server.pem", "a.key", "a.p12", "store.jks", ".netrc", ".pgpass", ".npmrc", ".pypirc", ".git-credentials",
    "credentials.json", ".env~", "id_rsa.bak", "server.key.old", ".npmrc.orig", ".id_rsa.swp", ".env.swp", "a.p8",
    ".config/gh/hosts.yml", "home/.config/gcloud", ".cargo/credentials.toml", ".codex/auth.json",
    ".config/git/credentials", ".local/share/keyrings/login.keyring", "id_rsa.save", "id_rsa~", "id_rsa.bak.old",
    "secrets.yaml", "config/secrets.yml", "secrets.json", ".streamlit/secrets.toml", "secrets.ini", "secrets.env",
    "secrets.txt", "secrets.properties", "secrets.yaml.bak", "prod.env", "deploy/staging.env", "kubeconfig",
    "kubeconfig.yaml", "dev.kubeconfig", "terraform.tfvars", "prod.auto.tfvars", "a.tfvars.json", "terraform.tfstate",
    "terraform.tfstate.backup", "application_default_credentials.json", ".dev.vars", ".dev.vars.production",
    "ssh_host_rsa_key", "etc/ssh_host_ed25519_key",
]  # fmt: skip
PROTECTED = [
    ".git", "sub/.git", ".git/hooks/pre-commit", ".git/config", ".git/info/attributes", ".git/modules/x/config",
    ".git/worktrees/x/gitdir", ".git/commondir", "sub/.git/hooks", ".github/workflows/ci.yml", ".gitlab-ci.yml",
    ".vscode/tasks.json", ".idea/x", ".claude/settings.json", ".mcp.json", "handrail.toml", "x/handrail.toml",
    ".handrail/tools/x.py", ".husky/pre-commit", ".gitattributes", ".gitmodules", "Jenkinsfile", ".bashrc",
    ".pre-commit-config.yaml", "bare.git/config", "x.git/hooks/update", ".git/rebase-apply/next", ".yarnrc.yml",
    ".pnpmfile.cjs", ".bazelrc", ".yarn/releases/yarn.cjs", ".windsurf/mcp.json", "opencode.json", ".config/fish/x",
    ".devcontainer.json", ".gdbinit", ".dir-locals.el", ".config/git/config", ".lfsconfig",
    ".agents/skills/x/SKILL.md", ".claude/skills/x/SKILL.md", ".handrail/skills/x/SKILL.md",
]  # fmt: skip
ORDINARY = [
    ".", "a.txt", ".env.example", ".env.sample", ".env.template", ".env.dist", ".env.local.example", "env",
    "environment", ".environment", "my.env.txt", "id_rsa.pub", "server.pub.pem", "key.txt", "a.keys", ".gitignore",
    ".git/HEAD", ".git/index", ".git/refs/heads/x", "git/hooks/pre-commit", "github/workflows/x", "handrail.toml.md",
    "ssh/config", "x.github", "config", "hooks/pre-commit", "", "AGENTS.md", "CLAUDE.md", "Makefile", "package.json",
    "conftest.py", ".tool-versions", "config/gh/hosts.yml", ".config/ghost", ".cargo-credentials", "notes~", "~",
    ".swp", "a.old", "git~x", "gitk~1", "a:b", "lib:core/x", "x/git/credentials", "auth.json",
    "a.swp", ".a.txt.swp", "xid_rsa.bak", "hooks/x.git/a", "a/hooks/x.git/b", ".git/refs/config",
    ".git/refs/heads/hooks",
    "secrets.py", "secrets.ts", "secrets.go", "secrets.rs", "secrets.tf", "secrets.md", "secrets", "secrets/a.py",
    "secrets.example.yaml", "secrets.yaml.example", "my-secrets.py", "example.env", "sample.env", "docker.example.env",
    "prod.env.example", "env.d.ts", "import.meta.env.ts", "main.tf", "variables.tf", "terraform.tfvars.example",
    "example.tfvars", "kubeconfig.go", "kubeconfig.md", ".dev.vars.example", "ssh_host_rsa_key.pub", "application.json",
]  # fmt: skip


@pytest.mark.parametrize("path", CREDENTIALS)
def test_credentials(path: str) -> None:
    assert find_protection(path) == "credential"


@pytest.mark.parametrize("path", PROTECTED)
def test_what_steers_tools(path: str) -> None:
    assert find_protection(path) == "protected"


@pytest.mark.parametrize("path", ORDINARY)
def test_ordinary_names(path: str) -> None:
    assert find_protection(path) is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".config/./gh/x", "credential"),
        (".config//gh/x", "credential"),
        (".git/", "protected"),
        (".git/.", "protected"),
        ("./.git/./config", "protected"),
        (".git//config", "protected"),
        ("handrail.toml/", "protected"),
    ],
)
def test_slashes_and_dots_between_names_change_nothing(path: str, expected: str) -> None:
    assert find_protection(path) == expected


def test_a_credential_counts_more_than_a_protected_folder() -> None:
    assert find_protection(".github/.env") == "credential"


letters = st.sampled_from([*CREDENTIALS, *PROTECTED])


@given(letters, st.data())
def test_case_dots_and_spaces_around_a_name_change_nothing(path: str, data: st.DataObject) -> None:
    """On a file system that folds case, or drops dots at the end, they are the same file."""
    mixed = "".join(data.draw(st.sampled_from([letter.lower(), letter.upper()])) for letter in path)
    ended = "/".join(part + data.draw(st.sampled_from(["", ".", " ", ". .", "..."])) for part in mixed.split("/"))
    spelled = data.draw(st.sampled_from(["", "./", "a/b/", "/abs/"])) + ended
    assert find_protection(spelled) == find_protection(path)


@given(st.text(max_size=20))
def test_a_folded_name_is_the_same_in_every_normal_form_and_case(name: str) -> None:
    assert normalize_name(unicodedata.normalize("NFD", name)) == normalize_name(unicodedata.normalize("NFC", name))
    assert normalize_name(normalize_name(name)) == normalize_name(name)


@pytest.mark.parametrize(
    ("text", "seen"),
    [("plain\ttext", "plain\ttext"), ("a\u200bb\u2066c\U000e0041d\ufeff", "abcd"), ("é für ﬁ\u00ad", "é für ﬁ")],
)
def test_a_text_without_the_unseen_is_else_as_it_was(text: str, seen: str) -> None:
    assert remove_invisible(text) == seen


@pytest.mark.parametrize("path", [".\u017fsh/config", "\u212aube/../.\u212aube/x", ".ENV\u2024".rstrip("\u2024")])
def test_letters_that_fold_to_others_are_those(path: str) -> None:
    assert find_protection(path) == "credential"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".g\u200cit/config", "protected"),
        (".gi\u200dt/hooks/pre-commit", "protected"),
        ("\ufeff.git/config", "protected"),
        (".e\u2060nv", "credential"),
        (".en\u00adv", "credential"),
        (".\uff47\uff49\uff54/config", "protected"),
        (".\uff45nv", "credential"),
        ("server.pem\u200b", "credential"),
    ],
)
def test_characters_that_are_not_seen_and_wide_letters_make_no_other_name(path: str, expected: str) -> None:
    assert find_protection(path) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("git~1/config", "protected"),
        ("GIT~1/hooks/x", "protected"),
        ("GIT~1 ./config", "protected"),
        (".git::$INDEX_ALLOCATION/config", "protected"),
        (".git/config::$DATA", "protected"),
        (".git. :x/hooks", "protected"),
        (".env::$DATA", "credential"),
        ("ENV~1", "credential"),
        ("ENV~2.LOC", "credential"),
        ("ssh~1/config", "credential"),
        ("CREDEN~1.JSO", "credential"),
        ("GITMOD~1", "protected"),
        ("gi7eba~1", "protected"),
        ("gi7d29~1", "protected"),
        ("git~1:x/config", "protected"),
        ("GIT~1::$INDEX_ALLOCATION/hooks/x", "protected"),
        ("env~1:x", "credential"),
        ("GITHUB~1/workflows/x.yml", "protected"),
        ("JENKIN~1", "protected"),
        ("a:b.pem", "credential"),
        ("config:b.pem", "credential"),
    ],
)
def test_streams_and_short_names_of_windows_are_understood(path: str, expected: str) -> None:
    assert find_protection(path) == expected


@pytest.mark.parametrize("place", sorted(CREDENTIAL_PLACES))
def test_the_last_name_of_a_place_is_a_credential_only_there(place: str) -> None:
    assert is_credential(f"home/{place}")
    assert not is_credential(place.rpartition("/")[2])


def test_who_walks_down_a_tree_asks_about_the_last_name_only() -> None:
    for path in (".env", "a/.ENV", "ID_RSA.", "a/.ssh", "server.pem", "a/ENV~1"):
        assert is_credential(path)
    for path in (".ssh/a", ".env/a", "a.txt", ".github/a"):
        assert not is_credential(path)


@pytest.mark.parametrize("place", sorted(PROTECTED_PLACES))
def test_a_place_is_protected_with_all_that_is_in_it(place: str) -> None:
    assert find_protection(f"home/{place}/x") == "protected"


@pytest.mark.parametrize(
    "pattern",
    [
        ".env*", ".e*", ".en?", ".[e]nv", "*.pem", "*.PEM", "*.p?m", "*.p*", "server.k*", "id_r?a", "id_*", "ID_R*",
        "[i][d][_][r][s][a]", "~/.ssh/*", ".ss?/*", "x/.aw*/config", ".aws/*", "*_rsa", "cred*", "c?edential*.json",
        ".env.*", ".e*.local", "*key", ".config/gh/*", "*.[pk]em", "[a-z][a-z]_rs[!b]", "a" * 80 + "*",
        "*.env", "prod*.env", "*.tfvars", "*.tfstate", "secrets.*", "secrets*", "secrets.y?ml", "kubeconfig*",
    ],
)  # fmt: skip
def test_a_glob_that_aims_at_a_credential(pattern: str) -> None:
    assert may_name_credential(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "*", "**", "?", "src/*", "*.py", "*.json", "*.[ch]", "*.[jt]s*", "[a-z]*", "[!a]*", "[^a]*", "test_*", "*test*",
        "*config*", "README*", "*.local", "*y", ".*", "*env*", "c*.json", "[[:alpha:]]*", "[*", "x[", "[]", "main.py",
        "docs/**/*.md", "*.lock", "", "app*", "application*", "app*.json", "sec*", "s*s.json", "kube*", "ssh*", "*.tf",
    ],
)  # fmt: skip
def test_a_glob_that_only_takes_what_is_there(pattern: str) -> None:
    """The shell's star matches no dot in front, and what is hidden in the sandbox is empty there."""
    assert not may_name_credential(pattern)


@pytest.mark.parametrize(
    ("path", "folders"),
    [
        ("x/config", (("x", "config"),)),
        ("config", ((".", "config"),)),
        ("x/hooks/update", (("x", "hooks"),)),
        ("x/objects/info/alternates", (("x", "objects"), ("x/objects", "info"))),
        ("/a/HEAD", (("/a", "HEAD"),)),
        ("/HEAD", (("/", "HEAD"),)),
        ("./x/./refs/heads/main", (("x", "refs"),)),
        ("src/main.py", ()),
        (".git/config", ()),
        ("bare.git/hooks/x", ()),
        ("x/CONFIG", (("x", "CONFIG"),)),
        ("x.GIT/config", ()),
        ("config/x.git", ((".", "config"),)),
        ("x.git/a/config", (("x.git/a", "config"),)),
    ],
)
def test_where_somebody_has_to_look_for_a_repository(path: str, folders: tuple[tuple[str, str], ...]) -> None:
    assert list_possible_repositories(path) == folders


def test_what_steers_a_repository_is_told_from_its_everyday_work() -> None:
    assert [name for name in ("hooks", "CONFIG", "info", "HEAD", "refs", "index") if is_git_control_name(name)] == [
        "hooks",
        "CONFIG",
        "info",
    ]


@pytest.mark.parametrize(
    ("folder", "holds"),
    [
        ("/home/x/.config", True),
        ("/home/x/.Config", True),
        ("/home/x/.local/share", True),
        ("/home/x/.local", True),
        ("/home/x/.cargo", True),
        ("/home/x/.local./share ", True),
        ("/home/x/.config/", True),
        ("//home//x/.local//share", True),
        (".config", True),
        ("/home/x/.config/nvim", False),
        ("/home/x/share", False),
        ("/home/x", False),
        ("/", False),
    ],
)
def test_a_folder_that_tools_keep_credentials_in(folder: str, holds: bool) -> None:
    assert can_hold_credentials(folder) is holds


@pytest.mark.parametrize("ending", ["py", "PY", "go", "html", "scss", "svg", "ts", "js", "md", "c", "h"])
def test_no_name_with_an_ordinary_ending_is_a_credential_by_either_question(ending: str) -> None:
    for name in ("", "a", "env~1", *CREDENTIAL_FILES, *CREDENTIAL_FOLDERS, *CREDENTIAL_ENDINGS, *VARIANTS):
        for stem in (f"{name}.", name, f"x{name}.", f"{name}:x.", f"{name}. ."):
            last = f"{stem}{ending}"
            assert is_credential(f"x/{last}") == (find_protection(last) == "credential"), last
