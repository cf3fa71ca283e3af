"""Report formats of test runners, read as cases, for the server and for labs. Runs on Python 3.9.

`readers.read(stream, name)` yields a `model.Case` for each test of a report and raises `refused.Refused`; `limits` is
how much a report may hold. Needs zstandard besides the standard library. google-re2 and ijson are used where they are
installed, as on every server.
"""
