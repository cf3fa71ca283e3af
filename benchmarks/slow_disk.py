"""Run a command as if its disk took longer to flush: `python -m benchmarks.slow_disk 1 python -m benchmarks.durable`.

The virtual disks of test machines often confirm a flush in a tenth of a millisecond, from a cache of their host. A disk
that keeps what it confirms takes longer, and then it matters how many writes share a flush. All processes of the
command, also PostgreSQL and Redis, wait in `fsync` and `fdatasync` before each flush; it needs Linux and a C compiler.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import click

MISSING = "install a C compiler (on Debian and Ubuntu: `apt-get install gcc libc6-dev`)"
LIBRARY = "flush.so"
SOURCE = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long flushed(long call, int file)
{
    struct timespec delay = { MICROSECONDS / 1000000, MICROSECONDS % 1000000 * 1000 };
    nanosleep(&delay, NULL);
    return syscall(call, file);
}

int fsync(int file) { return flushed(SYS_fsync, file); }
int fdatasync(int file) { return flushed(SYS_fdatasync, file); }
"""


def build(folder: Path, milliseconds: float) -> Path:
    """Build the library that waits this long before each flush, and return its path."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise click.ClickException(MISSING)
    library = folder / LIBRARY
    options = (f"-DMICROSECONDS={round(1000 * milliseconds)}", "-shared", "-fPIC", "-O2", "-x", "c", "-", "-o", library)
    subprocess.run([compiler, *options], input=SOURCE, text=True, check=True)
    return library


@click.command(help=__doc__.partition("\n")[0], context_settings={"ignore_unknown_options": True})
@click.argument("milliseconds", type=click.FloatRange(min=0, max=1000))
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def main(milliseconds: float, command: tuple[str, ...]) -> None:
    """Run it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # PostgreSQL runs as a user of its own.
        preloaded = " ".join(filter(None, (str(build(folder, milliseconds)), os.environ.get("LD_PRELOAD"))))
        try:
            ended = subprocess.run(command, env=os.environ | {"LD_PRELOAD": preloaded}, check=False)
        except FileNotFoundError as error:
            raise click.ClickException(f"there is no program {error.filename}") from None
    sys.exit(ended.returncode)


if __name__ == "__main__":
    main()
