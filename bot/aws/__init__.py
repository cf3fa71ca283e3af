"""AWS and what stands in for it: the client, a bucket, a queue, a local folder."""
