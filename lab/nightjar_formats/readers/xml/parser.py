"""Make the parser for both readers of XML: expat, which gets chunks and reports each text in one piece if it can."""

from __future__ import annotations

from collections.abc import Callable
from xml.parsers import expat

CHUNK_BYTES = 1 << 16


def xml_parser(
    start: Callable[[str, dict[str, str]], object],
    end: Callable[[str], object],
    doctype: Callable[..., object],
) -> expat.XMLParserType:
    """Return a parser of UTF-8 that calls these functions for elements and for a document type declaration."""
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.buffer_size = CHUNK_BYTES
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.StartDoctypeDeclHandler = doctype
    return parser
