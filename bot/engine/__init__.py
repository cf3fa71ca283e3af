"""Deliveries and timers as durable work, on SQLite or PostgreSQL."""
