"""Write check runs and compare results for them."""
