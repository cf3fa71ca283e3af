"""Errors about app.yaml, a repository's own file and the environment: what is wrong, and what is allowed."""

# -- files that cannot be read; {most} and {reason} say why --

FILE_MISSING = "the file does not exist; create it or name another one"
FILE_UNREADABLE = "cannot be read: {reason}; name another file, or make this one readable"
FILE_EMPTY = 'the file is empty; it needs at least "repositories: {octocat/compiler: {}}"'
FILE_TOO_LARGE = "the file is larger than {most} KiB, the maximum"
TOO_MANY_NODES = "the file has more than {most:,} keys and values, the maximum"
TOO_MANY_VALUES = (
    "defaults and patterns, repeated below every repository, make more than {most:,} values, the maximum; shorten "
    "them, or write a pattern such as octo-org/* in place of many repositories"
)
TOO_DEEP = "the file is nested deeper than {most} levels, the maximum"
NOT_UTF8 = "the file is not UTF-8 text; save it as UTF-8"
CONTROL_CHARACTER = "a control character, which YAML does not allow; remove it"
NOT_A_FILE = "is a {kind} instead of a file; put a file there"
FILE_KINDS = {"dir": "folder", "symlink": "broken symbolic link", "submodule": "submodule"}

# -- YAML syntax --

NOT_YAML = "not valid YAML: {problem}"
STARTED_IN_LINE = "{problem}, {context} that starts in line {line}"
MISSING_COLON = "a colon is missing after {key}"
ONE_DOCUMENT = "a second YAML document starts here; a file holds one document, remove the ---"
NO_ALIASES = "anchors and aliases (& and *) are not supported; write the value out, or share it through defaults"
QUOTE_PATTERN = '{problem}; a value that starts with * must be in quotes, as in "*/branch"'
QUOTE_MENTION = 'a value that starts with @ must be in quotes, as in "@ci"'
NO_TABS = "tabs cannot indent YAML; use spaces"
NO_TAGS = "tags (!) are not supported; write the plain value"
NO_DIRECTIVES = "directives (%) are not supported; remove the line"
KEY_NOT_TEXT = "a key must be plain text"
WRITTEN_TWICE = "is there twice, first in line {line}; remove one of them"
WRITTEN_IN_TWO_FILES = "is there twice, first in {place}; remove one of them"
NOT_A_MAPPING = "must be a mapping of keys"
REPOSITORY_TWICE = "the same repository as in {place}: GitHub ignores upper and lower case; remove one of them"

# -- unknown and misplaced keys --

UNKNOWN_KEY = "unknown key{guess}; allowed: {known}"
NO_KEYS = "unknown key; {feature} has no keys, write true or false"
KEY_OF_REPOSITORY = "is a key of a repository; indent it below a repository, or below defaults"
INDENT_FEATURE = "is a key of a repository; indent it below a repository"
ONLY_IN_APP_YAML = "can only be set in app.yaml, by the operator of the bot; remove it here"
NOT_ENABLED = (
    "is not enabled in app.yaml, and cannot be enabled here; remove it, or ask the operator of the bot to enable it"
)
MISSING_KEY = "the key {key} is missing; it must be {words}"

# -- values --

WRONG_VALUE = "must be {words}{guess}"
WRONG_TYPE = "is {kind}; it must be {words}{remedy}"
EMPTY_VALUE = "is empty; it must be {words}"
VALUE_TOO_LONG = "is longer than {limit} characters, the maximum"
LIST_TOO_LONG = "has more than {limit} items, the maximum"
DID_YOU_MEAN = " (did you mean {guess}?)"
OR_EMPTY = "; leave the value empty for the defaults, or indent keys below it"
FOR_EXAMPLE = "; for example {example}"
QUOTE_IT = "; put it in quotes"
WRITE_SWITCH = 'is the text "{written}"; write {switch}'
KIND_EMPTY = "empty"
KIND_NUMBER = "a number"
KIND_TEXT = "text"
KIND_LIST = "a list"
KIND_MAPPING = "a mapping"

