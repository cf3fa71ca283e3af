"""A weekly digest of each lab, for the channels that app.yaml names."""
