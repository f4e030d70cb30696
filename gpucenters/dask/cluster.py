"""Running tasks on a Dask cluster: progress, retries, and errors that name the partition."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import distributed

from .. import __version__

#: How often a task that fails is tried again: a file system or a network may fail once.
RETRIES = 2


def check_versions(client: Any) -> None:
    """Raise a RuntimeError that names a worker with another version of gpucenters, or none."""
    found = client.get_versions(packages=["gpucenters"])["workers"]
    for worker, versions in found.items():
        version = versions["packages"].get("gpucenters")
        if version != __version__:
            raise RuntimeError(
                f"worker {worker} has gpucenters {version}, this process {__version__}: install "
                "one version everywhere."
            )


def current_client(client: Any) -> Any:
    """The client that is given, or else the current one."""
    if client is None:
        try:
            client = distributed.get_client()
        except ValueError as error:
            raise ValueError(
                "there is no Dask client: start one, as with dask.distributed.Client(), or pass "
                "it as client."
            ) from error
    if client.asynchronous:
        raise TypeError("gpucenters.dask needs a client that is not asynchronous.")
    check_versions(client)
    return client


@contextlib.contextmanager
def out_of_the_pool() -> Iterator[None]:
    """Leave the threads of a worker to the tasks that are waited for, where a task itself waits."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(ValueError):  # no task
            stack.enter_context(distributed.worker_client())
        yield


def task_name(what: str, token: str, partition: int | None = None) -> str:
    """The key of a task: the dashboard shows ``what``, and errors find the partition."""
    return f"{what}-{token}" if partition is None else f"{what}-{token}-{partition}"


def compute(client: Any, task: Any, verbose: bool) -> Any:
    """The result of a delayed object.

    Raises
    ------
    Exception
        That of the task that failed, with the number of its partition.
    """
    future = client.compute(task, retries=RETRIES)
    if verbose:
        distributed.progress(future, notebook=False)
        print()
    error = future.exception()  # waits for the end
    if error is None:
        return future.result()
    partition = client.run_on_scheduler(_partition_to_blame, key=future.key)
    raise named(error, partition) from error


def named(error: BaseException, partition: int | None) -> BaseException:
    """The error with the number of the partition in its message."""
    if partition is None or str(error).startswith("partition "):
        return error
    for kind in (ValueError, TypeError, MemoryError):
        if isinstance(error, kind):
            return kind(f"partition {partition}: {error}")
    return RuntimeError(f"partition {partition}: {type(error).__name__}: {error}")


def _partition_to_blame(dask_scheduler: Any, key: str) -> int | None:
    """The partition of the task that made another one fail.

    It runs on the scheduler. The task that failed is ours, and its key ends with the partition; or
    the caller's, and then the first of ours that depends on it tells.
    """
    task = dask_scheduler.tasks.get(key)
    blamed = task and task.exception_blame
    waiting, seen = [blamed] if blamed else [], set()
    while waiting:
        task = waiting.pop(0)
        found = re.fullmatch(r"gpucenters-.*-(\d+)", str(task.key))
        if found:
            return int(found[1])
        seen.add(task.key)
        waiting += [t for t in task.dependents if t.key not in seen]
    return None
