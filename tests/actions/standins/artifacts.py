"""What the two artifact stand-ins do: upload to and download from act's artifact server.

They speak version 4 of the artifact service's protocol with the standard library alone and keep to the rules of
the real actions that a workflow can run into: names and paths that are refused, hidden files that are left out,
and the folders that a download makes.

Usage: ``artifacts.py upload`` or ``artifacts.py download``, inputs as ``INPUT_*`` variables.
"""

from __future__ import annotations

import base64
import fnmatch
import hashlib
import io
import json
import os
import sys
import urllib.request
import zipfile
from pathlib import Path
from typing import Any

REFUSED = set('":<>|*?\r\n')
"""Characters that the artifact service refuses in a path; in a name also the slashes."""


class Service:
    """The artifact service of one workflow run."""

    def __init__(self) -> None:
        self._base = os.environ["ACTIONS_RESULTS_URL"].rstrip("/")
        self._token = os.environ["ACTIONS_RUNTIME_TOKEN"]
        payload = self._token.split(".")[1]
        scopes = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["scp"]
        _, run, job = next(scope for scope in scopes.split() if scope.startswith("Actions.Results:")).split(":")
        self._ids = {"workflow_run_backend_id": run, "workflow_job_run_backend_id": job}

    def call(self, method: str, **fields: object) -> Any:
        request = urllib.request.Request(
            f"{self._base}/twirp/github.actions.results.api.v1.ArtifactService/{method}",
            data=json.dumps({**self._ids, **fields}).encode(),
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {self._token}"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)


def either(answer: dict[str, Any], snake: str, camel: str) -> str:
    """A field of an answer, whichever way its name is written."""
    return str(answer.get(snake) or answer[camel])


def packed(folder: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            inside = path.relative_to(folder)
            if not path.is_file() or any(part.startswith(".") for part in inside.parts):
                continue
            if REFUSED & set(str(inside)):
                sys.exit(f"the path of an artifact's file may not hold any of {sorted(REFUSED)}: {inside}")
            archive.write(path, inside)
        if not archive.namelist() and os.environ["INPUT_IF_NO_FILES_FOUND"] == "error":
            sys.exit(f"no files found: {folder}")
    return buffer.getvalue()


def upload(service: Service) -> None:
    name = os.environ["INPUT_NAME"]
    if not name or (REFUSED | set("\\/")) & set(name):
        sys.exit(f"not a name for an artifact: {name!r}")
    data = packed(Path(os.environ["INPUT_PATH"]))
    url = either(service.call("CreateArtifact", name=name, version=4), "signed_upload_url", "signedUploadUrl")
    headers = {"x-ms-blob-type": "BlockBlob", "Content-Type": "application/zip"}
    put = urllib.request.Request(f"{url}&comp=appendBlock", data=data, headers=headers, method="PUT")
    with urllib.request.urlopen(put, timeout=60) as answer:
        answer.read()
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    service.call("FinalizeArtifact", name=name, size=str(len(data)), hash=digest)


def download(service: Service) -> None:
    name, pattern = os.environ["INPUT_NAME"], os.environ["INPUT_PATTERN"]
    names = [found["name"] for found in service.call("ListArtifacts").get("artifacts", [])]
    chosen = [name] if name else [found for found in names if fnmatch.fnmatch(found, pattern or "*")]
    flat = bool(name) or os.environ["INPUT_MERGE_MULTIPLE"] == "true" or len(chosen) == 1
    for artifact in chosen:
        url = either(service.call("GetSignedArtifactURL", name=artifact), "signed_url", "signedUrl")
        with urllib.request.urlopen(url, timeout=60) as answer:
            archive = zipfile.ZipFile(io.BytesIO(answer.read()))
        archive.extractall(Path(os.environ["INPUT_PATH"]) / ("" if flat else artifact))


if __name__ == "__main__":
    {"upload": upload, "download": download}[sys.argv[1]](Service())
