"""What a repository holds, as the planner compares it and as documents: the files of a commit.

What belongs here: reading through the adapters. Session logs are `concordance.following`'s matter.
What is to be done about it is planned in
`concordance.indexing.plan` and carried out by `concordance.writing`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from concordance.adapters.git import TreeEntry
from concordance.adapters.postgres import projects
from concordance.errors import SourceRefused
from concordance.indexing.build import (
    LanguageChooser,
    file_document,
    skipped_document,
    storable_name,
)
from concordance.indexing.documents import Document
from concordance.indexing.plan import Found
from concordance.indexing.scopes import place, read_adr_dir
from concordance.resources import Resources
from concordance.settings import Project
from concordance.surveying import row_fingerprint
from concordance.text.cutting import ChunkSizes
from concordance.text.language import language_of

# A .adr-dir holds one path; what is larger is something else.
MOST_ADR_DIR_BYTES = 4_096


def list_files(resources: Resources, project: Project, commit: str) -> list[Found]:
    """The files of a commit that a scope names; those that are not read carry the reason.

    Raises:
        SourceRefused: The tree has more files than `max_files` allows, or its files more text
            than `max_text_bytes`.
    """
    most = resources.settings.max_files
    entries = resources.mirror.list_tree(project.slug, commit, most=most)
    if len(entries) > most:
        first, _ = readable_name(entries[most].path)
        raise SourceRefused(
            f"the tree of '{project.slug}' has {len(entries):,} files, over the limit of "
            f"{most:,}; the first one over it is '{first}'",
            hint="Raise CONCORDANCE_MAX_FILES if this is meant",
        )
    adr_dir = read_adr_folder(resources, project, entries)
    found: dict[str, Found] = {}
    scrubber = resources.scrubber(project)
    for entry in entries:
        name, skip = readable_name(entry.path)
        placed = place(name, project.scopes, adr_dir)
        if placed.scope is None:
            continue
        name = scrubber.name(name)
        if name in found:
            # Two names that differ in bytes only can look alike once they are escaped.
            name = f"{name} ({entry.blob_id[:12]})"
        skip = skip or _skip_reason(entry, resources.settings.max_file_bytes)
        found[name] = Found(placed.scope, "file", name, entry.blob_id, entry.size or 0, skip)
    _check_amount(project, list(found.values()), resources.settings.max_text_bytes)
    return list(found.values())


def _check_amount(project: Project, found: Sequence[Found], most: int) -> None:
    """Refuse a tree whose files hold too much together: one blob may stand under many names."""
    total = 0
    for file in found:
        total += 0 if file.skip else file.bytes
        if total > most:
            raise SourceRefused(
                f"the files of '{project.slug}' that are to be indexed hold more than {most:,} "
                f"bytes; '{file.name}' is the first one over the limit",
                hint="Raise CONCORDANCE_MAX_TEXT_BYTES if this is meant, or leave folders out",
            )


def read_adr_folder(
    resources: Resources, project: Project, entries: Sequence[TreeEntry]
) -> str | None:
    """The folder that a `.adr-dir` file at the root names, if the project's rules heed it."""
    if not project.scopes.adr_dir_file:
        return None
    for entry in entries:
        if (
            entry.path == b".adr-dir"
            and entry.kind == "file"
            and (entry.size or 0) < MOST_ADR_DIR_BYTES
        ):
            for _, data in resources.mirror.read_blobs(project.slug, [entry.blob_id]):
                return read_adr_dir(data)
    return None


def readable_name(path: bytes) -> tuple[str, str | None]:
    """A path as text that can be stored, and why the file is not read where it should not be."""
    if not {b"", b".", b".."}.isdisjoint(path.split(b"/")):
        # git makes no such name; a link to it would lead out of the repository.
        escaped = path.decode("utf-8", errors="backslashreplace")
        return storable_name(escaped), "the file's path is absolute or holds '.' or '..'"
    try:
        name = path.decode("utf-8")
    except UnicodeDecodeError:
        escaped = path.decode("utf-8", errors="backslashreplace")
        return storable_name(escaped), "the file's name is not UTF-8"
    stored = storable_name(name)
    return stored, None if stored == name else "the file's path is too long to be stored"


def _skip_reason(entry: TreeEntry, largest: int) -> str | None:
    if entry.kind == "symlink":
        return "a symbolic link; it is not followed"
    if entry.kind == "submodule":
        return "a submodule; index it as a project of its own"
    if entry.size is not None and entry.size > largest:
        return f"{entry.size:,} bytes, over the limit of {largest:,} (CONCORDANCE_MAX_FILE_BYTES)"
    return None


def read_files(
    resources: Resources, project: Project, commit: str, wanted: Sequence[Found]
) -> Iterator[Document]:
    """Files of a commit as documents, each read and chunked as it is asked for."""
    chunker = row_fingerprint(project)
    for found in wanted:
        if found.skip is not None:
            yield skipped_document(found, commit=commit, chunker=chunker)
    readable = [found for found in wanted if found.skip is None]
    if not readable:
        return  # an empty repository has nothing on this machine that could be asked
    choose = language_chooser(resources, project)
    blobs = resources.mirror.read_blobs(project.slug, [f.content_id for f in readable])
    scrubber = resources.scrubber(project)
    for found, (_, data) in zip(readable, blobs, strict=True):
        yield file_document(
            found,
            data,
            commit=commit,
            chunker=chunker,
            sizes=ChunkSizes(),
            language=choose,
            scrubber=scrubber,
        )


def language_chooser(resources: Resources, project: Project) -> LanguageChooser:
    """How the analysis of a project's texts is chosen: as it is set, or by detection."""
    known = projects.known_languages(resources.database)
    return lambda text: language_of(text, project.language, known)
