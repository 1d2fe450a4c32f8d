"""How a mistake is tested: the user's line is marked with ``# mistake``, and the error must point there.

Each file has one typical mistake of kernel authors. The tests assert the visible parts of the error: the code, the file and
line, the column under the caret, and the advice. The error may show frames of the test file (the user's code), and none of this
package.
"""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

import tilelang_npu
from tilelang_npu import TileError

PACKAGE = str(Path(tilelang_npu.__file__).parent)

Refused = Callable[..., AbstractContextManager[None]]


@pytest.fixture
def refused(request: pytest.FixtureRequest) -> Refused:
    """``with refused("T104", at="T.alloc_ub", help="..."):`` expects the error of the line marked ``# mistake``."""

    @contextmanager
    def expect(code: str, *, at: str, message: str = "", help: str) -> Iterator[None]:  # noqa: A002  (the word of the error)
        with pytest.raises(TileError) as caught:
            yield
        error = caught.value
        text = str(error)
        assert error.code == code, text
        assert error.location is not None, text
        assert Path(error.location.file) == request.path, text
        line = linecache.getline(error.location.file, error.location.line)
        assert "# mistake" in line, text
        assert re.search(message, error.message), text
        assert re.search(help, error.help), text
        shown = text.splitlines()
        kind = "deadlock" if code == "S301" else "hang" if code.startswith("S3") else "error"
        assert shown[0] == f"{kind}[{code}]: {error.message}"
        assert shown[1] == f"  --> {error.location}"
        assert PACKAGE not in text, text
        if error.location.column == 0 and sys.version_info < (3, 11):
            return  # before 3.11 Python does not keep the column of a call on the host's side
        assert error.location.column == line.index(at) + 1, text
        caret = next(row for row in shown if set(row.partition("|")[2].split(" ", 1)[0]) <= {" ", "^"} and "^" in row)
        above = shown[shown.index(caret) - 1]
        assert above[caret.index("^") :].startswith(at), text

    return expect
