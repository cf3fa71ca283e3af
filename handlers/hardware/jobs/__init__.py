"""Jobs for devices: tests that somebody requested, from the request to the end."""
