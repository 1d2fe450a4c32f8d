"""A hook of mkdocs: the notebooks beside this file are executed, and each becomes a page with what its cells show."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Any

import nbformat
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def on_files(files: Files, *, config: Any) -> Files:
    """Put a page in the place of each notebook."""
    for file in list(files):
        if file.src_uri.endswith(".ipynb"):
            files.remove(file)
            page = file.src_uri.removesuffix(".ipynb") + ".md"
            files.append(File.generated(config, page, content=_page(Path(str(file.abs_src_path)))))
    return files


def _page(path: Path) -> str:
    notebook = nbformat.read(path, as_version=4)
    try:
        NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    except CellExecutionError as error:
        raise PluginError(f"{path.name}: {error}") from error
    source = f"This page is `docs/notebooks/{path.name}`, executed when the site was built."
    return "\n\n".join([*map(_cell, notebook.cells), source, ""])


def _cell(cell: Any) -> str:
    if cell.cell_type == "markdown":
        return str(cell.source)
    code = f"```python\n{cell.source}\n```"
    return "\n\n".join([code, *map(_output, _joined(cell.outputs))])


def _joined(outputs: list[Any]) -> list[Any]:
    """What a cell prints in pieces as one: the kernel sends each when it comes."""
    found: list[Any] = []
    for output in outputs:
        if found and output.output_type == "stream" == found[-1].output_type and output.name == found[-1].name:
            found[-1].text += output.text
        else:
            found.append(output)
    return found


def _output(output: Any) -> str:
    if output.output_type in ("display_data", "execute_result") and "text/html" in output.data:
        return f'<div class="output">\n{output.data["text/html"]}\n</div>'
    text = {"stream": lambda: output.text, "error": lambda: "\n".join(output.traceback)}.get(
        output.output_type, lambda: output.data["text/plain"])()
    return f'<div class="output">\n<pre>{escape(_COLOURS.sub("", text))}</pre>\n</div>'
