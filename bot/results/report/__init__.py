"""Write check runs: compare each suite with its baseline, and report the findings."""
