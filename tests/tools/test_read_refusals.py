"""read: what is no text file is refused clearly, and never hangs."""

import base64
import os
import signal
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.settings import Settings

Rail = Callable[..., Handrail]
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture(autouse=True)
def nothing_hangs() -> Iterator[None]:
    """A call that waits for a FIFO or a device fails its test instead of stopping all of them."""
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("the call hangs"))
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(params=["kernel", "walk"])
def one(rail: Rail, request: pytest.FixtureRequest) -> Handrail:
    return rail(resolver=request.param)


def test_a_directory_is_no_file_and_ls_is_named(one: Handrail, workspace: Path) -> None:
    (workspace / "folder").mkdir()
    for path in ("folder", "folder/", "."):
        error = one.read(path).error
        assert error.code == "NOT_A_FILE"
        assert "use ls" in error.message


def test_a_missing_file_names_up_to_three_that_may_be_meant(one: Handrail, workspace: Path) -> None:
    (workspace / "src").mkdir()
    for name in ("settings.py", "setting.py", "settings.pyi", "settings2.py", "README.md", "other.txt"):
        (workspace / "src" / name).write_text("")
    error = one.read("src/setings.py").error
    assert error.code == "NOT_FOUND"
    near = error.details["near"]
    assert len(near) == 3
    assert "src/settings.py" in near
    assert all(name in error.message for name in near)
    assert one.read("src/readme.MD").error.details["near"] == ["src/README.md"]
    assert one.read("src/zzz").error.details["near"] == []
    assert one.read("no/such/folder/x").error.details["near"] == []


def test_a_missing_file_in_a_huge_folder_is_answered_soon(one: Handrail, workspace: Path) -> None:
    for number in range(3_000):
        (workspace / f"file-{number}").touch()
    assert one.read("file-x").error.code == "NOT_FOUND"


def test_a_fifo_is_refused_whether_or_not_somebody_writes_to_it(one: Handrail, workspace: Path) -> None:
    os.mkfifo(workspace / "fifo")
    assert one.read("fifo").error.code == "NOT_A_FILE"
    writer = os.open(workspace / "fifo", os.O_RDWR)
    try:
        os.write(writer, b"bytes in the pipe")
        assert one.read("fifo").error.code == "NOT_A_FILE"
        assert os.read(writer, 100) == b"bytes in the pipe", "reading took what was meant for another"
    finally:
        os.close(writer)


