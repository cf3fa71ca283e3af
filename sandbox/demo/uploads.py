"""Run `nightjar-lab upload` on the lab's machine for each argument, a JSON list of options."""

from __future__ import annotations

import json
import sys

from nightjar_lab.cli.upload import upload

if __name__ == "__main__":
    for options in sys.argv[1:]:
        # In one process, because starting a process takes longer than an upload.
        upload.main(json.loads(options), prog_name="nightjar-lab upload", standalone_mode=False)
