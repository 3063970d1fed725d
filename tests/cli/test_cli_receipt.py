"""audit receipt and audit check-receipt: the story of a session, signed; whatever touches it is found."""

import json
import os
import random
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail import Handrail
from handrail.cli.receipt_page import render_page
from handrail.process import signature
from handrail.protocol.events import Network, User
from handrail.protocol.receipt import Receipt, ReceiptCall, ReceiptPrompt
from handrail.receipts import build_receipt, check_receipt, sign_receipt
from handrail.settings import Settings
from handrail.state import StoredState, open_journal
from handrail.store.audit import AuditChain

SECRET = "hunter2-secret"
WRITE = json.dumps({"path": "a.txt", "content": SECRET})
TOUCH = '{"command": "touch made"}'
PROMPT = "Make it green.\n```\n# Audit\n<img src=x> @everyone"


@pytest.fixture
def run(here):
    return here


@pytest.fixture
def worked(run, state: Path) -> Path:
    """A session with a prompt, a write, a refused read, an approved and a rejected command. Its folder."""
    run("call", "write", WRITE, "--mode", "auto")
    folder = next(state.glob("workspaces/*/cli"))
    with open_journal(str(folder), "crash") as journal:
        journal.append((User, {"message_id": "m1", "text": PROMPT}))
    run("call", "read", '{"path": ".env"}')
    run("call", "exec", TOUCH)
    run("approvals", "allow", run("approvals", "--json").json["waiting"][0]["id"])
    run("call", "exec", '{"command": "rm a.txt"}')
    run("approvals", "deny", run("approvals", "--json").json["waiting"][0]["id"], "--reason", "keep it")
    return folder


@pytest.fixture
def signed(run, worked: Path, tmp_path: Path) -> Path:
    out = tmp_path / "receipt.json"
    assert run("audit", "receipt", "cli", "--out", str(out)).code == 0
    return out


