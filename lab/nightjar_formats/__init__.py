"""Report formats of test runners, read as cases, for the server and for labs. Runs on Python 3.9.

`readers.read(stream, name)` yields a `model.Case` for each test of a report and raises `refused.Refused`; `limits` has
the limits of a report. It requires ijson, and zstd before Python 3.14, besides the standard library, and uses
google-re2 if it is installed, as on every server.
"""
