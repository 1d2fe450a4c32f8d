"""Paths in reports: relative to the checkout, or to the working directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilelang_npu.runtime.reports.source_root import path_below_root, source_root


def test_the_root_is_the_checkout_or_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    assert source_root() == tmp_path
    (tmp_path / "checkout").mkdir()
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path / "checkout"))
    assert source_root() == tmp_path / "checkout"
    monkeypatch.setenv("GITHUB_WORKSPACE", "checkout")
    assert source_root() == tmp_path / "checkout"
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path / "absent"))
    assert source_root() == tmp_path


def test_paths_below_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "checkout"
    (root / "kernels").mkdir(parents=True)
    (root / "kernels" / "a.py").write_text("", encoding="utf-8")
    (tmp_path / "b.py").write_text("", encoding="utf-8")
    (tmp_path / "link").symlink_to(root)
    monkeypatch.chdir(root / "kernels")
    assert path_below_root("a.py", root) == Path("kernels/a.py")
    assert path_below_root(str(root / "kernels" / "a.py"), root) == Path("kernels/a.py")
    assert path_below_root("../kernels/a.py", root) == Path("kernels/a.py")
    assert path_below_root(str(tmp_path / "link" / "kernels" / "a.py"), root) == Path("kernels/a.py")
    assert path_below_root(str(tmp_path / "b.py"), root) is None
    assert path_below_root("../../b.py", root) is None
    assert path_below_root("<string>", root) == Path("<string>")
