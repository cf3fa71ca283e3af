"""Read and edit the file that names the Docker images of CI, such as TVM's `ci/jenkins/docker-images.ini`.

    [jenkins]
    ci_tag: 20221013-060115-61c9742ea
    ci_arm: tlcpack/ci-arm:%(ci_tag)s
    ci_lint: tlcpack/ci-lint:20221013-060115-61c9742ea

It is read as Python's `configparser` reads it, interpolation and all. An edit changes the characters of tags and no
others: comments, order, blanks and line ends stay as they are.
"""

from __future__ import annotations

import configparser
import re  # noqa: TID251  # configparser takes no other
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from nightjar_formats.terminal import quoted_text

from bot.core.errors import UserError
from bot.core.patterns import SPACE, Pattern
from bot.github.text.markdown import code
from handlers.docker_update.texts import (
    LINE_TOO_LONG,
    LONE_PERCENT,
    MALFORMED_FILE,
    NO_COMMON_TAG,
    NO_SECTION,
    NO_TAGS,
    NOT_IN_PLACE,
    TOO_MANY_IMAGES,
)

SECTION = "jenkins"
MOST_IMAGES = 100
"""The most images in one file."""
LONGEST_LINE = 1_000
"""The most characters of one line."""
MOST_REFERENCES = 20
"""The most references `%(name)s` that are followed for one value, nested ones included."""

BUILT = Pattern(r"[0-9]+-[0-9]+-[a-z0-9]+")
"""A tag as builds write it: date, time and commit."""
_PART = r"[a-z0-9][a-z0-9._-]{0,127}"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
IMAGE = Pattern(rf"(?P<namespace>{_PART})/(?P<name>{_PART}):(?P<tag>{_TAG})")
HOSTED = Pattern(r"[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]{1,5})?(?:/[A-Za-z0-9_][A-Za-z0-9._:@+-]*)+")
"""An image with the host of its registry. The pattern is loose, but admits no character that a shell acts on."""
_SHARING = Pattern(rf"(?P<namespace>{_PART})/(?P<name>{_PART}):%\((?P<variable>[^(){SPACE}]+)\)s")
_LINE = Pattern(
    rf"(?P<before>(?P<key>[^{SPACE}#;\[=:][^=:]*?)[{SPACE}]*[=:][{SPACE}]*)(?P<value>[^\r]*?)(?P<after>[{SPACE}]*)"
)
_REFERENCE = Pattern(r"\((?P<name>[^)]+)\)s")
_HEADER = Pattern(r"\[(?P<name>[^\]]+)\]")


@dataclass(frozen=True, slots=True)
class ImageReference:
    """An image in a line of the file: `key: namespace/name:tag`, or with a reference to a `variable` as the tag."""

    key: str
    namespace: str
    name: str
    tag: str
    variable: str = ""

    @property
    def image(self) -> str:
        """Return the image as `namespace/name:tag`."""
        return f"{self.namespace}/{self.name}:{self.tag}"

    def in_main(self, namespace: str) -> str:
        """Return the image's name in the main namespace, which has `-` where the staging namespace has `_`."""
        return f"{namespace}/{self.name if self.namespace == namespace else self.name.replace('_', '-')}"


@dataclass(frozen=True, slots=True)
class TagChange:
    """An image before and after the update."""

    key: str
    old_image: str
    new_image: str


@dataclass(frozen=True, slots=True)
class Update:
    """The updated file, its changes, and notes in Markdown about images that could not be updated."""

    text: str
    changes: tuple[TagChange, ...] = ()
    notes: tuple[str, ...] = ()


def staging_name(name: str, staging: str) -> str:
    """Return an image's name in the staging namespace, which has images that are not released yet."""
    return f"{staging}/{name.replace('-', '_')}"


def has_host(image: str) -> bool:
    """Say whether an image names the host of its registry, as those of Amazon's do.

    https://docs.docker.com/reference/cli/docker/image/tag/#description
    """
    first, slash, _ = image.partition("/")
    return bool(slash) and ("." in first or ":" in first or first == "localhost")


def read_images(text: str) -> dict[str, str]:
    """Return all values of the section by their lower-case keys, as configparser does. Raises `UserError`."""
    try:
        parser = _Parser.of(text)
        return dict(parser.items(SECTION)) if parser.has_section(SECTION) else _refuse_without_section()
    except configparser.Error as error:
        problem = " ".join(str(error).split())
    raise UserError(MALFORMED_FILE.format(problem=problem))


class _References(configparser.Interpolation):
    """Follow `%(name)s` as `BasicInterpolation` does, but at most MOST_REFERENCES for one value.

    `BasicInterpolation` limits the depth to ten, but not the number of references: ten short lines could fill all
    memory.
    """

    def before_get(  # type: ignore[override]  # typeshed names the parser's type more narrowly than the library does
        self, parser: configparser.RawConfigParser, section: str, option: str, value: str, defaults: Mapping[str, str]
    ) -> str:
        parts, pending, followed = list[str](), [value], 0
        while pending:
            literal, percent, rest = pending.pop().partition("%")
            parts.append(literal)
            reference = _REFERENCE.match(rest)
            if percent and rest.startswith("%"):
                parts.append("%")
                pending.append(rest[1:])
            elif percent and reference is None:
                raise configparser.InterpolationSyntaxError(
                    option, section, LONE_PERCENT.format(value=quoted_text(value))
                )
            elif reference is not None and percent:
                name, followed = parser.optionxform(reference["name"]), followed + 1
                if name not in defaults:
                    raise configparser.InterpolationMissingOptionError(option, section, value, name)
                if followed > MOST_REFERENCES:
                    raise configparser.InterpolationDepthError(option, section, value)
                pending += [rest[reference.end() :], defaults[name]]
        return "".join(parts)


