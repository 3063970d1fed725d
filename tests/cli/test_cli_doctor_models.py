"""doctor about models: whose can be asked. It names variables, never what is in them."""

import pytest

KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENROUTER_API_KEY")
OTHERS = ("OLLAMA_API_KEY", "LMSTUDIO_API_KEY", "LM_API_TOKEN", "VLLM_API_KEY")


@pytest.fixture
def rows(here):
    def ask(**keys: str) -> list[dict[str, str]]:
        done = here("doctor", "--json", **{**dict.fromkeys((*KEYS, *OTHERS)), **keys})
        assert "secret" not in done.out
        return [row for row in done.json["rows"] if row["group"] == "models"]

    return ask


def test_the_keys_that_are_set_are_named_and_not_shown(rows) -> None:
    found = rows(ANTHROPIC_API_KEY="sk-ant-secret", GOOGLE_API_KEY="secret")
    assert [row["text"] for row in found] == ["anthropic: ANTHROPIC_API_KEY is set", "google: GOOGLE_API_KEY is set"]
    assert {row["status"] for row in found} == {"ok"}


def test_without_a_key_it_says_what_to_set_and_that_local_servers_need_none(rows) -> None:
    [row] = rows()
    assert row["status"] == "ok"
    assert row["text"].startswith("no key is set (ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY")
    assert row["text"].endswith("ollama:…")
