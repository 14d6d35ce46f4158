"""Work in a thread of its own, so that the caller's thread can look after limits and hear a Ctrl-C."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class InThread(Generic[Answer]):
    """Work in a thread of its own, which does not keep the process alive."""

    def __init__(self, work: Callable[[], Answer]) -> None:
        self._work = work
        self._answers: list[Answer] = []
        self._errors: list[BaseException] = []
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self._answers.append(self._work())
        except BaseException as error:  # raised again by whoever asks for the answer
            self._errors.append(error)

    def answer(self) -> Answer:
        """What the work returned, or the error that it raised, once the thread has ended."""
        if self._errors:
            raise self._errors[0]
        return self._answers[0]
