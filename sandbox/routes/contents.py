"""Files: contents and trees.

https://docs.github.com/rest/repos/contents
"""

from __future__ import annotations

import base64
from datetime import datetime

from sandbox.errors import ApiError, not_found, refused
from sandbox.git import blob_sha, tree_sha
from sandbox.routing import ApiResponse, Call, route
from sandbox.views import repositories

from .issues import REPO


@route("GET", f"{REPO}/contents/{{path}}", "contents")
def get_contents(call: Call) -> ApiResponse:
    """Return a file (raw if the Accept header asks for that) or the listing of a folder."""
    repository, path = call.repository, call.path["path"].strip("/")
    ref = call.query.get("ref", repository.default_branch)
    commit = repository.resolve(ref)
    if commit is None:
        raise ApiError(404, f"No commit found for the ref {ref}")
    text = commit.files.get(path)
    if text is not None:
        if "raw" in call.accept:
            return ApiResponse(text=text)
        encoded = base64.encodebytes(text.encode()).decode()
        return ApiResponse(repositories.file(repository, ref, path, text) | {"encoding": "base64", "content": encoded})
    inside = [name.removeprefix(path + "/") for name in commit.files if name.startswith(path + "/")]
    if not inside:
        raise not_found()
    listing = []
    for name in sorted({name.partition("/")[0] for name in inside}):
        full_path = f"{path}/{name}"
        below = {n.removeprefix(full_path + "/"): t for n, t in commit.files.items() if n.startswith(full_path + "/")}
        listing.append(repositories.file(repository, ref, full_path, commit.files.get(full_path), tree_sha(below)))
    return ApiResponse(listing)


@route("PUT", f"{REPO}/contents/{{path}}", "contents")
def put_contents(call: Call) -> ApiResponse:
    """Create or change a file with a commit of its own."""
    repository, path, body = call.repository, call.path["path"], call.body
    branch = body.get("branch", repository.default_branch)
    if f"refs/heads/{branch}" not in repository.refs:
        raise ApiError(404, f"Branch {branch} not found")
    present = repository.git.commits[repository.branch(branch)].files.get(path)
    if present is not None and "sha" not in body:
        raise refused('Invalid request.\n\n"sha" wasn\'t supplied.')
    if present is not None and body["sha"] != blob_sha(present):
        raise ApiError(409, f"{path} does not match {body['sha']}")
    text = base64.b64decode(body["content"]).decode()
    made = repository.push(branch, {path: text}, by=call.actor, message=body["message"])
    file = repositories.file(repository, branch, path, text)
    return ApiResponse({"content": file, "commit": repositories.git_commit(repository, made)}, 200 if present else 201)


@route("GET", f"{REPO}/git/trees/{{tree_sha}}", "contents")
def get_tree(call: Call) -> ApiResponse:
    """Return the tree of a commit; the sandbox only has recursive listings."""
    repository, named = call.repository, call.path["tree_sha"]
    by_tree = next((c for c in repository.git.commits.values() if c.tree_sha == named), None)
    commit = by_tree or repository.resolve(named)
    if commit is None:
        raise not_found()
    url = f"{repositories.url(repository)}/git"
    tree = [
        {"path": path, "mode": "100644", "type": "blob", "sha": blob_sha(text), "size": len(text.encode()),
         "url": f"{url}/blobs/{blob_sha(text)}"}
        for path, text in sorted(commit.files.items())
    ]  # fmt: skip
    body = {"sha": commit.tree_sha, "url": f"{url}/trees/{commit.tree_sha}", "tree": tree, "truncated": False}
    return ApiResponse(body)


@route("GET", f"{REPO}/git/blobs/{{file_sha}}", "contents")
def get_blob(call: Call) -> ApiResponse:
    """Return a file of any commit by git's hash of its content."""
    repository, sha = call.repository, call.path["file_sha"]
    texts = (text for commit in repository.git.commits.values() for text in commit.files.values())
    text = next((text for text in texts if blob_sha(text) == sha), None)
    if text is None:
        raise not_found()
    content = base64.encodebytes(text.encode()).decode()
    url = f"{repositories.url(repository)}/git/blobs/{sha}"
    return ApiResponse(
        {
            "sha": sha,
            "node_id": f"B_{sha}",
            "url": url,
            "size": len(text.encode()),
            "encoding": "base64",
            "content": content,
        }
    )


@route("POST", f"{REPO}/git/trees", "contents")
def create_tree(call: Call) -> ApiResponse:
    """Create a tree from a base tree and new files; no commit refers to it yet."""
    repository, git = call.repository, call.repository.git
    base = git.tree(call.body["base_tree"]) if "base_tree" in call.body else {}
    if base is None:
        raise not_found()
    files = dict(base)
    for entry in call.body["tree"]:
        if (entry.get("mode"), entry.get("type")) != ("100644", "blob") or not isinstance(entry.get("content"), str):
            raise refused("The sandbox only creates trees of plain files, given with their content")
        files[entry["path"]] = entry["content"]
    sha = tree_sha(files)
    git.trees[sha] = files
    return ApiResponse({"sha": sha, "url": f"{repositories.url(repository)}/git/trees/{sha}", "truncated": False,
                   "tree": [{"path": path, "mode": "100644", "type": "blob", "sha": blob_sha(text),
                             "size": len(text.encode())} for path, text in sorted(files.items())]}, 201)  # fmt: skip


@route("POST", f"{REPO}/git/commits", "contents")
def create_commit(call: Call) -> ApiResponse:
    """Create a commit from a tree; no branch contains it yet."""
    git, body = call.repository.git, call.body
    files = git.tree(body["tree"])
    if files is None or any(parent not in git.commits for parent in body.get("parents", ())):
        raise refused(
            "Tree SHA does not exist" if files is None else "Parent SHA does not exist or is not a commit object"
        )
    named = body.get("author", {}).get("date")
    date = datetime.fromisoformat(named) if named else call.github.clock.now()
    made = git.commit(body.get("parents", ()), files, body["message"], call.actor, date, is_dated=bool(named))
    return ApiResponse(repositories.git_commit(call.repository, made), 201)


@route("GET", f"{REPO}/git/commits/{{commit_sha}}", "contents")
def get_git_commit(call: Call) -> ApiResponse:
    """Return a commit as a git object."""
    commit = call.repository.git.commits.get(call.path["commit_sha"])
    if commit is None:
        raise not_found()
    return ApiResponse(repositories.git_commit(call.repository, commit))
