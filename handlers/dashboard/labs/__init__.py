"""The pages of labs, and the badge of a target."""
