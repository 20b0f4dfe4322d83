"""xml with xmloption = content (PostgreSQL's xml.c).

A value is the original text.  Python's expat checks whether it is well formed.  So the DETAIL of an
error is expat's message, while PostgreSQL shows libxml's.
"""

from __future__ import annotations

import re
from xml.parsers import expat

from replctl.errors import InvalidXmlContent
from replctl.types.text_form import text_form

_QUOTED = r"""\s*=\s*(?:"([^"]*)"|'([^']*)')"""
_DECLARATION = re.compile(
    rf"<\?xml\s+version{_QUOTED}(?:\s+encoding{_QUOTED})?"
    r"""(?:\s+standalone\s*=\s*(?:"(yes|no)"|'(yes|no)'))?\s*\?>"""
)
_DECLARATION_START = re.compile(r"<\?xml(?![\w:.-])")
_DOCTYPE = re.compile(r"(?:\s|<!--.*?-->|<\?.*?\?>)*<!DOCTYPE", re.DOTALL)
_ROOT = "root"


def xml_in(text: str) -> str:
    """Return the unchanged text, which may be a document or a fragment.

    Raises:
        InvalidXmlContent: the text is not well formed.
    """
    if _DECLARATION_START.match(text) and not _DECLARATION.match(text):
        raise InvalidXmlContent("invalid XML content: invalid XML declaration")
    body = _DECLARATION.sub("", text, count=1) if text.startswith("<?xml") else text
    if not _DOCTYPE.match(body):
        body = f"<{_ROOT}>{body}</{_ROOT}>"
    parser = expat.ParserCreate("utf-8")
    try:
        parser.Parse(body.encode(), True)
    except expat.ExpatError as error:
        raise InvalidXmlContent(
            "invalid XML content", detail=f"line {error.lineno}: {expat.ErrorString(error.code)}"
        ) from error
    return text


def xml_out(value: str) -> str:
    """Print XML without its encoding: `<?xml version="1.0" encoding="utf-8"?><a/>` -> `<a/>`.  A
    declaration that then says nothing more is omitted.
    """
    match = _DECLARATION.match(value)
    version = (match[1] or match[2] or "") if match else "1.0"
    standalone = (match[5] or match[6]) if match else None
    rest = value[match.end() :] if match else value
    if version == "1.0" and standalone is None:
        return rest.removeprefix("\n")
    shown = "" if standalone is None else f' standalone="{standalone}"'
    return f'<?xml version="{version}"{shown}?>{rest}'


FORMS = {"xml": text_form(xml_in, xml_out)}