WHOLE_REF = "must be the name of a branch without refs/heads/"
SHORT_INTERVAL = "is too short; it must be one minute or more, as in 15m"
UNKNOWN_TIME_ZONE = "is not a time zone known here; it must be one of the IANA database, as in America/Los_Angeles"
BAD_PATH = "must not have a part that is empty, . or .."
UNKNOWN_PLACEHOLDER = "must not contain {written}; available placeholders: {known}"

# -- keys that contradict each other --

BRANCH_IN_USE = "branch must differ from the one of {other}, which moves it too"
UNKNOWN_TARGET = "names {target}, but results.labs has no such lab and target"
NEEDS_RESULTS = "needs the key results, which says where labs upload; add it, or remove this key"


# -- the environment --

NOT_SET = "is not set; it must be {description}"
MALFORMED = "is malformed; it must be {description}"
NO_PRIVATE_KEY = "is not set, and neither is GITHUB_PRIVATE_KEY_FILE; set one of them to the App's private key"
TWO_PRIVATE_KEYS = "and GITHUB_PRIVATE_KEY_FILE are both set; remove one of them"
NOT_A_PRIVATE_KEY = (
    "is not an RSA private key in PEM form; it must be the whole .pem file from GitHub, from -----BEGIN to END-----, "
    "without a passphrase"
)
KEY_FILE_MISSING = "names a file that does not exist; it must be the path of the .pem file from GitHub"
KEY_FILE_UNREADABLE = "names a file that cannot be read: {reason}; it must be the path of the .pem file from GitHub"
NO_SUCH_PATH = "no such path"
SECRET_FILE = "names {fault}; it must be the path of a file with the value of {name}"  # noqa: S105
FILE_IS_MISSING, FILE_IS_EMPTY = "a file that does not exist", "an empty file"
FILE_IS_UNREADABLE = "a file that cannot be read: {reason}"
SECRET_TWICE = "{name} and {name}_FILE are both set; remove one of them"  # noqa: S105
SHORT_SECRET = (
    "has a secret of fewer than {least} characters; choose a longer one, and enter it on the App's page on GitHub too "  # noqa: S105
    "(separate several secrets by spaces)"
)
NOT_A_DATABASE = (
    "must be sqlite:///PATH or postgresql://…, as in sqlite:///nightjar.db or postgresql://db.example.org/nightjar"
)
NOT_IN_MEMORY = "must name a file: a database in memory is lost when the server ends"
SIGN_IN_TRIO = "belongs together with GITHUB_CLIENT_ID and GITHUB_CLIENT_SECRET; set all three or none"
SHORT_SESSION_SECRET = (
    "has fewer than {least} characters; make one with python3 -c 'import secrets; print(secrets.token_hex(32))'"  # noqa: S105
)
JENKINS_PAIR = "and JENKINS_USER belong together; set both or neither"

SAMPLE_HEAD = """\
# yaml-language-server: $schema=docs/app.schema.json
#
# A sample with every key. Only `repositories` is required. docs/configuration.md describes each key.
# Validate with: nightjar check-config app.yaml
# Secrets come from the environment. In the bot's own repository, `make docs` writes this file.
"""
SAMPLE_EMPTY_ENTRY = "An empty entry enables {features}."
SAMPLE_ANY_CASE = "Case doesn't matter, as on GitHub."
SAMPLE_OFF = "All features below are off unless you add their key."
GUIDE_INVALID_FILE = """\
mentions: ["ci"]
repositories:
  octocat/compiler:
    slow_test: false
    rerun: {allow: [triager], jenkins: [{url: http://ci.example.org}]}
  hubot: {}
"""
"""A file with errors, for the guide."""
FEATURE_PAGE = """\
# `{name}`

<!-- generated by `make docs` -->

{description}

A key of a repository in [`app.yaml`](../configuration.md): {values}. Default: {default}.
[What the feature does](../features.md)

## Keys

{keys}

## Sample

It has every key. A key that contradicts another one is commented out.

```yaml
{sample}
```
"""
GUIDE_ERRORS = "Given\n\n```yaml\n{file}```\n\nit says\n\n```\n{errors}\n```"
