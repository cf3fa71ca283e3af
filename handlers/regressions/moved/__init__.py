"""Messages about what tests measure: one for the series that moved at one commit, on one target or several."""
