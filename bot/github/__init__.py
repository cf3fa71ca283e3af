"""GitHub: the App, a client with one seam for every request, and the rules of GitHub's texts, limits and commits."""
