"""The objects of a repository on GitHub: people's work, checks, workflow runs and rules, without HTTP."""
