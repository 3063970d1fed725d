"""How a session runs on any worker: its model, mode, workspace."""

import msgspec

from handrail.protocol.decisions import Mode

_GIT = "git+"


class GitWorkspace(msgspec.Struct, frozen=True, tag="git"):
    """A repository that each worker clones. The result is a branch that the worker pushes there."""

    url: str
    revision: str = "HEAD"
    branch: str | None = None
    """None: `handrail/SESSION`."""


class SharedFolder(msgspec.Struct, frozen=True, tag="folder"):
    """A folder that all workers see under one path. Its sessions run one after the other."""

    path: str


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a session runs, on any worker."""

    model: str
    workspace: GitWorkspace | SharedFolder
    mode: Mode = "ask"

    def build_lock(self, session: str) -> str:
        """The name of the lock under which jobs run one after the other: that of the session, or of its folder."""
        return session if isinstance(self.workspace, GitWorkspace) else f"folder:{self.workspace.path}"


def is_repository(name: str) -> bool:
    return name.startswith(_GIT)


def name_workspace(options: RunOptions) -> str:
    """The path of a shared folder, or `git+URL` with the revision after a `#`, unless that is HEAD."""
    workspace = options.workspace
    if isinstance(workspace, SharedFolder):
        return workspace.path
    url = workspace.url.replace("#", "%23")  # so that the name of one repository never begins with that of another
    return f"{_GIT}{url}" + (f"#{workspace.revision}" if workspace.revision != "HEAD" else "")


def parse_workspace(name: str) -> GitWorkspace | SharedFolder:
    if not is_repository(name):
        return SharedFolder(name)
    url, _, revision = name.removeprefix(_GIT).partition("#")
    return GitWorkspace(url, revision or "HEAD")
