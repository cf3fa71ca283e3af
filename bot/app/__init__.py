"""Where everything is joined: the server, the processor of deliveries, redelivery, registration, the doctor."""
