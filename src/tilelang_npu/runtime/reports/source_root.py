"""Paths of source files as code hosts know them: relative to the root of the checkout."""

from __future__ import annotations

from pathlib import Path

from tilelang_npu.runtime.settings.environment import WORKSPACE


def source_root() -> Path:
    """Returns the directory that paths in reports are relative to, as an absolute path.

    It is the directory that the environment variable ``GITHUB_WORKSPACE`` names, in which a workflow of GitHub has its
    checkout; the working directory if the variable is not set or names no directory.
    """
    named = WORKSPACE.text()
    if named and Path(named).is_dir():
        return Path(named).absolute()
    return Path.cwd()


def path_below_root(file: str, root: Path) -> Path | None:
    """Returns the path of a source file relative to a directory, or None if the file is not below the directory.

    Args:
        file: the path of the file, absolute or relative to the working directory. A relative path of a file that does not
            exist is returned as it is, because it is the name of a text that is in no file.
        root: the directory, as an absolute path. Symbolic links are followed where the paths as written do not fit.
    """
    path = Path(file)
    if not path.is_absolute():
        if not path.exists():
            return path
        path = Path.cwd() / path
    if path.is_relative_to(root) and ".." not in path.parts:
        return path.relative_to(root)
    resolved, top = path.resolve(), root.resolve()
    return resolved.relative_to(top) if resolved.is_relative_to(top) else None
