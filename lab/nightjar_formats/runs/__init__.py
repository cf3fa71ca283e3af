"""What a lab may know of a run before it is uploaded, and its way to the bucket: manifest, test IDs, check, upload."""