def calls(receipt: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {call.get("command") or call["name"]: call for call in receipt["calls"]}


# What it tells


@pytest.mark.usefixtures("worked")
def test_a_receipt_tells_who_let_each_call_run(run) -> None:
    found = calls(run("audit", "receipt", "cli", "--json").json)
    assert {name: (one["by"], one["rule"], one.get("ok", False)) for name, one in found.items()} == {
        "write": ("policy", "fs.write", True),
        "read": ("policy", "fs.secret", False),
        "touch made": ("person", "fs.write", True),
        "rm a.txt": ("person", "fs.delete", False),
    }
    assert found["touch made"]["answer"]["kind"] == "once"
    assert (found["rm a.txt"]["answer"]["kind"], found["rm a.txt"]["answer"]["reason"]) == ("deny", "keep it")


def test_a_grant_and_a_preview_are_named_as_the_ones_who_approved(run, state: Path) -> None:
    run("call", "exec", '{"command": "python3 -c pass"}')
    run("call", "exec", '{"command": "mkdir one"}')
    request = run("approvals", "--json").json["waiting"][0]
    run("approvals", "allow", request["id"], "--scope", "session")
    run("call", "exec", '{"command": "mkdir two"}')
    found = calls(run("audit", "receipt", "cli", "--json").json)
    assert {name: one["by"] for name, one in found.items()} == {
        "python3 -c pass": "preview",
        "mkdir one": "person",
        "mkdir two": "grant",
    }


@pytest.mark.usefixtures("worked")
def test_a_receipt_has_the_hashes_of_files_and_the_numbers_for_undo(run, workspace: Path) -> None:
    changes = [call["change"] for call in run("audit", "receipt", "cli", "--json").json["calls"] if "change" in call]
    assert [(one["number"], one["changes"][0]["path"], one["changes"][0]["action"]) for one in changes] == [
        (1, "a.txt", "created"),
        (2, "made", "created"),
    ]
    sealed = subprocess.run(["sha256sum", str(workspace / "a.txt")], capture_output=True, check=True, text=True)
    assert changes[0]["changes"][0]["after"] == sealed.stdout.split()[0]


def test_a_change_that_another_session_undid_is_named_as_undone(run) -> None:
    run("call", "write", WRITE, "--mode", "auto", "--session", "one")
    run("undo", "1")
    assert run("audit", "receipt", "one", "--json").json["calls"][0]["undoneBy"] == 2
    assert "Undo 1, undone by 2, `write` `a.txt`" in run("audit", "receipt", "one").out


def test_hosts_are_counted_by_what_the_proxy_let_through(run, worked: Path) -> None:
    with open_journal(str(worked), "crash") as journal:
        for allowed in (True, True, False):
            journal.append((Network, {"host": "example.org", "port": 443, "allowed": allowed, "reason": "listed"}))
    assert run("audit", "receipt", "cli", "--json").json["hosts"] == [
        {"host": "example.org:443", "reached": 2, "blocked": 1}
    ]
    assert "- `example.org:443`: reached 2 times, blocked 1 time\n" in run("audit", "receipt", "cli").out


@pytest.mark.usefixtures("worked")
def test_contents_and_unnamed_arguments_are_in_no_receipt_and_the_page_says_so(run) -> None:
    page, data = run("audit", "receipt", "cli").out, run("audit", "receipt", "cli", "--json")
    assert SECRET not in page
    assert SECRET not in data.out
    assert calls(data.json)["write"]["args"] == {"path": "a.txt", "content": f"<{len(SECRET)} characters>"}
    assert "It has no contents of files, no output" in page


@pytest.mark.usefixtures("worked")
def test_the_page_tells_the_story_and_ends_with_the_head_of_the_chain(run, state: Path) -> None:
    page = run("audit", "receipt", "cli").out
    assert "`write` `a.txt`: approved by policy (rule `fs.write`, mode auto); ok" in page
    assert "`exec` `touch made`: approved by a person (`fs.write`); ok" in page
    assert "`exec` `rm a.txt`: rejected by a person, because `keep it` (`fs.delete`); PERMISSION_DENIED" in page
    assert "Approved: 1 by policy, 1 by a person.\n\nRejected: 1 by policy, 1 by a person.\n" in page
    last = json.loads((state / "audit.jsonl").read_bytes().splitlines()[-1])
    assert page.endswith(f"\nHead of the chain: record 4 `{last['hash']}`\n")


def test_words_of_others_cannot_pass_for_lines_of_the_page(run, worked: Path) -> None:
    page = run("audit", "receipt", "cli").out
    assert f"\n````text\n{PROMPT}\n````\n" in page


@given(st.text(alphabet=st.sampled_from("`# \n\\a<\u202e\x1b|")), st.text(alphabet=st.sampled_from("`#\n a")))
def test_any_prompt_and_command_stay_inside_their_fences(prompt: str, command: str) -> None:
    now = datetime.now(UTC)
    call = ReceiptCall(id="c", time=now, name="exec", command=command, decision="allow", rule="r", by="policy")
    page = render_page(
        Receipt(
            version="0", made=now, workspace="w", session_id="s", state="idle", events=1, hosts=(), audit=None,
            prompts=(ReceiptPrompt(time=now, text=prompt),), calls=(call,),
        )
    )  # fmt: skip
    outside, fence = list[str](), ""
    for line in page.split("\n"):
        if fence:
            fence = "" if line == fence else fence
        elif line.startswith("```"):
            fence = line.removesuffix("text")
        else:
            outside.append(line)
    titles = [line for line in outside if line.startswith("#")]
    assert [line.split()[1] for line in titles] == [
        "Receipt", "Asked", "Done:", "Changed", "Not", "Hosts", "Programs", "Audit",
    ]  # fmt: skip
    assert not set("\x1b\u202e") & set(page)


# What a check finds


def test_an_untouched_receipt_is_intact_and_so_is_its_chain(run, signed: Path) -> None:
    done = run("audit", "check-receipt", str(signed))
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("receipt of session cli intact: 4 calls, signed by SHA256:")
    found = run("audit", "check-receipt", str(signed), "--json").json
    assert (found["schema"], found["intact"], found["chainChecked"]) == ("handrail.receipt-check/1", True, True)


@pytest.mark.usefixtures("worked")
def test_json_on_stdout_is_the_signed_receipt(run, tmp_path: Path) -> None:
    (tmp_path / "receipt.json").write_bytes(run("audit", "receipt", "cli", "--json").raw)
    assert run("audit", "check-receipt", str(tmp_path / "receipt.json")).code == 0


def test_the_page_of_an_intact_receipt_is_printed_from_its_file(run, signed: Path) -> None:
    page = run("audit", "check-receipt", str(signed), "--page").out
    assert page.startswith("# Receipt of session `cli`\n")
    assert "`exec` `touch made`: approved by a person" in page


def test_one_changed_byte_anywhere_is_detected(signed: Path, state: Path, count: Callable[[int], int]) -> None:
    stored, data, chance = StoredState(str(state)), signed.read_bytes(), random.Random(signed.stat().st_size)
    end = data.rindex(b',"signature"')
    body = chance.sample(range(end), min(end, count(1_000)))
    seal = chance.sample(range(end, len(data)), min(len(data) - end, count(1_000)))
    for place in (0, end - 1, end, len(data) - 1, *body, *seal):
        changed = data[:place] + bytes([data[place] ^ chance.choice((1, 2, 32, 128))]) + data[place + 1 :]
        assert check_receipt(stored, changed).problems, place
    assert not check_receipt(stored, data).problems


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda data: data.replace(b'"ok":true', b'"ok":false', 1), id="a fact"),
        pytest.param(
            lambda data: data[: data.index(b'{"id"')] + data[data.index(b',{"id"') + 1 :], id="a call left out"
        ),
        pytest.param(lambda data: data[:-1], id="the last newline"),
        pytest.param(lambda data: data + b"\n", id="one more line"),
        pytest.param(lambda data: b" " + data, id="a blank"),
        pytest.param(lambda data: data[: data.rindex(b',"signature"')] + b"}\n", id="no signature"),
        pytest.param(lambda data: b"", id="empty"),
        pytest.param(lambda data: b"[]", id="something else"),
    ],
)
def test_a_changed_receipt_is_refused(run, signed: Path, change: Callable[[bytes], bytes]) -> None:
    signed.write_bytes(change(signed.read_bytes()))
    done = run("audit", "check-receipt", str(signed), "--page")
    assert (done.code, done.err) == (1, "")
    assert "changed" in done.out


