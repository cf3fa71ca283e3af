"""Require the lab kit from ./lab. Its name is in no package index, so anybody could register it there.

Everything else is in pyproject.toml, which cannot name a folder beside itself: https://peps.python.org/pep-0508/.
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.egg_info import egg_info

LAB = Path(__file__).resolve().parent / "lab"
NAME = "nightjar-lab"
NO_LAB = "The folder lab/ is missing here. In a checkout of the repository, run: pip install ./lab ."


class EggInfoWithLab(egg_info):
    """Write the metadata with the address of ./lab."""

    def finalize_options(self) -> None:
        """Replace the requirement. Raises SystemExit where there is no ./lab."""
        if not (LAB / "pyproject.toml").is_file():
            raise SystemExit(NO_LAB)
        distribution = self.distribution
        addressed = [f"{NAME} @ {LAB.as_uri()}" if name == NAME else name for name in distribution.install_requires]
        distribution.install_requires = distribution.metadata.install_requires = addressed
        super().finalize_options()


setup(cmdclass={"egg_info": EggInfoWithLab})
