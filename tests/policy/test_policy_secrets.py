"""Environment variables that commands never get, by name or by value."""

import pytest

from handrail.policy.secrets import find_withheld_reason, is_random_value, is_secret_name, is_secret_value

SECRET = [
    "GITHUB_TOKEN", "TOKEN", "npm_token", "TOKENS", "OPENAI_API_KEY", "KEY", "APIKEY", "SSH_KEYS", "CLIENT_SECRET",
    "SecretName", "DB_PASSWORD", "PASSWD", "DB_PASS", "PGPASSWORD", "MYSQL_PWD", "GPG_PASSPHRASE", "SSH_AUTH_SOCK",
    "HTTP_AUTHORIZATION", "BASIC_AUTH", "OAUTHID", "GOOGLE_APPLICATION_CREDENTIALS", "AWS_CREDS", "GH_PAT",
    "SESSION_COOKIE", "SLACK_WEBHOOK_URL", "MASTERKEY", "PRIVATE_THING", "X_JWT", "TLS_CERT",
]  # fmt: skip
PLAIN = [
    "NODE_ENV", "AUTHOR", "RAILS_ENV", "PATTERN", "COMPASS", "KEYBOARD_LAYOUT", "CGO_ENABLED", "CFLAGS", "DEBUG",
    "JAVA_HOME", "PIPELINE", "CERTAIN", "PASSENGER_COUNT", "SIGNAL",
]  # fmt: skip


@pytest.mark.parametrize("name", SECRET)
def test_a_name_of_a_secret_is_known_in_any_case(name: str) -> None:
    assert is_secret_name(name)
    assert is_secret_name(name.lower())
    assert find_withheld_reason(name) == "has the name of a secret"


@pytest.mark.parametrize("name", PLAIN)
def test_other_names_are_no_secrets(name: str) -> None:
    assert not is_secret_name(name)
    assert find_withheld_reason(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "CDPATH", "GLOBIGNORE", "LD_PRELOAD", "LD_AUDIT", "PYTHONSTARTUP",
        "PYTHONPATH", "IFS", "PS4", "GIT_SSH_COMMAND", "GIT_CONFIG_COUNT", "NODE_OPTIONS", "PERL5OPT", "RUBYOPT",
        "JAVA_TOOL_OPTIONS", "LESSOPEN", "EDITOR", "RIPGREP_CONFIG_PATH", "MAKEFLAGS", "GCONV_PATH", "HANDRAIL_MODE",
    ],
)  # fmt: skip
def test_what_steers_programs_is_kept_back_in_any_case(name: str) -> None:
    for spelled in (name, name.lower(), name.title()):
        assert find_withheld_reason(spelled) == "controls how programs start and what they load"


@pytest.mark.parametrize("name", ["PATH", "HOME", "USER", "TERM", "TMPDIR", "_"])
def test_what_every_command_has_of_its_own_is_kept_back(name: str) -> None:
    assert find_withheld_reason(name) == "is set again for every command"


@pytest.mark.parametrize(
    "value",
    [
        "postgres://app:hunter2@db/shop",
        "redis://:hunter2@cache:6379",
        "https://abcdef@example.org/x.git",
        "see https://u:p@h/ there",
        "-----BEGIN RSA PRIVATE KEY-----",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
        "sk-abcdefghijklmnop1234",
        "sk-ant-" + "a1" * 12,
        "sk_live_abcdefghijklmnop",
        "ghp_abcdefghijklmnopqrst",
        "github_pat_11ABCDEFG0abcdefghijk",
        "glpat-abcdefghijklmnopqrst",
        "xoxb-1234567890-abc",
        "AKIAIOSFODNN7EXAMPLE",
        "AIzaSyA1234567890abcdefghijklmnopqrstu",
        "npm_abcdefghijklmnopqrstuv",
        "Bearer abcdefgh1234",
        "Server=db;User=sa;Password=hunter2",
        "key: api_key=abc",
        "AccountName=a;AccountKey=abc==",
    ],
)
def test_a_text_in_the_form_of_a_secret_is_known(value: str) -> None:
    assert is_secret_value(value)


@pytest.mark.parametrize(
    "value",
    [
        "production", "/usr/lib/jvm/java-17", "https://example.org/a@b", "ssh://git@example.org/x", "a:b@c", "1",
        "/nix/store/0c3bvyj2dvlxb1h3c3vx1n4n4k9m0q8p-go-1.22", "-O2 -g", "skip-the-slow-tests-please", "en_US.UTF-8",
    ],
)  # fmt: skip
def test_ordinary_texts_are_no_secrets(value: str) -> None:
    assert not is_secret_value(value)


@pytest.mark.parametrize(
    "value",
    [
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLE1KEY22",
        "d41d8cd98f00b204e9800998ecf8427e",
        "x=Zm9vYmFyYmF6MTIzNDU2Nzg5MGFiY2RlZg==",
        "4f9c1b7e-0a2d-4c53-9d7e-1f0b6a8c2e35",
    ],
)
def test_a_long_run_that_nobody_thought_up_is_known(value: str) -> None:
    assert is_random_value(value)


@pytest.mark.parametrize(
    "value",
    [
        "production", "a-long-name-without-any-digits-at-all", "1234567890123456789012345678", "ALongNameInManyWords2",
        "/usr/lib/x86_64-linux-gnu/gcc/12345", "--max-old-space-size=4096", "AVeryLongNameThatIsMadeOfManyWords22",
    ],
)  # fmt: skip
def test_words_numbers_and_paths_are_not_random(value: str) -> None:
    assert not is_random_value(value)