def test_a_receipt_of_another_key_counts_only_if_a_person_names_the_key(run, signed: Path, tmp_path: Path) -> None:
    other = str(tmp_path / "elsewhere")
    refused = run("audit", "check-receipt", str(signed), HANDRAIL_STATE_DIR=other)
    assert (refused.code, refused.out.partition(": ")[0]) == (
        1, "The receipt was signed by an unknown key",
    )  # fmt: skip
    assert "--signer FILE" in refused.err
    key = signature.read_public_key(str(tmp_path / "state" / "receipt.key"))
    assert key is not None
    keys = tmp_path / "keys"
    keys.write_text(f"# keys of a colleague\n{key.kind} {key.code} me@example.org\n")
    trusted = run("audit", "check-receipt", str(signed), "--signer", str(keys), HANDRAIL_STATE_DIR=other)
    assert (trusted.code, trusted.err) == (
        0, "The audit chain was not checked: it is not in this state folder.\n",
    )  # fmt: skip
    keys.write_text("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILTbpYuk1lsdZ9L11P5zn/ZpU2/w5X/1dNUBqiefTT5g\n")
    assert run("audit", "check-receipt", str(signed), "--signer", str(keys), HANDRAIL_STATE_DIR=other).code == 1


def test_whoever_changes_a_receipt_and_signs_it_anew_is_found(run, signed: Path, tmp_path: Path, state: Path) -> None:
    stored = StoredState(str(state))
    receipt = check_receipt(stored, signed.read_bytes()).receipt
    assert receipt is not None
    signature.make_key(str(tmp_path / "attacker" / "key"))
    signed.write_bytes(sign_receipt(stored, receipt, str(tmp_path / "attacker" / "key")))
    assert run("audit", "check-receipt", str(signed)).code == 1


def test_records_that_were_changed_since_are_named(run, signed: Path, state: Path) -> None:
    lines = (state / "audit.jsonl").read_bytes().splitlines(keepends=True)
    (state / "audit.jsonl").write_bytes(b"".join([*lines[:2], lines[2].replace(b'"ok":true', b'"ok":false'), lines[3]]))
    done = run("audit", "check-receipt", str(signed))
    assert (done.code, done.out) == (
        1, "The audit of this state folder no longer has these records as they were: 3, 4.\n",
    )  # fmt: skip


