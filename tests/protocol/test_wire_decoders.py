"""Types that are read for the first time by several threads at once."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import pytest

import handrail
from handrail.protocol.wire import convert, decode_json, decode_msgpack

SOURCE = Path(handrail.__file__).parent

# msgspec looks at a type when it is first used, and two threads that are first at once end the process.
AT_ONCE = """
import sys, threading
import msgspec
from handrail.protocol.wire import convert, decode_json, decode_msgpack

sys.setswitchinterval(1e-6)
READERS = {"json": (decode_json, msgspec.json.encode), "msgpack": (decode_msgpack, msgspec.msgpack.encode),
           "plain": (convert, msgspec.to_builtins)}
read, write = READERS[sys.argv[1]]

def fresh():
    inner = msgspec.defstruct("Inner", [(f"field{n}", "int | None", None) for n in range(40)])
    return msgspec.defstruct("Outer", [("inner", inner), ("others", list[inner])]), inner

for _ in range(15):
    outer, inner = fresh()
    data = write(outer(inner(1), [inner(2)]))
    ready, go, read_by = [], [], []
    def first():
        ready.append(1)
        while not go: pass
        read_by.append(read(data, outer))
    threads = [threading.Thread(target=first) for _ in range(6)]
    for thread in threads: thread.start()
    while len(ready) < 6: pass
    go.append(1)
    for thread in threads: thread.join()
    assert read_by == [outer(inner(1), [inner(2)])] * 6
"""


@pytest.mark.parametrize("form", ["json", "msgpack", "plain"])
def test_threads_may_be_the_first_to_read_a_type_at_once(form: str) -> None:
    done = subprocess.run([sys.executable, "-c", AT_ONCE, form], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_no_value_of_a_type_is_refused_in_each_way() -> None:
    for read, given in ((decode_json, b'"a"'), (decode_msgpack, b"\xa1a"), (convert, "a")):
        with pytest.raises(ValueError, match="Expected `int`"):
            read(given, int)  # type: ignore[operator]


def test_a_type_with_a_remark_that_has_no_hash_is_read_as_any_other() -> None:
    kind = Annotated[int, ["anything at all"]]
    assert (convert(3, kind), decode_json(b"3", kind)) == (3, 3)


def test_only_one_module_gives_msgspec_a_type_to_read() -> None:
    given = {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if any(_typed_reads(path))}
    assert given == {"protocol/wire.py"}


def _typed_reads(path: Path) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            typed = any(keyword.arg == "type" for keyword in node.keywords)
            if called == "msgspec.convert" or (called.endswith(".Decoder") and (node.args or typed)):
                yield node
            if called in {"msgspec.json.decode", "msgspec.msgpack.decode"} and typed:
                yield node
