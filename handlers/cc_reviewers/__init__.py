"""Review requests for the people that a text names after `cc`."""
