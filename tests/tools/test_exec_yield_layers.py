"""Commands that go on after their calls, in their layers: what they changed is judged and kept when they end."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commander import comes_true

