"""Tests of messages about measurements that moved."""
