"""What app.yaml says about results: where labs upload, who they are, their targets, and known failures."""
