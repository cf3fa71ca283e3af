"""What labs read about a run whose tests cannot be stored, and where its texts were cut."""

from __future__ import annotations

from nightjar_formats.limits import MAX_TESTS

LEFT_OUT = "\n… {count:,} characters left out …\n"
SAME_NAME = "two tests have names that differ only in a line break; give each its own name"
TOO_MANY_TESTS = f"the files have more than {MAX_TESTS:,} tests together; upload the run in shards"
