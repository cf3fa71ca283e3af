"""Read the results of the tests that CI ran, at a pull request's head and at the commit to compare it with."""
