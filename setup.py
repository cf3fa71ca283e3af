"""Require the lab kit: in a checkout that of ./lab, and elsewhere exactly the version of this package.

Everything else is in pyproject.toml, which cannot name a folder beside itself: https://peps.python.org/pep-0508/. What
is built in a checkout is for this machine. A release is an sdist and the wheel that is built from it: scripts/release.
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.egg_info import egg_info

FOLDER = Path(__file__).resolve().parent
LAB = FOLDER / "lab"
NAME = "nightjar-lab"
NO_LAB = "The folder lab/ is missing here. In a checkout of the repository, run: pip install ./lab ."


class EggInfoWithLab(egg_info):
    """Write the metadata with the kit's address or version."""

    def finalize_options(self) -> None:
        """Replace the requirement. Raises SystemExit in what is neither an sdist nor a checkout with ./lab."""
        distribution = self.distribution
        if "sdist" in distribution.commands or (FOLDER / "PKG-INFO").is_file():
            kit = f"{NAME}=={distribution.metadata.version}"
        elif (LAB / "pyproject.toml").is_file():
            kit = f"{NAME} @ {LAB.as_uri()}"
        else:
            raise SystemExit(NO_LAB)
        required = [kit if name == NAME else name for name in distribution.install_requires]
        distribution.install_requires = distribution.metadata.install_requires = required
        super().finalize_options()


setup(cmdclass={"egg_info": EggInfoWithLab})
