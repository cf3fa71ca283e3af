"""Read commits: their files, branches, and the statuses and check runs that count."""
