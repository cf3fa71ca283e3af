"""Report formats of test runners, read as cases, for the server and for labs.

Needs zstandard besides the standard library.
"""
