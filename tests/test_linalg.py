"""Products of matrices with one BLAS thread."""

from __future__ import annotations

import pytest


def test_blas_has_its_threads_again_after_the_last_context() -> None:
    from threadpoolctl import threadpool_info, threadpool_limits

    from gpucenters.arrays.backend import HOST
    from gpucenters.arrays.linalg import one_blas_thread

    def threads() -> set[int]:
        return {i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"}

    with threadpool_limits(2, user_api="blas"):
        before = threads()
        first, second = one_blas_thread(HOST), one_blas_thread(HOST)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)  # the first of two fits ends before the second one
        assert threads() == {1}
        second.__exit__(None, None, None)
        assert threads() == before
        with pytest.raises(KeyError, match="inside"), one_blas_thread(HOST):
            raise KeyError("inside")
        assert threads() == before
