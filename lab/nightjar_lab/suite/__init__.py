"""Black-box tests of compilers and backends: flows x suites, each case through the stages of a flow.

A flow is what a user of a backend does: quantize, lower, load, run. A suite is a list of models with inputs and
expected outputs. The result of a case is the stage at which it fails. Write flows and suites with `flow` and `case`.
"""
