"""The command ``language-server``: findings, facts of lines and tried edits of kernels in an editor, by the Language Server
Protocol over standard input and output.

A check runs the script's Python, so the server runs a script only where the user has asked for it: by the command
``tilelang-npu.check`` (a code lens above each kernel, or a code action), after which the script is checked again whenever it
is saved, until it is closed; or by the option ``--check-on-save``, which checks every script that is saved. A script that
is only opened or edited is parsed and never run. The option is on the server's command line, which the user's editor
has, and not in a setting that the opened folder could bring along.

Each check runs in a process of its own (:mod:`tilelang_npu.cli.editor_check`), which a later check of the script, closing the
script, and the end of the server end.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import itertools
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilelang_npu import __version__
from tilelang_npu.cli.checked_text import LineMap
from tilelang_npu.cli.parser import Commands
from tilelang_npu.errors import TileError
from tilelang_npu.sharing import parse_python
from tilelang_npu.source_changes import SourceChange

if TYPE_CHECKING:
    from lsprotocol import types as lsp
    from pygls.lsp.server import LanguageServer

__all__ = ["CHECK", "add_to", "language_server"]

CHECK = "tilelang-npu.check"
"""The command that checks a script; its argument is the script's URI."""
_SOURCE = "tilelang-npu"
_DECORATORS = ("prim_func", "jit")
"""The decorators above which a code lens is shown."""
_MAX_LOG = 4000
"""The number of characters of a script's output that are logged."""
_READ_LIMIT = 1 << 26
"""The longest line, in bytes, that a check may print."""


def add_to(commands: Commands) -> None:
    """Adds the command ``language-server`` to the parser."""
    parser = commands.add_parser(
        "language-server", help="serve an editor: findings, facts of lines, and edits that make kernels faster",
        description="Speak the Language Server Protocol over standard input and output, for editors (docs/editors.md). Checking"
                    " a script runs its Python. The server checks a script only if the editor's user gives the command"
                    f" {CHECK}, and from then on whenever the script is saved.")
    parser.add_argument("--check-on-save", action="store_true",
                        help="check every script that is saved and that imports tilelang: consent to run it")
    parser.add_argument("--chip", metavar="NAME",
                        help="the chip, or a file that describes chips, for kernels that name no chip")
    parser.set_defaults(command=language_server)


def language_server(args: argparse.Namespace) -> int:
    """Serves one editor until it ends the connection, and returns the exit code.

    Raises:
        TileError: T735, the package pygls is not installed.
    """
    try:
        from pygls.lsp.server import LanguageServer
    except ImportError:
        raise TileError("the language server needs the package pygls, which is not installed", code="T735",
                        help="pip install 'tilelang-npu[editor]'") from None
    options = [*(["--chip", args.chip] if args.chip else []), *(word for file in args.load for word in ("--load", file))]
    server = LanguageServer("tilelang-npu", __version__)
    editor = _Editor(server, options, on_save=args.check_on_save)
    editor.register()
    try:
        server.start_io()
    finally:
        editor.stop_all()
    return 0


@dataclass
class _ScriptResults:
    """The last check of a script.

    Attributes:
        lines: the lines of the text that was checked.
        diagnostics: the diagnostics of each file that has some.
        kernels: the kernels, with their places and times.
        facts: the Markdown of each line of a file, by file and line.
        edits: the tried edits: title and changes.
    """

    lines: list[str]
    diagnostics: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    kernels: list[dict[str, Any]] = field(default_factory=list)
    facts: dict[tuple[str, int], list[str]] = field(default_factory=dict)
    edits: list[tuple[str, tuple[SourceChange, ...]]] = field(default_factory=list)

    def take(self, made: dict[str, Any], path: str) -> None:
        """Adds an object that the process has printed (:mod:`tilelang_npu.cli.editor_check`).

        Args:
            made: the object.
            path: the path of the script.
        """
        if made["kind"] == "diagnostics":
            self.diagnostics = {path: []}
            for one in made["diagnostics"]:
                self.diagnostics.setdefault(one["file"], []).append(one)
        elif made["kind"] == "kernels":
            self.kernels = made["kernels"]
            for line in made["lines"]:
                texts = self.facts.setdefault((line["file"], line["line"]), [])
                if line["text"] not in texts:
                    texts.append(line["text"])
        else:
            self.edits = [(one["title"], tuple(SourceChange(
                change["file"], change["line"], tuple(change["before"]), tuple(change["after"]))
                for change in one["changes"])) for one in made["edits"]]


