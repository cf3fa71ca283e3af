"""The parts of the client that know HTTP: caching, paging, downloads, GraphQL and circuit breakers."""
