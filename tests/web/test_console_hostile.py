"""Markup in every text of a model, a tool or a file stays text: no script runs, no element appears, nothing loads."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.web.console import DEEP, Console, Script, expect_end

pytestmark = pytest.mark.skipif(not DEEP, reason="everyday, test_console_walk.py has a share of it")

_SCRIPTS = (
    "<script>window.pwned=1</script>",
    "<img src=x onerror='window.pwned=1'>",
    "<svg onload=window.pwned=1>",
    "<svg><script>window.pwned=1</script></svg>",
    "<svg><animate onbegin=window.pwned=1 attributeName=x dur=1s>",
    "<math><mtext></p><img src=x onerror=window.pwned=1></mtext></math>",
    "<iframe src='javascript:parent.pwned=1'></iframe>",
    "<iframe srcdoc='<script>parent.pwned=1</script>'></iframe>",
    "<body onload=window.pwned=1>",
    "<details open ontoggle=window.pwned=1>",
    "<video><source onerror=window.pwned=1></video>",
    "<audio src=x onerror=window.pwned=1>",
    "<input autofocus onfocus=window.pwned=1>",
    "<select autofocus onfocus=window.pwned=1>",
    "<textarea autofocus onfocus=window.pwned=1></textarea>",
    "<marquee onstart=window.pwned=1>",
    "<object data='javascript:window.pwned=1'></object>",
    "<embed src='javascript:window.pwned=1'>",
    "<form action='javascript:window.pwned=1'><button>go</button></form>",
    "<isindex action='javascript:window.pwned=1' type=submit>",
    "<a href='javascript:window.pwned=1' id=evil>go</a>",
    "<base href='https://evil.example/'>",
    "<link rel=stylesheet href='https://evil.example/x.css'>",
    "<meta http-equiv=refresh content='0;url=https://evil.example/'>",
    "<style>@import 'https://evil.example/x.css';</style>",
    "<div style='background:url(https://evil.example/x.png)'>",
    "<img src='https://evil.example/x.png'>",
    "<img srcset='https://evil.example/x.png 2x'>",
    "<template><script>window.pwned=1</script></template>",
    "</script><script>window.pwned=1</script>",
    "</textarea><script>window.pwned=1</script>",
    "</title><script>window.pwned=1</script>",
    "<!--><script>window.pwned=1</script-->",
    "<![CDATA[<script>window.pwned=1</script>]]>",
    "&lt;script&gt;window.pwned=1&lt;/script&gt;",
    "<noscript><p title='</noscript><img src=x onerror=window.pwned=1>'>",
    '"><script>window.pwned=1</script>',
    "' onmouseover='window.pwned=1",
    "`-window.pwned=1-`",
    "{{constructor.constructor('window.pwned=1')()}}",
    "${window.pwned=1}",
    "<x contenteditable onblur=window.pwned=1>lose</x>",
    "<a href='data:text/html,<script>opener.pwned=1</script>'>data</a>",
    "\x1b]8;;javascript:window.pwned=1\x07link\x1b]8;;\x07",
    "\x1b[31m<img src=x onerror=window.pwned=1>\x1b[0m",
    "\u202e<script>window.pwned=1</script>\u202c",
)
_MARKDOWN = (
    "[go](javascript:window.pwned=1)",
    "[go](JaVaScRiPt:window.pwned=1)",
    "[go](java\tscript:window.pwned=1)",
    "[go](data:text/html;base64,PHNjcmlwdD5wYXJlbnQucHduZWQ9MTwvc2NyaXB0Pg==)",
    "[go](vbscript:window.pwned=1)",
    "[go](&#106;avascript:window.pwned=1)",
    "![x](https://evil.example/x.png)",
    "![x](javascript:window.pwned=1)",
    "[ref]\n\n[ref]: javascript:window.pwned=1",
    "<javascript:window.pwned=1>",
    "<https://evil.example/><img src=x onerror=window.pwned=1>",
    "```html\n<script>window.pwned=1</script>\n```",
    "| a |\n|---|\n| <img src=x onerror=window.pwned=1> |",
)
PAYLOADS = (*_SCRIPTS, *_MARKDOWN)
_ALL = "\n\n".join(PAYLOADS)
_INJECTED = (
    "main script, main iframe, main object, main embed, main base, main link, main meta, main style, main img, main svg"
    " [onload], main template, main marquee, main video, main audio, main animate, main math, [onerror], [onload],"
    " [onfocus], [onbegin], [ontoggle], [onstart], [onmouseover], [onblur], #evil, a[href^='javascript' i],"
    " a[href^='data' i], a[href^='vbscript' i]"
)


_FOLDED = ".card-toggle[aria-expanded=false], details:not([open]) > summary"
_FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def _name_file(number: int, payload: str) -> str:
    """A payload as a name that a file can have."""
    return f"{number} {payload.replace('/', '∕').replace(chr(10), ' ').replace(chr(0), ' ')[:80]}"


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _files() -> list[list[Any]]:
    return [
        ["write", {"path": _name_file(at, one), "content": one}] for at, one in enumerate(PAYLOADS) if one.isprintable()
    ]


SETTINGS = "[server]\ndirect_calls = true\n"
_SHOWN = f"printf %s {_quote(PAYLOADS[0])}; cat all.txt"
SCRIPTS: dict[str, Script] = {
    "all": [
        {"text": _ALL, "reasoning": _ALL, "calls": [["write", {"path": "all.txt", "content": _ALL}]]},
        {"text": "files", "calls": _files()},
        {"text": "output", "calls": [["exec", {"command": _SHOWN}], ["read", {"path": "all.txt"}]]},
        {"text": "no such", "calls": [[PAYLOADS[1][:60], {"path": _ALL}], ["read", {"path": PAYLOADS[1]}]]},
        {"text": "display", "calls": [["display", {"content": _ALL, "title": PAYLOADS[0]}]]},
        {"text": "process", "calls": [["exec", {"command": f"{_SHOWN}; sleep 600", "background": True}]]},
        {
            "text": "question",
            "calls": [["question", {"question": _ALL[:3900], "options": list(PAYLOADS[:18]), "custom": True}]],
        },
        {"text": _ALL},
    ],
}
PAGES = ("tasks", "inbox", "tools/write", "changes", "audit", "policy", "processes", "settings")


def _check(console: Console, page: Page, where: str) -> None:
    page.evaluate(_FRAMES)
    assert page.evaluate("window.pwned") is None, where
    assert page.url.startswith(console.server.address), where
    injected = page.evaluate(
        "selector => [...document.querySelectorAll(selector)].map(one => one.outerHTML)", _INJECTED
    )
    assert injected == [], where


def _look_at_all(page: Page) -> None:
    """Opens every card, on the way from the beginning to the end."""
    page.evaluate("document.querySelector('.items').scrollTop = 0")
    for _ in range(400):
        page.evaluate("selector => document.querySelectorAll(selector).forEach(one => one.click())", _FOLDED)
        at_end = page.evaluate(
            "(box => { const before = box.scrollTop; box.scrollTop += box.clientHeight * 0.8;"
            " return box.scrollTop === before; })(document.querySelector('.items'))"
        )
        page.evaluate(_FRAMES)
        if at_end:
            return


def _approve_all(console: Console, task: str, page: Page) -> None:
    """Looks at each request of the task, then approves it."""
    for at in range(len(PAYLOADS) + 10):
        expect(page.locator(".drawer, .item[aria-label='End of the turn']").first).to_be_visible()
        expect(page.locator(".drawer")).to_be_visible()
        _check(console, page, f"request {at}")
        inbox = console.get("/api/inbox")
        if inbox["questions"]:
            return
        for waiting in inbox["requests"]:
            request = waiting["request"]
            console.post(
                f"/api/requests/{request['id']}/answer", {"kind": "once", "revision": request.get("revision", 0)}
            )
    raise AssertionError("the question never came")


def test_markup_stays_text_everywhere(console: Console) -> None:
    task = console.start_task("all", _ALL, "ask")
    page = console.window(f"/tasks/{task}")
    _approve_all(console, task, page)
    expect(page.get_by_role("button", name="Reply", exact=True)).to_be_visible()
    _look_at_all(page)
    _check(console, page, "conversation")
    page.locator(".drawer textarea").fill(_ALL)
    page.wait_for_timeout(500)
    page.get_by_role("button", name="Reply", exact=True).click()
    expect_end(page)
    _look_at_all(page)
    _check(console, page, "conversation at its end")
    for name in (*PAGES, f"tasks/{task}/trace", f"tasks/{task}/replay", f"tasks/{task}"):
        page.goto(f"{console.server.address}/{name}")
        page.get_by_role("heading", level=1).wait_for()
        _check(console, page, name)
    _open_rows(console, page, "changes")
    _open_rows(console, page, "audit")
    _open_rows(console, page, "processes")
    _explain(console, page)
    assert console.problems == []


def test_the_search_for_injected_elements_finds_them(console: Console) -> None:
    page = console.window()
    page.evaluate("document.querySelector('main').append(document.createElement('iframe'))")
    with pytest.raises(AssertionError, match="iframe"):
        _check(console, page, "here")


def _open_rows(console: Console, page: Page, name: str) -> None:
    page.goto(f"{console.server.address}/{name}")
    page.locator("table.rows .row-link").first.wait_for()
    targets = [one.get_attribute("href") for one in page.locator("table.rows .row-link").all()]
    for target in targets:
        page.goto(f"{console.server.address}{target}")
        page.get_by_role("heading", level=1).wait_for()
        _check(console, page, f"{name} {target}")


def _explain(console: Console, page: Page) -> None:
    page.goto(f"{console.server.address}/policy")
    for payload in PAYLOADS:
        page.get_by_label("Command", exact=True).fill(f"echo {_quote(payload)} && rm -rf {_quote(payload)}")
        page.get_by_role("button", name="Explain").click()
    _check(console, page, "policy")
