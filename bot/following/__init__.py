"""Branches that follow another one to its newest commit that is fit: nightly, for labs, and the last good one."""
