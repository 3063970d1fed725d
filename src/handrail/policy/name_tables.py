"""Tables of protected names, normalized.

Credentials: keys, tokens, passwords, and the folders that hold them. Protected: files that run code, or redirect it,
when a user only opens, enters, fetches or commits. Examples are hooks, settings of editors and agents, CI, and
start-up files of shells and package managers. Files that a build or a test runs (Makefile, package.json, conftest.py)
are not protected, because agents write them. Instructions for agents are not protected either.
"""

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

PROTECTED_FOLDERS = frozenset(
    {
        ".github", ".gitlab", ".gitea", ".forgejo", ".circleci", ".buildkite", ".woodpecker", ".semaphore", ".teamcity",
        ".tekton", ".azuredevops", ".azure-pipelines", ".builds", ".husky", ".lefthook", ".vscode", ".idea", ".zed",
        ".fleet", ".vs", ".nova", ".cursor", ".agents", ".claude", ".codex", ".opencode", ".gemini", ".qwen",
        ".windsurf", ".roo", ".kiro", ".amazonq", ".continue", ".junie", ".trae", ".crush", ".factory", ".devcontainer",
        ".handrail", ".hg", ".jj", ".cargo", ".yarn", ".mvn", ".mise", ".githooks", ".git-hooks",
    }
)  # fmt: skip
PROTECTED_FILES = frozenset(
    {
        "handrail.toml", ".mcp.json", "opencode.json", "opencode.jsonc", "crush.json", ".crush.json",
        ".aider.conf.yml", ".continuerc.json", ".gitmodules", ".gitattributes", ".gitconfig", ".lfsconfig", ".hgrc",
        ".pre-commit-config.yaml", ".pre-commit-config.yml", "prek.toml", ".overcommit.yml", "lefthook.yml",
        "lefthook.yaml", ".lefthook.yml", ".lefthook.yaml", "lefthook-local.yml", ".lefthook-local.yml",
        "lefthook.toml", "lefthook.json", ".huskyrc", ".gitlab-ci.yml", ".travis.yml", "azure-pipelines.yml",
        "azure-pipelines.yaml", "jenkinsfile", "bitbucket-pipelines.yml", ".drone.yml", ".woodpecker.yml",
        ".woodpecker.yaml", ".cirrus.yml", ".cirrus.star", "appveyor.yml", ".appveyor.yml", "buildspec.yml",
        "cloudbuild.yaml", "cloudbuild.yml", ".build.yml", "codefresh.yml", "wercker.yml", ".devcontainer.json",
        ".gitpod.yml", ".replit", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases",
        ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login",
        ".xprofile", ".xinitrc", ".xsession", ".pam_environment", ".ripgreprc", ".vimrc", ".gvimrc", ".exrc",
        ".nvimrc", ".nvim.lua", ".lvimrc", ".dir-locals.el", ".dir-locals-2.el", ".emacs", ".gdbinit", ".lldbinit",
        ".tmux.conf", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".pnpmfile.mjs", ".bazelrc", ".bazeliskrc",
        ".gemrc", ".condarc", "pip.conf", ".pydistutils.cfg", "mise.toml", ".mise.toml",
        "mise.local.toml", ".mise.local.toml",
    }
)  # fmt: skip
PROTECTED_PLACES = frozenset(
    {
        ".config/git", ".config/fish", ".config/autostart", ".config/systemd", ".config/nvim", ".config/direnv",
        ".config/mise", ".config/handrail", ".local/bin", ".bundle/config",
    }
)  # fmt: skip

GIT_INTERNALS = frozenset(
    {
        "hooks", "config", "config.worktree", "commondir", "modules", "worktrees", "info", "objects", "rebase-merge",
        "rebase-apply", "sequencer", "remotes", "branches",
    }
)  # fmt: skip
"""Names in a repository's folder that steer git. Refs, HEAD and the index are everyday work."""
REPOSITORY_PARTS = frozenset({"head", "refs", "gitdir"}) | GIT_INTERNALS
"""Names that make a folder a repository, or steer it."""

PACKAGE_FOLDERS = frozenset({"node_modules", "bower_components", "site-packages", ".venv", "venv", ".tox", ".nox"})
"""Folders of installed packages. Their `.github` and `.vscode` steer nothing there, and their keys are for tests."""
