"""Whatever the file holds, it loads or is a SettingsError."""

import tempfile
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from handrail.settings import LoadedSettings, SettingsError, list_settings, load
from handrail.settings.toml_file import RULE

sections = sorted({key.partition(".")[0] for key in list_settings()})
leaves = sorted({key.rpartition(".")[2] for key in list_settings()})
bare = st.sampled_from([*sections, *leaves, "enabel", "x", "1", "-"])
quoted = st.text(
    st.characters(codec="utf-8", exclude_characters='"\\\x7f', exclude_categories=["Cc"]), max_size=20
).map(lambda text: f'"{text}"')
dotted = st.lists(bare | quoted, min_size=1, max_size=4).map(".".join)
scalars = st.one_of(
    st.integers().map(str),
    st.floats().map(repr),
    st.sampled_from(["true", "false", "1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", "0x" + "f" * 6000]),
    st.sampled_from(['"ask"', '"full"', '"crash"', '"fs.read"', '"~/x"', '"/x"', '"~"', '".."', '"\\u0000"']),
    quoted,
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.lists(st.tuples(dotted, inner), max_size=3).map(
            lambda pairs: "{" + ", ".join(f"{key} = {value}" for key, value in pairs) + "}"
        )
    ),
    max_leaves=6,
)
texts = st.sampled_from(
    ['"ls"', '"rm -rf *"', '"docs/**"', '"a"', '"b"', '"git push"', '"exec"', '"write"', '"\\u202e"']
)
lists = st.lists(texts).map(lambda some: f"[{', '.join(some)}]")
lines = st.one_of(
    st.tuples(dotted, values).map(" = ".join),
    st.sampled_from(sorted(list_settings())).flatmap(lambda key: values.map(lambda value: f"{key} = {value}")),
    dotted.map(lambda name: f"[{name}]"),
    dotted.map(lambda name: f"[[{name}]]"),
    st.just("[[rule]]"),
    st.tuples(st.sampled_from(sorted(RULE)), values | texts | lists).map(" = ".join),
    st.text(max_size=10),
)
rules = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from(["allow", "ask", "deny"]), texts).map(
        lambda rule: '[[rule]]\nid = "{}"\n{} = {}'.format(*rule)
    )
)
written = st.one_of(st.lists(lines, max_size=8), rules).map("\n".join)
documents = written.map(lambda text: text.encode("utf-8", "replace"))


def outcome(content: bytes) -> LoadedSettings | SettingsError:
    with tempfile.NamedTemporaryFile(suffix=".toml") as file:
        Path(file.name).write_bytes(content)
        try:
            return load({"HOME": "/home/ada", "HANDRAIL_CONFIG": file.name}, {})
        except SettingsError as error:
            return error


@given(documents | st.binary(max_size=200))
@example(b"mode" + b".a" * 30 + b" = 1")
@example(b"tools.enable = " + b"[" * 300 + b"]" * 300)
def test_any_document_loads_or_is_refused_in_printable_words(content: bytes) -> None:
    match outcome(content):
        case LoadedSettings() as loaded:
            assert list(loaded.sources) == list(loaded.settings.flatten()) == list(list_settings())
        case SettingsError() as error:
            assert error.problems
            assert all(problem.isprintable() for problem in error.problems)


@given(st.lists(st.sampled_from(sorted(list_settings())), unique=True, max_size=20), st.data())  # more are not shown
def test_one_value_alone_decides_as_it_does_among_others(keys: list[str], data: st.DataObject) -> None:
    pairs = [f"{key} = {data.draw(scalars)}" for key in keys]
    alone = [pair for pair in pairs if isinstance(outcome(pair.encode()), SettingsError)]
    together = outcome("\n".join(pairs).encode())
    assert len(alone) == (len(together.problems) if isinstance(together, SettingsError) else 0)
