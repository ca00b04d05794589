"""The order of a batch where the engine's queue is full, with jobs that only pretend."""
import pytest

import headrace
from headrace._batch import run_all


class Queue:
    """Takes so many jobs, and runs none before somebody waits for it."""

    def __init__(self, places):
        self.places, self.taken, self.log = places, 0, []


class FakeRun:
    def __init__(self, queue, name):
        self.queue, self.name, self.has_ended = queue, name, False

    def wait(self):
        if not self.has_ended:
            self.has_ended = True
            self.queue.taken -= 1
            self.queue.log.append(self.name)

    def cancel(self):
        pass


class FakeJob:
    def __init__(self, queue, name, error=None):
        self.queue, self.name, self.fault = queue, name, error
        self.run = self.error = None
        self.num_tries = 0

    def submit(self):
        self.num_tries += 1
        if self.fault is not None:
            raise self.fault
        if self.queue.taken == self.queue.places:
            raise headrace.OverloadedError("full")
        self.queue.taken += 1
        self.run = FakeRun(self.queue, self.name)

    def result(self):
        return headrace.Generation([], [headrace.Choice(0, self.name, [], "stop")],
                                   error=self.error)


def test_a_full_queue_is_waited_for():
    queue = Queue(3)
    jobs = [FakeJob(queue, str(i)) for i in range(10)]
    done = run_all(jobs, True)
    assert [each.text for each in done] == [str(i) for i in range(10)]
    assert queue.log == [str(i) for i in range(10)] and max(job.num_tries for job in jobs) == 2


def test_a_queue_full_of_others():
    jobs = [FakeJob(Queue(0), "a"), FakeJob(Queue(1), "b")]
    with pytest.raises(headrace.OverloadedError) as caught:
        run_all(jobs, True)
    assert [each.error is None for each in caught.value.results] == [False, True]


def test_an_error_that_is_none_of_ours_cancels_all():
    queue = Queue(5)
    with pytest.raises(MemoryError):
        run_all([FakeJob(queue, "a"), FakeJob(queue, "b", MemoryError())], False)
    assert queue.log == ["a"]
