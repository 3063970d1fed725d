"""What the proxy says to a program that it does not connect."""

from handrail.policy.network.hosts import render_untrusted

ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"

MALFORMED = 400
REFUSED = 403
NOT_REACHED = 502
TOO_SLOW = 504


def build_response(status: int, reason: str) -> bytes:
    """A whole response. The reason is also in its first line, which is all that many programs show of it."""
    said = "".join(one if one.isascii() and one.isprintable() else render_untrusted(one) for one in reason)
    body = f"handrail: {said}\n".encode("ascii", "replace")
    head = (
        f"HTTP/1.1 {status} handrail: {said}\r\n"
        "Content-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode("ascii", "replace") + body
