"""Read which files a pull request or a commit changes, and give a verdict about them."""
