"""The columns of ExecuTorch's report (`CSV_FIELD_NAMES` in `backends/test/suite/reporting.py` there), in its order."""

from __future__ import annotations

import enum


class ExecutorchColumn(str, enum.Enum):
    """A column by its name in the file."""

    TEST_ID = "Test ID"
    TEST_CASE = "Test Case"
    SUBTEST = "Subtest"
    FLOW = "Flow"
    PARAMS = "Params"
    RESULT = "Result"
    DETAIL = "Result Detail"
    DELEGATED = "Delegated"
    QUANTIZE_TIME = "Quantize Time (s)"
    LOWER_TIME = "Lower Time (s)"
    DELEGATED_NODES = "Delegated Nodes"
    UNDELEGATED_NODES = "Undelegated Nodes"
    DELEGATED_OPS = "Delegated Ops"
    UNDELEGATED_OPS = "Undelegated Ops"
    SIZE = "PTE Size (Kb)"
    OUTPUT_0_MAX = "Output 0 Error Max"
    OUTPUT_0_MAE = "Output 0 Error MAE"
    OUTPUT_0_SNR = "Output 0 SNR"
    OUTPUT_1_MAX = "Output 1 Error Max"
    OUTPUT_1_MAE = "Output 1 Error MAE"
    OUTPUT_1_SNR = "Output 1 SNR"
    ERROR = "Error"


COLUMNS = tuple(column.value for column in ExecutorchColumn)


def error_columns(output: int) -> tuple[str, str, str]:
    """Return the columns of an output's largest error, mean error and signal-to-noise ratio; the report has two."""
    return f"Output {output} Error Max", f"Output {output} Error MAE", f"Output {output} SNR"