class _Parser(configparser.ConfigParser):
    """Reads as `ConfigParser` does, but in linear time: the standard pattern backtracks on lines with many spaces."""

    OPTCRE = re.compile(r"(?P<option>[^=:]*+)(?P<vi>[=:])\s*+(?P<value>.*)")  # noqa: TID251  # possessive

    @classmethod
    def of(cls, text: str) -> Self:
        """Parse the text of a file. Raises `UserError` and configparser's errors."""
        if any(len(line) > LONGEST_LINE for line in text.splitlines()):
            raise UserError(LINE_TOO_LONG.format(most=LONGEST_LINE))
        parser = cls(interpolation=_References())
        parser.read_string(text)
        return parser


def _refuse_without_section() -> dict[str, str]:
    raise UserError(NO_SECTION.format(section=SECTION))


def find_references(text: str, namespaces: Sequence[str]) -> list[ImageReference]:
    """Return the images of the file that are in one of `namespaces`. Raises `UserError`."""
    images = read_images(text)
    raw = _Parser.of(text)
    references = []
    for key, image in images.items():
        match = IMAGE.fullmatch(image)
        if match is None or match["namespace"] not in namespaces:
            continue
        sharing = _SHARING.fullmatch(raw.get(SECTION, key, raw=True))
        # configparser has all keys in lower case:
        # https://docs.python.org/3/library/configparser.html#configparser.ConfigParser.optionxform
        variable = sharing["variable"].lower() if sharing else ""
        references.append(ImageReference(key, match["namespace"], match["name"], match["tag"], variable))
    if len(references) > MOST_IMAGES:
        raise UserError(TOO_MANY_IMAGES.format(count=len(references), most=MOST_IMAGES))
    return references


@dataclass(slots=True)
class _Edits:
    """The new values of lines by key, and the changes and notes that result from them."""

    values: dict[str, str] = field(default_factory=dict)
    changes: list[TagChange] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def update_tags(
    text: str, references: Sequence[ImageReference], tags: Mapping[str, Mapping[str, float]], namespace: str
) -> Update:
    """Return the file with the newest tag of each image; images that share a tag get the newest one that all have.

    `tags` has the tags in the registry by the keys of the images, with the time of each push. An image of another
    namespace, such as staging, moves to `namespace`. Raises `UserError` if the file cannot be edited in place.
    """
    groups = defaultdict(list)
    for reference in references:
        groups[reference.variable, "" if reference.variable else reference.key].append(reference)
    edits = _Edits()
    for members in groups.values():
        _choose_tag(edits, members, tags, namespace)
    if not edits.changes:
        return Update(text, notes=tuple(edits.notes))
    edited = _replace_values(text, edits.values)
    expected = {**read_images(text), **edits.values, **{change.key: change.new_image for change in edits.changes}}
    # Our own patterns edited the lines, so let configparser verify the result: nothing but the tags may differ.
    if read_images(edited) != expected:
        raise UserError(NOT_IN_PLACE.format(names=", ".join(change.key for change in edits.changes)))
    return Update(edited, tuple(edits.changes), tuple(edits.notes))


def _choose_tag(
    edits: _Edits, members: Sequence[ImageReference], tags: Mapping[str, Mapping[str, float]], namespace: str
) -> None:
    untagged = [reference for reference in members if not tags.get(reference.key)]
    edits.notes += [NO_TAGS.format(image=code(reference.in_main(namespace))) for reference in untagged]
    if untagged:
        return
    common = set.intersection(*(set(tags[reference.key]) for reference in members))
    variable = members[0].variable
    if not common:
        images = ", ".join(code(reference.key) for reference in members)
        edits.notes.append(NO_COMMON_TAG.format(images=images, variable=code(variable)))
        return
    # For images that share a tag, the time at which the last of them got it counts.
    newest = max(common, key=lambda tag: (min(tags[reference.key][tag] for reference in members), tag))
    for reference in members:
        name = f"{reference.namespace}/{reference.name}" if variable else reference.in_main(namespace)
        new_image = f"{name}:{newest}" if newest != reference.tag else reference.image
        if new_image != reference.image:
            edits.changes.append(TagChange(reference.key, reference.image, new_image))
            edits.values[variable or reference.key] = newest if variable else new_image


def _replace_values(text: str, values: Mapping[str, str]) -> str:
    """Replace the values of some keys of the section; leave every other character as it is."""
    # Not `splitlines`, which would lose the original line ends: TVM's script doubled them (TVM #18717).
    lines, section = text.split("\n"), ""
    for number, line in enumerate(lines):
        if header := _HEADER.match(line):
            section = header["name"]
        match = _LINE.fullmatch(line) if section in (SECTION, configparser.DEFAULTSECT) else None
        if match and (value := values.get(match["key"].lower())) is not None:
            lines[number] = f"{match['before']}{value}{match['after']}"
    return "\n".join(lines)
