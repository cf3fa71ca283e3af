"""`nightjar results`: one module per command, and their texts."""
