"""Tests that people request on the devices of labs, from the request to the end."""
