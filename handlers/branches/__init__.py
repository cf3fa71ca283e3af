"""Branches that follow another: the nightly one and the last good one."""
