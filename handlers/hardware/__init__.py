"""Results of hardware labs: taken in, compared, told, listed."""
