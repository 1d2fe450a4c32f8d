"""Nothing of a cache entry that somebody else has written, or changed, is decoded or executed."""

from __future__ import annotations

import gzip
import hashlib
import hmac
import json
import marshal
import os
import pickle
import stat
import subprocess
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.cli import main
from tilelang_npu.runtime.cache import authentication, entries
from tilelang_npu.runtime.jit.factory import Factory
from tilelang_npu.runtime.jit.jit_kernel import JITKernel
from tilelang_npu.runtime.settings import environment
from tilelang_npu.simulator.run import compiled_function

pytestmark = pytest.mark.kept

A = np.arange(64, dtype=np.float32)


def _added(factor: float) -> Any:
    @T.prim_func
    def add(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):  # type: ignore[no-untyped-def]
        with T.Kernel(1, is_npu=True) as (_, half):
            x = T.alloc_shared((64,), "float32")
            T.copy(A, x)
            T.vadd(x, factor, x)
            T.copy(x, B)

    return add


def _factory() -> Factory[..., JITKernel]:
    return tilelang.jit(_added, out_idx=[-1], target="npuir")


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache directory and a secret of the test's own."""
    monkeypatch.setenv(environment.CACHE_DIR.name, str(tmp_path / "kernels"))
    monkeypatch.setenv(environment.CACHE_KEY.name, str(tmp_path / "mine" / "cache.key"))
    monkeypatch.setattr(authentication._Secrets, "secrets", {})
    return tmp_path / "kernels"


def _run(factor: float) -> JITKernel:
    """Call the kernel as another process would: nothing is in memory."""
    entries._State.memory.clear()
    kernel = _factory()(factor)
    np.testing.assert_array_equal(kernel(A), A + np.float32(factor))
    return kernel


def _is_whole(kernel: JITKernel) -> bool:
    """Whether a kernel came whole from the disk."""
    return isinstance(kernel._lowering._traced, bytes)


def _entries(directory: Path) -> dict[str, Path]:
    return {kind: next(directory.glob(f"*{kind}")) for kind in (entries.WHOLE_KERNEL, entries.LOWERED_TEXT)}


_DUMPS = marshal.dumps

# -- poisoned entries -------------------------------------------------------------------------------------------------


class Payload:
    """Makes a directory when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.marker),)


def _code(marker: Path) -> bytes:
    """A code object that makes a directory, in the way in which generated code is stored."""
    return _DUMPS(compile(f"import os; os.mkdir({str(marker)!r})\ndef bind(*a): ...", "<add on AIV #1>", "exec"))


def _with_code(marker: Path, directory: Path) -> bytes:
    """Returns the content of the kernel's entry with other code objects."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled_function.marshal, "dumps", lambda _: _code(marker))
        _clear(directory)
        _run(2.0)
    entry = _entries(directory)[entries.WHOLE_KERNEL]
    content = authentication.unseal(entry.name, entry.read_bytes())
    _clear(directory)
    _run(2.0)
    return content


def _clear(directory: Path) -> None:
    for path in directory.iterdir():
        path.unlink()


def _flipped(whole: bytes, place: int) -> bytes:
    made = bytearray(whole)
    made[place] ^= 1
    return bytes(made)


OTHER = hashlib.sha256(b"the secret of somebody else, who can write here").digest()


def _signed(secret: bytes, name: str, content: bytes) -> bytes:
    return hmac.digest(secret, b"\0".join((authentication._PURPOSE, name.encode(), content)), "sha256") + content


class Entry(NamedTuple):
    """An entry to be replaced: its file name and bytes, and the file that a payload would create."""

    name: str
    whole: bytes
    marker: Path
    directory: Path

    def pickled(self) -> bytes:
        return zlib.compress(pickle.dumps(Payload(self.marker)))

    def with_code(self) -> bytes:
        return _with_code(self.marker, self.directory)


