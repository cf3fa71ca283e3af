"""Texts on GitHub: Markdown, mentions, commit messages and the sticky comment. No I/O."""
