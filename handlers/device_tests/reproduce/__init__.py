"""`@ci reproduce`: run one test several times, at the head of a pull request and at its base."""
