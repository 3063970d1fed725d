"""Names of files that steer tools, normalized.

They run code, or redirect it,
when a user only opens, enters, fetches or commits. Examples are hooks, settings of editors and agents, CI, and
start-up files of shells and package managers. Files that a build or a test runs (Makefile, package.json, conftest.py)
are not protected, because agents write them. Instructions for agents are not protected either.
"""

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