class _Editor:
    """The server of one editor.

    Args:
        server: the server of pygls.
        options: options of the checks' processes.
        on_save: whether every saved script that imports tilelang is checked.
    """

    def __init__(self, server: LanguageServer, options: Sequence[str], *, on_save: bool) -> None:
        from lsprotocol import types

        self._types = types
        self._server = server
        self._options = list(options)
        self._on_save = on_save
        self._consented: set[str] = set()
        self._checks: dict[str, _ScriptResults] = {}
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self._tasks: set[asyncio.Future[None]] = set()
        self._numbers = itertools.count()
        self._ended = False
        self._shown: dict[str, set[str]] = {}

    def register(self) -> None:
        """Registers the handlers of the protocol's messages."""
        t = self._types

        def add(name: str, handler: Callable[..., object], options: object = None) -> None:
            # pygls marks handlers with attributes, which a bound method cannot have
            self._server.feature(name, options)(partial(handler, self))

        def check(uri: str) -> None:
            self._consented.add(uri)  # to run the script now, and at each save until it is closed
            self._start(uri)

        add(t.TEXT_DOCUMENT_DID_OPEN, _Editor._opened)
        add(t.TEXT_DOCUMENT_DID_CHANGE, _Editor._changed)
        add(t.TEXT_DOCUMENT_DID_SAVE, _Editor._saved)
        add(t.TEXT_DOCUMENT_DID_CLOSE, _Editor._closed)
        add(t.TEXT_DOCUMENT_HOVER, _Editor._hover)
        add(t.TEXT_DOCUMENT_CODE_LENS, _Editor._lenses, t.CodeLensOptions())
        add(t.TEXT_DOCUMENT_CODE_ACTION, _Editor._actions, t.CodeActionOptions([t.CodeActionKind.RefactorRewrite]))
        add(t.SHUTDOWN, _Editor._shut_down)
        self._server.command(CHECK)(check)

    # -- documents -----------------------------------------------------------------------------------------------------

    def _opened(self, params: lsp.DidOpenTextDocumentParams) -> None:
        self._publish(params.text_document.uri)

    def _changed(self, params: lsp.DidChangeTextDocumentParams) -> None:
        self._publish(params.text_document.uri)

    def _saved(self, params: lsp.DidSaveTextDocumentParams) -> None:
        uri = params.text_document.uri
        if uri in self._consented or (self._on_save and self._imports_tilelang(uri)):
            self._start(uri)

    def _closed(self, params: lsp.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        self._consented.discard(uri)
        self._stop(uri)
        self._checks.pop(uri, None)
        for other in {*self._shown.pop(uri, ()), uri}:
            self._send(other, [])

    def _shut_down(self, _: None) -> None:
        self.stop_all()

    def stop_all(self) -> None:
        """Ends all checks; the editor is sent nothing about them from now on."""
        self._ended = True
        for task in self._tasks:
            task.cancel()
        for uri in list(self._processes):
            self._stop(uri)

    def _tree(self, uri: str) -> ast.Module | SyntaxError:
        """Returns the syntax tree of a document, which is parsed and not run, or the error that ended parsing."""
        source = self._server.workspace.get_text_document(uri).source
        try:
            return parse_python(source)
        except SyntaxError as error:
            return error
        except (ValueError, RecursionError, MemoryError):  # null bytes, nesting beyond the parser's stack
            return ast.Module([], [])

    def _imports_tilelang(self, uri: str) -> bool:
        tree = self._tree(uri)
        return isinstance(tree, ast.Module) and any(
            name.partition(".")[0] in ("tilelang", "tilelang_npu") for name in _imported(tree))

    # -- checks --------------------------------------------------------------------------------------------------------

    def _start(self, uri: str) -> None:
        """Begins a check of a script, in place of one that runs."""
        task = asyncio.ensure_future(self._check_with_progress(uri))
        self._tasks.add(task)  # or else the task may be collected before its end
        task.add_done_callback(self._tasks.discard)

    async def _check_with_progress(self, uri: str) -> None:
        """Checks a script, and lets the editor show that a check runs, if the editor can."""
        t, window = self._types, self._server.client_capabilities.window
        if window is None or not window.work_done_progress:
            await self._check(uri)
            return
        progress, token = self._server.work_done_progress, f"{CHECK} {next(self._numbers)}"
        await progress.create_async(token)
        progress.begin(token, t.WorkDoneProgressBegin(f"checking {Path(self._path(uri)).name}"))
        try:
            await self._check(uri)
        finally:
            if not self._ended:
                progress.end(token, t.WorkDoneProgressEnd())

    async def _check(self, uri: str) -> None:
        """Checks the saved text of a script, and publishes results as they are printed."""
        path = self._path(uri)
        self._stop(uri)
        try:
            lines = Path(path).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            self._log(f"{path} cannot be read: {error}", warning=True)
            return
        # Modules of the package's own are meant, not files of their names in the folder of the script (-P: Python 3.11).
        safe = ["-P"] if sys.version_info >= (3, 11) else []
        process = await asyncio.create_subprocess_exec(
            sys.executable, *safe, "-m", "tilelang_npu.cli.editor_check", *self._options, "--", path,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, limit=_READ_LIMIT, cwd=self._folder(path),
            env={**os.environ, "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}, start_new_session=True)
        self._stop(uri)  # a check that was begun while this process was started
        self._processes[uri] = process
        assert process.stdout is not None and process.stderr is not None
        output = asyncio.ensure_future(process.stderr.read())
        self._refresh_lenses()
        made = _ScriptResults(lines)
        async for line in process.stdout:
            if self._processes.get(uri) is not process:  # a later check has begun, or the document is closed
                break
            made.take(json.loads(line), path)
            self._checks[uri] = made  # earlier results stay until there are new ones
            self._publish(uri)
            self._refresh_lenses()
        printed = (await output).decode(errors="replace").strip()
        await process.wait()
        if self._processes.get(uri) is not process:
            return
        del self._processes[uri]
        self._refresh_lenses()
        if printed:
            self._log(f"{path}:\n{printed[-_MAX_LOG:]}", warning=False)
        if process.returncode:
            self._server.window_show_message(self._types.ShowMessageParams(
                self._types.MessageType.Error, f"the check of {Path(path).name} ended with code {process.returncode};"
                                               " the log has its output"))

    def _folder(self, path: str) -> Path:
        """Returns the directory in which a script runs: the editor's folder if the script is in it, or else the script's."""
        root: str | None = self._server.workspace.root_path
        return Path(root) if root and Path(path).is_relative_to(root) else Path(path).parent

    def _stop(self, uri: str) -> None:
        """Ends the process that checks a script, with the processes that it has started."""
        process = self._processes.pop(uri, None)
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):
                if sys.platform == "win32":
                    process.kill()
                else:
                    os.killpg(process.pid, signal.SIGKILL)

    def _path(self, uri: str) -> str:
        return str(Path(self._server.workspace.get_text_document(uri).path or "").absolute())

    def _log(self, text: str, *, warning: bool) -> None:
        kind = self._types.MessageType.Warning if warning else self._types.MessageType.Log
        self._server.window_log_message(self._types.LogMessageParams(kind, text))

    # -- diagnostics ---------------------------------------------------------------------------------------------------

    def _publish(self, uri: str) -> None:
        """Publishes the diagnostics of a script: a syntax error of its present text, or those of its last check."""
        tree = self._tree(uri)
        check = self._checks.get(uri)
        if isinstance(tree, SyntaxError):
            self._send(uri, [self._syntax_error(uri, tree)])
            return
        if check is None:
            self._send(uri, [])
            return
        own = self._path(uri)
        files = {own: uri} | {file: Path(file).as_uri() for file in check.diagnostics if file != own}
        found = {each: self._diagnostics(uri, file, check) for file, each in files.items()}
        for gone in self._shown.get(uri, set()) - found.keys():
            self._send(gone, [])
        self._shown[uri] = set(found)
        for each, diagnostics in found.items():
            self._send(each, diagnostics)

    def _send(self, uri: str, diagnostics: Sequence[lsp.Diagnostic]) -> None:
        self._server.text_document_publish_diagnostics(self._types.PublishDiagnosticsParams(uri, list(diagnostics)))

    def _diagnostics(self, uri: str, file: str, check: _ScriptResults) -> list[lsp.Diagnostic]:
        t = self._types
        own = file == self._path(uri)
        lines = self._map(uri, check) if own else None
        found = []
        for one in check.diagnostics.get(file, ()):
            at = one["line"] if lines is None else lines.to_edited(one["line"])
            if at is None:  # the line was edited since
                continue
            severity = {"error": t.DiagnosticSeverity.Error, "warning": t.DiagnosticSeverity.Warning}.get(
                one["severity"], t.DiagnosticSeverity.Information)
            related = [t.DiagnosticRelatedInformation(t.Location(Path(row["file"]).as_uri(), self._range(
                uri if row["file"] == self._path(uri) else Path(row["file"]).as_uri(), row["line"], row["column"], None)),
                row["message"]) for row in one["related"]]
            message = one["message"] + (f"\nfix: {one['fix']}" if one["fix"] else "")
            found.append(t.Diagnostic(
                self._range(uri if own else Path(file).as_uri(), at, one["column"], one["end_column"]), message, severity,
                one["code"] or None, source=_SOURCE, related_information=related or None, data={"fix": one["fix"]}))
        for title, changes in check.edits if own else ():
            moved = _moved(changes, file, lines)
            if moved:
                found.append(t.Diagnostic(self._range(uri, moved[0].line, None, None), f"faster: {title}",
                                          t.DiagnosticSeverity.Hint, "edit", source=_SOURCE))
        return found

    def _syntax_error(self, uri: str, error: SyntaxError) -> lsp.Diagnostic:
        place = self._range(uri, error.lineno or 1, error.offset or None, None)
        return self._types.Diagnostic(place, f"SyntaxError: {error.msg}", self._types.DiagnosticSeverity.Error, "python",
                                      source=_SOURCE)

    def _range(self, uri: str, line: int, column: int | None, end_column: int | None) -> lsp.Range:
        """Returns a range of a line in the client's units: from a column to the end of its word, or the line's text.

        Args:
            uri: the document.
            line: the line, from 1.
            column: the first character, from 1; None for the line's first character that is no space.
            end_column: the column after the last character, from 1; None for the end of the word, or of the line.
        """
        t = self._types
        document = self._server.workspace.get_text_document(uri)
        try:
            lines: Sequence[str] = document.lines
        except OSError:  # a file that is gone
            lines = ()
        text = lines[line - 1].rstrip("\r\n") if 0 < line <= len(lines) else ""
        first = column - 1 if column else len(text) - len(text.lstrip())
        word = re.match(r"[\w.]+", text[first:]) if column else None
        end = end_column - 1 if end_column else first + word.end() if word else len(text)
        codec = self._server.workspace.position_codec
        converted: lsp.Range = codec.range_to_client_units(
            list(lines), t.Range(t.Position(line - 1, min(first, len(text))), t.Position(line - 1, max(end, first))))
        return converted

    def _map(self, uri: str, check: _ScriptResults) -> LineMap:
        return LineMap(check.lines, self._server.workspace.get_text_document(uri).lines)

    # -- facts, lenses and edits ---------------------------------------------------------------------------------------

    def _hover(self, params: lsp.HoverParams) -> lsp.Hover | None:
        """Returns the facts of a line that was checked, from checks of any open script that reached the line."""
        t, uri = self._types, params.text_document.uri
        path = self._path(uri)
        texts: list[str] = []
        for owner, check in self._checks.items():
            number: int | None = params.position.line + 1
            if owner == uri and number is not None:
                number = self._map(uri, check).to_checked(number)
            texts += [text for text in check.facts.get((path, number or 0), ()) if text not in texts]
        if not texts:
            return None
        made: lsp.Hover = t.Hover(t.MarkupContent(t.MarkupKind.Markdown, "\n\n---\n\n".join(texts)))
        return made

    def _lenses(self, params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
        """Returns a lens above each kernel and factory, which checks the script and then shows the modelled time."""
        t, uri = self._types, params.text_document.uri
        tree = self._tree(uri)
        if isinstance(tree, SyntaxError):
            return []
        check = self._checks.get(uri)
        lines = self._map(uri, check) if check is not None else None
        times: dict[int, list[str]] = {}
        for kernel in check.kernels if check is not None else ():
            at = lines.to_edited(kernel["line"]) if lines is not None and kernel["file"] == self._path(uri) else None
            if at is not None and kernel["text"] not in times.setdefault(at, []):
                times[at].append(kernel["text"])
        found = []
        for line in _kernel_lines(tree):
            title = "check the kernels (runs this script)"
            if check is not None:
                title = "; ".join(times.get(line, ["check again"]))
            if uri in self._processes and line not in times:
                title = "checking"
            found.append(t.CodeLens(self._range(uri, line, None, None), t.Command(title, CHECK, arguments=[uri])))
        return found

    def _actions(self, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        """Returns the edits that change a line of the range, and the check of the script."""
        t, uri = self._types, params.text_document.uri
        check = self._checks.get(uri)
        found = []
        if check is not None:
            path, lines = self._path(uri), self._map(uri, check)
            asked = range(params.range.start.line + 1, params.range.end.line + 2)
            hints = {one.message: one for one in params.context.diagnostics}
            for title, changes in check.edits:
                moved = _moved(changes, path, lines)
                if moved is None or not any(_overlaps(change, asked) for change in moved):
                    continue
                edit = t.WorkspaceEdit(changes={uri: [self._text_edit(uri, change) for change in moved]})
                hint = hints.get(f"faster: {title}")
                found.append(t.CodeAction(title, t.CodeActionKind.RefactorRewrite, [hint] if hint else None, edit=edit))
        only = params.context.only
        if only is not None:
            return found if any(t.CodeActionKind.RefactorRewrite.startswith(kind) for kind in only) else []
        if self._imports_tilelang(uri):
            title = "Check the kernels of this script (runs it)"
            found.append(t.CodeAction(title, command=t.Command(title, CHECK, arguments=[uri])))
        return found

    def _text_edit(self, uri: str, change: SourceChange) -> lsp.TextEdit:
        """Returns a change of whole lines as an edit of the protocol."""
        t = self._types
        lines = self._server.workspace.get_text_document(uri).lines
        first, last = change.line - 1, change.line - 1 + len(change.before)
        ending = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
        text = "".join(line + ending for line in change.after)
        end = t.Position(last, 0)
        if last >= len(lines) and not (lines and lines[-1].endswith("\n")):  # the last line has no end
            text = text.removesuffix(ending)
            end = t.Position(len(lines) - 1, self._server.workspace.position_codec.client_num_units(lines[-1]) if lines else 0)
        edit: lsp.TextEdit = t.TextEdit(t.Range(t.Position(first, 0), end), text)
        return edit

    def _refresh_lenses(self) -> None:
        workspace = self._server.client_capabilities.workspace
        if workspace is not None and workspace.code_lens is not None and workspace.code_lens.refresh_support:
            self._server.workspace_code_lens_refresh(None)


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def _kernel_lines(tree: ast.Module) -> Iterator[int]:
    """Yields the line of each decorator or definition that a kernel or a factory begins with."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                called = decorator.func if isinstance(decorator, ast.Call) else decorator
                name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
                if name in _DECORATORS:
                    yield decorator.lineno
                    break


def _moved(changes: Iterable[SourceChange], path: str, lines: LineMap | None) -> list[SourceChange] | None:
    """Returns the changes of an edit in the present text of a script; None if not all of them apply there."""
    found = []
    for change in changes:
        moved = lines.moved(change) if lines is not None and change.file == path else None
        if moved is None:
            return None
        found.append(moved)
    return found


def _overlaps(change: SourceChange, lines: range) -> bool:
    return change.line < lines.stop and lines.start < change.line + max(len(change.before), 1)
