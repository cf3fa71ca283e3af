"""What a lab may know of a run before it is uploaded, and the run's way to the bucket.

`offline_check.check_files` and `check_run` say what the bot would say about files, or of a folder with a manifest.
`upload.named`, `pieces` and `pack` make a run of files, and `send` writes it to any bucket that is a `WriteOnce`;
`manifest.read_manifest` reads what was packed, on both sides.
"""
