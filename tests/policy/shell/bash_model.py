"""What a script must do, if the lexer is right: which programs get which words, and where their streams go.

Every program of a run is the same: it reads all of its input, tells its words and that input, writes `o` to its output
and `e` to its errors, and ends well if it has an even number of words.
"""

from typing import Literal, NamedTuple

from handrail.policy.shell.syntax import Script, SimpleCommand, Word

Stream = Literal["out", "err", "null", "pipe"]


class Told(NamedTuple):
    """What one program got."""

    words: tuple[str, ...]
    input: str


class Outcome:
    """What a script leaves behind."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.pipelines: list[list[Told]] = []
        self.files = dict(files)
        self.streams: dict[Stream, bytes] = {"out": b"", "err": b"", "null": b"", "pipe": b""}
        self.is_racy = False
        """Two programs of one pipeline use one file: who comes first is not for us to say."""


class Opened:
    """A file as one redirection opened it."""

    def __init__(self, outcome: Outcome, name: str, mode: str) -> None:
        self.files, self.name, self.mode, self.offset = outcome.files, name, mode, 0
        if mode == ">":
            self.files[name] = b""
        self.files.setdefault(name, b"")

    def write(self, data: bytes) -> None:
        held = self.files[self.name]
        place = len(held) if self.mode == ">>" else self.offset
        self.files[self.name] = held[:place] + data + held[place + len(data) :]
        self.offset = place + len(data)


def outcome(script: Script, files: dict[str, bytes]) -> Outcome:
    """What comes of a script in a folder with these files."""
    result, status = Outcome(files), 0
    number = 0
    while number < len(script.commands):
        end = number + 1
        while end < len(script.commands) and script.joins[end - 1] == "|":
            end += 1
        join = script.joins[number - 1] if number else ";"
        if join == ";" or (join == "&&") == (status == 0):
            status = run_pipeline(script.commands[number:end], result)
        number = end
    return result


def run_pipeline(commands: tuple[SimpleCommand, ...], result: Outcome) -> int:
    result.pipelines.append([])
    targets = [{one.target.text for one in command.redirections if one.target} for command in commands]
    result.is_racy |= sum(map(len, targets)) > len(set().union(*targets)) and len(commands) > 1
    piped = ""
    for number, command in enumerate(commands):
        result.streams["pipe"] = b""
        run(command, result, piped, "out" if number == len(commands) - 1 else "pipe")
        piped = result.streams["pipe"].decode()
    return len(commands[-1].words) % 2


def run(command: SimpleCommand, result: Outcome, piped: str, output: Stream) -> None:
    source: Opened | str = piped
    sinks: dict[int, Opened | Stream] = {1: output, 2: "err"}
    for redirection in command.redirections:
        match redirection.operator:
            case "2>&1":
                sinks[2] = sinks[1]
            case ">&2":
                sinks[1] = sinks[2]
            case "<":
                source = opened(redirection.target, result, "<") or ""
            case operator:
                sink = opened(redirection.target, result, operator.lstrip("2&")) or "null"
                if operator[0] != "2":
                    sinks[1] = sink
                if operator[0] != ">":
                    sinks[2] = sink
    read = source if isinstance(source, str) else result.files[source.name].decode()
    result.pipelines[-1].append(Told(tuple(word.text for word in command.words), read))
    for number, data in ((1, b"o"), (2, b"e")):
        sink = sinks[number]
        if isinstance(sink, Opened):
            sink.write(data)
        else:
            result.streams[sink] += data


def opened(target: Word | None, result: Outcome, mode: str) -> Opened | None:
    assert target
    return None if target.text == "/dev/null" else Opened(result, target.text, mode)
