"""Why a test has its class: for `nightjar results explain`."""
