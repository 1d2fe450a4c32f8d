"""The language server, driven by a client over the standard input and output of a real process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

pytest.importorskip("pygls")

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from tilelang_npu.cli.language_server import CHECK

Result = TypeVar("Result")

SCRIPT = '''\
from pathlib import Path

import numpy as np
import tilelang
import tilelang.language as T

Path(__file__).with_name("ran").touch()


@tilelang.jit(out_idx=[1], target="npuir")
def exponential(rows, columns, tile_rows):
    @T.prim_func
    def kernel(A: T.Tensor((rows, columns), "float16"), B: T.Tensor((rows, columns), "float16")):
        with T.Kernel(T.ceildiv(rows, tile_rows), is_npu=True) as (block, _):
            a = T.alloc_ub((tile_rows, columns), "float16")
            b = T.alloc_ub((tile_rows, columns), "float16")
            T.copy(A[block * tile_rows, 0], a)
            T.vexp(a, b)
            T.copy(b, B[block * tile_rows, 0])

    return kernel


print("the script's own output")
fast = exponential(256, 256, 8)
fast(np.ones((256, 256), np.float16))
'''
RACE = '''\
import tilelang.language as T


@T.prim_func
def kernel(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, is_npu=True) as (block, half):
        a = T.alloc_ub((64,), "float32")
        T.copy(A, a)
        T.copy(a, B)


import tilelang
tilelang.compile(kernel, target="ascendc")
'''


class Client:
    """An editor: it keeps the last diagnostics of each document, and waits for others."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.client: Any = LanguageClient("editor", "1")
        self.diagnostics: dict[str, list[types.Diagnostic]] = {}
        self.changed = asyncio.Event()
        self.messages: list[str] = []
        self.titles: list[str] = []
        self.ended = 0

        @self.client.feature(types.WINDOW_WORK_DONE_PROGRESS_CREATE)
        def created(params: types.WorkDoneProgressCreateParams) -> None:
            pass

        @self.client.feature(types.PROGRESS)
        def progressed(params: types.ProgressParams) -> None:
            if params.value["kind"] == "begin":
                self.titles.append(params.value["title"])
            self.ended += params.value["kind"] == "end"
            self.changed.set()

        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: types.PublishDiagnosticsParams) -> None:
            self.diagnostics[params.uri] = list(params.diagnostics)
            self.changed.set()

        @self.client.feature(types.WINDOW_LOG_MESSAGE)
        def logged(params: types.LogMessageParams) -> None:
            self.messages.append(params.message)

        @self.client.feature(types.WINDOW_SHOW_MESSAGE)
        def shown(params: types.ShowMessageParams) -> None:
            self.messages.append(params.message)

    def write(self, name: str, text: str) -> str:
        """Writes a file and returns its URI."""
        (self.folder / name).write_text(text, encoding="utf-8")
        return (self.folder / name).as_uri()

    def open(self, name: str, text: str) -> str:
        """Writes a file, opens it in the editor, and returns its URI."""
        uri = self.write(name, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "python", 1, text)))
        return uri

    def change(self, uri: str, text: str, version: int = 2) -> None:
        """Replaces the text of an open document without saving it."""
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(
            types.VersionedTextDocumentIdentifier(version, uri), [types.TextDocumentContentChangeWholeDocument(text)]))

    def save(self, uri: str) -> None:
        self.client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))

    async def check(self, uri: str) -> None:
        """Gives the command that checks a script, and waits until the check is complete."""
        ended = self.ended
        await self.client.workspace_execute_command_async(types.ExecuteCommandParams(CHECK, [uri]))
        await self.until(lambda: self.ended > ended)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Waits until the server's messages fulfil a condition."""
        while not holds():
            self.changed.clear()
            await self.changed.wait()

    async def hover(self, uri: str, line: int) -> str:
        """Returns the text of a line's hover, the line counted from 1; empty for none."""
        hover = await self.client.text_document_hover_async(
            types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(line - 1, 0)))
        return "" if hover is None else hover.contents.value

    async def actions(self, uri: str, line: int) -> list[types.CodeAction]:
        at = types.Range(types.Position(line - 1, 0), types.Position(line - 1, 0))
        found = await self.client.text_document_code_action_async(types.CodeActionParams(
            types.TextDocumentIdentifier(uri), at, types.CodeActionContext(self.diagnostics.get(uri, []))))
        return list(found or ())

    async def lenses(self, uri: str) -> list[tuple[int, str]]:
        """Returns the line, from 1, and the title of each code lens."""
        found = await self.client.text_document_code_lens_async(types.CodeLensParams(types.TextDocumentIdentifier(uri)))
        return [(lens.range.start.line + 1, lens.command.title) for lens in found]


