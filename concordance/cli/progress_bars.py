"""Progress bars on a terminal, fed by the news of long work."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from concordance.escaping import in_a_line
from concordance.progress import News, listening


@contextmanager
def bars(console: Console) -> Iterator[None]:
    """Show a bar a piece of work while the block runs; nothing where there is no terminal."""
    if not console.is_terminal:
        yield
        return
    lock = threading.Lock()
    shown: dict[tuple[str, str], TaskID] = {}
    progress = Progress(
        # As text: the name of a set's folder may look like markup.
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(compact=True),
        console=console,
        transient=True,
    )

    def show(news: News) -> None:
        with lock:
            key = (news.stage, news.subject)
            if key not in shown:
                shown[key] = progress.add_task(
                    f"{news.stage} {in_a_line(news.subject)}", total=news.total
                )
            progress.update(shown[key], completed=news.done, total=news.total)

    with progress, listening(show):
        yield
