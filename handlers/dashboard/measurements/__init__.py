"""What tests measure: series with their changes, lists, and maps of operators."""
