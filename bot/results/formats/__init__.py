"""Readers of the formats that labs send, one file each: a stream of bytes in, `Case` after `Case` out."""
