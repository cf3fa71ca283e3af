"""Code shared by the XML formats of .NET's test tools: names that begin with their class, and failures in two parts."""

from __future__ import annotations

from nightjar_formats.patterns import Pattern
from nightjar_formats.readers import values

_FRAME = Pattern(r" in ([^\r\n]+?):line (\d+)")


class DotnetFailure:
    """The parts of a failure, unchanged from the file."""

    __slots__ = ("message", "stack_trace", "type")

    def __init__(self) -> None:
        self.message = self.stack_trace = self.type = ""

    def explain(self, output: str = "") -> tuple[str, str]:
        """Return the message on one line, and the text: message and stack trace, or `output` if there is no trace."""
        message = values.message(self.message.strip()) or values.message(self.type)
        parts = [part.strip("\r\n") for part in (self.message, self.stack_trace) if part.strip()]
        return message, values.text("\n".join(parts) or output.strip("\r\n"))

    def place(self) -> tuple[str, int | None]:
        """Return the file and line of the outermost frame that has them: the test's own, because runners' have none."""
        path, line = "", None
        for frame in _FRAME.finditer(self.stack_trace):
            path, line = frame[1], values.line(frame[2])
        return values.name(path), line


def class_and_name(classname: str, name: str) -> tuple[str, str]:
    """Return a test's class, and its name without the class that it begins with.

    A comma and the name of the assembly may follow the class.

    >>> class_and_name("Compiler.Tests.Adds, Compiler.Tests, Version=1.0.0.0", "Compiler.Tests.Adds.Ints(a: 1)")
    ('Compiler.Tests.Adds', 'Ints(a: 1)')
    """
    classname = classname.partition(",")[0].strip() if "[" not in classname else classname
    return classname, name.removeprefix(f"{classname}.") or name
