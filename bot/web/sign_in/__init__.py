"""Sign-in on the pages with GitHub: who a reader is, and what they may read."""
