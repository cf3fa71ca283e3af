"""Jobs for devices: what somebody asked a lab to test, from the request to its end."""
