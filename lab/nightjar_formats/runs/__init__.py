"""Check a run on the lab's machine, and upload it to the bucket.

`offline_check.check_files` and `check_run` report what the bot would report about files, or about a folder with a
manifest. `upload.reports_and_artifacts`, `pieces` and `pack` make a run from files, and `send` writes it to any
`WriteOnce` bucket. Labs and the server both read manifests with `manifest.read_manifest`.
"""
