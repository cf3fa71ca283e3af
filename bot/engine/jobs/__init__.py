"""What the engine stores: deliveries, their jobs, and the note of each job."""
