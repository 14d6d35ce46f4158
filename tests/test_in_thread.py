"""Work in a thread of its own gives its answer, or its error, to whoever asks."""

import threading

import pytest

from softsurv.in_thread import InThread


def test_the_answer_is_that_of_the_work_in_another_thread():
    aside = InThread(threading.get_ident)
    aside.thread.join()
    assert aside.answer() not in (None, threading.get_ident())
    assert aside.thread.daemon


def test_the_error_is_that_of_the_work():
    def work():
        raise KeyError("lost")

    aside = InThread(work)
    aside.thread.join()
    with pytest.raises(KeyError, match="lost"):
        aside.answer()
