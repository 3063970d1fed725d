"""A command and everything that judging it depends on."""

import msgspec

from handrail.policy.commands.reading import PathUse
from handrail.policy.configuration import PolicyConfig
from handrail.policy.names import find_protection
from handrail.policy.rules.book import RuleBook
from handrail.policy.script import to_fact_use, to_workspace_path
from handrail.protocol.decision import Access, CommandFact, Facts, PathFact


class PolicyContext(msgspec.Struct, frozen=True):
    """One command, the facts about the paths it names, and what people decided beforehand."""

    fact: CommandFact
    rules: PolicyConfig
    known: dict[tuple[str, Access], PathFact]
    book: RuleBook
    undo: bool
    """Whether what the command changes can be undone."""

    @property
    def network(self) -> str:
        """What a person is told of the network that the command asks for."""
        from handrail.policy.network.told import describe_network_access  # noqa: PLC0415  most commands ask for none

        return describe_network_access(self.fact)

    def find_fact(self, use: PathUse) -> PathFact | None:
        """What is known of a path; of a glob, of the folder it starts from."""
        asked = to_fact_use(use)
        return self.known.get((asked.path, asked.access))

    def is_plain_read(self, use: PathUse) -> bool:
        """Whether a use is plain reading inside the roots, which needs no verdict of its own."""
        if use.access != "read" or use.is_glob or self.rules.restriction is not None or self.book.tools:
            return False
        fact = self.known.get((use.path, "read"))
        if fact is None or fact.real is None or fact.kind == "other" or fact.named is not None:
            return False
        if fact.credential or find_protection(fact.real) == "credential":
            return False
        return fact.real == use.path or find_protection(use.path) != "credential"

    def is_inside(self, word: str, folders: tuple[str, ...]) -> bool:
        """Whether an operand is a path inside the roots, wherever the command runs, and one that is not protected."""
        return all(self._is_inside(to_workspace_path(word, folder)) for folder in folders)

    def _is_inside(self, path: str) -> bool:
        if find_protection(path) is not None:
            return False
        for access in ("read", "write", "delete"):
            fact = self.known.get((path, access))
            if fact is not None and (fact.real is None or fact.credential or find_protection(fact.real) is not None):
                return False
        return (not path.startswith(("/", "~")) and ".." not in path.split("/")) or (path, "read") in self.known


def build_context(fact: CommandFact, facts: Facts, rules: PolicyConfig, book: RuleBook) -> PolicyContext:
    """The case of a call."""
    known: dict[tuple[str, Access], PathFact] = {(path.path, path.access): path for path in facts.paths}
    return PolicyContext(fact, rules, known, book, undo=fact.has_overlay or (fact.snapshot and not fact.background))
