"""Metadata as text files: JSON and YAML, and the overlays, which are always text."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, cast

from datacoolie_core import storage
from datacoolie_core.errors import Problem
from datacoolie_core.metadata.arrange import MODELS, arranged, same
from datacoolie_core.metadata.documents import DocumentError, read_document
from datacoolie_core.metadata.files import ENVIRONMENTS
from datacoolie_core.metadata.layout import EXTENSIONS, Form
from datacoolie_core.metadata.loader import read_files
from datacoolie_core.metadata.sections import PATCHES, SECTIONS
from datacoolie_core.metadata.yaml_text import write_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datacoolie_core.metadata.places import Document


def text_file(uri: str, document: Any, problems: list[Problem]) -> bytes:
    """Return a document as JSON or YAML, after it was read back and compared.

    Args:
        uri: The file; its ending decides.
        document: What it holds.
        problems: What it can't hold is added here.
    """
    content, message = b"", ""
    is_json = uri.endswith(".json")
    try:
        plain = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=not is_json)
        encoded = plain.encode()  # YAML would escape what no text can hold, and read it never
        content = encoded + b"\n" if is_json else write_yaml(document).encode()
        if not same(read_document(content, uri).content, document):
            message = "it would not come back as it is"
    except UnicodeEncodeError:
        message = "half of a surrogate pair is no text that a file can hold"
    except DocumentError as error:
        message = f"it could not be read back: {error}"
    except ValueError:
        message = "JSON can't hold a number that is not finite"
    if message:
        problems.append(Problem(message=message, source=uri.rpartition("/")[2]))
    return content


def overlay_files(
    environments: Mapping[str, Sequence[str]],
    folder: str,
    root: str,
    to: Form,
    problems: list[Problem],
) -> dict[str, bytes]:
    """Return overlays in their new form; those that are in their place already stay there.

    Args:
        environments: Name → the files of each.
        folder: Where the folder of environments goes.
        root: The project root.
        to: The form; overlays become YAML where it has no place for patches.
        problems: What could not be read or held is added here.
    """
    extension = EXTENSIONS["yaml" if to == "excel" else to]
    written: dict[str, bytes] = {}
    for name, files in environments.items():
        target = storage.join(folder, ENVIRONMENTS, name)
        moved = [uri for uri in files if not uri.startswith(f"{target}/")]
        for document in read_files(moved, root, problems):
            stem = PurePosixPath(document.source).stem
            uri = storage.join(target, f"{stem}{extension}")
            if uri in written:
                uri = storage.join(target, f"{stem}_{len(written)}{extension}")
            written[uri] = text_file(uri, _arranged_overlay(document), problems)
    return written


def _arranged_overlay(document: Document) -> Any:
    if not isinstance(document.content, dict):
        return document.content
    content = cast("dict[str, Any]", document.content)
    order = [*(key for key in content if key not in (*SECTIONS, PATCHES)), *SECTIONS, PATCHES]
    return {
        key: [arranged(one, MODELS[key]) for one in content[key]]
        if key in MODELS and isinstance(content[key], list)
        else content[key]
        for key in order
        if key in content
    }
