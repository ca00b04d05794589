"""Many prompts at once: all go to the engine together, and each has a result of its own."""

from __future__ import annotations

from collections import deque
from typing import Deque, Sequence

from ._errors import HeadraceError, Interrupted, OverloadedError
from ._job import Job
from ._results import Generation


def run_all(jobs: Sequence[Job], raise_on_error: bool) -> list[Generation]:
    """Runs them to their ends. One that fails leaves the others alone; with `raise_on_error` the
    first error is raised then, and has all results. Ctrl-C cancels all and raises Interrupted,
    which has what there was."""
    try:
        _wait_for_all(jobs)
        results = [job.result() for job in jobs]
    except KeyboardInterrupt:
        raise Interrupted(_cancel_all(jobs)) from None
    except BaseException:
        _cancel_all(jobs)
        raise
    failed = next((result.error for result in results if result.error is not None), None)
    if raise_on_error and failed is not None:
        failed.results = results
        raise failed
    return results


def _wait_for_all(jobs: Sequence[Job]) -> None:
    running: Deque[Job] = deque()
    for job in jobs:
        while not _begin(job, can_wait=bool(running)):
            _wait(running.popleft())
        if job.run is not None:
            running.append(job)
    for job in running:
        _wait(job)


def _begin(job: Job, can_wait: bool) -> bool:
    """Whether its turn is over: it runs, or failed. False where the queue is full and others of
    ours will make room."""
    try:
        job.submit()
    except OverloadedError as error:
        if can_wait:
            return False
        job.error = error
    except HeadraceError as error:
        job.error = error
    return True


def _wait(job: Job) -> None:
    assert job.run is not None
    job.run.wait()


def _cancel_all(jobs: Sequence[Job]) -> list[Generation]:
    """Cancels what runs and waits for its end, which is near; a second Ctrl-C does not wait."""
    running = [job.run for job in jobs if job.run is not None]
    for run in running:
        run.cancel()
    try:
        for run in running:
            run.wait()
    except KeyboardInterrupt:
        pass
    return [job.result() for job in jobs]