def test_an_audit_that_is_gone_is_missed(run, signed: Path, state: Path) -> None:
    (state / "audit.jsonl").unlink()
    assert run("audit", "check-receipt", str(signed)).code == 1


def test_later_records_and_an_archive_leave_a_receipt_intact(run, signed: Path, state: Path) -> None:
    run("call", "ls", '{"path": "."}')
    with closing(AuditChain(str(state / "audit.jsonl"))) as chain:
        chain.archive(datetime.now(UTC))
    assert (state / "audit.jsonl").stat().st_size == 0
    assert run("audit", "check-receipt", str(signed)).code == 0
    assert run("audit", "receipt", "cli", "--json").json["audit"]["head"]["seq"] == 5


def test_a_receipt_stays_intact_when_its_session_is_removed(run, signed: Path) -> None:
    assert run("sessions", "remove", "cli").code == 0
    assert run("audit", "check-receipt", str(signed)).code == 0


def test_openssh_checks_a_receipt_without_handrail(signed: Path, tmp_path: Path) -> None:
    recipe = r"""
    python3 -c 'import json, sys; print(json.load(sys.stdin)["signature"], end="")' < receipt.json > receipt.sig
    sed -E 's/,"signature":"[^"]+"\}$/}/' receipt.json |
      ssh-keygen -Y check-novalidate -n handrail-receipt -s receipt.sig
    """
    done = subprocess.run(["sh", "-c", recipe], cwd=signed.parent, capture_output=True, check=False, text=True)
    assert (done.returncode, done.stdout.partition(" signature")[0]) == (0, 'Good "handrail-receipt"')


# What makes no receipt


def test_a_broken_audit_gives_no_receipt(run, worked: Path, state: Path, tmp_path: Path) -> None:
    audit = state / "audit.jsonl"
    audit.write_bytes(audit.read_bytes().replace(b'"fs.secret"', b'"fs.public"'))
    done = run("audit", "receipt", "cli", "--out", str(tmp_path / "r.json"))
    assert (done.code, done.out) == (1, "")
    assert "Record 2 was changed or removed" in done.err
    assert "No receipt was made. See: handrail audit verify" in done.err
    assert not (tmp_path / "r.json").exists()


def test_records_cut_from_the_end_give_no_receipt(run, worked: Path, state: Path) -> None:
    lines = (state / "audit.jsonl").read_bytes().splitlines(keepends=True)
    (state / "audit.jsonl").write_bytes(b"".join(lines[:-1]))
    done = run("audit", "receipt", "cli")
    assert (done.code, "the end was cut" in done.err) == (1, True)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE event SET data = X'00' WHERE seq = 2", "event 2 of session cli cannot be read"),
        ("UPDATE event SET decided = X'00' WHERE seq = 1", "the decision about call "),
    ],
)
def test_a_row_that_cannot_be_read_gives_no_receipt(run, worked: Path, statement: str, words: str) -> None:
    with closing(sqlite3.connect(worked / "journal.db")) as database:
        database.execute(statement)
        database.commit()
    done = run("audit", "receipt", "cli")
    assert (done.code, done.out) == (4, "")
    assert words in done.err
    assert "No receipt was made" in done.err


def test_a_damaged_journal_gives_no_receipt_and_names_the_next_step(run, worked: Path) -> None:
    for ending in ("-wal", "-shm"):
        worked.joinpath(f"journal.db{ending}").unlink(missing_ok=True)
    (worked / "journal.db").write_bytes(b"garbage" * 1000)
    done = run("audit", "receipt", "cli")
    assert (done.code, done.out) == (4, "")
    assert "next: handrail doctor" in done.err


