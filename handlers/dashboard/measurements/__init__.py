"""What tests measure: series with their changes, lists, and maps of operators.

What the pages read is bounded: `docs/decisions/pages-of-measurements.md`.
"""
