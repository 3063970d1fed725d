"""Every rule that can decide is explained to people."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
RULE = re.compile(r'"((?:exec|fs|git|deny|restricted|tool|call)\.[a-z-]+)"')


def test_every_built_in_rule_is_in_the_documentation() -> None:
    documented = (ROOT / "docs" / "concepts" / "policy.md").read_text()
    sources = (ROOT / "src" / "handrail" / "policy").rglob("*.py")
    rules = {rule for source in sources for rule in RULE.findall(source.read_text())}
    assert len(rules) > 40
    assert {rule for rule in rules if f"`{rule}`" not in documented} == set()