def test_a_pipe_is_no_receipt(run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    done = run("audit", "check-receipt", str(tmp_path / "pipe"))
    assert (done.code, done.out) == (2, "")
    assert "cannot be read: it is not a regular file" in done.err


@pytest.mark.usefixtures("worked")
def test_an_unknown_session_gives_no_receipt(run) -> None:
    done = run("audit", "receipt", "nobody")
    assert (done.code, done.out) == (1, "")
    assert "has no session 'nobody'" in done.err


def test_a_machine_without_ssh_keygen_prints_the_page_and_signs_nothing(
    run, worked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signature, "FOLDERS", (str(tmp_path),))
    assert run("audit", "receipt", "cli").code == 0
    done = run("audit", "receipt", "cli", "--out", str(tmp_path / "r.json"))
    assert (done.code, "ssh-keygen, which is not installed. Install OpenSSH." in done.err) == (4, True)
    assert not (tmp_path / "r.json").exists()


# Sessions that go on


def test_a_receipt_of_an_open_session_says_where_it_ends(run, workspace: Path, state: Path) -> None:
    with Handrail(workspace, session="open", mode="auto", settings=Settings(), state_dir=state) as rail:
        rail.call("write", {"path": "a.txt", "content": "x"})
        done = run("audit", "receipt", "open")
        assert done.code == 0
        assert "The session was still open. Calls after event 4 are not in this receipt." in done.out
        assert "The session is running: calls after event 4 are not in this receipt." in done.err
        found = run("audit", "receipt", "open", "--json").json
        assert (found["state"], found["events"], found["calls"][0]["record"]["seq"]) == ("running", 4, 1)


def test_a_call_that_waits_is_listed_as_undecided(run) -> None:
    run("call", "write", WRITE)
    done = run("audit", "receipt", "cli")
    assert done.code == 0
    assert "`write`: not decided\n" in done.out
    assert "The session is waiting" in done.err


def test_sessions_of_one_name_in_two_workspaces_keep_their_records_apart(run, tmp_path: Path, state: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        with Handrail(tmp_path / name, session="cli", mode="auto", settings=Settings(), state_dir=state) as rail:
            rail.call("write", {"path": f"{name}.txt", "content": "x"})
    for number, name in enumerate(("one", "two"), start=1):
        found = run("audit", "receipt", "cli", "--json", "--workspace", str(tmp_path / name)).json
        assert [(call["change"]["changes"][0]["path"], call["record"]["seq"]) for call in found["calls"]] == [
            (f"{name}.txt", number)
        ]


# Keys


def test_the_key_is_made_once_for_its_owner_only(run, signed: Path, state: Path) -> None:
    key = state / "receipt.key"
    before = key.read_bytes()
    assert key.stat().st_mode & 0o777 == 0o600
    run("audit", "receipt", "cli", "--json")
    assert key.read_bytes() == before
    assert not [name for name in os.listdir(state) if name.startswith("key-")]


def test_a_person_may_sign_with_their_own_key(run, worked: Path, tmp_path: Path) -> None:
    own, out = tmp_path / "id", tmp_path / "r.json"
    subprocess.run(["ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", str(own)], check=True)
    assert run("audit", "receipt", "cli", "--out", str(out), "--key", str(own)).code == 0
    assert run("audit", "check-receipt", str(out)).code == 1
    known = run("audit", "check-receipt", str(out), "--signer", f"{own}.pub")
    assert (known.code, known.err) == (0, "")  # the chain is here, so it was checked


def test_a_key_that_is_none_signs_nothing(run, worked: Path, tmp_path: Path) -> None:
    (tmp_path / "id").write_text("no key")
    done = run("audit", "receipt", "cli", "--json", "--key", str(tmp_path / "id"))
    assert (done.code, done.out) == (4, "")
    assert f"the key {tmp_path}/id cannot sign" in done.err


def test_a_receipt_of_a_later_version_is_not_taken_for_a_changed_one(worked: Path, state: Path) -> None:
    stored = StoredState(str(state))
    data = sign_receipt(stored, build_receipt(stored, str(worked)))
    later = data[: data.rindex(b',"signature"')].replace(b'"handrail.receipt/1"', b'"handrail.receipt/2"') + b"}"
    seal = signature.sign(later + b"\n", str(state / "receipt.key"), "handrail-receipt")
    checked = check_receipt(stored, later[:-1] + b',"signature":' + json.dumps(seal).encode() + b"}\n")
    assert "The signed text is not a receipt of this version of handrail (" in checked.problems[0]
