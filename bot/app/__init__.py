"""The composition of the bot: server, processor of deliveries, redelivery, registration, set-up and doctor."""
