"""git, as far as it only reads. What it takes before its sub-command (-c, -C, --git-dir …) is never proven.

A repository's configuration could make even these run a program; `sandbox/variables/git.py` says what prevents that.
What is kept out here is what the words of the command themselves would start or write.
"""

from handrail.policy.tables.form import ProgramSpec
from handrail.policy.tables.git_config import CONFIGURATION
from handrail.policy.tables.git_history import HISTORY
from handrail.policy.tables.git_references import REFERENCES
from handrail.policy.tables.git_tree import TREE

TABLES: tuple[ProgramSpec, ...] = (*HISTORY, *REFERENCES, *CONFIGURATION, *TREE)
