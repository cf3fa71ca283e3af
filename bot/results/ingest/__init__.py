"""From files that labs sent to results that can be stored."""
