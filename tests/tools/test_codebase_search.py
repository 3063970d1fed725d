"""codebase_search: code by its subject, from an index that follows the files."""

import json
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from handrail import Handrail
from handrail.settings import Settings
from handrail.tools import codebase_search

Rail = Callable[..., Handrail]
SHOP = '''"""The shop."""

import json


class PriceList:
    """Prices by article."""

    def find_price(self, article):
        return self.prices[article]

    # Prices change at night.
    @property
    def currency(self):
        return "EUR"


def parseOrderLine(line):
    name, _, amount = line.partition(":")
    return name, int(amount)
'''


def settings(**values: Any) -> Settings:
    return Settings.from_values({"tools.enable": ("codebase_search",), **values})


@pytest.fixture
def shop(rail: Rail, workspace: Path) -> Handrail:
    (workspace / "src").mkdir()
    (workspace / "src" / "shop.py").write_text(SHOP)
    (workspace / "notes.md").write_text("# Delivery\n\nParcels are sent on Mondays.\n")
    return rail(settings=settings(**{"search.ignore": ("secret_*",)}), mode="auto")


def search(rail: Handrail, query: str, **arguments: Any) -> Any:
    result = rail.call("codebase_search", {"query": query, **arguments})
    assert result.ok, result.error
    return result


def names(rail: Handrail, query: str, **arguments: Any) -> list[str | None]:
    return [hit.name for hit in search(rail, query, **arguments).data.hits]


def test_it_is_off_until_the_settings_enable_it(one: Handrail) -> None:
    assert "codebase_search" not in [spec.name for spec in one.specs()]


def test_a_definition_is_found_by_the_parts_of_its_name_with_lines_and_reason(shop: Handrail) -> None:
    hit = search(shop, "parse the order lines").data.hits[0]
    assert (hit.path, hit.name, hit.kind) == ("src/shop.py", "parseOrderLine", "function")
    assert (hit.line, hit.end_line) == (18, 20)
    assert hit.reason == "name: parse order lines; text: parse order lines"
    assert hit.preview.startswith("def parseOrderLine(line):\n")


def test_a_method_comes_with_its_class_and_the_lines_above_that_belong_to_it(shop: Handrail) -> None:
    hit = search(shop, "currency").data.hits[0]
    assert (hit.name, hit.line, hit.end_line) == ("PriceList.currency", 12, 15)


def test_a_file_without_a_grammar_is_found_by_its_text(shop: Handrail) -> None:
    hit = search(shop, "when are parcels sent").data.hits[0]
    assert (hit.path, hit.line) == ("notes.md", 1)


def test_paths_narrow_the_search_to_folders_and_files(shop: Handrail, workspace: Path) -> None:
    (workspace / "old").mkdir()
    (workspace / "old" / "shop.py").write_text("def find_price(article):\n    return 1\n")
    assert {hit.path for hit in search(shop, "find price").data.hits} == {"src/shop.py", "old/shop.py"}
    assert {hit.path for hit in search(shop, "find price", paths=["old"]).data.hits} == {"old/shop.py"}
    assert {hit.path for hit in search(shop, "find price", paths=["src/shop.py"]).data.hits} == {"src/shop.py"}
    assert shop.call("codebase_search", {"query": "x", "paths": ["none"]}).error.code == "NOT_FOUND"


def test_it_says_the_method_and_how_much_is_indexed(shop: Handrail) -> None:
    result = search(shop, "price")
    assert (result.data.method, result.data.indexed, result.data.files) == ("lexical", 2, 2)
    assert result.content.endswith("results by lexical search; 2 files are indexed.\n")
    assert search(shop, "zebra").data.hits == ()


def test_changes_are_seen_by_the_next_search(shop: Handrail, workspace: Path) -> None:
    assert names(shop, "ship parcel") != ["ship_parcel"]
    assert shop.edit("src/shop.py", "def parseOrderLine(line)", "def ship_parcel(line)").ok
    assert names(shop, "ship parcel", maxResults=1) == ["ship_parcel"]
    text = (workspace / "src" / "shop.py").read_text()
    (workspace / "src" / "shop.py").write_text(text.replace("ship_parcel", "find_zebra"))  # of the same length
    assert names(shop, "zebra", maxResults=1) == ["find_zebra"]
    (workspace / "src" / "shop.py").unlink()
    assert names(shop, "zebra") == []


def test_a_file_that_was_only_touched_is_not_stored_again(shop: Handrail, workspace: Path, tmp_path: Path) -> None:
    search(shop, "price")
    before = list_chunk_ids(tmp_path)
    os.utime(workspace / "src" / "shop.py")
    search(shop, "price")
    assert list_chunk_ids(tmp_path) == before


