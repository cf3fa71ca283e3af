"""GitHub: signing in, one client for every request, and what we write there in one piece."""