def run(session: Coroutine[Any, Any, Result]) -> Result:
    """Runs a session with an editor, which must not hang."""
    return asyncio.run(asyncio.wait_for(session, 300))


@asynccontextmanager
async def editor(folder: Path, *options: str) -> AsyncIterator[Client]:
    """A client that is connected to a server in a process of its own."""
    made = Client(folder)
    await made.client.start_io(sys.executable, "-m", "tilelang_npu", "language-server", *options)
    capabilities = types.ClientCapabilities(
        window=types.WindowClientCapabilities(work_done_progress=True),
        general=types.GeneralClientCapabilities(position_encodings=[types.PositionEncodingKind.Utf16]))
    await made.client.initialize_async(types.InitializeParams(capabilities, root_uri=folder.as_uri()))
    made.client.initialized(types.InitializedParams())
    try:
        yield made
    finally:
        await made.client.shutdown_async(None)
        made.client.exit(None)
        await made.client.stop()


def line_of(text: str, part: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


def applied(text: str, edits: list[types.TextEdit]) -> str:
    """Returns a text with edits of whole lines, as an editor applies them."""
    lines = text.splitlines(keepends=True)
    for edit in sorted(edits, key=lambda one: one.range.start.line, reverse=True):
        assert edit.range.start.character == edit.range.end.character == 0
        lines[edit.range.start.line:edit.range.end.line] = [edit.new_text]
    return "".join(lines)


def test_an_opened_script_is_not_run_and_a_checked_one_shows_facts_and_edits(tmp_path: Path) -> None:
    async def session() -> None:
        async with editor(tmp_path) as client:
            uri = client.open("script.py", SCRIPT)
            client.change(uri, SCRIPT + "# a comment\n")
            client.change(uri, SCRIPT, 3)
            client.save(uri)
            assert await client.hover(uri, line_of(SCRIPT, "T.vexp")) == ""
            titles = [action.title for action in await client.actions(uri, 1)]
            assert titles == ["Check the kernels of this script (runs it)"]
            assert await client.lenses(uri) == [(line_of(SCRIPT, "@tilelang.jit"), "check the kernels (runs this script)"),
                                                (line_of(SCRIPT, "@T.prim_func"), "check the kernels (runs this script)")]
            assert not (tmp_path / "ran").exists(), "opening, editing and saving run nothing before the user asks for a check"

            await client.check(uri)
            assert (tmp_path / "ran").exists()
            assert "the script's own output" in "".join(client.messages)

            facts = await client.hover(uri, line_of(SCRIPT, "T.vexp"))
            assert "`a: float16[8, 256] in UB, 4,096 B; reads 4,096 B`" in facts
            assert "`b: float16[8, 256] in UB, 4,096 B; writes 4,096 B`" in facts
            assert "us of the critical path of" in facts
            assert "AIV V" in facts
            load = await client.hover(uri, line_of(SCRIPT, "T.copy(A"))
            assert "`A: float16[256, 256] in GM, 131,072 B; reads 4,096 B`" in load
            (_, lens), (_, kernel) = await client.lenses(uri)
            assert lens == "check again"
            assert kernel.startswith("kernel: ")
            assert "us" in kernel

            call = line_of(SCRIPT, "fast = exponential")
            hints = [one for one in client.diagnostics[uri] if one.code == "edit"]
            assert [one.range.start.line + 1 for one in hints] == [call]
            assert hints[0].severity == types.DiagnosticSeverity.Hint
            (action, _) = await client.actions(uri, call)
            assert action.kind == types.CodeActionKind.RefactorRewrite
            assert list(action.diagnostics) == hints
            assert action.title.startswith("kernel: tile_rows=")
            edited = applied(SCRIPT, action.edit.changes[uri])
            rows = action.title.split("=")[1].split()[0]
            assert edited == SCRIPT.replace("exponential(256, 256, 8)", f"exponential(256, 256, {rows})")

            # the author goes on: facts and edits follow their lines, and an edit of a changed line is gone
            longer = "# a line more\n" + SCRIPT
            client.change(uri, longer, 4)
            assert await client.hover(uri, line_of(longer, "T.vexp")) == facts
            (moved, _) = await client.actions(uri, call + 1)
            assert applied(longer, moved.edit.changes[uri]) == "# a line more\n" + edited
            client.change(uri, SCRIPT.replace("256, 8)", "256, 16)"), 5)
            assert len(await client.actions(uri, call)) == 1

    run(session())


def test_findings_have_code_line_column_and_fix_and_follow_saved_texts(tmp_path: Path) -> None:
    async def session() -> None:
        async with editor(tmp_path, "--check-on-save") as client:
            uri = client.open("race.py", RACE)
            await client.until(lambda: uri in client.diagnostics)
            assert client.diagnostics[uri] == []
            client.save(uri)
            await client.until(lambda: bool(client.diagnostics[uri]))
            (race,) = [one for one in client.diagnostics[uri] if one.severity == types.DiagnosticSeverity.Error]
            second = line_of(RACE, "T.copy(a, B)")
            assert race.code == "S201"
            assert race.source == "tilelang-npu"
            assert race.range == types.Range(types.Position(second - 1, 8), types.Position(second - 1, 14))
            assert "fix: add an event MTE2 -> MTE3" in race.message
            assert [one.location.range.start.line + 1 for one in race.related_information or ()] == [
                line_of(RACE, "T.copy(A, a)")]

            ordered = RACE.replace("        T.copy(a, B)", "        T.barrier_all()\n        T.copy(a, B)")
            client.write("race.py", ordered)
            client.change(uri, ordered)
            client.save(uri)
            await client.until(lambda: client.diagnostics[uri] == [])

            client.change(uri, "def broken(:\n", 3)
            await client.until(lambda: bool(client.diagnostics[uri]))
            assert "SyntaxError" in client.diagnostics[uri][0].message

    run(session())


def test_errors_are_shown_at_their_lines_and_other_files_are_not_run_on_save(tmp_path: Path) -> None:
    async def session() -> None:
        async with editor(tmp_path, "--check-on-save") as client:
            text = SCRIPT.replace("T.vexp(a, b)", "T.vexpp(a, b)")
            uri = client.open("script.py", text)
            await client.check(uri)
            (error,) = client.diagnostics[uri]
            assert (error.code, error.range.start.line + 1) == ("T140", line_of(text, "T.vexpp"))
            assert "fix: " in error.message

            text = SCRIPT + "\n\U0001F600 = None\n".replace("\U0001F600", "x") + 's = "\U0001F600"; raise ValueError(s)\n'
            uri = client.open("raises.py", text)
            await client.check(uri)
            error = next(one for one in client.diagnostics[uri] if one.code == "python")
            assert error.range.start.line + 1 == line_of(text, "raise ValueError")
            assert error.range.end.character == len('s = ""; raise ValueError(s)') + 2, "columns are UTF-16 units"

            (tmp_path / "ran").unlink()
            uri = client.open("other.py", 'from pathlib import Path\nPath(__file__).with_name("ran").touch()\n')
            client.save(uri)
            await client.lenses(uri)
            assert not (tmp_path / "ran").exists()

            uri = client.open("none.py", "import tilelang\n")
            await client.check(uri)
            assert [(one.code, one.severity) for one in client.diagnostics[uri]] == [
                ("T803", types.DiagnosticSeverity.Information)]

    run(session())


def test_a_later_check_ends_the_one_before_and_closing_ends_consent(tmp_path: Path) -> None:
    async def session() -> None:
        async with editor(tmp_path) as client:
            slow = ('import time\nfrom pathlib import Path\nPath(__file__).with_name("began").touch()\ntime.sleep(600)\n'
                    + SCRIPT)
            uri = client.open("script.py", slow)
            await client.client.workspace_execute_command_async(types.ExecuteCommandParams(CHECK, [uri]))
            while not (tmp_path / "began").exists():
                await asyncio.sleep(0.05)
            client.write("script.py", SCRIPT)
            client.change(uri, SCRIPT)
            client.save(uri)  # the command also applies to later saves
            await client.until(lambda: client.ended == 2)
            assert client.titles == ["checking script.py"] * 2
            assert await client.hover(uri, line_of(SCRIPT, "T.vexp")) != ""

            client.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))
            (tmp_path / "ran").unlink()
            client.open("script.py", SCRIPT)
            client.save(uri)
            assert await client.hover(uri, line_of(SCRIPT, "T.vexp")) == ""
            assert not (tmp_path / "ran").exists()

    run(session())


def test_the_end_of_the_server_ends_its_checks(tmp_path: Path) -> None:
    async def session() -> int:
        slow = ('import os, time\nfrom pathlib import Path\nimport tilelang\n'
                'Path(__file__).with_name("part").write_text(str(os.getpid()))\n'
                'Path(__file__).with_name("part").rename(Path(__file__).with_name("number"))\ntime.sleep(600)\n')
        async with editor(tmp_path) as client:
            uri = client.open("script.py", slow)
            await client.client.workspace_execute_command_async(types.ExecuteCommandParams(CHECK, [uri]))
            while not (tmp_path / "number").exists():
                await asyncio.sleep(0.05)
        return int((tmp_path / "number").read_text())

    number = run(session())
    for _ in range(200):
        state = Path(f"/proc/{number}/stat")
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        asyncio.run(asyncio.sleep(0.05))
    pytest.fail(f"process {number} still runs")
