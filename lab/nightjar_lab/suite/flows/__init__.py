"""The flows of nightjar-lab. Each module needs the packages of an extra and fails to import without them."""