def test_a_socket_is_refused(one: Handrail, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        assert one.read("socket").error.code == "NOT_A_FILE"


@pytest.mark.parametrize("device", [(1, 5), (1, 3), (5, 0)], ids=["zero", "null", "tty"])
def test_a_device_inside_is_refused(one: Handrail, workspace: Path, device: tuple[int, int]) -> None:
    try:
        os.mknod(workspace / "device", 0o666 | stat.S_IFCHR, os.makedev(*device))
    except PermissionError:
        pytest.skip("making a device takes root")
    assert one.read("device").error.code == "NOT_A_FILE"
    assert one.ls(".").data.entries[0].kind == "other"


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/stdin", "/proc/self/mem", "/proc/kmsg"])
def test_a_device_outside_is_outside(one: Handrail, path: str) -> None:
    assert one.read(path).error.code == "OUTSIDE_WORKSPACE"


def test_a_file_without_permission_is_the_systems_refusal(
    common_folder: Path, as_ordinary_user: Callable[..., list[tuple[bool, str | None, str]]]
) -> None:
    workspace = common_folder / "workspace"
    (workspace / "locked").mkdir()
    (workspace / "locked" / "x.txt").write_text("x")
    (workspace / "secret.txt").write_text("x")
    (workspace / "open.txt").write_text("open")
    (workspace / "link.txt").symlink_to("secret.txt")
    (workspace / "secret.txt").chmod(0)
    (workspace / "locked").chmod(0)
    try:
        paths = ("open.txt", "secret.txt", "link.txt", "locked/x.txt", "locked/none.txt")
        found = as_ordinary_user([("read", {"path": path}) for path in paths] + [("ls", {"path": "locked"})])
    finally:
        (workspace / "locked").chmod(0o755)
    assert [code for _, code, _ in found] == [None, *["ACCESS_DENIED"] * 5]


@pytest.mark.parametrize(
    "data",
    [b"\x7fELF\x02\x01\x01" + bytes(100), bytes(1000), b"text and then\0a zero\n", bytes(range(1, 256)) * 10],
    ids=["elf", "zeros", "text-with-zero", "no-zero"],
)
def test_binary_is_refused(one: Handrail, workspace: Path, data: bytes) -> None:
    (workspace / "binary").write_bytes(data)
    result = one.read("binary")
    assert result.error.code == "BINARY_FILE"
    assert result.data is None


@pytest.mark.parametrize(
    ("data", "mime"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF\0", "image/jpeg"),
        (b"GIF89a\x01\0\x01\0", "image/gif"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
    ],
)
def test_a_picture_comes_back_as_an_attachment(one: Handrail, workspace: Path, data: bytes, mime: str) -> None:
    (workspace / "picture").write_bytes(data)
    result = one.read("picture")
    (attachment,) = result.attachments
    assert (attachment.type, attachment.mime, attachment.path) == ("image", mime, "picture")
    assert base64.b64decode(attachment.content) == data
    assert base64.b64encode(data).decode() not in result.content


def test_pictures_can_be_switched_off(rail: Rail, workspace: Path) -> None:
    (workspace / "picture.png").write_bytes(PNG)
    result = rail(settings=Settings.from_values({"read.images": False})).read("picture.png")
    assert result.error.code == "BINARY_FILE"
    assert result.attachments == ()


@pytest.mark.parametrize("text", ["GIF8 is how a picture begins\n", "RIFF and WEBP\n", "%PDF is a format\n"])
def test_a_text_that_only_begins_like_a_picture_is_a_text(one: Handrail, workspace: Path, text: str) -> None:
    (workspace / "a.txt").write_text(text)
    assert one.read("a.txt").content == text


@pytest.mark.parametrize("size", [5 * 1024 * 1024 + 1, 9 * 1024 * 1024])
@pytest.mark.parametrize("start", [PNG, b"%PDF-1.4\n\xe2\xe3\xcf\xd3\n"], ids=["picture", "pdf"])
def test_a_picture_or_document_that_is_too_large_says_so(
    one: Handrail, workspace: Path, size: int, start: bytes
) -> None:
    (workspace / "large").write_bytes(start.ljust(size, b"\x01"))
    result = one.read("large")
    if start is PNG or size > 8 * 1024 * 1024:
        assert result.error.code == "LIMIT_EXCEEDED"


def pdf(*pages: str) -> bytes:
    """A document of some pages of text, made by hand."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(pages):
        content = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * number} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>"
        )
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
    document, places = "%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(document))
        document += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    end = f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(document)}\n%%EOF\n"
    return f"{document}xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{end}".encode()


def test_the_text_of_a_pdf_comes_page_by_page(one: Handrail, workspace: Path) -> None:
    pytest.importorskip("pypdf", reason="the extra `pdf` is not installed")
    (workspace / "a.pdf").write_bytes(pdf("Hello handrail", "Second page"))
    result = one.read("a.pdf")
    assert result.content == "--- page 1 of 2 ---\nHello handrail\n--- page 2 of 2 ---\nSecond page\n"
    assert result.meta.total == 4
    assert one.read("a.pdf", offset=-1).content == "Second page\n"


def test_without_the_extra_a_pdf_says_what_to_install(
    one: Handrail, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pypdf", None)
    (workspace / "a.pdf").write_bytes(pdf("Hello"))
    error = one.read("a.pdf").error
    assert error.code == "UNAVAILABLE"
    assert "pip install 'handrail[pdf]'" in error.message


@pytest.mark.parametrize(
    "damage", [lambda data: data[:60], lambda data: data.replace(b"/Pages", b"/Pag3s"), lambda _: b"%PDF-"]
)
def test_a_broken_pdf_is_refused_quietly(
    one: Handrail, workspace: Path, damage: Callable[[bytes], bytes], capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pypdf", reason="the extra `pdf` is not installed")
    (workspace / "a.pdf").write_bytes(damage(pdf("Canary")))
    assert one.read("a.pdf").error.code == "BINARY_FILE"
    assert capfd.readouterr() == ("", "")


def test_any_damage_to_a_pdf_is_a_result_and_not_a_defect(
    rail: Rail, workspace: Path, count: Callable[[int], int]
) -> None:
    import random

    pytest.importorskip("pypdf", reason="the extra `pdf` is not installed")
    chance, whole = random.Random(7), pdf("Hello handrail", "Second page")
    one = rail()
    for _ in range(count(300)):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 12)):
            data[chance.randrange(5, len(data))] = chance.choice(b"0123456789 <>[]/()RXn\x00\xff")
        (workspace / "a.pdf").write_bytes(data)
        result = one.read("a.pdf")
        assert result.ok or result.error.code == "BINARY_FILE", result.error
