"""The workspace of the benchmarks of layers, and sessions over it."""

import os
import random
import string
from collections.abc import Callable
from pathlib import Path

from handrail import Handrail
from handrail.protocol.decisions import Mode
from handrail.protocol.permissions import AnswerKind, PermissionRequest
from handrail.settings import Settings
from handrail.settings.model import Sandbox

FILES = 50_000
IN_A_FOLDER = 50
Answering = Callable[[PermissionRequest], AnswerKind]


def make_tree(workspace: Path) -> None:
    """Folders of as many files each: words at random, the same ones every time."""
    draw = random.Random(8)
    words = ["".join(draw.choices(string.ascii_lowercase, k=draw.randint(3, 9))) for _ in range(2_000)]
    lines = [" ".join(draw.choices(words, k=8)) for _ in range(5_000)]
    for number in range(FILES):
        part = workspace / f"part{number // IN_A_FOLDER}"
        if number % IN_A_FOLDER == 0:
            part.mkdir(parents=True)
        (part / f"file{number % IN_A_FOLDER}.py").write_text("\n".join(draw.sample(lines, 60)) + "\n")
    os.sync()


def opened(workspace: Path, state: Path, mode: Mode, *, tier: int, answer: Answering = lambda _: "deny") -> Handrail:
    """A session in which no command is confined less."""
    settings = Settings(sandbox=Sandbox(tier=tier, least=2))
    name = f"{mode}-{tier}"
    return Handrail(workspace, mode=mode, session=name, state_dir=state, settings=settings, on_permission=answer)
