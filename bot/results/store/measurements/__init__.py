"""What tests measured: numbers in blocks, series of them over nightly commits, and the measurements of a run."""
