"""Reasons that people read in the API's answers and on the command line."""

from __future__ import annotations

IMAGES_NOT_ON = "The images are built: rebuild_docker is off in this repository."
IN_AN_IMAGE = "The images are built because {name} changed."
IN_NO_IMAGE = "The images are not rebuilt: none of their files changed."
