"""Builds the wheel with nothing but Python: no index is reachable."""

import zipfile
from pathlib import Path
from typing import Any

NAME = "greeting-1.0"
METADATA = "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: backend\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
ENTRY_POINTS = "[console_scripts]\ngreet = greeting:main\n"


def build_wheel(folder: str, settings: Any = None, metadata: str | None = None) -> str:
    name = f"{NAME}-py3-none-any.whl"
    files = {
        "greeting/__init__.py": Path("greeting/__init__.py").read_text(),
        f"{NAME}.dist-info/METADATA": METADATA,
        f"{NAME}.dist-info/WHEEL": WHEEL,
        f"{NAME}.dist-info/entry_points.txt": ENTRY_POINTS,
    }
    record = "".join(f"{path},,\n" for path in [*files, f"{NAME}.dist-info/RECORD"])
    with zipfile.ZipFile(Path(folder, name), "w") as wheel:
        for path, text in (files | {f"{NAME}.dist-info/RECORD": record}).items():
            wheel.writestr(path, text)
    return name
