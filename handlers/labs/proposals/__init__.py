"""Labs that propose themselves in an issue, and what a maintainer needs to accept one."""
