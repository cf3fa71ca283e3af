"""What labs read about a run whose tests cannot be stored, and where its texts were cut."""

from __future__ import annotations

from nightjar_formats.limits import MAX_SUITE_MEASUREMENTS, MAX_SUITE_NAMES

TOO_MANY_NAMES = (
    f"the suite's tests have had more than {MAX_SUITE_NAMES:,} names, so they seem to differ in every run; give "
    "parameters IDs of their own (pytest: `ids=`), and the suite another name"
)
TOO_MANY_MEASUREMENTS = (
    f"the suite's tests have had more than {MAX_SUITE_MEASUREMENTS:,} measurements, so their names or units seem to "
    "differ in every run; give each measurement the same name and unit in all runs, and the suite another name"
)
