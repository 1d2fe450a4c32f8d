"""Encodes names from the kernel's source in the text of the IR, in which names may have only ASCII characters.

A character outside of ASCII is encoded as ``$``, the code point in hexadecimal, and ``.``: the value ``Ä`` is ``%$c4.``.
"""

from __future__ import annotations

import re

from xdsl.ir import SSAValue

_ESCAPED = re.compile(r"\$([0-9a-f]+)\.")


def escape_name(name: str) -> str | None:
    """Returns the ASCII encoding of a name from the source; None if the name is not a Python identifier."""
    if not name.isidentifier():
        return None
    return "".join(one if one.isascii() else f"${ord(one):x}." for one in name)


def author_name(name: str | SSAValue | None, otherwise: str = "") -> str:
    """Returns the name in the source for an SSA value or an encoded name, for use in messages.

    Returns ``otherwise`` if the value has no name.
    """
    hint = name.name_hint if isinstance(name, SSAValue) else name
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), hint) if hint else otherwise
