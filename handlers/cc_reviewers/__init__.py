"""Review requests for whom a text names after `cc`."""