POISONS: dict[str, Callable[[Entry], bytes]] = {
    "a flipped bit of the code": lambda entry: _flipped(entry.whole, 5),
    "a flipped bit at the begin": lambda entry: _flipped(entry.whole, 32),
    "a flipped bit in the middle": lambda entry: _flipped(entry.whole, len(entry.whole) // 2),
    "a flipped bit at the end": lambda entry: _flipped(entry.whole, len(entry.whole) - 1),
    "empty": lambda entry: b"",
    "cut in the code": lambda entry: entry.whole[:31],
    "the code alone": lambda entry: entry.whole[:32],
    "cut in the middle": lambda entry: entry.whole[:len(entry.whole) // 2],
    "longer": lambda entry: entry.whole + b"\0",
    "a pickle with a digest": lambda entry: hashlib.sha256(entry.pickled()).digest() + entry.pickled(),
    "a pickle with no code": lambda entry: entry.pickled(),
    "a bare pickle": lambda entry: pickle.dumps(Payload(entry.marker)),
    "a pickle with the code of the entry": lambda entry: entry.whole[:32] + entry.pickled(),
    "a pickle under an empty secret": lambda entry: _signed(b"", entry.name, entry.pickled()),
    "a pickle of another user": lambda entry: _signed(OTHER, entry.name, entry.pickled()),
    "other code objects": lambda entry: entry.whole[:32] + entry.with_code(),
    "other code objects of another user": lambda entry: _signed(OTHER, entry.name, entry.with_code()),
    "the entry of another user": lambda entry: _signed(OTHER, entry.name, entry.whole[32:]),
}


@pytest.mark.parametrize("what", POISONS)
def test_a_poisoned_entry_runs_nothing_and_the_kernel_is_compiled_again(what: str, directory: Path, tmp_path: Path) -> None:
    _run(2.0)
    marker = tmp_path / "pwned"
    entries = _entries(directory)
    poisoned = {path: POISONS[what](Entry(path.name, path.read_bytes(), marker, directory)) for path in entries.values()}
    for path, content in poisoned.items():
        path.write_bytes(content)
    kernel = _run(2.0)
    assert not _is_whole(kernel)
    assert not kernel._lowering.from_cache
    assert not marker.exists()
    assert _is_whole(_run(2.0))  # it was written again
    assert not marker.exists()


@pytest.mark.parametrize("payload", [Entry.pickled, Entry.with_code])
def test_the_payloads_of_these_tests_run_where_the_user_has_signed_them(
        payload: Callable[[Entry], bytes], directory: Path, tmp_path: Path) -> None:
    _run(2.0)
    content = payload(Entry("", b"", tmp_path / "pwned", directory))
    entry = _entries(directory)[entries.WHOLE_KERNEL]
    entry.write_bytes(authentication.seal(entry.name, content))
    entries._State.memory.clear()
    with suppress(Exception):  # the payload does not return a kernel
        _factory()(2.0)(A)
    assert (tmp_path / "pwned").exists()


@pytest.mark.parametrize("kind", [entries.WHOLE_KERNEL, entries.LOWERED_TEXT])
def test_the_entry_of_another_kernel_does_not_pass_for_this_one(kind: str, directory: Path) -> None:
    _run(2.0)
    before = set(directory.iterdir())
    _run(3.0)
    mine = {path.name for path in before}
    twos = next(path for path in before if path.name.endswith(kind))
    threes = next(path for path in directory.iterdir() if path.name.endswith(kind) and path.name not in mine)
    twos.write_bytes(threes.read_bytes())
    for other in set(before) - {twos}:
        other.unlink()
    kernel = _run(2.0)
    assert not _is_whole(kernel)
    assert not kernel._lowering.from_cache


def test_the_text_of_another_kernel_under_this_key_is_not_read(directory: Path) -> None:
    _run(2.0)
    written = _entries(directory)
    written[entries.WHOLE_KERNEL].unlink()
    two = written[entries.LOWERED_TEXT]
    known = json.loads(gzip.decompress(authentication.unseal(two.name, two.read_bytes())))
    other = {**known, "text": known["text"].replace("2.000000e+00", "3.000000e+00")}
    assert other != known
    content, code = gzip.compress(json.dumps(other).encode()), two.read_bytes()[:32]
    for poisoned in (content, code + content, _signed(OTHER, two.name, content)):
        two.write_bytes(poisoned)
        assert not _run(2.0)._lowering.from_cache
        _entries(directory)[entries.WHOLE_KERNEL].unlink()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in directories")
@pytest.mark.parametrize("put", [
    lambda path, foreign: os.mkfifo(path), lambda path, foreign: path.mkdir(), lambda path, foreign: path.symlink_to(foreign),
    lambda path, foreign: path.symlink_to("/dev/zero")], ids=["pipe", "directory", "link", "device"])
def test_what_is_no_file_is_not_waited_for(put: Callable[[Path, Path], object], directory: Path, tmp_path: Path) -> None:
    _run(2.0)
    marker, foreign = tmp_path / "pwned", tmp_path / "foreign"
    foreign.write_bytes(pickle.dumps(Payload(marker)))
    for entry in _entries(directory).values():
        entry.unlink()
        put(entry, foreign)
    assert not _is_whole(_run(2.0))
    assert not marker.exists()


def test_the_script_of_the_report_runs_no_payload(tmp_path: Path, python: str) -> None:
    """Two processes, and between them somebody who writes entries of every form into the directory."""
    script = tmp_path / "script.py"
    script.write_text('''
import numpy as np, tilelang_npu as tilelang, tilelang_npu.language as T

def made():
    @T.prim_func
    def add(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (_, half):
            x = T.alloc_shared((64,), "float32")
            T.copy(A, x)
            T.vadd(x, 2.0, x)
            T.copy(x, B)
    return add

kernel = tilelang.jit(made, out_idx=[-1], target="npuir")()
print(kernel(np.ones(64, np.float32)).sum(), type(kernel._lowering._traced).__name__)
''')
    reported, marker = [], tmp_path / "pwned"
    for poisoned in (False, False, True, False):
        if poisoned:
            for entry in (tmp_path / "kernels").iterdir():
                content = zlib.compress(pickle.dumps(Payload(marker)))
                entry.write_bytes(hashlib.sha256(content).digest() + content)
        reported.append(subprocess.run([python, script], check=True, capture_output=True, text=True).stdout.split())
    assert reported == [["192.0", "Traced"], ["192.0", "bytes"], ["192.0", "Traced"], ["192.0", "bytes"]]
    assert not marker.exists()


# -- the secret -------------------------------------------------------------------------------------------------------


def _key_file() -> Path:
    path = environment.cache_key_file()
    assert path is not None
    return path


def _forget() -> None:
    authentication._Secrets.secrets.clear()


def test_the_secret_is_made_once_and_is_the_users_alone(directory: Path) -> None:
    secret = authentication.secret()
    assert secret is not None
    assert len(secret) == 32
    _forget()
    assert authentication.secret() == secret
    if os.name == "posix":
        assert stat.S_IMODE(_key_file().stat().st_mode) == 0o600
        assert stat.S_IMODE(_key_file().parent.stat().st_mode) == 0o700
    assert [path.name for path in _key_file().parent.iterdir()] == ["cache.key"]


def test_the_secret_is_not_in_the_cache_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(environment.CACHE_KEY.name)
    monkeypatch.delenv(environment.CACHE_DIR.name)
    for variable in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(variable, raising=False)
    path = environment.cache_key_file()
    assert path is not None
    assert environment.cache_directory() not in path.parents


def test_processes_that_start_together_have_one_secret(python: str) -> None:
    program = "from tilelang_npu.runtime.cache import authentication as a; print(a.secret().hex())"
    started = [subprocess.Popen([python, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert len({process.communicate()[0] for process in started}) == 1


def _spoil_file(mode: int) -> None:
    _key_file().chmod(mode)


def _spoil_directory(mode: int) -> None:
    _key_file().parent.chmod(mode)


def _link() -> None:
    other = _key_file().with_name("other")
    _key_file().rename(other)
    _key_file().symlink_to(other)


def _link_directory() -> None:
    other = _key_file().parent.with_name("other")
    _key_file().parent.rename(other)
    _key_file().parent.symlink_to(other)


UNSAFE: dict[str, Callable[[], object]] = {
    "others can read it": lambda: _spoil_file(0o644), "a group can read it": lambda: _spoil_file(0o640),
    "others can write it": lambda: _spoil_file(0o602), "its directory can be written": lambda: _spoil_directory(0o777),
    "a group can write its directory": lambda: _spoil_directory(0o770),
    "it is a link": _link, "its directory is a link": _link_directory,
    "it is short": lambda: _key_file().write_bytes(b"x" * 31), "it is empty": lambda: _key_file().write_bytes(b""),
    "it is a directory": lambda: (_key_file().unlink(), _key_file().mkdir()),
}


@pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX has them")
@pytest.mark.parametrize("what", UNSAFE)
def test_a_secret_that_others_may_know_is_not_used_and_nothing_is_on_disk(
        what: str, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _run(2.0)
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    UNSAFE[what]()
    _forget()
    assert authentication.secret() is None
    assert str(_key_file().parent) in authentication.reason_without_secret()
    kernel = _run(2.0)
    assert not _is_whole(kernel)
    assert not kernel._lowering.from_cache
    _run(3.0)
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == before
    main(["doctor"])
    assert authentication.reason_without_secret() in capsys.readouterr().out


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions as POSIX has them")
def test_the_secret_of_another_user_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """As root that keeps the home directory of who called sudo."""
    assert authentication.secret() is not None
    monkeypatch.setattr(os, "geteuid", lambda: _key_file().stat().st_uid + 1)
    _forget()
    assert authentication.secret() is None
    assert "belongs to another user" in authentication.reason_without_secret()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions as POSIX has them")
def test_no_directory_is_made_in_the_home_of_another_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(environment.CACHE_KEY.name, str(tmp_path / "a" / "b" / "cache.key"))
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    assert authentication.secret() is None
    assert not (tmp_path / "a").exists()


def test_a_user_without_a_home_directory_compiles_without_a_cache(monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    monkeypatch.delenv(environment.CACHE_KEY.name)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)

    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", home)
    assert authentication.secret() is None
    assert environment.CACHE_KEY.name in authentication.reason_without_secret()
    _run(2.0)
    assert not directory.exists()


def test_a_secret_of_ones_own_can_be_any_text(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As a continuous integration has it, that keeps the cache from run to run."""
    file = tmp_path / "mine" / "secret.txt"
    file.parent.mkdir(mode=0o700)
    file.write_text("correct horse battery staple correct\n")
    file.chmod(0o600)
    monkeypatch.setenv(environment.CACHE_KEY.name, str(file))
    _run(2.0)
    _forget()
    assert _is_whole(_run(2.0))
    file.write_text("another secret, of which nobody else knows\n")
    _forget()
    assert not _is_whole(_run(2.0))


def test_two_users_of_one_directory_keep_their_own_entries(
        directory: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _run(2.0)
    mine = {path.name: path.read_bytes() for path in directory.iterdir()}
    monkeypatch.setenv(environment.CACHE_KEY.name, str(tmp_path / "theirs" / "cache.key"))
    assert not _is_whole(_run(2.0))
    assert _is_whole(_run(2.0))
    monkeypatch.setenv(environment.CACHE_KEY.name, str(tmp_path / "mine" / "cache.key"))
    assert _is_whole(_run(2.0))
    after = {path.name: path.read_bytes() for path in directory.iterdir()}
    assert len(after) == 2 * len(mine)
    assert mine.items() <= after.items()


@pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX has them")
def test_entries_can_be_read_by_their_user_alone(directory: Path) -> None:
    _run(2.0)
    assert {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {0o600}
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_an_entry_is_bound_to_its_name_and_content() -> None:
    whole = authentication.seal("name", b"content")
    assert authentication.unseal("name", whole) == b"content"
    for name, entry in (("nam", whole), ("other", whole), ("name", whole[:-1]), ("name", whole + b"x"), ("name", b"")):
        with pytest.raises(ValueError, match="authentication code"):
            authentication.unseal(name, entry)
