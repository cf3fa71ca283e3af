"""`make demo`: a GitHub, a Jenkins, the real bot, and a contributor who talks to it, all on this machine."""
