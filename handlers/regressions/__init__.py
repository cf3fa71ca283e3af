"""Messages about lasting failures of hardware targets on the nightly branch."""
