"""Report how long the tests of a pull request's head take in CI, compared with before."""
