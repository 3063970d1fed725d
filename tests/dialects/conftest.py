"""Lets the tests of dialects share their calls."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
