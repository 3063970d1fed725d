"""Hears every event of the session, and has those told who asked for it. Loaded with the session: before that nothing
happens, and a client waits for what is loaded."""

from collections.abc import Callable

from handrail.mcp.news import build_notification
from handrail.mcp.stdio.telling import Notifier
from handrail.protocol.events import Event


def build_listener(telling: Notifier) -> Callable[[Event], None]:
    """Takes an event of the session, in the thread that brought it about."""

    def hear(event: Event) -> None:
        news, about = build_notification(event), getattr(event, "tool_call_id", None)
        if news is None:
            return
        if news.progress and about is not None:
            telling.progress(about, news.text)
        telling.log(news.level, news.data, about)

    return hear
