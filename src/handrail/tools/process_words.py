"""A process session in words, for models and people alike."""

from datetime import UTC, datetime

from handrail.protocol.records import ProcessRecord

_REASONS = {
    "stopped": "stopped",
    "idle": "ended: it printed nothing and nobody asked for it (limits.idle)",
    "session": "ended with its session",
    "memory": "ended: it used more memory than limits.memory",
    "processes": "ended: it had more processes than limits.processes",
    "disk": "ended: it wrote more than limits.preview",
}


def describe_state(record: ProcessRecord) -> str:
    """In a word or two: `running`, `exit 1`, `stopped`."""
    if record.state != "ended":
        return record.state
    if record.reason is not None:
        return record.reason
    return record.signal or f"exit {record.exit_code}"


def describe_process(record: ProcessRecord) -> str:
    """In a sentence's worth of words."""
    return f"{_how_it_is(record)}; {record.changed}" if record.changed else _how_it_is(record)


def _how_it_is(record: ProcessRecord) -> str:
    if record.state == "running":
        ports = f", listens on port {', '.join(map(str, record.ports))} of its own network" if record.ports else ""
        return f"running for {format_run_time(record)}{ports}"
    if record.state == "lost":
        return "gone: what kept it was killed, and nobody knows how it ended"
    if record.reason is not None:
        return _REASONS.get(record.reason, f"ended: {record.reason}")
    by = f" ({record.signal})" if record.signal else ""
    return f"exit code {record.exit_code}{by}"


def describe_dropped_log(record: ProcessRecord) -> str:
    """Of a log of which something was dropped."""
    return f"{record.dropped:,} bytes are not kept: the log is the first 64 KB and the last 64 MB"


def format_run_time(record: ProcessRecord, now: datetime | None = None) -> str:
    """How long a process has run, as a clock shows it: `02:14`, `1:02:14`, `3 d 01:02`."""
    until = record.ended or now or datetime.now(UTC)
    seconds = max(0, int((until - record.started).total_seconds()))
    minutes, hours, days = seconds // 60 % 60, seconds // 3600 % 24, seconds // 86400
    if days:
        return f"{days} d {hours:02}:{minutes:02}"
    return f"{hours}:{minutes:02}:{seconds % 60:02}" if hours else f"{minutes:02}:{seconds % 60:02}"