def list_chunk_ids(tmp_path: Path) -> list[Any]:
    with closing(sqlite3.connect(find_index(tmp_path))) as connection:
        return connection.execute("SELECT id FROM chunk ORDER BY id").fetchall()


def find_index(tmp_path: Path) -> Path:
    [path] = tmp_path.rglob("index.db")
    return path


def test_credentials_and_ignored_files_are_neither_indexed_nor_named(
    shop: Handrail, workspace: Path, tmp_path: Path
) -> None:
    (workspace / ".env").write_text("PASSWORD = 'swordfish'\n")
    (workspace / "secret_notes.py").write_text("swordfish = 1\n")
    os.link(workspace / ".env", workspace / "copy.txt")
    assert search(shop, "swordfish secret notes env").data.hits == ()
    data = b"".join(path.read_bytes() for path in find_index(tmp_path).parent.iterdir())
    assert b"swordfish" not in data
    assert b"secret_notes" not in data
    assert b".env" not in data


def test_the_index_is_private_and_outside_of_the_workspace(shop: Handrail, workspace: Path, tmp_path: Path) -> None:
    search(shop, "price")
    path = find_index(tmp_path)
    assert not path.is_relative_to(workspace)
    assert [file.stat().st_mode & 0o777 for file in path.parent.iterdir()] == [0o600]
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_cold_workspace_is_searched_as_far_as_the_time_allows(
    shop: Handrail, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codebase_search, "INDEX_SECONDS", 0.0)
    result = search(shop, "price")
    assert (result.data.indexed, result.data.hits) == (0, ())
    assert "Search again to index more." in result.warnings[0]
    monkeypatch.undo()
    assert search(shop, "price").data.indexed == 2


def test_a_damaged_index_is_made_again(shop: Handrail, tmp_path: Path) -> None:
    search(shop, "price")
    find_index(tmp_path).write_bytes(b"no database" * 1000)
    assert names(shop, "find price", maxResults=1) == ["PriceList.find_price"]


def test_binary_and_huge_files_are_listed_without_text(shop: Handrail, workspace: Path) -> None:
    (workspace / "picture.bin").write_bytes(b"\0zebra" * 10)
    (workspace / "data.txt").write_text("zebra " * 300_000)
    result = search(shop, "zebra")
    assert (result.data.hits, result.data.indexed) == ((), 4)


def test_a_query_of_only_common_words_or_signs_has_an_answer(shop: Handrail) -> None:
    assert search(shop, "the") is not None
    assert search(shop, '") OR * NEAR(') is not None


OTHER_TOOLS = """
import sys
from handrail import Handrail
from handrail.settings import Settings
with Handrail(sys.argv[1], state_dir=sys.argv[2], settings=Settings()) as rail:
    assert rail.find("*").ok and rail.grep("price").ok
print(*(name for name in sys.modules if name.startswith(("handrail.code.", "handrail.store.code", "tree_sitter"))))
"""


def test_other_tools_import_nothing_of_it(workspace: Path, tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", OTHER_TOOLS, str(workspace), str(tmp_path / "other")]
    assert subprocess.run(arguments, capture_output=True, check=True, text=True).stdout == "\n"


# A model for the meaning


class _Vectors(BaseHTTPRequestHandler):
    """Texts about money are alike, others too. It knows that a fee is money."""

    asked: ClassVar[list[list[str]]] = []
    status = 200

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(body["input"])
        money = [any(word in text.lower() for word in ("fee", "currency")) for text in body["input"]]
        data = [{"index": n, "embedding": [1.0, 0.0] if one else [0.0, 1.0]} for n, one in enumerate(money)]
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(json.dumps({"data": data}).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[str]:
    _Vectors.asked, _Vectors.status = [], 200
    server = HTTPServer(("127.0.0.1", 0), _Vectors)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_configured_model_ranks_by_meaning_and_is_asked_once_about_a_chunk(
    shop: Handrail, rail: Rail, endpoint: str
) -> None:
    query = "price fee"
    assert names(shop, query)[0] == "PriceList.find_price"
    meaning = rail(settings=settings(**{"search.embeddings": {"address": endpoint, "model": "m"}}))
    result = search(meaning, query)
    assert result.data.method == "semantic"
    assert result.data.hits[0].name == "PriceList.currency"
    assert "meaning" in result.data.hits[0].reason
    search(meaning, query)
    assert len(_Vectors.asked[0]) > 1
    assert _Vectors.asked[1:] == [[query]]


def test_a_model_that_fails_leaves_the_ranking_by_words_and_a_warning(
    rail: Rail, shop: Handrail, endpoint: str
) -> None:
    _Vectors.status = 302
    meaning = rail(settings=settings(**{"search.embeddings": {"address": endpoint, "model": "m"}}))
    result = search(meaning, "price")
    assert (result.data.method, bool(result.data.hits)) == ("lexical", True)
    assert "status 302" in result.warnings[0]
