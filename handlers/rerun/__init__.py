"""Run failed CI again."""
