"""What a repository on GitHub holds: people's work, checks, workflow runs and rules, without HTTP."""
