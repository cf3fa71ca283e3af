"""The pull request that updates Docker images, and the reasons in the audit log."""

TITLE = "[ci][docker] Update images to their newest tags"
BODY = """\
Docker Hub has newer tags for the images in `{file}`.

| image | from | to |
|---|---|---|
{rows}
{notes}
I check every day and keep this branch at one commit with the newest tags. If you push to the branch, I leave it to you.
If you close this pull request, I wait for newer tags."""
ROW = "| {key} | {before} | {after} |"
NOT_UPDATED = "\nNot updated: {notes}.\n"

NEWER_TAGS = "newer tags for {count} of {all} images"
NO_NEWER_TAGS = "no newer tags for any of {all} images"
NO_BASE = "there is no branch {branch}; set docker_update.base in app.yaml to the branch to update"
NO_IMAGES_FILE = "there is no file {path} on {branch}; set docker_update.file in app.yaml to the file that CI reads"
NOT_TEXT = "{path} is not a text file, or is larger than {most} KiB, so its images cannot be read"
NO_IMAGES = "{path} has no image of {namespace} or {staging}"

MALFORMED_FILE = "the file of images cannot be read: {problem}"
NO_SECTION = "the file of images has no section [{section}]"
LINE_TOO_LONG = "the file of images has a line of more than {most} characters, the maximum"
TOO_MANY_IMAGES = "the file of images has {count} images, more than the maximum of {most}"
NOT_IN_PLACE = "the tags of {names} cannot be replaced; write each image as NAMESPACE/NAME:TAG on a line of its own"
NO_TAGS = "{image} has no tag such as 20221013-060115-61c9742ea on Docker Hub"
NO_COMMON_TAG = "{images} share the tag {variable}, and Docker Hub has no tag that all of them have"
LONE_PERCENT = "a lone % in {value}; write %% instead"

UPDATE_OF_ITS_BASE = "branch and base must differ: the bot force-pushes and deletes branch"
