"""People who are interested in a topic, mentioned once."""
