"""What devices measure: which nightly values changed, by how much, and how sure that is. No I/O."""
