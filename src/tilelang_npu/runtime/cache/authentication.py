"""Authenticates cache entries, so that an entry that another user wrote or changed is never decoded.

A kernel in the cache contains generated code and pickled objects, so whoever writes the file decides what the next process
executes. Each entry therefore begins with an authentication code: an HMAC-SHA256 of its file name and content under a secret of
the user. The file name contains the kernel's key, so that an entry is not accepted for another kernel. The authentication code
is checked before anything is decoded.

The secret is a file of 32 random bytes, which is created on first use. It is in the user's state directory, not in the cache
directory, because a cache directory can be shared or restored from an archive. The file and its directory must belong to the
user; other users must not be able to read the file or write to the directory. Without such a secret, no entry is read or
written.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import stat
from pathlib import Path
from threading import RLock

from tilelang_npu.runtime.settings import environment
from tilelang_npu.runtime.settings.log import logger

_SIZE = 32
_PURPOSE = b"tilelang_npu cache entry 1"


class _Secrets:
    """The secrets of this process.

    Attributes:
        secrets: for each key file, the secret that was read from the file, or the reason why the file cannot be used.
    """

    secrets: dict[Path | None, bytes | str] = {}
    lock = RLock()


def _secret_or_reason() -> bytes | str:
    """Returns the secret in the key file, which a process reads once; or the reason why the file cannot be trusted."""
    path = environment.cache_key_file()
    with _Secrets.lock:
        if path not in _Secrets.secrets:
            try:
                _Secrets.secrets[path] = _read_or_make(path)
            except OSError as error:
                where = error.filename if isinstance(error.filename, str) else path
                reason = str(error) if error.errno is None else f"{where}: {error.strerror}"
                _Secrets.secrets[path] = reason
                level = logging.WARNING if environment.CACHE_KEY.text() else logging.INFO
                logger.log(level, "kernels are not stored on disk: %s", reason)
        return _Secrets.secrets[path]


def secret() -> bytes | None:
    """Returns the user's secret, with which cache entries are signed; None if there is no secret that can be trusted."""
    found = _secret_or_reason()
    return found if isinstance(found, bytes) else None


def reason_without_secret() -> str:
    """Returns the reason why :func:`secret` is None; an empty string if there is a secret."""
    found = _secret_or_reason()
    return found if isinstance(found, str) else ""


def user_tag() -> str:
    """Returns eight hexadecimal digits that are part of the names of this user's entries; an empty string without a secret."""
    known = secret()
    return "" if known is None else hmac.digest(known, _PURPOSE + b" tag", "sha256").hex()[:8]


def seal(name: str, content: bytes) -> bytes:
    """Returns the bytes of an entry's file: the authentication code, followed by the content.

    Args:
        name: the name of the entry's file.
        content: the content of the entry.

    Raises:
        OSError: the user has no secret.
    """
    return _code(name, content) + content


def unseal(name: str, entry: bytes) -> bytes:
    """Checks an entry's authentication code, and returns the entry's content.

    Args:
        name: the name of the entry's file.
        entry: the bytes of the file.

    Raises:
        OSError: the user has no secret.
        ValueError: the code is wrong: another user wrote the entry, it was written under another name, or it was changed.
    """
    code, content = entry[:_SIZE], entry[_SIZE:]
    if not hmac.compare_digest(code, _code(name, content)):
        raise ValueError("its authentication code is not this user's")
    return content


def _code(name: str, content: bytes) -> bytes:
    known = secret()
    if known is None:
        raise OSError(reason_without_secret())
    return hmac.digest(known, b"\0".join((_PURPOSE, name.encode(), content)), "sha256")


def _read_or_make(path: Path | None) -> bytes:
    """Returns the secret in a file, which is created if it does not exist.

    Raises:
        OSError: the file cannot be read or created, or other users could have read or written it.
    """
    if path is None:
        raise OSError(f"this user has no home directory; {environment.CACHE_KEY.name} names the file of a secret")
    nearest = next(parent for parent in path.parents if parent.exists())
    if nearest != path.parent:
        _check_own(nearest, nearest.lstat(), 0)  # root with another user's home directory must not create files there
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_own(path.parent, path.parent.lstat(), 0o022)
    try:
        return _read(path)
    except FileNotFoundError:
        _make(path)
        return _read(path)


def _check_own(path: Path, found: os.stat_result, forbidden: int) -> None:
    """Checks that a directory or file belongs to the user, and gives other users none of the ``forbidden`` permissions.

    On Windows nothing is checked, because the system protects the directories of a user by other means.

    Raises:
        OSError: the directory or file belongs to another user, is a link, or gives other users such a permission.
    """
    if stat.S_ISLNK(found.st_mode):
        raise OSError(f"{path} is a link")
    if not hasattr(os, "geteuid"):
        return
    if found.st_uid != os.geteuid():
        raise OSError(f"{path} belongs to another user")
    if found.st_mode & forbidden:
        mode = "go-w" if stat.S_ISDIR(found.st_mode) else "600"
        raise OSError(f"other users have access to {path}: chmod {mode} {path}")


def _read(path: Path) -> bytes:
    whole, found = read_file(path, getattr(os, "O_NOFOLLOW", 0))
    _check_own(path, found, 0o077)
    if len(whole) < _SIZE:
        raise OSError(f"{path} has {len(whole)} bytes; a secret has at least {_SIZE}")
    return hashlib.sha256(whole).digest()


def read_file(path: Path, flags: int = 0) -> tuple[bytes, os.stat_result]:
    """Returns the content and the status (``os.fstat``) of a regular file.

    Args:
        path: the file. A pipe or a device is an error, because reading it could block forever.
        flags: additional flags for ``os.open``.

    Raises:
        OSError: the file cannot be read, or is not a regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | flags)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(f"{path} is not a regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(), found
    finally:
        os.close(descriptor)


def _make(path: Path) -> None:
    """Writes a new secret to a file, unless another process has written one in the meantime."""
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
            file.write(os.urandom(_SIZE))
        try:
            os.link(temporary, path)
        except FileExistsError:
            return
        except OSError:  # a file system without links
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
