"""The kernel cache on disk: keys, damage, two processes."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

import tilelang_npu
from tilelang_npu.runtime.cache import entries

pytestmark = pytest.mark.kept


def _fresh() -> None:
    """Clears the caches in memory, as in a new process."""
    entries._State.memory.clear()


def test_an_entry_survives_the_process() -> None:
    entries.store("k" * 8, {"text": "module"})
    _fresh()
    assert entries.load("k" * 8) == {"text": "module", "key": "k" * 8}


def test_the_key_depends_on_everything() -> None:
    keys = {entries.digest(text, {"options": options}) for text in ("a", "b") for options in ("x", "y")}
    assert len(keys) == 4
    assert entries.digest("a", {"p": 1, "q": 2}) == entries.digest("a", {"q": 2, "p": 1})


@pytest.mark.parametrize("damage", [b"", b"not gzip", b"\x1f\x8b\x08\x00", None])
def test_a_damaged_entry_is_absent_and_written_again(damage: bytes | None) -> None:
    entries.store("key", {"text": "module"})
    (file,) = entries.get_cache_dir().iterdir()
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2] if damage is None else damage)
    _fresh()
    assert entries.load("key") is None
    entries.store("key", {"text": "again"})
    _fresh()
    assert entries.load("key") == {"text": "again", "key": "key"}


def test_an_entry_under_the_wrong_name_is_absent() -> None:
    entries.store("one", {"text": "module"})
    (file,) = entries.get_cache_dir().iterdir()
    file.rename(file.with_name(file.name.replace("one", "two")))
    _fresh()
    assert entries.load("two") is None


def test_switched_off_it_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_DISABLE_CACHE", "1")
    entries.store("key", {"text": "module"})
    assert not entries.is_cache_enabled()
    assert not entries.get_cache_dir().exists() or not any(entries.get_cache_dir().iterdir())
    monkeypatch.delenv("TILELANG_DISABLE_CACHE")
    tilelang_npu.disable_cache()
    assert not tilelang_npu.is_cache_enabled()
    tilelang_npu.enable_cache()
    assert tilelang_npu.is_cache_enabled()


def test_clearing_removes_entries_and_nothing_else() -> None:
    entries.store("key", {"text": "module"})
    foreign = entries.get_cache_dir() / "notes.txt"
    foreign.write_text("mine")
    assert entries.usage()[0] == 1
    tilelang_npu.cache.clear_cache()
    assert entries.usage() == (0, 0)
    assert entries.load("key") is None
    assert foreign.exists()


def test_a_directory_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    entries.set_cache_dir(blocker / "below")
    entries.store("key", {"text": "module"})
    assert entries.load("key") == {"text": "module", "key": "key"}


def test_two_processes_write_one_entry(python: str) -> None:
    program = (
        "from tilelang_npu.runtime.cache import entries\n"
        "for turn in range(100):\n"
        "    entries.store('shared', {'text': 'x' * 20000})\n"
        "    entries._State.memory.clear()\n"
        "    assert entries.load('shared')['text'] == 'x' * 20000\n"
    )
    both = [subprocess.Popen([python, "-c", program]) for _ in range(2)]
    assert [process.wait(timeout=60) for process in both] == [0, 0]
    assert [file.suffix for file in entries.get_cache_dir().iterdir()] == [".gz"]


def test_a_killed_process_leaves_a_usable_cache(python: str) -> None:
    """Complete entries are kept; a partly written file is not an entry, and clearing removes it."""
    program = (
        "import itertools\nfrom tilelang_npu.runtime.cache import entries\n"
        "for turn in itertools.count():\n    entries.store(f'key{turn % 7}', {'text': 'y' * 300000})\n"
    )
    for _ in range(3):
        process = subprocess.Popen([python, "-c", program])
        deadline = time.monotonic() + 60
        while not list(entries.get_cache_dir().glob("key*")) and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.2)
        process.kill()
        process.wait()
    found = [entries.load(f"key{turn}") for turn in range(7)]
    assert any(found)
    assert all(entry is None or entry["text"] == "y" * 300000 for entry in found)
    (entries.get_cache_dir() / ".key1.kernel.gz.abc.part").write_bytes(b"half")  # as a kill in the middle would leave it
    entries.clear_cache()
    assert list(entries.get_cache_dir().iterdir()) == []
